"""The smooth estimate that is clipped into the bounds of a multiprobability."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import attrs
import numpy as np
from scipy.special import expit

from vennforest._blocks import in_blocks
from vennforest._state import require, stored
from vennforest._validation import FloatArray
from vennforest.calibrators.core.formula import Terms
from vennforest.calibrators.core.interface import as_tuple
from vennforest.calibrators.core.label_counts import FARTHEST, FINEST
from vennforest.calibrators.core.one_vs_rest import normalise, normalised_formula
from vennforest.calibrators.maps.platt import PlattMap, fit_platt_to_counts
from vennforest.calibrators.venn_abers import kernels
from vennforest.calibrators.venn_abers.step_table import Sums


@stored("smooth-estimate")
@attrs.frozen(eq=False)
class SmoothEstimate:
    """Platt scaling on the log-odds of the calibration scores.

    On the scores themselves where these are not probabilities. Two classes have one map, more have
    one a class against the rest, normalised.
    """

    maps: tuple[PlattMap, ...] = attrs.field(converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        """Refuse what holds no sigmoids."""
        require(all(isinstance(one, PlattMap) for one in self.maps), "maps must be PlattMaps")

    @classmethod
    def fit(cls, columns: Iterable[tuple[FloatArray, Sums]]) -> Self:
        """Fit a map to each column: increasing scores (m,), and the sums of weights at them."""
        return cls(tuple(_fit_map(*column) for column in columns))

    def predict(self, scores: FloatArray) -> FloatArray:
        """Return estimates (n, k) for scores (n,) of two classes or (n, k); rows sum to 1."""
        if scores.ndim == 1:
            p = self.read(scores)
            return np.column_stack([1 - p, p])
        each = np.empty(scores.shape[::-1])
        for j, one in enumerate(self.maps):
            each[j] = _read_map(one, scores[:, j])
        return normalise(each.T, scores)

    def formulas(self, scores: Terms) -> Terms:
        """Return the formulas of the estimates, of the second of two classes or of each of more."""
        each = tuple(
            one.formula(x if one.interior is None else x.clip(0.0, 1.0))
            for one, x in zip(self.maps, scores, strict=True)
        )
        return each if len(each) == 1 else normalised_formula(each, scores)

    def read(self, scores: FloatArray) -> FloatArray:
        """Return the estimate (n,) of the second of two classes for scores (n,)."""
        return _read_map(self.maps[0], scores)


def _fit_map(x: FloatArray, sums: Sums) -> PlattMap:
    probabilities = bool(x[0] >= 0 and x[-1] <= 1)
    weight, positive = sums.counts() if len(x) <= FINEST else (None, None)
    if weight is None or positive is None:
        x, weight, positive = _group(x, sums, probabilities)
    return fit_platt_to_counts(x, weight, positive, on="logit" if probabilities else "score")


def _group(
    x: FloatArray, sums: Sums, probabilities: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Do what `vennforest.calibrators.core.label_counts.group` does for scores that increase.

    Each cell is a stretch of them, so that no score's log-odds are needed.
    """
    low, high = x[0], x[-1]
    if probabilities:
        with np.errstate(divide="ignore"):
            low, high = np.clip(np.log([low, high]) - np.log1p([-low, -high]), -FARTHEST, FARTHEST)
    with np.errstate(over="ignore"):
        width = high - low
    if not 0 < width < np.inf:
        return x, *sums.counts()
    edges = np.linspace(low, high, FINEST + 1)[1:-1]
    made = np.empty((3, FINEST))
    groups = kernels.group(x, *sums, expit(edges) if probabilities else edges, *made)
    mean, weight, positive = made[:, :groups]
    return mean, weight, positive


def _read_map(smooth: PlattMap, scores: FloatArray) -> FloatArray:
    if smooth.interior is None:
        return smooth(scores)
    # Beyond [0, 1] the log-odds are those of the nearer end.
    return in_blocks(lambda block: smooth(np.clip(block, 0.0, 1.0)), scores)
