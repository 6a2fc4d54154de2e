"""Calibration intercept and slope, and ratio of observed to expected events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from vennforest._validation import FloatArray, IntArray, check_inside
from vennforest.metrics._inputs import (
    EventEstimates,
    group_numbers,
    positive_problem,
    uncertain_rows,
)
from vennforest.metrics.intervals import share_interval
from vennforest.metrics.logistic import covariance, fit_offset_regression, is_separated


@dataclass(frozen=True)
class IntervalEstimate:
    """An estimate with the ends of its confidence interval; NaN if undefined."""

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
        Number of positive rows divided by the sum of the probabilities; 1 if calibrated, above 1
        if probabilities are too low.
    intercept : IntervalEstimate
        Shift of the log-odds that corrects their mean (calibration in the large); 0 if calibrated,
        above 0 if probabilities are too low.
    slope : IntervalEstimate
        Coefficient of the log-odds in a logistic regression with an intercept; 1 if calibrated,
        below 1 if probabilities are too extreme.
    certain : int
        Number of rows whose probability is exactly 0 or 1. Intercept and slope are estimated
        without them, since their log-odds are infinite.
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
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
) -> CalibrationLine:
    """Return calibration intercept and slope, and the ratio of observed to expected events.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, each of which the intervals treat as one observation.
    level : float
        Confidence level of the intervals, in (0, 1).

    Notes
    -----
    Cox (1958): logit P(y = 1) = a + b logit p, fitted by maximum likelihood; the intercept is that
    of the same model with b = 1 (Van Calster et al. 2019). Their intervals are Wald's, with the
    sandwich variance if groups are given. They are NaN if the likelihood has no maximum (labels
    separated by p, or of one class). The interval of O/E is symmetric in its logarithm. It uses the
    variance n q (1 - q) of the observed number, q its share, or with
    groups that of labels with their intra-group correlation; where all rows have the event it is
    Wilson's.
    """
    check_inside(level, "level")
    problem = positive_problem(y, p, sample_weight, classes, pos_label)
    return line_of(problem, group_numbers(groups, p, sample_weight), level)


def line_of(problem: EventEstimates, groups: IntArray | None, level: float) -> CalibrationLine:
    """Return the calibration line of validated estimates, for group codes (n,)."""
    z = float(ndtri((1 + level) / 2))
    ratio = _observed_expected(problem, groups, z)
    # Which rows are left out depends on p alone, so it does not bias the regression on p.
    (outcome, p, weight), groups = uncertain_rows(problem, groups)
    certain = len(problem.p) - len(p)
    if not len(p):
        return CalibrationLine(ratio, UNDEFINED, UNDEFINED, certain)
    odds = np.log(p) - np.log1p(-p)
    constant = np.ones((len(odds), 1))
    intercept = _last_coefficient(constant, odds, outcome, weight, groups, z)
    design = np.column_stack([constant, odds])
    slope = _last_coefficient(design, 0 * odds, outcome, weight, groups, z)
    return CalibrationLine(ratio, intercept, slope, certain)


def _observed_expected(
    problem: EventEstimates, groups: IntArray | None, z: float
) -> IntervalEstimate:
    """Return the ratio of observed to expected events, z standard errors of its logarithm wide."""
    outcome, p, weight = problem
    observed, expected, n = weight @ outcome, weight @ p, weight.sum()
    if not observed or not expected:
        return UNDEFINED if not expected else IntervalEstimate(0.0, float("nan"), float("nan"))
    ratio = observed / expected
    if observed == n:
        low, high = share_interval(outcome, groups, weight, 1 - 2 * float(ndtr(-z)))
        return IntervalEstimate(float(ratio), low * n / expected, high * n / expected)
    variance = observed * (1 - observed / n)
    if groups is not None:
        # At one rate for all rows, the variance with the intra-group correlation in [0, 1].
        sums = np.bincount(groups, weights=weight * (outcome - observed / n))
        sizes = np.bincount(groups, weights=weight)
        variance = np.clip(sums @ sums, variance, variance * (sizes @ sizes) / n)
    spread = float(np.exp(z * np.sqrt(variance) / observed))
    return IntervalEstimate(float(ratio), float(ratio / spread), float(ratio * spread))


def _last_coefficient(
    design: FloatArray,
    offset: FloatArray,
    outcome: FloatArray,
    weight: FloatArray,
    groups: IntArray | None,
    z: float,
) -> IntervalEstimate:
    """Return the last coefficient of a logistic regression, with its interval."""
    if outcome.all() or not outcome.any():
        return UNDEFINED
    if design.shape[1] > 1 and is_separated(design[:, -1], outcome):
        return UNDEFINED
    # Columns of similar size keep the Newton steps well conditioned.
    scale = np.abs(design).max(axis=0)
    scale[scale == 0] = 1
    offsets = np.column_stack([np.zeros(len(offset)), offset])
    fit = fit_offset_regression(
        offsets, (design / scale)[:, None, :], outcome.astype(np.intp), weight
    )
    if not fit.converged:
        return UNDEFINED
    value = float(fit.theta[-1] / scale[-1])
    error = float(np.sqrt(covariance(fit, groups, weight)[-1, -1]) / scale[-1])
    return IntervalEstimate(value, value - z * error, value + z * error)
