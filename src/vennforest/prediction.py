"""From fitted parts to predictions: draws are averaged, folds are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.calibrators.bounded import has_bounds, merged
from vennforest.multiprobability import Multiprobability, merge_folds
from vennforest.sources import Draw, Part

Prediction = tuple[Multiprobability | None, FloatArray]
"""Bounds, where the method has them, and probabilities (n, k)."""


def predict_parts(
    parts: Sequence[Part], calibrators: Sequence[Any], classes: NDArray[Any], X: Any
) -> Prediction:
    """Return what parts with their calibrators predict of the rows of X.

    The bounds of several parts are the means of theirs, widened where needed to hold the merged
    probability.
    """
    results = [
        _predict_part(part, calibrator, classes, X)
        for part, calibrator in zip(parts, calibrators, strict=True)
    ]
    if len(results) == 1:
        return results[0]
    each = [p for _, p in results]
    every = [bounds for bounds, _ in results if bounds is not None]
    if not every:
        return None, cast("FloatArray", np.mean(each, axis=0))
    p = merge_folds(every, getattr(calibrators[0], "merge", "midpoint"), each)
    lower = np.minimum(np.mean([bounds.lower for bounds in every], axis=0), p)
    upper = np.maximum(np.mean([bounds.upper for bounds in every], axis=0), p)
    return Multiprobability(lower, upper, classes), p


def _predict_part(part: Part, calibrator: Any, classes: NDArray[Any], X: Any) -> Prediction:
    """Return the means of bounds and probabilities over the draws of one part."""
    total = 0
    sums: list[FloatArray] = []
    for scores, left_out, draws in part.scorer.draws(X):
        if has_bounds(calibrator):
            # A calibrator of a user's own need not know how to leave out examples or groups.
            given = {} if left_out is None else {"left_out": left_out}
            if given and part.groups is not None:
                given["groups"] = part.groups
            bounds = calibrator.predict_multiprobability(scores, **given)
            answer = [merged(calibrator, bounds, scores), bounds.lower, bounds.upper]
        else:
            answer = [calibrator.predict_proba(scores)]
        if draws > 1:
            answer = [a.reshape(draws, -1, a.shape[1]).sum(axis=0) for a in answer]
        sums = answer if not sums else [s + a for s, a in zip(sums, answer, strict=True)]
        total += draws
    p, *both = sums if total == 1 else [s / total for s in sums]
    return (Multiprobability(both[0], both[1], classes) if both else None), p


@dataclass(frozen=True)
class _Recorded:
    """Scores that were taken before, in the place of a scorer."""

    taken: list[Draw]

    def draws(self, X: Any) -> Iterator[Draw]:
        """Yield them; the rows do not count."""
        return iter(self.taken)


def predict_once(model: Any, X: Any) -> Prediction:
    """Return what a model predicts, with every row scored once for bounds and probabilities.

    Parameters
    ----------
    model : CalibratedClassifier or TransductiveClassifier
        Fitted.
    X : array-like, sparse matrix or data frame of shape (n, d)
        Rows as the estimator takes them.

    Returns
    -------
    (Multiprobability or None, ndarray of shape (n, k))
        What ``predict_multiprobability`` (None: it has no bounds) and ``predict_proba`` return.
    """
    prediction: Prediction = model._predict(X)
    return prediction


def predict_together(models: Sequence[Any], X: Any) -> list[Prediction]:
    """Return what models that share their estimators predict, with every row scored once.

    Parameters
    ----------
    models : sequence of CalibratedClassifier
        One fitted model and what its ``recalibrate`` returned.
    X : array-like, sparse matrix or data frame of shape (n, d)
        Rows as the estimator takes them.

    Returns
    -------
    list of (Multiprobability or None, ndarray of shape (n, k))
        For each model what ``predict_multiprobability`` (None: it has no bounds) and
        ``predict_proba`` return.

    Raises
    ------
    ValueError
        If the models do not share their estimators.
    """
    first = models[0]._fitted()
    if any(model._fitted() is not first for model in models):
        raise ValueError("models must share their estimators, got models that were fitted apart")
    parts = [replace(part, scorer=_Recorded(list(part.scorer.draws(X)))) for part in first]
    return [predict_parts(parts, model._calibrators, model.classes_, X) for model in models]
