"""Scores of a stream that are comparable with those of the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from vennforest._class_columns import class_probabilities
from vennforest._validation import FloatArray, InputError, IntArray
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel
from vennforest.scores import columns
from vennforest.sources import CalibrationExamples, Fold, OutOfBagFold
from vennforest.sources.estimators import as_read
from vennforest.sources.row_hashes import HashArray, draw_examples, hash_rows, share_in_sketch

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


def check_new_rows(model: Any, hashes: HashArray) -> float:
    """Return the approximate share of training rows; raise an error if it is large."""
    share = training_share(model, hashes)
    if share >= MAX_TRAINING_SHARE:
        raise InputError(
            f"X must be new rows, got about {share:.0%} used for training: leave them out"
        )
    return share
