"""Judge probabilities that exist already: given ones, or those of a fitted model."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import log_loss

from vennforest._validation import FloatArray, InputError, IntArray, encode_labels
from vennforest.calibrators import VennAbers
from vennforest.metrics._inputs import check_probabilities
from vennforest.multiprobability import Multiprobability
from vennforest.report.evaluation import METHOD_NAMES, Evaluation, Options, assemble
from vennforest.report.measures import BASELINE, RAW, MethodEstimates, Predictions
from vennforest.report.splits import group_codes, shuffled
from vennforest.report.words import Source

UNNAMED = "Predictions"
"""What probabilities without a name are called."""

MIN_ROWS_TO_CALIBRATE = 100


def check(
    y: ArrayLike,
    p: Any,
    *,
    X: Any = None,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    positive: Any = None,
    by: Mapping[str, ArrayLike] | None = None,
    costs: Any = None,
    tolerance: float | None = None,
    name: str = "predictions",
    target: str = "label",
    notes: Sequence[str] = (),
    random_state: int = 0,
) -> Evaluation:
    """Judge probabilities of rows that no model was trained on. Nothing is trained.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels.
    p : array-like, Multiprobability, dict of str to such, or fitted classifier
        Probabilities of the positive class, shape (n,), or of every class in sorted order, shape
        (n, k), in [0, 1]; or a ``Multiprobability``, whose probability is its ``merge("log")``; or
        a pair of both; or several of these by name of the model. Or a fitted classifier, whose
        probabilities, bounds and confidence intervals of the rows of ``X`` are judged.
    X : data frame or array of shape (n, d), optional
        Rows as the classifier takes them.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    groups : array-like of shape (n,), optional
        Rows of one group count as one observation in intervals and tests.
    positive : label, optional
        The class that probabilities of shape (n,) are of, by default the second in sorted order,
        and the positive class of the page, by default the rarer one.
    by, costs, tolerance, name, target, notes
        As in ``evaluate``.
    random_state : int
        Seeds the labels that are drawn for the calibration error by chance.

    Raises
    ------
    ValueError
        If labels and probabilities do not fit together, or p contains no probabilities.

    Examples
    --------
    >>> y = ["no", "yes", "no", "yes"] * 20
    >>> evaluation = check(y, {"clinic": [0.2, 0.9, 0.4, 0.6] * 20, "coin": [0.5] * 80})
    >>> evaluation.verdict.method
    'clinic'
    """
    started = clock.perf_counter()
    options = Options(positive, by, costs, tolerance, name, notes, random_state)
    remarks: list[str] = []
    is_model = hasattr(p, "predict_proba")
    if is_model and X is None:
        raise InputError("X must be given for a fitted classifier, got None")
    if is_model:
        codes, labels = _codes_of_model(y, np.asarray(p.classes_))
        estimates = _of_model(p, X)
        names = {**METHOD_NAMES, RAW: "Raw model", "model": "The model"}
    else:
        codes, labels = encode_labels(y, classes)
        if len(labels) < 2:
            raise InputError(
                f"y must contain at least two classes, got one: {str(labels[0])!r}; name the "
                "others with classes="
            )
        estimates = _of_mapping(p if isinstance(p, Mapping) else {UNNAMED: p}, labels, options, y)
        names = {key: key if key == UNNAMED else f"“{key}”" for key in estimates}
        names[BASELINE] = METHOD_NAMES[BASELINE]
    group_of_row = group_codes(groups, len(codes), remarks)
    is_trained_on_rows = is_model and trained_on(p, estimates, codes)
    if not is_model:
        remarks += calibration_gains(estimates, codes, group_of_row, random_state)
    elif is_trained_on_rows:
        remarks.append(
            "The model seems to have been trained or calibrated on these rows, so all numbers on "
            "this page are too good. Use rows that it has not seen, or vennforest report."
        )
    else:
        remarks.append("The numbers are right only if the model was not trained on these rows.")
    rows = np.arange(len(codes))
    source = Source(
        kind="model" if is_model else "given",
        target=target,
        noun="model",
        names=names,
        trained_on_rows=is_trained_on_rows,
    )
    predictions = Predictions(labels, codes, np.zeros_like(rows), rows, estimates, group_of_row)
    return assemble(predictions, source, options, len(codes), remarks, {}, started)


def _of_mapping(
    predictions: Mapping[str, Any], labels: NDArray[Any], options: Options, y: Any
) -> dict[str, MethodEstimates]:
    if not predictions:
        raise InputError("p must be of at least one model, got none")
    estimates = {}
    for key, values in predictions.items():
        name = f"{key} (given)" if str(key) in (RAW, BASELINE) else str(key)
        estimates[name] = _estimates(name, values, labels, len(y), options.positive)
    return estimates


def _estimates(
    name: str, values: Any, labels: NDArray[Any], n: int, positive: Any
) -> MethodEstimates:
    """Return one model's estimates, with a column for each class."""
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[1], Multiprobability):
        bounds = _estimates(name, values[1], labels, n, positive).bounds
        return MethodEstimates(_estimates(name, values[0], labels, n, positive).p, bounds)
    if isinstance(values, Multiprobability):
        if values.classes.tolist() != labels.tolist() or len(values) != n:
            raise InputError(
                f"p of {name!r} must be of {n} rows and of the classes {labels.tolist()}, got "
                f"{len(values)} and {values.classes.tolist()}"
            )
        return MethodEstimates(values.merge("log"), values)
    try:
        p = check_probabilities(values)
    except ValueError as error:
        raise InputError(f"p of {name!r}: {error}") from error
    if len(p) != n:
        raise InputError(f"p of {name!r} must be of {n} rows, got {len(p)}")
    if p.ndim == 1 and len(labels) == 2:
        is_of_first = positive is not None and str(labels[0]) == str(positive)
        p = np.column_stack([p, 1 - p] if is_of_first else [1 - p, p])
    n_columns = 1 if p.ndim == 1 else p.shape[1]
    if n_columns != len(labels):
        raise InputError(
            f"p of {name!r} must have a column for each of {len(labels)} classes "
            f"({', '.join(map(str, labels[:8]))}), got {n_columns}"
        )
    return MethodEstimates(p / p.sum(axis=1, keepdims=True))


def _codes_of_model(y: Any, labels: NDArray[Any]) -> tuple[IntArray, NDArray[Any]]:
    """Return the index of each label among the classes of a model, and these classes."""
    code = {str(label): j for j, label in enumerate(labels.tolist())}
    observed = [str(label) for label in np.asarray(y).tolist()]
    unknown = sorted(set(observed) - set(code))
    if unknown:
        raise InputError(
            f"y must have labels of the model ({', '.join(list(code)[:8])}), got {unknown[0]!r}: "
            "leave these rows out"
        )
    if len(set(observed)) < 2:
        raise InputError(f"y must contain at least two classes, got only {observed[0]!r}")
    return np.array([code[label] for label in observed], dtype=np.intp), labels


def _of_model(model: Any, X: Any) -> dict[str, MethodEstimates]:
    """Return the estimates of a fitted classifier, and of its raw model if it has one only."""
    p = model.predict_proba(X)
    bounds = confidence = None
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(X).widen(p)
    if hasattr(model, "predict_confidence"):
        interval = model.predict_confidence(X)
        confidence = np.minimum(interval.lower, p), np.maximum(interval.upper, p)
    method = getattr(model, "method", None)
    key = method if isinstance(method, str) and method in METHOD_NAMES else "model"
    estimates = {"model" if key == RAW else key: MethodEstimates(p, bounds, confidence)}
    fitted = getattr(model, "estimators_", None)
    if isinstance(fitted, list) and len(fitted) == 1 and hasattr(model, "calibrators_"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimates = {RAW: MethodEstimates(fitted[0].predict_proba(X)), **estimates}
    return estimates


def trained_on(model: Any, estimates: Mapping[str, MethodEstimates], codes: IntArray) -> bool:
    """Tell whether a calibrated model seems to have been trained on these rows.

    Its calibration labels are the same one by one, or the raw model's Brier score is far better
    than that of the calibration scores, by six standard errors and a third.
    """
    if not hasattr(model, "calibration_y_"):
        return False
    scores, labels = (
        model.calibration_scores_,
        np.searchsorted(model.classes_, model.calibration_y_),
    )
    if np.array_equal(labels, codes):
        return True
    of_second = scores if scores.ndim == 1 else scores[:, 1]
    if RAW not in estimates or len(model.classes_) != 2 or not 0 <= of_second.min() <= 1:
        return False
    errors = (estimates[RAW].p[:, 1] - (codes == 1)) ** 2
    known_errors = (of_second - (labels == 1)) ** 2
    error = np.sqrt(errors.var() / len(errors) + known_errors.var() / len(known_errors))
    gap = known_errors.mean() - errors.mean()
    return bool(gap > 6 * error and errors.mean() < 0.7 * known_errors.mean())


def calibration_gains(
    estimates: Mapping[str, MethodEstimates],
    codes: IntArray,
    groups: IntArray | None,
    random_state: int,
) -> list[str]:
    """Return what calibrating the probabilities of two classes by Venn–Abers would gain."""
    if np.bincount(codes).min() < 10 or len(codes) < MIN_ROWS_TO_CALIBRATE or codes.max() > 1:
        return []
    splits = shuffled(codes, groups, 10, random_state)
    sentences = []
    for name, of_model in estimates.items():
        p, calibrated = of_model.p[:, 1], np.full(len(codes), np.nan)
        for train, test in splits:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the verdict says that a ranking is reversed
                calibrator = VennAbers().fit(p[train], codes[train])
                calibrated[test] = calibrator.predict_proba(p[test])[:, 1]
        before, after = _log_loss(codes, p), _log_loss(codes, calibrated)
        change = f"log loss {before:.3f} → {after:.3f}"
        model = "these probabilities" if name == UNNAMED else repr(name)
        gains = f"Calibrating {model} by folds: {change}."
        nothing = f"Calibrating {model} would gain nothing: {change}."
        sentences.append(gains if after < before else nothing)
    return sentences


def _log_loss(codes: IntArray, p: FloatArray) -> float:
    return float(log_loss(codes, p, labels=[0, 1]))
