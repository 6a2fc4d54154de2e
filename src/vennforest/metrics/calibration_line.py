"""Calibration in the large, calibration slope, and observed over expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from vennforest._validation import FloatArray, IntArray, check_inside
from vennforest.metrics._inputs import group_numbers, positive_problem
from vennforest.metrics.logistic import fit_logistic, sum_by_group


@dataclass(frozen=True)
class IntervalEstimate:
    """An estimate with the ends of its confidence interval; NaN where there is none."""

    value: float
    low: float
    high: float


UNDEFINED = IntervalEstimate(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class CalibrationLine:
    """Overall miscalibration of probabilities.

    Attributes
    ----------
    observed_expected : IntervalEstimate
        Number of positive rows over the sum of the probabilities; 1 if calibrated, above 1 where
        probabilities are too low.
    intercept : IntervalEstimate
        Shift of the log-odds that makes them right on average (calibration in the large); 0 if
        calibrated, above 0 where probabilities are too low.
    slope : IntervalEstimate
        Factor of the log-odds in a logistic regression with an intercept of its own; 1 if
        calibrated, below 1 where probabilities are too extreme.
    certain : int
        Rows whose probability is exactly 0 or 1. Their log-odds are infinite, so that there is
        neither intercept nor slope.
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
        The intervals treat the rows of a group as one observation.
    level : float
        Confidence of the intervals, in (0, 1).

    Notes
    -----
    Cox (1958): logit P(y = 1) = a + b logit p, fitted by maximum likelihood; the intercept is that
    of the same model with b = 1 (Van Calster et al. 2019). Their intervals are Wald's, with the
    sandwich variance where groups are given. Without a maximum (labels separated by p, or of one
    class) the value is NaN. The interval of O/E is symmetric in its logarithm, with the variance
    of the number observed, n q (1 - q) for its share q; of groups the variance between them.
    """
    check_inside(level, "level")
    outcome, estimate, _ = positive_problem(y, p, None, classes, pos_label)
    groups = None if groups is None else group_numbers(groups, len(outcome))
    z = float(ndtri((1 + level) / 2))
    ratio = _observed_expected(outcome, estimate, groups, z)
    certain = int(((estimate == 0) | (estimate == 1)).sum())
    if certain:
        return CalibrationLine(ratio, UNDEFINED, UNDEFINED, certain)
    odds = np.log(estimate) - np.log1p(-estimate)
    ones = np.ones((len(odds), 1))
    intercept = _last_coefficient(ones, odds, outcome, groups, z)
    slope = _last_coefficient(np.column_stack([ones, odds]), 0 * odds, outcome, groups, z)
    return CalibrationLine(ratio, intercept, slope, 0)


def _observed_expected(
    outcome: FloatArray, estimate: FloatArray, groups: IntArray | None, z: float
) -> IntervalEstimate:
    observed, expected, n = outcome.sum(), estimate.sum(), len(outcome)
    if not observed or not expected:
        return UNDEFINED if not expected else IntervalEstimate(0.0, float("nan"), float("nan"))
    ratio = observed / expected
    variance = observed * (1 - observed / n)
    if groups is not None:
        sums = np.bincount(groups, weights=outcome - observed / n)
        variance = sums @ sums * len(sums) / max(1, len(sums) - 1)
    spread = float(np.exp(z * np.sqrt(variance) / observed))
    return IntervalEstimate(float(ratio), float(ratio / spread), float(ratio * spread))


def _last_coefficient(
    design: FloatArray, offset: FloatArray, outcome: FloatArray, groups: IntArray | None, z: float
) -> IntervalEstimate:
    """Return the last coefficient of a logistic regression with its interval."""
    if outcome.all() or not outcome.any() or (design.shape[1] > 1 and not np.ptp(design[:, -1])):
        return UNDEFINED
    # Columns of similar size keep the Newton steps well conditioned.
    scale = np.abs(design).max(axis=0)
    scale[scale == 0] = 1
    offsets = np.column_stack([np.zeros(len(offset)), offset])
    fit = fit_logistic(offsets, (design / scale)[:, None, :], outcome.astype(np.intp))
    if not fit.converged or fit.log_likelihood > -1e-6:  # separated labels have no maximum
        return UNDEFINED
    covariance = np.linalg.inv(fit.hessian)
    if groups is not None:
        sums = sum_by_group(fit.scores, groups)
        covariance = covariance @ (sums.T @ sums) @ covariance * len(sums) / max(1, len(sums) - 1)
    value = float(fit.theta[-1] / scale[-1])
    error = float(np.sqrt(covariance[-1, -1]) / scale[-1])
    return IntervalEstimate(value, value - z * error, value + z * error)
