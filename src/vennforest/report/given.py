"""Evaluate probabilities, scores or a fitted model that are there already."""

from __future__ import annotations

import re
import time as clock
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import log_loss

from vennforest._files import one_line
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_scores,
    encode_labels,
)
from vennforest.calibrators.confidence import confidence_intervals
from vennforest.calibrators.core.interface import check_method, has_bounds, make_calibrator
from vennforest.classifier.intervals import predict_known
from vennforest.metrics import calibration_error
from vennforest.metrics._inputs import check_probabilities
from vennforest.multiprobability import Multiprobability
from vennforest.report.evaluation import (
    About,
    Evaluation,
    assemble,
    check_about,
    check_positive,
    method_names,
)
from vennforest.report.predictions import BASELINE, RAW, MethodEstimates, OutOfFold
from vennforest.report.splits import members_of, shuffled


def report(
    y: ArrayLike,
    predictions: Any,
    *,
    classes: ArrayLike | None = None,
    positive: Any = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    X: Any = None,
    **about: Unpack[About],
) -> Evaluation:
    """Evaluate probabilities that any models gave for rows they were not trained on.

    Nothing is trained. The result shows itself in a notebook, and writes the page with
    ``to_html``.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels.
    predictions : dict of str to array-like, or array-like
        By name of the model: probabilities of the positive class, shape (n,), or of every class in
        sorted order, shape (n, k), in [0, 1]; or a ``Multiprobability``, whose probability is its
        ``merge("log")``; or a pair of both. One alone need not be named.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    positive : label, optional
        The class that probabilities of shape (n,) are of: by default the second of two in sorted
        order. It is also the positive class of the page, which otherwise is the rarer one.
    groups : array-like of shape (n,), optional
        Rows of one group count as one observation in the intervals.
    by : mapping of str to array-like of shape (n,), optional
        Values whose rows are also looked at separately.
    costs : CostMatrix, array-like, dict, str or path, optional
        What decisions cost, see ``CostMatrix.read``.
    tolerance : float, optional
        Miscalibration that does not matter, in (0, 1); by default 0.02, and a fifth of the share of
        a positive class rarer than one in ten.
    random_state : int
        Of the labels drawn to see what chance gives.
    name, target : str
        Names of the data set and of the label.
    notes : sequence of str
        Remarks, one sentence each.
    X : data frame of shape (n, d), optional
        Whose index names the rows.

    Raises
    ------
    ValueError
        If predictions do not fit the labels, or are not probabilities.

    Examples
    --------
    >>> y = ["no", "yes", "no", "yes"] * 20
    >>> found = report(y, {"clinic": [0.2, 0.9, 0.4, 0.6] * 20, "coin": [0.5] * 80})
    >>> found.verdict.method
    'clinic'
    """
    check_about("report", about)
    started = clock.perf_counter()
    codes, labels = encode_labels(y, classes)
    if len(labels) < 2:
        raise InputError(
            f"y must hold at least two classes, got one: {str(labels[0])!r}; name the others with "
            "classes="
        )
    check_positive(positive, labels.astype(str))
    about.setdefault("name", "predictions")
    if not isinstance(predictions, Mapping):
        predictions = {"Predictions": predictions}
    if not predictions:
        raise InputError("predictions must hold those of at least one model, got none")
    estimates = {}
    for key, values in predictions.items():
        key = str(key)
        if key in (RAW, BASELINE):
            key = f"{key} (given)"
        estimates[key] = _estimates(key, values, labels, len(codes), positive)
    remarks: list[str] = []
    members = members_of(groups, len(codes), remarks)
    folds = OutOfFold.without_folds(labels, codes, estimates, members)
    return assemble(
        folds,
        X=X,
        positive=positive,
        settings={
            "random_state": int(random_state),
            "guarantee": "model",
            "noun": "model",
            "methods": list(estimates),
        },
        names={key: key for key in estimates},
        origin="given",
        remarks=remarks,
        started=started,
        **about,
    )


def _estimates(
    name: str, values: Any, labels: NDArray[Any], n: int, positive: Any
) -> MethodEstimates:
    """Return what one model predicts, with a column per class."""
    if isinstance(values, tuple):
        p, bounds = values
        whole = _estimates(name, bounds, labels, n, positive).bounds
        return MethodEstimates(_estimates(name, p, labels, n, positive).p, whole)
    if isinstance(values, Multiprobability):
        if values.classes.tolist() != labels.tolist() or len(values) != n:
            raise InputError(
                f"predictions of {name!r} must be of {n} rows and of the classes "
                f"{labels.tolist()}, got {len(values)} and {values.classes.tolist()}"
            )
        return MethodEstimates(values.merge("log"), values)
    try:
        p = check_probabilities(values)
    except ValueError as error:
        raise InputError(f"predictions of {name!r}: {error}") from error
    if len(p) != n:
        raise InputError(f"predictions of {name!r} must be of {n} rows, got {len(p)}")
    if p.ndim == 1:
        if len(labels) != 2:
            raise InputError(
                f"predictions of {name!r} must have a column for each of {len(labels)} classes, "
                "got one"
            )
        first = positive is not None and str(labels[0]) == str(positive)
        p = np.column_stack([p, 1 - p] if first else [1 - p, p])
    if p.shape[1] != len(labels):
        raise InputError(
            f"predictions of {name!r} must have a column for each of {len(labels)} classes "
            f"({', '.join(map(str, labels[:8]))}), got {p.shape[1]}"
        )
    return MethodEstimates(p / p.sum(axis=1, keepdims=True), None)


def class_of_name(name: str, labels: NDArray[Any]) -> int | None:
    """Return which class a column's name says it is of: ``p(yes)``, ``yes``, ``prob_yes``.

    None where it names none of them, or two.
    """
    found = []
    for j, label in enumerate(labels.astype(str)):
        pattern = rf"(^|[\W_]){re.escape(label)}\)?$"
        if name in (label, f"p({label})") or re.search(pattern, name, re.IGNORECASE):
            found.append(j)
    exact = [j for j in found if name in (str(labels[j]), f"p({labels[j]})")]
    found = exact or found
    return found[0] if len(found) == 1 else None


SCORE_METHODS = ("venn-abers", "platt", "isotonic")
"""What scores are calibrated by unless others are named."""


def report_scores(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    methods: Sequence[str] | None = None,
    n_folds: int = 10,
    positive: Any = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    X: Any = None,
    **about: Unpack[About],
) -> Evaluation:
    """Evaluate what calibrators make of scores that are not probabilities.

    Each calibrator is fitted to the scores of the other folds. The scores themselves have to be of
    rows that their model was not trained on.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels.
    scores : array-like of shape (n,) or (n, k)
        Of the positive class (as in ``report``), or of every class in sorted order; any real
        numbers.
    methods : sequence of str, optional
        Calibrators; by default Venn–Abers, Platt and isotonic.
    n_folds : int
        Integer >= 2.
    positive, groups, by, costs, tolerance, random_state, name, target, notes, X
        As in ``report``; rows of a group are never on both sides of a fold.

    Raises
    ------
    ValueError
        If scores do not fit the labels.
    """
    check_about("report_scores", about)
    started = clock.perf_counter()
    about.setdefault("name", "scores")
    codes, labels = encode_labels(y)
    values = check_scores(scores)
    check_count(n_folds, "n_folds", 2)
    if len(labels) < 2 or np.bincount(codes).min() < 2:
        raise InputError("y must hold at least two classes with two rows each to calibrate scores")
    if len(values) != len(codes):
        raise InputError(f"scores must be of {len(codes)} rows, got {len(values)}")
    if values.ndim == 1 and len(labels) != 2:
        raise InputError(f"scores must have a column for each of {len(labels)} classes, got one")
    check_positive(positive, labels.astype(str))
    if values.ndim == 1 and positive is not None and str(labels[0]) == str(positive):
        values = -values
    chosen = [check_method(method).name for method in methods or SCORE_METHODS if method != RAW]
    remarks: list[str] = []
    members = members_of(groups, len(codes), remarks)
    n_folds = min(int(n_folds), int(np.bincount(codes).max()))
    splits = shuffled(codes, members, n_folds, random_state)
    fold = np.zeros(len(codes), np.intp)
    for i, (_, held) in enumerate(splits):
        fold[held] = i
    try:
        estimates = {m: _calibrated(m, values, codes, labels, splits, members) for m in chosen}
    except ValueError as error:  # scores that a calibrator does not take
        raise InputError(one_line(error)) from error
    return assemble(
        OutOfFold(labels, codes, fold, np.arange(len(codes)), estimates, {}, {}, groups=members),
        X=X,
        positive=positive,
        settings={
            "random_state": int(random_state),
            "guarantee": "kept",
            "noun": "calibrator",
            "n_folds": len(splits),
            "methods": chosen,
            "split": "shuffled, stratified by class"
            if members is None
            else "shuffled; rows of a group are never on both sides",
        },
        names=method_names(),
        origin="scores",
        remarks=remarks,
        started=started,
        **about,
    )


def _calibrated(
    method: str,
    scores: FloatArray,
    codes: IntArray,
    labels: NDArray[Any],
    splits: Sequence[tuple[IntArray, IntArray]],
    groups: IntArray | None,
) -> MethodEstimates:
    p, lower, upper, low, high = np.empty((5, len(codes), len(labels)))
    bounded = False
    for train, held in splits:
        calibrator = make_calibrator(method)
        calibrator.fit(scores[train], labels[codes[train]], classes=labels)
        p[held] = calibrator.predict_proba(scores[held])
        if has_bounds(calibrator):
            bounded = True
            found = calibrator.predict_multiprobability(scores[held])
            found = found.widen(p[held])
            lower[held], upper[held] = found.lower, found.upper
        known = confidence_intervals(
            scores[train],
            labels[codes[train]],
            scores[held],
            classes=labels,
            groups=None if groups is None else groups[train],
        )
        known = known.widen(p[held])
        low[held], high[held] = known.lower, known.upper
    bounds = Multiprobability(lower, upper, labels) if bounded else None
    return MethodEstimates(p, bounds, replace(known, lower=low, upper=high, widened=None))


FEWEST_TO_CALIBRATE = 100
"""Rows from which on it is said what calibrating given probabilities would gain."""


def calibration_gain(
    y: ArrayLike, p: FloatArray, groups: ArrayLike | None = None, random_state: int = 0
) -> str | None:
    """Return what Venn–Abers calibration by folds makes of given probabilities, in a sentence.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels of two classes.
    p : ndarray of shape (n, 2)
        Probabilities, in sorted order of the labels.
    groups : array-like of shape (n,), optional
        Rows of a group are never on both sides of a fold.
    random_state : int
        Of the folds.

    Returns
    -------
    str or None
        None for fewer than 100 rows, or fewer than ten of a class.
    """
    codes, labels = encode_labels(y)
    if len(labels) != 2 or len(codes) < FEWEST_TO_CALIBRATE or np.bincount(codes).min() < 10:
        return None
    splits = shuffled(codes, members_of(groups, len(codes), []), 10, random_state)
    after = np.empty_like(p)
    for train, held in splits:
        calibrator = make_calibrator("venn-abers").fit(p[train, 1], codes[train], classes=[0, 1])
        after[held] = calibrator.predict_proba(p[held, 1])
    losses = [log_loss(codes, one, labels=[0, 1]) for one in (p, after)]
    errors = [100 * calibration_error(codes, one[:, 1], pos_label=1) for one in (p, after)]
    if losses[1] >= losses[0]:
        return (
            "Calibrating these probabilities would gain nothing: log loss "
            f"{losses[0]:.3f}, and {losses[1]:.3f} calibrated by folds."
        )
    return (
        f"Calibrated by folds: log loss {losses[0]:.3f} → {losses[1]:.3f}; mean error "
        f"{errors[0]:.1f} → {errors[1]:.1f} points."
    )


SAME = 40
"""So many labels in a row that agree are the training labels: 1 in 2^40 by chance."""


def report_model(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    n_trained: int | None = None,
    positive: Any = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    **about: Unpack[About],
) -> Evaluation:
    """Evaluate a fitted model on rows it was not trained on.

    Where the rows are those it was trained on, or it does far better on them than out of sample,
    the page says so on top.

    Parameters
    ----------
    model : CalibratedClassifier or TransductiveClassifier
        Fitted.
    X : data frame or array of shape (n, d)
        Rows as the model takes them.
    y : array-like of shape (n,)
        Their labels, among the model's classes.
    n_trained : int, optional
        How many rows it was trained on.
    positive, groups, by, costs, tolerance, random_state, name, target, notes
        As in ``report``.

    Raises
    ------
    ValueError
        If a label is none of the model's classes, or the rows are none the model takes.
    """
    check_about("report_model", about)
    started = clock.perf_counter()
    labels = np.asarray(model.classes_)
    known = {str(label): j for j, label in enumerate(labels)}
    given = [str(label) for label in np.asarray(y).tolist()]
    strange = sorted(set(given) - set(known))
    if strange:
        raise InputError(
            f"the table must hold labels of the model ({', '.join(list(known)[:8])}), got "
            f"{strange[0]!r}: leave these rows out"
        )
    codes = np.array([known[label] for label in given], dtype=np.intp)
    if len(np.unique(codes)) < 2:
        raise InputError(f"the table must hold at least two classes, got only {given[0]!r}")
    check_positive(positive, labels.astype(str))
    (bounds, p), confidence = predict_known(model, X)
    key = str(getattr(model, "method", "model"))
    key = key if key in method_names() and key != RAW else "model"
    estimates = {key: MethodEstimates(p, bounds, confidence)}
    own = model.estimators_ if hasattr(model, "estimators_") else []
    if len(own) == 1 and hasattr(own[0], "predict_proba"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimates = {RAW: MethodEstimates(own[0].predict_proba(X), None), **estimates}
    warned, seen = _seen(model, codes, labels, estimates, n_trained)
    remarks = [warned]
    members = members_of(groups, len(codes), remarks)
    folds = OutOfFold.without_folds(labels, codes, estimates, members)
    return assemble(
        folds,
        X=X,
        positive=positive,
        settings={
            "random_state": int(random_state),
            "guarantee": "model",
            "noun": "model",
            "n_trained": n_trained,
            "seen": seen,
            "methods": list(estimates),
        },
        names={RAW: "Raw model", "model": "The model", key: method_names().get(key, "The model")},
        origin="model",
        remarks=remarks,
        started=started,
        **about,
    )


def _seen(
    model: Any,
    codes: IntArray,
    labels: NDArray[Any],
    estimates: Mapping[str, MethodEstimates],
    n_trained: int | None,
) -> tuple[str, bool]:
    """Return a note on rows that the model may have been trained on, and whether it was."""
    size = "" if n_trained is None else f" of {n_trained:,} rows"
    scores, y = getattr(model, "calibration_scores_", None), getattr(model, "calibration_y_", None)
    unknown = f"The numbers hold only if the model's training table{size} has none of these rows."
    if scores is None or y is None:
        return unknown, False
    trained = np.searchsorted(labels, y)
    if _within(codes, trained) or _within(trained, codes):
        return (
            "The model seems to have been trained or calibrated on these rows (the labels agree "
            "one by one): all numbers on this page are too good. Use rows it has not seen, or let "
            "the report cross-validate (without --model).",
            True,
        )
    if RAW in estimates and len(labels) == 2:
        held = scores if scores.ndim == 1 else scores[:, 1]
        if held.min() >= 0 and held.max() <= 1:
            here = (estimates[RAW].p[:, 1] - (codes == 1)) ** 2
            there = (held - (trained == 1)) ** 2
            error = np.sqrt(here.var() / len(here) + there.var() / len(there))
            if there.mean() - here.mean() > 6 * error and here.mean() < 0.7 * there.mean():
                return (
                    "The model does far better on these rows than on its calibration rows (Brier "
                    f"score {here.mean():.3g} instead of {there.mean():.3g}): it was probably "
                    "trained on some of them, and the numbers on this page are too good.",
                    True,
                )
    return unknown, False


def _within(part: IntArray, whole: IntArray) -> bool:
    """Tell whether labels stand in others one after the other, and are too many for chance."""
    n = len(part)
    counts = np.bincount(part)
    share = counts / n
    bits = -n * float(np.log2(np.square(share).sum()))  # that a random run agrees
    if n > len(whole) or bits < SAME:
        return False
    starts = [0, len(whole) - n]
    return any(np.array_equal(whole[i : i + n], part) for i in starts)
