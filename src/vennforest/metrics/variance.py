"""How estimates vary: the one place for variances, scales of intervals and degrees of freedom.

The error of an estimate is a sum of *contributions* of rows (the influence function): of a
weighted mean, ``w (x - mean) / Σ w``. Each row is one observation, whatever its weight: weights
count rows of a population, not observations, so the variance of a mean is that of Kish's effective
number of rows, (Σ w)² / Σ w². Contributions of dependent rows are summed within groups first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy.special import betainc, betaincinv, expit, logit, ndtri, stdtr, stdtrit

from vennforest._validation import FloatArray, IntArray

Scale = Literal["identity", "log", "log-odds"]

SCALES: dict[str, Any] = {
    "identity": (lambda x: x, lambda x: x, lambda x: 1.0),
    "log": (np.log, np.exp, lambda x: 1 / x),
    "log-odds": (logit, expit, lambda x: 1 / (x * (1 - x))),
}
"""Scales, their inverses and their derivatives."""

NAN = float("nan")

MIN_INFORMATION = 1e-12
"""Information below which a regression, of probabilities of almost 0 and 1, has no variance."""


@dataclass(frozen=True)
class IntervalEstimate:
    """An estimate with its confidence interval; NaN where undefined or where none is valid.

    Attributes
    ----------
    value, low, high : float
        The estimate and the ends of its interval.
    standard_error : float
        Standard error on the scale on which the interval is symmetric: the logarithm for ratios and
        losses, the log-odds for areas, else that of the value.
    pvalue : float
        Two-sided p-value of the value that means no error or no difference, NaN without one.
    contributions : ndarray of shape (m,), or None
        Contributions of m independent units, rows or groups, to the error of the value.
    """

    value: float
    low: float = NAN
    high: float = NAN
    standard_error: float = NAN
    pvalue: float = NAN
    contributions: FloatArray | None = field(default=None, repr=False, compare=False)

    def within(self, lowest: float, highest: float) -> IntervalEstimate:
        """Return the estimate with the ends of its interval clipped to the possible values."""
        return replace(self, low=max(self.low, lowest), high=min(self.high, highest))


def with_ends(name: str, value: float, low: float, high: float) -> dict[str, float]:
    """Return an estimate and the ends of its interval by the names of their columns."""
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def sum_by_group(values: FloatArray, groups: IntArray) -> FloatArray:
    """Return the sums (n_groups, m) of values (n, m) over group codes (n,)."""
    columns = [np.bincount(groups, weights=column) for column in values.T]
    return np.column_stack(columns)


def variance_of_sum(contributions: FloatArray, groups: IntArray | None = None) -> float:
    """Return the variance of the sum of contributions (n,) whose expectations sum to 0."""
    sums = contributions if groups is None else np.bincount(groups, weights=contributions)
    return float(sums @ sums) * len(sums) / max(1, len(sums) - 1)


def effective_rows(weight: FloatArray) -> float:
    """Return Kish's effective number of rows with weights (n,)."""
    return float(weight.sum() ** 2 / (weight @ weight)) if len(weight) else 0.0


def observations(weight: FloatArray, groups: IntArray | None, rows: Any) -> float:
    """Return Kish's effective number of some rows, or of the groups that these are in."""
    if groups is None:
        return effective_rows(weight[rows])
    return effective_rows(np.asarray(np.bincount(groups[rows], weights=weight[rows]), np.float64))


def units_of(outcome: FloatArray, weight: FloatArray, groups: IntArray | None) -> float:
    """Return the effective number of rows, or groups, of the rarer outcome."""
    return min(observations(weight, groups, side) for side in (outcome > 0, outcome <= 0))


def interval_estimate(
    value: float,
    contributions: FloatArray,
    groups: IntArray | None,
    units: float,
    level: float,
    scale: Scale = "identity",
    null: float | None = None,
) -> IntervalEstimate:
    """Return an estimate with Student's interval for units - 1 degrees of freedom, at least 1.

    The interval is symmetric on the scale. There is none without units or variance.
    """
    size = float(np.linalg.norm(contributions))
    if groups is not None:
        contributions = sum_by_group(contributions[:, None], groups)[:, 0]
    error = variance_of_sum(contributions) ** 0.5
    forward, back, derivative = SCALES[scale]
    if size <= 1e-13 * max(1.0, abs(value)) and value == null:  # of equal predictions
        estimate = IntervalEstimate(value, value, value, 0.0, 1.0)
    elif units < 1 or not error > 1e-9 * abs(value) or not math.isfinite(error):
        estimate = IntervalEstimate(value)
    else:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            error, middle = error * float(derivative(value)), float(forward(value))
        estimate = student_interval(value, middle, error, units, level, back, forward, null)
    return replace(estimate, contributions=contributions)


def student_interval(
    value: float,
    middle: float,
    error: float,
    units: float,
    level: float,
    back: Any = float,
    forward: Any = float,
    null: float | None = None,
) -> IntervalEstimate:
    """Return Student's interval around ``middle``, transformed by ``back``."""
    if units < 1 or not (0 < error < math.inf and math.isfinite(middle)):
        return IntervalEstimate(value)
    df = max(1.0, units - 1)
    half = float(stdtrit(df, (1 + level) / 2)) * error
    pvalue = NAN
    if null is not None:
        pvalue = 2 * float(stdtr(df, -abs(middle - float(forward(null))) / error))
    with np.errstate(over="ignore"):
        low, high = float(back(middle - half)), float(back(middle + half))
    return IntervalEstimate(value, low, high, error, pvalue)


def mean_estimate(
    values: FloatArray,
    weight: FloatArray,
    groups: IntArray | None,
    units: float,
    level: float = 0.95,
    scale: Scale = "identity",
    null: float | None = None,
) -> IntervalEstimate:
    """Return the mean of values (n,) with its interval."""
    mean = float(weight @ values / weight.sum())
    if not np.isfinite(values).all():
        return IntervalEstimate(mean)
    share = weight / weight.sum()
    return interval_estimate(mean, share * (values - mean), groups, units, level, scale, null)


def ratio_estimate(
    numerator: FloatArray,
    denominator: FloatArray,
    weight: FloatArray,
    groups: IntArray | None,
    units: float,
    level: float = 0.95,
    null: float | None = None,
) -> IntervalEstimate:
    """Return the ratio of two sums over rows (n,), with an interval of its logarithm."""
    total = float(weight @ denominator)
    if not total or not np.isfinite(numerator).all():
        return IntervalEstimate(float(weight @ numerator) / total if total else NAN)
    ratio = float(weight @ numerator) / total
    residual = weight * (numerator - ratio * denominator) / total
    return interval_estimate(ratio, residual, groups, units, level, "log", null)


def one_minus(estimate: IntervalEstimate) -> IntervalEstimate:
    """Return the interval of 1 - value."""
    of_units = estimate.contributions
    return replace(
        estimate,
        value=1 - estimate.value,
        low=1 - estimate.high,
        high=1 - estimate.low,
        contributions=None if of_units is None else -of_units,
    )


def coefficient_covariance(
    X: FloatArray,
    residual: FloatArray,
    information: FloatArray,
    groups: IntArray | None,
    weight: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the covariance (d, d) of the coefficients of a regression, and contributions (m, d).

    The units are the m rows of a design X (n, d) with their ``residual`` (n,) and ``information``
    (n,), both without their ``weight`` (n,), or groups of them. The covariance of independent rows
    is the inverse information. With weights or groups it is the jackknife's (CR3): coefficients
    move by one Newton step if a unit is left out. NaN if a unit determines a coefficient.
    """
    n, d = X.shape
    scores = X * (weight * residual)[:, None]
    total = (X * (weight * information)[:, None]).T @ X
    if not np.trace(total) > MIN_INFORMATION:
        n_units = n if groups is None else len(np.unique(groups))
        return np.full((d, d), np.nan), np.full((n_units, d), np.nan)
    if groups is None and (weight == 1).all():
        covariance = np.asarray(np.linalg.pinv(total, hermitian=True), np.float64)
        return covariance, np.asarray(scores @ covariance, np.float64)
    products = (X[:, :, None] * X[:, None, :]).reshape(n, d * d)
    products *= (weight * information)[:, None]
    if groups is not None:
        scores, products = sum_by_group(scores, groups), sum_by_group(products, groups)
    m = len(scores)
    try:
        left = total - products.reshape(-1, d, d)
        steps = np.asarray(np.linalg.solve(left, scores[:, :, None])[:, :, 0], np.float64)
    except np.linalg.LinAlgError:
        steps = np.full((m, d), np.nan)
    return np.asarray(steps.T @ steps * ((m - 1) / m if m > 1 else np.nan)), steps


def share_interval(
    outcome: FloatArray,
    groups: IntArray | None = None,
    weight: FloatArray | None = None,
    level: float = 0.95,
    exact: bool = False,
) -> tuple[float, float]:
    """Return a confidence interval of the share of 1 in ``outcome`` (n,).

    It is Wilson's, or the exact one of Clopper & Pearson (1934), for the effective number of rows
    (Kish's for weights; with groups Korn & Graubard 1998, Survey Methodology 24, 193-201): that for
    which the binomial variance is that of the share, at most the number of rows, divided by
    (t / z)². If all outcomes are equal, each group counts as one row. For a single group the ends
    are NaN.
    """
    weight = np.ones(len(outcome)) if weight is None else weight
    share, n, tail = float(weight @ outcome / weight.sum()), effective_rows(weight), (1 + level) / 2
    share, z = 1.0 if outcome.all() else share, float(ndtri(tail))  # sums of weights are rounded
    if groups is not None:
        groups = np.unique(groups, return_inverse=True)[1]
        sizes = np.bincount(groups, weights=weight)
        if len(sizes) == 1:
            return NAN, NAN
        if 0 < share < 1:
            variance = variance_of_sum(weight / weight.sum() * (outcome - share), groups)
            n = min(n, share * (1 - share) / variance) if variance > 0 else n
        else:
            n = effective_rows(np.asarray(sizes, dtype=np.float64))
        n /= (float(stdtrit(len(sizes) - 1, tail)) / z) ** 2
    if exact:
        events = share * n
        low = float(betaincinv(events, n - events + 1, 1 - tail)) if share > 0 else 0.0
        return low, float(betaincinv(events + 1, n - events, tail)) if share < 1 else 1.0
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    return low, 1.0 if share == 1 else min(1.0, middle + half)


def share_pvalue(outcome: FloatArray, weight: FloatArray, expected: float) -> float:
    """Return the two-sided p-value of an expected share of 1 in independent ``outcome`` (n,).

    It is below 1 - level where the exact interval of `share_interval` excludes the expected share.
    """
    n, expected = effective_rows(weight), min(expected, 1.0)  # it is rounded
    events = n * float(weight @ outcome / weight.sum())
    tails = [
        float(betainc(count, n - count + 1, share)) if count > 0 else 1.0
        for count, share in ((events, expected), (n - events, 1 - expected))
    ]
    return min(1.0, 2 * min(tails))
