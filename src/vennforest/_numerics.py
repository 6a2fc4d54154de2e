"""Numerical methods that several packages use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from vennforest._validation import FloatArray

NUMBERS_IN_BLOCK = 1 << 16
"""Numbers of the rows that are computed together, which fit into the cache of a core."""

ROOT_TOLERANCE = 1e-9
"""Step of a search for a root after which Newton's next one is rounding."""


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of the rows that are computed together."""
    size = max(1, NUMBERS_IN_BLOCK // n_columns)
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


def root_of_increasing(
    function: Callable[[float], tuple[float, float]], start: float, limit: float
) -> float:
    """Return the root in [-limit, limit] of an increasing function, or the end nearest to it.

    ``function`` returns its value and derivative. Newton's method, safeguarded by bisection of the
    interval that contains the root.
    """
    low, high, x = -np.inf, np.inf, float(np.clip(start, -limit, limit))
    while True:
        value, derivative = function(x)
        if value == 0 or (value > 0 and x == -limit) or (value < 0 and x == limit):
            return x
        low, high = (low, x) if value > 0 else (x, high)
        with np.errstate(divide="ignore", over="ignore"):
            nearer = float(np.clip(x - np.divide(value, max(derivative, 0.0)), -limit, limit))
        # At the root itself, rounding can make the sign of the last step either.
        if abs(nearer - x) > ROOT_TOLERANCE and not low < nearer < high:
            nearer = (max(low, -limit) + min(high, limit)) / 2
        if not abs(nearer - x) > ROOT_TOLERANCE:  # NaN ends it too
            return nearer
        x = nearer


def binomial_bound(s: ArrayLike, m: ArrayLike, error: float, *, upper: bool) -> FloatArray:
    """Return the bound of Clopper & Pearson (1934) for s of m, each with this error."""
    s, m = np.asarray(s, np.float64), np.asarray(m, np.float64)
    if upper:
        return np.where(s < m, betainccinv(s + 1, np.maximum(m - s, 1), error), 1.0)
    return np.where(s > 0, betaincinv(np.maximum(s, 1), m - s + 1, error), 0.0)
