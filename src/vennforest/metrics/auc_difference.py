"""Difference of the areas under two ROC curves of the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfc, ndtri

from vennforest._validation import check_inside
from vennforest.metrics._inputs import check_estimates, group_numbers
from vennforest.metrics.ranking import _influence


@dataclass(frozen=True)
class AucDifference:
    """Difference of two AUCs, its confidence interval, and the p-value of no difference."""

    difference: float
    low: float
    high: float
    pvalue: float
    level: float


def auc_difference(
    y: ArrayLike,
    p: ArrayLike,
    versus: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
) -> AucDifference:
    """Return the AUC of p minus that of other probabilities ``versus`` of the same rows.

    Parameters
    ----------
    y, p, classes, pos_label
        As in ``brier_decomposition``.
    versus : array-like of shape (n,) or (n, k)
        Other probabilities of the same rows.
    groups : array-like of shape (n,), optional
        Groups of dependent rows; by default all rows are independent.
    level : float
        Confidence level of the interval, in (0, 1).

    Notes
    -----
    The paired test of DeLong, DeLong & Clarke-Pearson (1988). Influences of rows are summed over
    each group (Obuchowski 1997), and for more than two classes over the classes. All numbers are
    NaN if there is only one class.
    """
    check_inside(level, "level")
    both = [check_estimates(y, values, None, classes, pos_label) for values in (p, versus)]
    first, n = both[0], len(both[0].codes)
    counts = np.bincount(first.codes, minlength=first.p.shape[1])
    if (counts > 0).sum() < 2:
        nan = float("nan")
        return AucDifference(nan, nan, nan, nan, level)
    (area, influence), (area_versus, influence_versus) = (_influence(e, counts) for e in both)
    gap = influence - influence_versus
    numbers = group_numbers(groups, n)
    if numbers is None and first.positive is not None and counts.min() > 1:
        size = counts[first.codes]  # DeLong divides each class's squares by its number less one
        variance = float(gap**2 @ (size / (size - 1))) / n**2
    else:
        sums = gap if numbers is None else np.bincount(numbers, weights=gap)
        variance = float(sums @ sums) / n**2 * len(sums) / max(1, len(sums) - 1)
    difference, error = area - area_versus, variance**0.5
    margin = float(ndtri((1 + level) / 2)) * error
    pvalue = float(erfc(abs(difference) / error / 2**0.5)) if error > 0 else float(difference == 0)
    return AucDifference(difference, difference - margin, difference + margin, pvalue, level)
