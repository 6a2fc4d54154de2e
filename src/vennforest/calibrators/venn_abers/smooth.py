"""The smooth estimate that is clipped into the bounds of a multiprobability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from vennforest._loaded import expect
from vennforest._validation import FloatArray
from vennforest.calibrators._counts import FINEST, group_ascending
from vennforest.calibrators.one_vs_rest import normalise
from vennforest.calibrators.platt import PlattMap, fit_platt


@dataclass(frozen=True)
class SmoothEstimate:
    """Platt scaling on the log-odds of the calibration scores.

    On the scores themselves where these are no probabilities. Two classes have one map, more have
    one a class against the rest, normalised.
    """

    maps: tuple[PlattMap, ...]

    @classmethod
    def fit(cls, columns: Iterable[tuple[FloatArray, FloatArray, FloatArray]]) -> Self:
        """Fit a map to each column: increasing scores, weights and positive weights, each (m,)."""
        return cls(tuple(_fit_map(*column) for column in columns))

    def check_loaded(self) -> None:
        """Refuse what holds no sigmoids.

        Raises
        ------
        ValueError
            If the check fails.
        """
        expect(
            isinstance(self.maps, tuple) and all(isinstance(one, PlattMap) for one in self.maps),
            "maps must be PlattMaps",
        )

    def predict(self, scores: FloatArray) -> FloatArray:
        """Return estimates (n, k) for scores (n,) of two classes or (n, k); rows sum to 1."""
        if scores.ndim == 1:
            p = _read_map(self.maps[0], scores)
            return np.column_stack([1 - p, p])
        columns = [_read_map(one, scores[:, j]) for j, one in enumerate(self.maps)]
        return normalise(np.column_stack(columns), scores)


def _fit_map(x: FloatArray, weight: FloatArray, positive: FloatArray) -> PlattMap:
    probabilities = bool(x[0] >= 0 and x[-1] <= 1)
    if len(x) > FINEST:
        x, weight, positive = group_ascending(x, weight, positive)
    counts = np.concatenate([weight - positive, positive])
    used = counts > 0
    return fit_platt(
        np.tile(x, 2)[used],
        np.repeat([0.0, 1.0], len(x))[used],
        counts[used],
        on="logit" if probabilities else "score",
    )


def _read_map(smooth: PlattMap, scores: FloatArray) -> FloatArray:
    # Beyond [0, 1] the log-odds are those of the nearer end.
    return smooth(scores if smooth.interior is None else np.clip(scores, 0.0, 1.0))
