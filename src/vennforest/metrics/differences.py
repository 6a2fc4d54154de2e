"""Differences of two methods' losses, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray


@dataclass(frozen=True)
class Difference:
    """The mean difference of two methods' losses, and half its 95% confidence interval."""

    mean: float
    margin: float
    loss: str = "log loss"

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return abs(self.mean) > self.margin


def difference_over_rows(
    first: FloatArray, second: FloatArray, groups: IntArray | None
) -> Difference:
    """Return the mean difference of losses (n,), with Student's interval over rows or groups.

    The interval is conditional on the fitted models: it ignores the variation of training sets.
    """
    gap = first - second
    residual: FloatArray = gap - gap.mean()
    if groups is not None:
        residual = np.bincount(groups, weights=residual).astype(np.float64)
    m = len(residual)
    if m < 2:
        return Difference(float(gap.mean()), float("inf"))
    error = np.sqrt(residual @ residual * m / (m - 1)) / len(gap)
    return Difference(float(gap.mean()), float(student.ppf(0.975, m - 1) * error))
