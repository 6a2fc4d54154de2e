"""Evaluations: of a data set by cross-validation, of predictions, of scores, of a fitted model."""

from __future__ import annotations

import re
import time as clock
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import log_loss

from vennforest._files import refused_as
from vennforest._messages import not_one_of
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_scores,
    encode_labels,
    is_frame,
)
from vennforest.calibrators import check_method, make_calibrator
from vennforest.calibrators.base import has_bounds
from vennforest.calibrators.intervals import interval_curves, read_intervals
from vennforest.classifier.prediction import predict_known
from vennforest.metrics import calibration_error
from vennforest.metrics._inputs import check_probabilities
from vennforest.multiprobability import Multiprobability
from vennforest.report.evaluation import (
    About,
    Evaluation,
    Origin,
    assemble,
    check_about,
    check_positive,
    compared_methods,
    method_names,
)
from vennforest.report.folds import (
    Progress,
    cross_validate,
    members_of,
    pooled,
    shuffled,
    times,
)
from vennforest.report.learners import FOREST, learner_of
from vennforest.report.measures import BASELINE, RAW, MethodEstimates, OutOfFold
from vennforest.tables.columns import as_pandas
from vennforest.tables.screening import leaks


def evaluate(
    X: Any,
    y: ArrayLike,
    *,
    estimator: Any = None,
    methods: Sequence[str] | None = None,
    n_folds: int = 10,
    n_trees: int = 300,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    test: ArrayLike | None = None,
    types: Mapping[str, str] | None = None,
    missing: Sequence[str] | None = None,
    positive: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **about: Unpack[About],
) -> Evaluation:
    """Cross-validate methods of calibration on one data set, with one model per fold for all.

    Every row is predicted once, by a model of the other folds whose out-of-bag scores (of a forest;
    else scores of inner folds) calibrate every method. All measures are taken over the pooled
    predictions of all folds.

    Parameters
    ----------
    X, y : data frame, array or sparse matrix of shape (n, d), array-like of shape (n,)
        Columns of a data frame are read as by ``vennforest fit``; arrays go to the model as they
        are.
    estimator : str or classifier, optional
        A name of ``vennforest fit --estimator``, by default ``"mixed-forest"``, or any classifier
        with ``predict_proba``.
    methods : sequence of str, optional
        As in ``CalibratedClassifier``; by default all. The raw model, ``"none"``, is always among
        them.
    n_folds, n_trees : int
        Folds, from 2 on (fewer where no class has as many rows), and trees of each forest.
    groups : array-like of shape (n,), optional
        Rows of one group are never on both sides of a split, and count as one observation in the
        intervals.
    time : array-like of shape (n,), optional
        Numbers or dates: every row is predicted by a model of earlier rows.
    test : array-like of bool of shape (n,), optional
        The rows to predict, by one model of the others.
    types, missing : optional
        As in ``vennforest.tables.TableColumns``.
    random_state : int
        Seeds folds and forests; the same in every fold.
    n_jobs : int, optional
        Threads.
    progress : callable, optional
        Called after each fold with the number of folds done and of all.
    positive, by, costs, tolerance, name, target, notes
        As in ``report``; the positive class is by default the rarer of two.

    Raises
    ------
    ValueError
        If an argument is not as above, there are fewer than two classes with two rows each, or
        a column contains numbers that are infinite.
    ImportError
        If a library that is needed is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> evaluation = evaluate(X, y, n_folds=3, n_trees=30, methods=["venn-abers"])
    >>> evaluation.verdict.method
    'venn-abers'
    """
    check_about("evaluate", about)
    started = clock.perf_counter()
    if isinstance(methods, str):
        methods = [methods]
    unknown = [method for method in methods or () if method not in compared_methods()]
    if unknown:
        raise not_one_of("methods", compared_methods(), unknown[0])
    check_count(n_folds, "n_folds", least=2)
    check_count(n_trees, "n_trees")
    check_count(random_state, "random_state", least=0)
    if n_jobs == 0:
        raise InputError("n_jobs must be a number of processors, or -1 for all, got 0")
    if time is not None and test is not None:
        raise InputError("time must be left out where the rows to test are given, got both")
    if types is not None and not is_frame(X):
        raise InputError(f"types must be of columns of a data frame, got {type(X).__name__}")
    learner = learner_of(estimator)
    check_positive(positive, np.unique(np.asarray(y).ravel().astype(str)))
    if not is_frame(X) and not hasattr(X, "shape"):
        X = np.asarray(X)
    n = X.shape[0]
    mask = None if test is None else np.asarray(test)
    if mask is not None and (mask.shape != (n,) or mask.dtype.kind != "b"):
        raise InputError(f"test must be {n} booleans, got {mask.dtype} of shape {mask.shape}")
    if mask is not None and (mask.all() or not mask.any()):
        raise InputError(
            "test must be True for the rows to predict and False for the rows to train on, got "
            f"{bool(mask.all())} for all {n} rows"
        )
    remarks: list[str] = []
    members = members_of(groups, n, remarks)
    folds, how = cross_validate(
        X,
        y,
        [m for m in compared_methods() if methods is None or m in methods or m == RAW],
        learner=learner,
        n_folds=int(n_folds),
        n_trees=int(n_trees),
        seed=int(random_state),
        n_jobs=n_jobs,
        progress=progress,
        groups=members,
        time=None if time is None else times(time, "time"),
        test=mask,
        types=types,
        markers=missing,
    )
    origin: Origin = "test" if test is not None else "folds" if time is None else "time"
    suspicious = leaks(as_pandas(X), np.asarray(y).ravel()) if is_frame(X) else []
    named = estimator if isinstance(estimator, str) else repr(estimator)
    return assemble(
        folds,
        origin,
        random_state,
        about,
        X=X,
        positive=positive,
        noun=learner.title,
        settings={
            "estimator": FOREST if estimator is None else named,
            "n_folds": folds.n_folds,
            "n_trees": int(n_trees),
            **({"types": dict(types)} if types else {}),
            **({"missing": list(missing)} if missing else {}),
            "calibrate_on": how,
            "learner": f"{learner.title} of {int(n_trees)} trees"
            if learner.trees
            else learner.title,
        },
        names={RAW: f"Raw {learner.title}"},
        remarks=remarks,
        suspects=dict.fromkeys(suspicious, "leak"),
        n_rows=n,
        started=started,
    )


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
        The class that probabilities of shape (n,) are of, by default the second in sorted order,
        and the positive class of the page, by default the rarer one.
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
    name, target, notes : str, str, sequence of str
        Names of the data set and of the label, and remarks, one sentence each.
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
    codes, labels = encode_labels(y, classes)
    if len(labels) < 2:
        raise InputError(
            f"y must contain at least two classes, got one: {str(labels[0])!r}; name the others "
            "with classes="
        )
    if not isinstance(predictions, Mapping):
        predictions = {UNNAMED: predictions}
    if not predictions:
        raise InputError("predictions must be of at least one model, got none")
    estimates = {}
    for key, values in predictions.items():
        key = f"{key} (given)" if str(key) in (RAW, BASELINE) else str(key)
        estimates[key] = _estimates(key, values, labels, len(codes), positive)
    remarks: list[str] = []
    members = members_of(groups, len(codes), remarks)
    return assemble(
        OutOfFold.without_folds(labels, codes, estimates, members),
        "given",
        random_state,
        {"name": "predictions", **about},
        X=X,
        positive=positive,
        names={key: key if key == UNNAMED else f"“{key}”" for key in estimates},
        remarks=remarks,
    )


def _estimates(
    name: str, values: Any, labels: NDArray[Any], n: int, positive: Any
) -> MethodEstimates:
    """Return what one model predicts, with a column per class."""
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[1], Multiprobability):
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


PROBABILITY_PREFIXES = ("p", "prob", "proba", "probability", "predict_proba")
"""Words before a label that make a column's name that of the label's probability."""


def class_of_name(name: str, labels: NDArray[Any]) -> int | None:
    """Return the index of the class that a column of probabilities is named after, or None.

    Such names are ``yes``, ``p(yes)`` and ``prob_yes``. ``model_0`` is not: it may be the first of
    several models.
    """
    names = labels.astype(str).tolist()
    if name in names:
        return int(names.index(name))
    pattern = rf"(?:{'|'.join(PROBABILITY_PREFIXES)})[\s_.-]*(?:\((.+)\)|(?<=[\s_.-])(.+))"
    match = re.fullmatch(pattern, name, re.IGNORECASE)
    label = None if match is None else match[1] or match[2]
    same_name = [j for j, other in enumerate(names) if other == label]
    same_letters = [j for j, other in enumerate(names) if other.lower() == str(label).lower()]
    return next((matches[0] for matches in (same_name, same_letters) if len(matches) == 1), None)


UNNAMED = "Predictions"
"""What predictions without a name are called."""

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
    """Evaluate calibrators of scores, each fitted to the scores of the other folds.

    The scores themselves have to be of rows that their model was not trained on.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, k)
        Of the positive class (as in ``report``), or of every class in sorted order; any real
        numbers.
    methods : sequence of str, optional
        Calibrators; by default Venn–Abers, Platt and isotonic.
    n_folds : int
        Integer >= 2.
    y, positive, groups, by, costs, tolerance, random_state, name, target, notes, X
        As in ``report``; rows of a group are never on both sides of a fold.

    Raises
    ------
    ValueError
        If scores do not fit the labels.
    """
    check_about("report_scores", about)
    codes, labels = encode_labels(y)
    values = check_scores(scores)
    check_count(n_folds, "n_folds", 2)
    if len(labels) < 2 or np.bincount(codes).min() < 2:
        raise InputError(
            "y must contain at least two classes with two rows each to calibrate scores"
        )
    if len(values) != len(codes):
        raise InputError(f"scores must be of {len(codes)} rows, got {len(values)}")
    if values.ndim == 1 and len(labels) != 2:
        raise InputError(f"scores must have a column for each of {len(labels)} classes, got one")
    if values.ndim == 1 and positive is not None and str(labels[0]) == str(positive):
        values = -values
    chosen = [method for method in methods or SCORE_METHODS if method != RAW]
    for method in chosen:
        check_method(method)
    remarks: list[str] = []
    members = members_of(groups, len(codes), remarks)
    n_folds = min(int(n_folds), int(np.bincount(codes).max()))
    splits = shuffled(codes, members, n_folds, random_state)
    fold = np.zeros(len(codes), np.intp)
    for i, (_, held) in enumerate(splits):
        fold[held] = i
    with refused_as():  # scores that a calibrator does not take
        estimates = _calibrated(chosen, values, codes, labels, splits, members)
    return assemble(
        OutOfFold(labels, codes, fold, np.arange(len(codes)), estimates, {}, {}, groups=members),
        "scores",
        random_state,
        {"name": "scores", **about},
        X=X,
        positive=positive,
        noun="calibrator",
        settings={"n_folds": len(splits)},
        remarks=remarks,
    )


def _calibrated(
    methods: Sequence[str],
    scores: FloatArray,
    codes: IntArray,
    labels: NDArray[Any],
    splits: Sequence[tuple[IntArray, IntArray]],
    groups: IntArray | None,
) -> dict[str, MethodEstimates]:
    """Return what each calibrator, fitted to the other folds, makes of every row's scores."""
    every = np.arange(len(labels))
    parts: dict[str, Any] = {method: [] for method in methods}
    for train, held in splits:
        y, new = labels[codes[train]], scores[held]
        curves = interval_curves(
            scores[train],
            codes[train],
            len(labels),
            groups=None if groups is None else groups[train],
        )
        known = read_intervals(curves, new, labels, 0.95)
        for method in methods:
            calibrator = make_calibrator(method).fit(scores[train], y, classes=labels)
            p, bounds = calibrator.predict_proba(new), None
            if has_bounds(calibrator):
                bounds = calibrator.predict_multiprobability(new).widen(p)
            found = MethodEstimates(p, bounds, known.widen(p))
            parts[method].append((held, every, found))
    return {method: pooled(some, len(codes), labels) for method, some in parts.items()}


FEWEST_TO_CALIBRATE = 100
"""Rows from which on it is said what calibrating given probabilities would gain."""


def calibration_gain(
    y: ArrayLike, p: FloatArray, groups: ArrayLike | None = None, random_state: int = 0
) -> str | None:
    """Return what calibrating probabilities (n, 2) by folds would gain; None of too few rows."""
    codes, labels = encode_labels(y)
    if len(labels) != 2 or len(codes) < FEWEST_TO_CALIBRATE or np.bincount(codes).min() < 10:
        return None
    members = members_of(groups, len(codes), [])
    splits = shuffled(codes, members, 10, random_state)
    after = _calibrated(["venn-abers"], p[:, 1], codes, labels, splits, members)["venn-abers"].p
    losses = [log_loss(codes, one, labels=[0, 1]) for one in (p, after)]
    errors = [100 * calibration_error(codes, one[:, 1], pos_label=1) for one in (p, after)]
    change = f"log loss {losses[0]:.3f} → {losses[1]:.3f}"
    if losses[1] >= losses[0]:
        return f"Calibrating these probabilities would gain nothing: {change}."
    return f"Calibrated by folds: {change}; mean error {errors[0]:.1f} → {errors[1]:.1f} points."


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
    model : CalibratedClassifier
        Fitted.
    X, y : data frame or array of shape (n, d), array-like of shape (n,)
        Rows as the model takes them, and their labels, among the model's classes.
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
    labels = np.asarray(model.classes_)
    known = {str(label): j for j, label in enumerate(labels)}
    given = [str(label) for label in np.asarray(y).tolist()]
    strange = sorted(set(given) - set(known))
    if strange:
        raise InputError(
            f"the table must have labels of the model ({', '.join(list(known)[:8])}), got "
            f"{strange[0]!r}: leave these rows out"
        )
    codes = np.array([known[label] for label in given], dtype=np.intp)
    if len(np.unique(codes)) < 2:
        raise InputError(f"the table must have at least two classes, got only {given[0]!r}")
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
    return assemble(
        OutOfFold.without_folds(labels, codes, estimates, members),
        "model",
        random_state,
        about,
        X=X,
        positive=positive,
        settings={"n_trained": n_trained, "seen": seen},
        names={RAW: "Raw model", "model": "The model"},
        remarks=remarks,
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
    unknown = (
        f"The numbers are right only if the model's training table{size} has none of these rows."
    )
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
    held = scores if scores.ndim == 1 else scores[:, 1]
    if RAW in estimates and len(labels) == 2 and held.min() >= 0 and held.max() <= 1:
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
    """Tell whether others begin or end with these labels, which are too many for chance."""
    n = len(part)
    bits = -n * float(np.log2(np.square(np.bincount(part) / n).sum()))  # that a random run agrees
    ends = whole[:n], whole[len(whole) - n :]
    return n <= len(whole) and bits >= SAME and any(np.array_equal(part, end) for end in ends)
