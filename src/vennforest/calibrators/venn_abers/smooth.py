"""The smooth estimate that is clipped into the bounds of a multiprobability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from vennforest._validation import FloatArray
from vennforest.calibrators.one_vs_rest import normalise
from vennforest.calibrators.platt import PlattMap, fit_platt

FINEST = 16_384
"""Scores from which on the sigmoid is fitted to groups of near-equal ones."""


@dataclass(frozen=True)
class SmoothEstimate:
    """Platt scaling on the log-odds of the calibration scores.

    On the scores themselves where these are no probabilities. Two classes have one map, more have
    one a class against the rest, normalised.
    """

    maps: tuple[PlattMap, ...]

    @classmethod
    def fit(cls, columns: Iterable[tuple[FloatArray, FloatArray, FloatArray]]) -> Self:
        """Fit a map to each column: scores (m,), their weights and their positive weights (m,)."""
        return cls(tuple(_fit_map(*column) for column in columns))

    def predict(self, scores: FloatArray) -> FloatArray:
        """Return estimates (n, k) for scores (n,) of two classes or (n, k); rows sum to 1."""
        if scores.ndim == 1:
            p = _read_map(self.maps[0], scores)
            return np.column_stack([1 - p, p])
        columns = [_read_map(one, scores[:, j]) for j, one in enumerate(self.maps)]
        return normalise(np.column_stack(columns), scores)


def _fit_map(x: FloatArray, weight: FloatArray, positive: FloatArray) -> PlattMap:
    probabilities = bool(x.min() >= 0 and x.max() <= 1)
    if len(x) > FINEST:
        x, weight, positive = _group(x, weight, positive, probabilities)
    counts = np.concatenate([weight - positive, positive])
    used = counts > 0
    return fit_platt(
        np.tile(x, 2)[used],
        np.repeat([0.0, 1.0], len(x))[used],
        counts[used],
        on="logit" if probabilities else "score",
    )


def _group(
    x: FloatArray, weight: FloatArray, positive: FloatArray, probabilities: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up counts over 16,384 equal cells of the log-odds, or of the scores.

    To a sigmoid that spans the range, scores within one cell are as good as equal; each cell is
    represented by its mean score.
    """
    z = x
    if probabilities:
        with np.errstate(divide="ignore"):
            z = np.clip(np.log(x) - np.log1p(-x), -40, 40)
    low, high = float(z.min()), float(z.max())
    if not 0 < high - low < np.inf:
        return x, weight, positive
    cell = ((z - low) / (high - low) * FINEST).astype(np.intp)
    total = np.bincount(cell, weight)
    there = total > 0
    mean: FloatArray = np.bincount(cell, x * weight)[there] / total[there]
    share: FloatArray = np.bincount(cell, positive)[there].astype(np.float64)
    return np.clip(mean, x.min(), x.max()), total[there].astype(np.float64), share


def _read_map(smooth: PlattMap, scores: FloatArray) -> FloatArray:
    # Beyond [0, 1] the log-odds are those of the nearer end.
    return smooth(scores if smooth.interior is None else np.clip(scores, 0.0, 1.0))
