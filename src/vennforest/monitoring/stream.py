"""Rows of a stream: scores like those of the reference, times, labels, and repeated rows."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from vennforest._class_columns import class_probabilities
from vennforest._messages import shown
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    encode_labels,
    is_missing,
    label_vector,
)
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel
from vennforest.scores import columns
from vennforest.sources import CalibrationExamples, Fold, OutOfBagFold
from vennforest.sources.estimators import as_read
from vennforest.sources.row_hashes import HashArray, draw_examples, hash_rows, share_in_sketch

MIN_REMEMBERED_ROWS, MAX_REMEMBERED_ROWS, MAX_REMEMBERED_KEYS = 30, 10_000, 1_000_000

MAX_LOG_CHANCE = -50.0
"""Logarithm of the largest chance that an update equals another one for it to be remembered."""

MAX_SHARE_EQUAL_BY_CHANCE = 0.05
"""Largest expected share of new rows that equal a remembered row by chance."""

MAX_TRAINING_SHARE = 0.5
"""Share of training rows from which on an update raises an error."""


def calibration_examples(model: Any) -> tuple[FloatArray, IntArray]:
    """Return scores (n, c) and class indices (n,) of the calibration examples of a model."""
    problem = None
    if not isinstance(model, CalibratedClassifier):
        problem = "X and y must be given for a model without calibration examples, got none"
    else:
        check_is_fitted(model, "classes_")
        examples = CalibrationExamples.of(model._state.folds)
        if examples.weight is not None:
            problem = "calibration examples must not have weights to be compared with a stream"
        elif model.calibrate_on_ == "training":
            problem = 'calibrate_on must not be "training", whose scores no new row is like'
        elif model._state.shift is not None:
            problem = "calibration examples must be of the shares that with_prior has set"
    if problem is not None:
        raise InputError(f"{problem}: give X and y, rows that the model was not trained on")
    return as_score_columns(examples.scores, len(model.classes_)), examples.codes


def are_probabilities(model: Any, scores: FloatArray) -> bool:
    """Return whether scores (n, c) are probabilities; ``model`` is None if it is unknown."""
    if model is None:
        return bool(scores.min() >= 0 and scores.max() <= 1)
    if not isinstance(model, CalibratedClassifier):
        return True
    return all(hasattr(fold.model, "predict_proba") for fold in model._state.folds)


def stream_scores(model: Any, X: Any) -> FloatArray:
    """Return scores (n, c) of rows, comparable with those of the calibration examples.

    Each row is scored by the model of a random fold, or by the trees of a random example.
    """
    if not isinstance(model, CalibratedClassifier):
        if not hasattr(model, "predict_proba"):
            raise InputError(f"model must have predict_proba, got {type(model).__name__}")
        scores, classes = class_probabilities(model, X)
        return as_score_columns(scores, len(classes))
    check_is_fitted(model, "classes_")
    return as_score_columns(_comparable_scores(model._state.folds, X), len(model.classes_))


def _comparable_scores(folds: list[Fold], X: Any) -> FloatArray:
    """Return the scores (n,) or (n, k) of rows, each by the model of a fold drawn by its hash."""
    if len(folds) == 1:
        return _fold_scores(folds[0], X)
    fold_of_row = draw_examples(hash_rows(as_read(X, folds[0].model)), 0, len(folds))
    scores = np.empty((len(fold_of_row), *folds[0].scores.shape[1:]))
    for k, fold in enumerate(folds):
        rows = np.flatnonzero(fold_of_row == k)
        if len(rows):
            scores[rows] = _fold_scores(fold, _safe_indexing(X, rows))
    return scores


def _fold_scores(fold: Fold, X: Any) -> FloatArray:
    if isinstance(fold, OutOfBagFold):
        return replace(fold, subforest="exchangeable").score_for_bounds(X)[0]
    if isinstance(fold.model, BlendedModel):
        members = fold.model.members
        return fold.model.blend([[_comparable_scores(member.folds, X)] for member in members])
    return fold.score(X)


def as_score_columns(scores: FloatArray, k: int) -> FloatArray:
    """Return scores as an array (n, c), where c is 1 for two classes and k for more."""
    table = columns(scores, k)
    return table[:, None] if table.ndim == 1 else table


def hash_for_model(model: Any, X: Any) -> HashArray:
    """Return hashes (n,) of rows, as a model of the library reads them."""
    is_own = isinstance(model, CalibratedClassifier) and hasattr(model, "classes_")
    return model._state.hash_as_read(X) if is_own else hash_rows(X)


def training_share(model: Any, hashes: HashArray) -> float:
    """Return the approximate share of rows, given by hashes (n,), that the model was fitted to."""
    if not isinstance(model, CalibratedClassifier) or model._state.row_sketch is None:
        return 0.0
    return share_in_sketch(hashes, model._state.row_sketch)


def are_training_rows(model: Any, X: Any) -> bool:
    """Return whether a model of the library was fitted to half of the rows of X or more."""
    if not isinstance(model, CalibratedClassifier):
        return False
    return training_share(model, hash_for_model(model, X)) >= MAX_TRAINING_SHARE


def check_new_rows(model: Any, hashes: HashArray) -> float:
    """Return the approximate share of training rows; raise an error if it is large."""
    share = training_share(model, hashes)
    if share >= MAX_TRAINING_SHARE:
        raise InputError(
            f"X must be new rows, got about {share:.0%} used for training: leave them out"
        )
    return share


def check_times(time: ArrayLike, n: int, last: float | None) -> FloatArray:
    """Return times (n,) as numbers; raise an error if they decrease or are before ``last``."""
    values: NDArray[Any] = np.atleast_1d(np.asarray(time))
    if values.shape != (n,):
        raise InputError(f"time must have shape ({n},), got {values.shape}")
    times = times_as_numbers(values)
    # A missing time is never as late as the one before.
    is_wrong = ~(np.diff(times, prepend=times[:1] if last is None else last) >= 0)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise InputError(
            f"time must not run backwards or be missing, got {values[row]} in row {row}: sort the "
            "rows by time"
        )
    return times


def times_as_numbers(times: NDArray[Any]) -> FloatArray:
    """Return times (n,) as numbers, dates as seconds since 1970, missing ones as NaN."""
    if times.dtype.kind in "fiub":
        return times.astype(np.float64)
    try:
        dates = times.astype("datetime64[us]")
    except (ValueError, TypeError):
        raise InputError(
            f"time must be numbers or dates in the form of ISO 8601, got {shown(times.ravel()[0])}"
        ) from None
    seconds: FloatArray = dates.astype(np.int64) / 1e6
    return np.where(np.isnat(dates), np.nan, seconds)


def label_codes(
    y: ArrayLike, classes: NDArray[Any], n: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return class indices (n,), 0 for missing labels, and a mask (n,) of those not missing."""
    rows: Any = y if hasattr(y, "__len__") and not isinstance(y, str) else [y]
    labels = label_vector(rows, n)
    is_labelled = ~is_missing(labels)
    codes = np.zeros(n, np.intp)
    if is_labelled.any():
        present = labels[is_labelled]
        if present.dtype.kind == "O":
            present = np.array(present.tolist())  # of their own type
        codes[is_labelled] = encode_labels(present, classes)[0]
    return codes, is_labelled


def window_length(n: int, n_equal_pairs: float) -> int:
    """Return the number of rows to remember, given the number of equal pairs among n rows.

    If equal rows are common, it is 0.
    """
    # Three more pairs could have been equal and were not (the rule of three).
    share = (3 + n_equal_pairs) / max(n * (n - 1) / 2, 1)
    window = int(min(MAX_REMEMBERED_ROWS, MAX_SHARE_EQUAL_BY_CHANCE / share))
    return window if window >= MIN_REMEMBERED_ROWS else 0


def hash_batch(
    hashes: HashArray, codes: NDArray[np.intp], is_labelled: NDArray[np.bool_]
) -> np.uint64 | None:
    """Return a hash of rows (n,) with their labels, in their order.

    None if they are few, or if rows drawn as these are could well be the same by chance.
    """
    rows = np.column_stack([hashes, codes, is_labelled]).astype(np.uint64)
    shares = np.unique(rows, axis=0, return_counts=True)[1] / max(len(rows), 1)
    if len(rows) * (shares * np.log(shares)).sum() > MAX_LOG_CHANCE:
        return None
    return np.uint64(int.from_bytes(blake2b(rows.tobytes(), digest_size=8).digest(), "little"))


def remember_rows(
    remembered: HashArray, window: int, hashes: HashArray, is_counted: NDArray[np.bool_]
) -> tuple[HashArray, NDArray[np.bool_]]:
    """Return the updated hashes of remembered rows, and a mask (n,) of rows not among them."""
    is_new = np.ones(len(hashes), bool)
    if not window:
        return remembered, is_new
    order = dict.fromkeys(remembered.tolist())  # a dict keeps the order of its keys
    for row in np.flatnonzero(is_counted).tolist():
        value = int(hashes[row])
        if value in order:
            is_new[row] = False
            del order[value]  # the latest time counts
        elif len(order) == window:
            del order[next(iter(order))]
        order[value] = None
    return np.array(list(order), np.uint64), is_new
