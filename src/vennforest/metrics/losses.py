"""Log loss, Brier score and its skill, with intervals, and differences of losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray, check_inside
from vennforest.metrics._inputs import check_estimates, group_numbers
from vennforest.metrics.calibration_line import IntervalEstimate


def log_losses(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return −ln p of each row's observed class, (n,); infinite where p is 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(-np.log(p[np.arange(len(p)), codes]), 0.0)


def squared_losses(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return the squared error of each row's probabilities, (n,); halved for two classes."""
    losses: FloatArray = np.einsum("ij,ij->i", p, p) - 2 * p[np.arange(len(p)), codes] + 1
    return losses / 2 if p.shape[1] == 2 else losses


@dataclass(frozen=True)
class LossIntervals:
    """Losses with their confidence intervals.

    Attributes
    ----------
    log_loss : IntervalEstimate
        Mean of −ln of the observed class's probability; infinite, with ends NaN, if that was 0.
    brier : IntervalEstimate
        Mean squared error: of the second class's probability with two classes, with more the
        squared distance of the vectors, from 0 to 2.
    brier_skill : IntervalEstimate
        1 − Brier score / that of the class shares.
    """

    log_loss: IntervalEstimate
    brier: IntervalEstimate
    brier_skill: IntervalEstimate


def loss_intervals(
    y: ArrayLike,
    p: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
) -> LossIntervals:
    """Return log loss, Brier score and Brier skill with confidence intervals.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.
    groups, level
        As in ``calibration_line``.

    Notes
    -----
    Student's intervals of means over rows or groups, given the estimates. That of the skill is of
    the ratio of the two means (delta method), paired by row.

    Examples
    --------
    >>> intervals = loss_intervals([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50)
    >>> {name: round(estimate.value, 3) for name, estimate in vars(intervals).items()}
    {'log_loss': 0.27, 'brier': 0.068, 'brier_skill': 0.73}
    """
    check_inside(level, "level")
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    numbers = group_numbers(groups, p, sample_weight)
    return loss_intervals_of(estimates.p, estimates.codes, estimates.weight, numbers, level)


def loss_intervals_of(
    p: FloatArray, codes: IntArray, weight: FloatArray, groups: IntArray | None, level: float = 0.95
) -> LossIntervals:
    """Return the intervals for validated probabilities (n, k) and group codes (n,)."""
    shares = np.bincount(codes, weights=weight, minlength=p.shape[1]) / weight.sum()
    squared, of_shares = (squared_losses(q, codes) for q in (p, np.tile(shares, (len(p), 1))))
    reference = weight @ of_shares / weight.sum()
    columns = [log_losses(p, codes), squared]
    if reference > 0:
        ratio = weight @ squared / weight.sum() / reference
        columns.append(1 - ratio - (squared - ratio * of_shares) / reference)
    else:
        columns.append(np.full(len(p), np.nan))
    intervals = []
    for values in columns:
        mean = float(weight @ values / weight.sum())
        margin = margin_of_mean(values, weight, groups, level)
        intervals.append(IntervalEstimate(mean, mean - margin, mean + margin))
    return LossIntervals(*intervals)


def margin_of_mean(
    values: FloatArray, weight: FloatArray, groups: IntArray | None, level: float = 0.95
) -> float:
    """Return half of Student's interval for the mean of values (n,) over rows or groups.

    It is infinite with a single row or group, and NaN where a value is not finite. Weights (n,) are
    numbers of observations.
    """
    if not np.isfinite(values).all():
        return float("nan")
    n = float(weight.sum())
    residual: FloatArray = weight * (values - weight @ values / n)
    squares, m = float(residual @ (residual / weight)), n
    if groups is not None:
        sums = np.bincount(groups, weights=residual)
        squares, m = float(sums @ sums), len(sums)
    if m < 2:
        return float("inf")
    return float(student.ppf((1 + level) / 2, m - 1) * np.sqrt(squares * m / (m - 1)) / n)


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
    return Difference(float(gap.mean()), margin_of_mean(gap, np.ones(len(gap)), groups))
