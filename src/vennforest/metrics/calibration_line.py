"""Weak calibration: intercept and slope of a logistic recalibration, observed over expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import check_level, group_numbers, positive_problem

STEPS = 60
CONVERGED = 1e-10


@dataclass(frozen=True)
class IntervalEstimate:
    """A value with the ends of its confidence interval; NaN where there is none."""

    value: float
    low: float
    high: float


NONE = IntervalEstimate(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class CalibrationLine:
    """How probabilities are off as a whole.

    Attributes
    ----------
    observed_expected : IntervalEstimate
        Number of positive rows over the sum of the probabilities; 1 if calibrated, above 1 where
        probabilities are too low.
    intercept : IntervalEstimate
        What has to be added to the log-odds so that they are right on average (calibration in the
        large); 0 if calibrated, above 0 where probabilities are too low.
    slope : IntervalEstimate
        What the log-odds have to be multiplied by, in a logistic regression with an intercept of
        its own; 1 if calibrated, below 1 where probabilities are too extreme.
    certain : int
        Rows whose probability is exactly 0 or 1: their log-odds are infinite, and there is neither
        intercept nor slope.
    """

    observed_expected: IntervalEstimate
    intercept: IntervalEstimate
    slope: IntervalEstimate
    certain: int


def calibration_line(
    y: ArrayLike,
    p: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
) -> CalibrationLine:
    """Return calibration intercept and slope, and observed over expected.

    Parameters
    ----------
    y, p, classes, pos_label
        As in ``brier_decomposition``.
    groups : array-like of shape (n,), optional
        Rows of one group count as one observation, in the intervals.
    level : float
        Confidence of the intervals, in (0, 1).

    Raises
    ------
    ValueError
        As ``ranking_curves``, or if ``level`` is out of range.

    Notes
    -----
    Cox (1958): logit P(y = 1) = a + b logit p, fitted by maximum likelihood; the intercept is that
    of the same model with b = 1 (Van Calster et al. 2019). Their intervals are Wald's, with the
    sandwich variance where groups are given. Without a maximum (labels separated by p, or of one
    class) the value is NaN. The interval of O/E is symmetric in its logarithm, with the variance
    of the number observed, n q (1 - q) for its share q; of groups the variance between them.
    """
    check_level(level)
    outcome, estimate, _ = positive_problem(y, p, None, classes, pos_label)
    n = len(outcome)
    member = None if groups is None else group_numbers(groups, n)
    z = float(ndtri((1 + level) / 2))
    ratio = _observed_expected(outcome, estimate, member, z)
    certain = int(((estimate == 0) | (estimate == 1)).sum())
    if certain:
        return CalibrationLine(ratio, NONE, NONE, certain)
    odds = np.log(estimate) - np.log1p(-estimate)
    ones = np.ones((n, 1))
    intercept = _fit(ones, odds, outcome, member, z)
    slope = _fit(np.column_stack([np.ones(n), odds]), np.zeros(n), outcome, member, z)
    return CalibrationLine(ratio, intercept, slope, 0)


def _observed_expected(
    outcome: FloatArray, estimate: FloatArray, member: Any, z: float
) -> IntervalEstimate:
    observed, expected, n = outcome.sum(), estimate.sum(), len(outcome)
    if not observed or not expected:
        return NONE if not expected else IntervalEstimate(0.0, float("nan"), float("nan"))
    ratio = observed / expected
    variance = observed * (1 - observed / n)
    if member is not None:
        sums = np.bincount(member, weights=outcome - observed / n)
        variance = sums @ sums * len(sums) / max(1, len(sums) - 1)
    spread = float(np.exp(z * np.sqrt(variance) / observed))
    return IntervalEstimate(float(ratio), float(ratio / spread), float(ratio * spread))


def _fit(
    design: FloatArray, offset: FloatArray, outcome: FloatArray, member: Any, z: float
) -> IntervalEstimate:
    """Return the last coefficient of a logistic regression, by Newton's method."""
    k = design.shape[1]
    if outcome.all() or not outcome.any() or (k > 1 and np.ptp(design[:, -1]) == 0):
        return NONE
    scale = np.ones(k)
    if k > 1:  # columns of like size, so that the system is well conditioned
        scale[-1] = np.abs(design[:, -1]).max() or 1.0
    scaled = design / scale
    beta = np.zeros(k)
    loss = _loss(scaled @ beta + offset, outcome)
    for _ in range(STEPS):
        mean = expit(scaled @ beta + offset)
        gradient = scaled.T @ (outcome - mean)
        hessian = (scaled * (mean * (1 - mean))[:, None]).T @ scaled
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            return NONE
        size = 1.0
        while (new := _loss(scaled @ (beta + size * step) + offset, outcome)) > loss + 1e-12:
            size /= 2
            if size < 1e-10:
                break
        beta, loss = beta + size * step, new
        if float(gradient @ step) < CONVERGED:
            break
    else:
        return NONE
    if loss < 1e-6 or not np.isfinite(beta).all():  # labels are separated: no maximum
        return NONE
    mean = expit(scaled @ beta + offset)
    inverse = np.linalg.inv((scaled * (mean * (1 - mean))[:, None]).T @ scaled)
    if member is not None:
        moves = scaled * (outcome - mean)[:, None]
        sums = np.column_stack([np.bincount(member, weights=moves[:, i]) for i in range(k)])
        m = len(sums)
        inverse = inverse @ (sums.T @ sums) @ inverse * (m / max(1, m - 1))
    value = float(beta[-1] / scale[-1])
    error = float(np.sqrt(inverse[-1, -1]) / scale[-1])
    return IntervalEstimate(value, value - z * error, value + z * error)


def _loss(odds: FloatArray, outcome: FloatArray) -> float:
    return float((np.logaddexp(0, odds) - outcome * odds).sum())
