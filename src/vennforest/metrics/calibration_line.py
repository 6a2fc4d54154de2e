"""Calibration intercept and slope, and ratio of observed to expected events."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import EventEstimates
from vennforest.metrics.logistic import fit_offset_regression, is_separated
from vennforest.metrics.variance import (
    IntervalEstimate,
    coefficient_covariance,
    ratio_estimate,
    share_interval,
    share_pvalue,
    student_interval,
)

UNDEFINED = IntervalEstimate(float("nan"))

MIN_RATIO_UNITS = 10
"""Rows, or groups, of the rarer outcome below which intervals of the number of events are exact."""


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


def line_of(event: EventEstimates, level: float) -> CalibrationLine:
    """Return the calibration line of validated estimates; see `Estimates.line`."""
    ratio = observed_expected(event, level)
    # Which rows are left out depends on p alone, so it does not bias the regression on p.
    is_inside = (event.p > 0) & (event.p < 1)
    uncertain = event.uncertain()
    certain = len(event.p) - len(uncertain.p)
    if not len(uncertain.p):
        return CalibrationLine(ratio, UNDEFINED, UNDEFINED, certain)
    odds = np.log(uncertain.p) - np.log1p(-uncertain.p)
    constant = np.ones((len(odds), 1))
    groups = np.arange(len(event.p)) if event.groups is None else event.groups
    coefficients = []
    designs = (constant, odds, 0.0), (np.column_stack([constant, odds]), 0 * odds, 1.0)
    for design, offset, null in designs:
        coefficient = _last_coefficient(design, offset, uncertain, level, null)
        if coefficient.contributions is not None:  # those of units without a row inside are 0
            contributions = np.zeros(groups.max() + 1)
            contributions[np.unique(groups[is_inside])] = coefficient.contributions
            coefficient = replace(coefficient, contributions=contributions)
        coefficients.append(coefficient)
    intercept, slope = coefficients
    return CalibrationLine(ratio, intercept, slope, certain)


def observed_expected(event: EventEstimates, level: float) -> IntervalEstimate:
    """Return the ratio of observed to expected events with its interval."""
    outcome, p, weight, groups = event
    expected = float(weight @ p / weight.sum())
    units = event.units
    ratio = ratio_estimate(outcome, p, weight, groups, units, level, null=1.0)
    if np.abs(outcome - p).max() < 1e-12:  # rows without an error do not make the ratio certain
        units, ratio = 0.0, IntervalEstimate(ratio.value)
    if units >= MIN_RATIO_UNITS or not event.are_enough or not expected:
        return ratio
    # With independent rows the binomial variance is the largest (Hoeffding 1956).
    low, high = share_interval(outcome, groups, weight, level, exact=True)
    pvalue = share_pvalue(outcome, weight, expected) if groups is None else float("nan")
    return replace(ratio, low=low / expected, high=high / expected, pvalue=pvalue)


def _last_coefficient(
    design: FloatArray, offset: FloatArray, event: EventEstimates, level: float, null: float
) -> IntervalEstimate:
    """Return the last coefficient of a logistic regression, with its interval.

    The variance of independent rows is the inverse information; of weighted or grouped ones that of
    `coefficient_covariance`.
    """
    outcome, _, weight, groups = event
    if outcome.all() or not outcome.any():
        return UNDEFINED
    if design.shape[1] > 1 and is_separated(design[:, -1], outcome):
        return UNDEFINED
    # Columns of similar size keep the Newton steps well conditioned.
    scale = np.abs(design).max(axis=0)
    scale[scale == 0] = 1
    X, offsets = design / scale, np.column_stack([np.zeros(len(offset)), offset])
    fit = fit_offset_regression(offsets, X[:, None, :], outcome.astype(np.intp), weight)
    if not fit.converged:
        return UNDEFINED
    q = expit(offset + X @ fit.theta)
    covariance, of_units = coefficient_covariance(X, outcome - q, q * (1 - q), groups, weight)
    value, units = float(fit.theta[-1] / scale[-1]), np.inf
    if groups is not None or np.ptp(weight) > 0:
        units = event.units
    with np.errstate(invalid="ignore"):  # of probabilities that almost separate the outcomes
        error = float(np.sqrt(covariance[-1, -1]) / scale[-1])
    estimate = student_interval(value, value, error, units, level, null=null)
    return replace(estimate, contributions=of_units[:, -1] / scale[-1])
