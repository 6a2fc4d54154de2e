"""Areas under ROC curves and their differences, with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import erfc, expit, logit, ndtri, stdtrit
from scipy.stats import rankdata

from vennforest._validation import FloatArray, IntArray, check_inside
from vennforest.metrics._inputs import ClassEstimates, check_estimates, check_versus, group_numbers


@dataclass(frozen=True)
class AucInterval:
    """The area under the ROC curve and its confidence interval.

    Attributes
    ----------
    auc : float
        Area in [0, 1]. With more than two classes it is the mean of the one-vs-rest areas, weighted
        by the shares of the classes. NaN if there is only one class.
    low, high, level : float
        Ends of the interval, in [0, 1], and its confidence level.
    """

    auc: float
    low: float
    high: float
    level: float

    @property
    def above_chance(self) -> bool:
        """Whether the whole interval lies above 1/2, the area of random ranking."""
        return self.low > 0.5

    @property
    def below_chance(self) -> bool:
        """Whether the whole interval lies below 1/2."""
        return self.high < 0.5


def auc_interval(
    y: ArrayLike,
    p: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
) -> AucInterval:
    """Return the area under the ROC curve with a confidence interval.

    Parameters
    ----------
    y, p, classes, pos_label
        As in ``brier_decomposition``.
    groups : array-like of shape (n,), optional
        Groups of dependent rows; by default all rows are independent.
    level : float
        Confidence level of the interval, in (0, 1).

    Notes
    -----
    The variance is that of DeLong, DeLong & Clarke-Pearson (1988), from the influence of each
    observation on the area; influences are summed over each group (Obuchowski 1997), and for
    more than two classes over the classes. The interval is symmetric in the log-odds of the area,
    with Student's quantile of the observations, or groups, of the rarer class.
    If ranking is perfect, or a class has a single observation, it is the score interval with the
    variance of Hanley & McNeil (1982), as proposed by Newcombe (2006, method 5).
    """
    check_inside(level, "level")
    estimates = check_estimates(y, p, None, classes, pos_label)
    n = len(estimates.codes)
    group = np.arange(n) if (numbers := group_numbers(groups, p)) is None else numbers
    counts = np.bincount(estimates.codes, minlength=estimates.p.shape[1])
    if (counts > 0).sum() < 2:
        return AucInterval(float("nan"), 0.0, 1.0, level)
    z = float(ndtri((1 + level) / 2))
    area, influence = _influence(estimates, counts)
    largest = int(counts.argmax()) if estimates.positive is None else estimates.positive
    in_class = estimates.codes == largest
    n_class, n_rest = (len(np.unique(group[rows])) for rows in (in_class, ~in_class))
    variance = _variance_of_mean(influence, estimates, counts, None if groups is None else group)
    if min(n_class, n_rest) < 2 or variance <= 1e-18 or not 0 < area < 1:
        return AucInterval(area, *_score_interval(area, n_class, n_rest, z), level)
    # Of few observations of the rarer class, the variance itself is uncertain.
    quantile = float(stdtrit(min(n_class, n_rest) - 1, (1 + level) / 2))
    margin = quantile * np.sqrt(variance) / (area * (1 - area))
    low, high = expit(logit(area) - margin), expit(logit(area) + margin)
    return AucInterval(area, float(low), float(high), level)


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

    By the paired test of DeLong, DeLong & Clarke-Pearson (1988). All numbers are NaN if there is
    only one class.

    Parameters
    ----------
    y, p, groups, classes, pos_label, level
        As in ``auc_interval``.
    versus : array-like of shape (n,) or (n, k)
        Other probabilities of the same rows.
    """
    check_inside(level, "level")
    check_versus(versus, p)
    pair = [check_estimates(y, values, None, classes, pos_label) for values in (p, versus)]
    first = pair[0]
    counts = np.bincount(first.codes, minlength=first.p.shape[1])
    if (counts > 0).sum() < 2:
        return AucDifference(np.nan, np.nan, np.nan, np.nan, level)
    (area, influence), (area_versus, of_versus) = (
        _influence(estimates, counts) for estimates in pair
    )
    group = group_numbers(groups, p)
    error = _variance_of_mean(influence - of_versus, first, counts, group) ** 0.5
    difference, margin = area - area_versus, float(ndtri((1 + level) / 2)) * error
    pvalue = float(erfc(abs(difference) / error / 2**0.5)) if error > 0 else float(difference == 0)
    return AucDifference(difference, difference - margin, difference + margin, pvalue, level)


def _variance_of_mean(
    influence: FloatArray, estimates: ClassEstimates, counts: IntArray, group: IntArray | None
) -> float:
    """Return the variance of the mean of influences (n,) of rows, whose ``group`` may be None."""
    n = len(influence)
    if group is None and estimates.positive is not None and counts.min() > 1:
        # DeLong divides the sum of each class's squares by its own number less one.
        size = counts[estimates.codes]
        return float(influence**2 @ (size / (size - 1))) / n**2
    sums = influence if group is None else np.bincount(group, weights=influence)
    return float(sums @ sums) / n**2 * len(sums) / max(1, len(sums) - 1)


def _influence(estimates: ClassEstimates, counts: IntArray) -> tuple[float, FloatArray]:
    """Return the area under the curve, and n times the influence of each row on it, (n,)."""
    n = len(estimates.codes)
    columns = range(len(counts)) if estimates.positive is None else [estimates.positive]
    area, influence = 0.0, np.zeros(n)
    for j in columns:
        if not 0 < counts[j] < n:
            continue
        in_class, score, share = estimates.codes == j, estimates.p[:, j], counts[j] / n
        ranks = rankdata(score)
        correct = np.empty(n)  # the share of the other side that a row is ranked right against
        correct[in_class] = (ranks[in_class] - rankdata(score[in_class])) / (n - counts[j])
        correct[~in_class] = 1 - (ranks[~in_class] - rankdata(score[~in_class])) / counts[j]
        class_area = float(correct[in_class].mean())
        class_influence = (correct - class_area) / np.where(in_class, share, 1 - share)
        if estimates.positive is not None:
            return class_area, class_influence
        area += share * class_area
        # The shares that weigh the classes are estimated too.
        influence += share * class_influence + class_area * (in_class - share)
    return area, influence


def _score_interval(area: float, m: int, n: int, z: float) -> tuple[float, float]:
    """Return the two areas from which ``area`` differs by z standard errors.

    Standard errors are those of Hanley & McNeil (1982) for m and n rows: Newcombe (2006), method 5.
    """
    pairs = (m + n) / 2 - 1

    def excess(theta: float) -> float:
        spread = 1 + pairs * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        variance = theta * (1 - theta) * spread / (m * n)
        return float((theta - area) ** 2 - z**2 * variance)

    # An area of 0 or 1 is a root itself: the other root is the end of the interval.
    low = brentq(excess, 0.0, min(area, 1 - 1e-12)) if area > 0 else 0.0
    high = brentq(excess, max(area, 1e-12), 1.0) if area < 1 else 1.0
    return float(low), float(high)
