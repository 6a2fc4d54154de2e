"""Labels of rows that depend on each other within groups, under the hypothesis of calibration.

With probability √ρ a row's label is decided by a number U in [0, 1] that its group shares, else by
one of its own: the label is 1 where the number is below p. Each label then has its probability, and
two labels of a group have covariance ``ρ min(p, q) (1 - max(p, q))``: for equal probabilities their
correlation is ρ. Neither variances nor draws use the residuals of single segments, which would make
a segment without events look certain.
"""

from __future__ import annotations

import numpy as np

from vennforest._validation import FloatArray, IntArray

MIN_EVENT_GROUPS = 10
"""Groups that have the rarer outcome, below which the correlation is too uncertain for tests."""


def intragroup_correlation(outcome: FloatArray, p: FloatArray, groups: IntArray) -> float:
    """Return ρ in [0, 1], pooled over all pairs of rows (n,) of one group; 0 without pairs.

    The sum of products of residuals over pairs, divided by that of the covariances at ρ = 1.
    """
    residual = outcome - p
    products = (np.bincount(groups, residual) ** 2).sum() - residual @ residual
    largest = float(_pair_covariances(np.ones((len(p), 1)), p, groups)[0, 0])
    return float(np.clip(products / largest, 0, 1)) if largest > 0 else 0.0


def variance_of_sums(
    features: FloatArray, p: FloatArray, groups: IntArray | None, correlation: float
) -> FloatArray:
    """Return the covariance (d, d) of the sums of ``features`` (n, d) times labels (n,)."""
    variance = (features * (p * (1 - p))[:, None]).T @ features
    if groups is not None and correlation > 0:
        variance = variance + correlation * _pair_covariances(features, p, groups)
    return np.asarray(variance)


def draw_labels(
    rng: np.random.Generator,
    p: FloatArray,
    groups: IntArray | None,
    correlation: float,
    n_draws: int,
) -> FloatArray:
    """Draw labels 0.0 or 1.0, (n_draws, n), with probabilities p (n,), correlated within groups.

    ``groups`` (n,) are codes from 0, or None for independent rows; ``correlation`` is ρ above.
    """
    number = rng.random((n_draws, len(p)))
    if groups is not None and correlation > 0:
        shared = rng.random((n_draws, int(groups.max()) + 1))[:, groups]
        number = np.where(rng.random(number.shape) < np.sqrt(correlation), shared, number)
    return (number < p).astype(np.float64)


def event_groups(outcome: FloatArray, groups: IntArray) -> int:
    """Return the number of groups with an outcome of 0, or of 1 if these are fewer."""
    return min(len(np.unique(groups[outcome == value])) for value in (0, 1))


def _pair_covariances(features: FloatArray, p: FloatArray, groups: IntArray) -> FloatArray:
    """Return the sum (d, d) over ordered pairs of rows of a group of a_i a_j' min (1 - max)."""
    order = np.lexsort((p, groups))
    a, q, group = features[order], p[order], groups[order]
    low, high = a * q[:, None], a * (1 - q)[:, None]
    # Sums over the rows of the group that come before: their probabilities are not above q.
    before = np.cumsum(low, axis=0) - low
    first = np.searchsorted(group, group)
    half = high.T @ (before - before[first])
    return np.asarray(half + half.T)
