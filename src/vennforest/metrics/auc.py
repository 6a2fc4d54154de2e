"""Areas under ROC curves: their values, what rows contribute to them, and a score interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import ClassEstimates
from vennforest.metrics.variance import effective_rows


def roc_area(estimates: ClassEstimates, p: FloatArray) -> tuple[float, FloatArray]:
    """Return the area for probabilities p (n, k), and each row's contribution to it, (n,).

    Contributions are those of DeLong, DeLong & Clarke-Pearson (1988). With more than two classes
    the area is the mean of the one-vs-rest areas, weighted by the shares of the classes.
    """
    codes, weight = estimates.codes, estimates.weight
    if estimates.positive is not None:
        is_event = codes == estimates.positive
        value, contributions = _area_of_event(is_event, p[:, estimates.positive], weight)
        if estimates.groups is None:
            # Squares are divided by the number of rows of a side less one, not of all rows.
            for side in (is_event, ~is_event):
                n = effective_rows(weight[side])
                share = (len(codes) - 1) / len(codes)
                contributions[side] *= (n / (n - 1) * share) ** 0.5 if n > 1 else 0.0
        return value, contributions
    observed = np.unique(codes)
    value, contributions = 0.0 if len(observed) > 1 else np.nan, np.zeros(len(codes))
    for j in observed if len(observed) > 1 else []:
        in_class = codes == j
        share = weight[in_class].sum() / weight.sum()
        class_area, of_class = _area_of_event(in_class, p[:, j], weight)
        value += share * class_area
        # The shares that weigh the classes are estimated too.
        contributions += share * of_class + class_area * weight * (in_class - share) / weight.sum()
    return value, contributions


def _area_of_event(
    is_event: NDArray[np.bool_], score: FloatArray, weight: FloatArray
) -> tuple[float, FloatArray]:
    """Return the area of one event, NaN if it or its opposite is missing, and contributions."""
    level = np.unique(score, return_inverse=True)[1]
    correct, contributions = np.empty(len(score)), np.zeros(len(score))
    sides = is_event, ~is_event
    if not all(side.any() for side in sides):
        return float("nan"), contributions
    for side, other_side in zip(sides, sides[::-1], strict=True):
        total = np.bincount(level, weights=weight * other_side)
        below = np.cumsum(total) - total / 2  # ties count half
        correct[side] = below[level[side]] / total.sum()
    correct[~is_event] = 1 - correct[~is_event]
    value = float(np.average(correct[is_event], weights=weight[is_event]))
    for side in sides:
        contributions[side] = weight[side] / weight[side].sum() * (correct[side] - value)
    return value, contributions


def score_interval(value: float, m: float, n: float, z: float) -> tuple[float, float]:
    """Return the two areas from which ``value`` differs by z standard errors.

    Standard errors are those of Hanley & McNeil (1982) for m and n rows: Newcombe (2006), method 5.
    """
    pairs = (m + n) / 2 - 1

    def excess(theta: float) -> float:
        spread = 1 + pairs * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        variance = theta * (1 - theta) * spread / (m * n)
        return float((theta - value) ** 2 - z**2 * variance)

    # An area of 0 or 1 is a root itself: the other root is the end of the interval.
    low = brentq(excess, 0.0, min(value, 1 - 1e-12)) if value > 0 else 0.0
    high = brentq(excess, max(value, 1e-12), 1.0) if value < 1 else 1.0
    return float(low), float(high)
