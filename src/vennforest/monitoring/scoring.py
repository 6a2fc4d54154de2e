"""Scores of a stream, made as the scores of the reference were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from vennforest._validation import FloatArray, InputError, IntArray, check_scores, columns
from vennforest.classifier import CalibratedClassifier
from vennforest.sources import CalibrationExamples, Fold, OutOfBagFold
from vennforest.sources.row_hashes import HashArray, draw_examples, hash_rows, share_in_sketch

MAX_TRAINING_SHARE = 0.5
"""Share of rows that the model was fitted to above which they are refused."""


def calibration_examples(model: Any) -> tuple[FloatArray, IntArray]:
    """Return scores (n, c) and class numbers (n,) of the calibration examples of a model."""
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
    return score_columns(examples.scores, len(model.classes_)), examples.codes


def are_probabilities(model: Any, scores: FloatArray) -> bool:
    """Return whether the scores of a model are probabilities; None: scores of an unknown model."""
    if model is None:
        return bool(scores.min() >= 0 and scores.max() <= 1)
    if not isinstance(model, CalibratedClassifier):
        return True
    return all(hasattr(fold.model, "predict_proba") for fold in model._state.folds)


def stream_scores(model: Any, X: Any) -> FloatArray:
    """Return scores (n, c) like those of the calibration examples.

    A row is scored by the model of a fold, or the trees of a calibration example, drawn for it.
    """
    if not isinstance(model, CalibratedClassifier):
        if not hasattr(model, "predict_proba"):
            raise InputError(f"model must have predict_proba, got {type(model).__name__}")
        scores = check_scores(model.predict_proba(X), "what predict_proba returns")
        return score_columns(scores, len(model.classes_))
    check_is_fitted(model, "classes_")
    folds = model._state.folds
    if len(folds) == 1:
        return score_columns(_fold_scores(folds[0], X), len(model.classes_))
    fold_of_row = draw_examples(hash_rows(X), 0, len(folds))
    scores = np.empty((len(fold_of_row), *folds[0].scores.shape[1:]))
    for k, fold in enumerate(folds):
        rows = np.flatnonzero(fold_of_row == k)
        if len(rows):
            scores[rows] = _fold_scores(fold, _safe_indexing(X, rows))
    return score_columns(scores, len(model.classes_))


def _fold_scores(fold: Fold, X: Any) -> FloatArray:
    if isinstance(fold, OutOfBagFold):
        return replace(fold, subforest="exchangeable").draw(X)[0]
    return fold.score(X)


def score_columns(scores: FloatArray, k: int) -> FloatArray:
    """Return scores as a table: one column with two classes, else a column per class."""
    table = columns(scores, k)
    return table[:, None] if table.ndim == 1 else table


def training_share(model: Any, hashes: HashArray) -> float:
    """Return the approximate share of rows that were given to ``fit``, found by their hashes."""
    if not isinstance(model, CalibratedClassifier) or model._state.row_sketch is None:
        return 0.0
    return share_in_sketch(hashes, model._state.row_sketch)


def check_new_rows(model: Any, hashes: HashArray) -> float:
    """Return the approximate share of rows that the model was fitted to; refuse a large one."""
    share = training_share(model, hashes)
    if share >= MAX_TRAINING_SHARE:
        raise InputError(
            f"X must be new rows, got about {share:.0%} used for training: leave them out"
        )
    return share
