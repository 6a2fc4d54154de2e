"""A smooth calibration curve that need not rise: local linear regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import check_estimates

SPAN = 2 / 3
POINTS = 61


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """Observed shares along the estimates, smoothed.

    Attributes
    ----------
    estimate : ndarray of shape (g,)
        Estimates, increasing, from the smallest to the largest.
    share : ndarray of shape (g,)
        Smoothed share of what was observed there, in [0, 1].
    """

    estimate: FloatArray
    share: FloatArray


def smooth_calibration_curve(
    y: ArrayLike,
    p: ArrayLike,
    *,
    span: float = SPAN,
    points: int = POINTS,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> SmoothCurve:
    """Return a calibration curve that may fall as well as rise, unlike the isotonic (CORP) one.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any dtype.
    p : array-like of shape (n,) or (n, k)
        Probability of the positive class, or of every class in sorted order; in [0, 1].
    span : float
        Share of the observations that bear on each point, in (0, 1].
    points : int
        Number of estimates at which the curve is taken at most, from 2 on: quantiles, and those
        nearest to equal steps, half of them each.
    sample_weight : array-like of shape (n,), optional
        Non-negative; a weight of 2 is the observation twice.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    pos_label : label, optional
        As in ``reliability_curve``.

    Returns
    -------
    SmoothCurve

    Raises
    ------
    ValueError
        As ``brier_decomposition``, or if ``span`` or ``points`` is out of range.

    Notes
    -----
    Cleveland (1979): at x the observed shares are regressed on the estimates by weighted least
    squares, with weights (1 - (|p_i - x| / h)^3)^3, h the distance of the nearest estimates that
    make up the span. A line is fitted, and a level where all estimates within h are the same. The
    share is clipped to [0, 1]. Austin & Steyerberg (2014) use such curves for calibration.
    """
    if not 0 < span <= 1:
        raise ValueError(f"span must lie in (0, 1], got {span}")
    if points < 2:
        raise ValueError(f"points must be an integer >= 2, got {points}")
    outcome, estimate, weight = check_estimates(
        y, p, sample_weight=sample_weight, classes=classes, pos_label=pos_label
    ).main()
    x, at = np.unique(estimate, return_inverse=True)
    w = np.bincount(at, weights=weight).astype(np.float64)
    share = np.bincount(at, weights=weight * outcome) / w
    reached = np.cumsum(w) / w.sum()
    quantiles = x[
        np.searchsorted(reached, np.linspace(0, 1, points // 2), "left").clip(0, len(x) - 1)
    ]
    # Where there are no estimates a line fitted to those on one side would say anything.
    steps = np.linspace(x[0], x[-1], points - points // 2)
    after = np.searchsorted(x, steps).clip(0, len(x) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(steps - x[before] <= x[after] - steps, x[before], x[after])
    grid = np.unique(np.concatenate([quantiles, nearest]))
    values = [_local(x, share, w, float(t), span) for t in grid]
    return SmoothCurve(grid, np.clip(values, 0.0, 1.0))


def _local(x: FloatArray, share: FloatArray, w: FloatArray, t: float, span: float) -> float:
    distance = np.abs(x - t)
    order = np.argsort(distance, kind="stable")
    reached = np.cumsum(w[order])
    h = distance[order[np.searchsorted(reached, span * reached[-1] * (1 - 1e-12))]]
    if h <= 0:
        at: float = share[distance <= 0] @ w[distance <= 0] / w[distance <= 0].sum()
        return float(at)
    kernel = w * (1 - np.minimum(distance / h, 1.0) ** 3) ** 3
    total = kernel.sum()
    if total <= 0:  # all within h lie at its edge
        edge = distance <= h
        return float(share[edge] @ w[edge] / w[edge].sum())
    mean = float(kernel @ x / total)
    level = float(kernel @ share / total)
    spread = float(kernel @ (x - mean) ** 2)
    if spread <= 1e-12 * total * h * h:
        return level
    return level + float(kernel @ ((x - mean) * share)) / spread * (t - mean)
