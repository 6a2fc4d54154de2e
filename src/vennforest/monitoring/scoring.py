"""Scores of the reference and of the stream, made as alike as a model allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from vennforest._validation import FloatArray, InputError, check_scores
from vennforest.classifier import CalibratedClassifier
from vennforest.sources import CalibrationExamples, Fold, OutOfBagFold
from vennforest.sources.row_hashes import draw_examples, hash_rows


@dataclass(frozen=True)
class Scored:
    """Examples with scores (n,) or (n, k) and class numbers (n,)."""

    scores: FloatArray
    codes: NDArray[Any]
    classes: NDArray[Any]
    probabilities: bool
    """Whether scores are in [0, 1]."""


def calibration_examples(model: Any) -> Scored | None:
    """Return the calibration examples of a model; None for one that has none.

    Refused if no new row is like them: they have weights, were trained on, or are of other shares
    of the classes than the model is for.
    """
    if not isinstance(model, CalibratedClassifier):
        return None
    check_is_fitted(model, "classes_")
    examples = CalibrationExamples.of(model._state.folds)
    why = None
    if examples.weight is not None:
        why = "calibration examples must not have weights to be compared with a stream"
    elif model.calibrate_on_ == "training":
        why = 'calibrate_on must not be "training", whose scores no new row is like'
    elif model._state.shift is not None:
        why = "calibration examples must be of the shares that with_prior has set"
    if why is not None:
        raise InputError(f"{why}: give X and y, rows that the model was not trained on")
    return Scored(examples.scores, examples.codes, model.classes_, _are_probabilities(model))


def _are_probabilities(model: CalibratedClassifier) -> bool:
    return all(hasattr(part.model, "predict_proba") for part in model._state.folds)


def stream_scores(model: Any, X: Any) -> tuple[FloatArray, bool]:
    """Return scores (n,) or (n, k) like those of the calibration examples; are they in [0, 1].

    Out of bag, a row is scored by the trees that a calibration example drawn for it was out of bag
    for; of several folds' models it is scored by one, drawn for it.
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
    parts = model._state.folds
    if len(parts) == 1:
        return _part_scores(parts[0], X), _are_probabilities(model)
    whose = draw_examples(hash_rows(X), 0, len(parts))
    scores = np.empty((len(whose), *parts[0].scores.shape[1:]))
    for k, part in enumerate(parts):
        rows = np.flatnonzero(whose == k)
        if len(rows):
            scores[rows] = _part_scores(part, _safe_indexing(X, rows))
    return scores, _are_probabilities(model)


def _part_scores(part: Fold, X: Any) -> FloatArray:
    if isinstance(part, OutOfBagFold):
        return replace(part, subforest="exchangeable").draw(X)[0]
    return part.score(X)
