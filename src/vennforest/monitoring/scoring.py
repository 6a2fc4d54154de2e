"""Scores of a stream, made as the scores of the reference were."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from vennforest._validation import FloatArray, InputError, check_scores, columns
from vennforest.classifier import CalibratedClassifier
from vennforest.sources import CalibrationExamples, Fold, OutOfBagFold
from vennforest.sources.row_hashes import draw_examples, hash_rows


@dataclass(frozen=True)
class ScoredExamples:
    """Examples with scores (n,) or (n, k) and class numbers (n,).

    ``probabilities``: whether scores are probabilities.
    """

    scores: FloatArray
    codes: NDArray[Any]
    classes: NDArray[Any]
    probabilities: bool


def calibration_examples(model: Any) -> ScoredExamples | None:
    """Return the calibration examples of a model; None for a model without any.

    Raises
    ------
    InputError
        If no new row is like them: they have weights, were trained on, or are of other class
        frequencies than the model is for.
    """
    if not isinstance(model, CalibratedClassifier):
        return None
    check_is_fitted(model, "classes_")
    examples = CalibrationExamples.of(model._state.folds)
    problem = None
    if examples.weight is not None:
        problem = "calibration examples must not have weights to be compared with a stream"
    elif model.calibrate_on_ == "training":
        problem = 'calibrate_on must not be "training", whose scores no new row is like'
    elif model._state.shift is not None:
        problem = "calibration examples must be of the shares that with_prior has set"
    if problem is not None:
        raise InputError(f"{problem}: give X and y, rows that the model was not trained on")
    return ScoredExamples(
        examples.scores, examples.codes, model.classes_, _gives_probabilities(model)
    )


def _gives_probabilities(model: CalibratedClassifier) -> bool:
    return all(hasattr(fold.model, "predict_proba") for fold in model._state.folds)


def stream_scores(model: Any, X: Any) -> tuple[FloatArray, bool]:
    """Return scores (n,) or (n, k) like those of the calibration examples, and if probabilities.

    Out of bag, a row is scored by the trees that a calibration example drawn for it was out of bag
    for; over folds it is scored by the model of one fold, drawn for it.
    """
    if not isinstance(model, CalibratedClassifier):
        if not hasattr(model, "predict_proba"):
            raise InputError(
                f"model must have predict_proba, got {type(model).__name__}: use fit_scores and "
                "update_scores with its scores"
            )
        table = check_scores(model.predict_proba(X), "what predict_proba returns")
        return (table[:, 1].copy() if table.shape[1] == 2 else table), True
    check_is_fitted(model, "classes_")
    folds = model._state.folds
    if len(folds) == 1:
        return _fold_scores(folds[0], X), _gives_probabilities(model)
    fold_of_row = draw_examples(hash_rows(X), 0, len(folds))
    scores = np.empty((len(fold_of_row), *folds[0].scores.shape[1:]))
    for k, fold in enumerate(folds):
        rows = np.flatnonzero(fold_of_row == k)
        if len(rows):
            scores[rows] = _fold_scores(fold, _safe_indexing(X, rows))
    return scores, _gives_probabilities(model)


def _fold_scores(fold: Fold, X: Any) -> FloatArray:
    if isinstance(fold, OutOfBagFold):
        return replace(fold, subforest="exchangeable").draw(X)[0]
    return fold.score(X)


def score_columns(scores: FloatArray, k: int) -> FloatArray:
    """Return scores as a table: one column with two classes, else a column per class."""
    table = columns(scores, k)
    return table[:, None] if table.ndim == 1 else table
