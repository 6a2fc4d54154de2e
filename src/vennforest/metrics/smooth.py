"""Smooth calibration curves: a logistic regression on a spline of the log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri

from vennforest._validation import FloatArray, IntArray, check_count, check_inside
from vennforest.metrics._inputs import (
    EventEstimates,
    group_numbers,
    positive_problem,
    uncertain_rows,
)
from vennforest.metrics.calibration_line import IntervalEstimate
from vennforest.metrics.logistic import LogisticFit, covariance, fit_offset_regression, is_separated

KNOT_QUANTILES = (
    (200, (0.05, 0.275, 0.5, 0.725, 0.95)),
    (100, (0.05, 0.35, 0.65, 0.95)),
    (50, (0.1, 0.5, 0.9)),
)
"""Minimum numbers of rows of the rarer outcome (200 for a flexible curve: Van Calster et al. 2016),
and the quantiles of the knots (Harrell 2015, table 2.3)."""

N_POINTS = 100
"""Number of points evenly spaced in the probability, and of others in the log-odds."""

N_LEFT_OUT = 9
MIN_ROWS_TO_LEAVE_OUT = 200
"""Rows at either end where the curve is not drawn, if there are enough rows (as in R's rms)."""

MAX_SAMPLE_CELLS = 1_000
"""Cells of neighbouring log-odds to which the rows of a bootstrap sample are summed."""

Curve = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def smooth_curve(problem: EventEstimates, groups: IntArray | None, level: float) -> Curve:
    """Return estimates, smoothed observed shares, and their pointwise interval, each (m,).

    The log-odds of the outcome are a natural cubic spline of those of the estimate, fitted by
    maximum likelihood. Knots are at quantiles weighted by the information p (1 - p), so that those
    of a rare event are where it happens. The interval is that of the delta method, with the
    sandwich variance of groups (n,). Rows with an estimate of 0 or 1 are left out. Arrays are empty
    if no maximum exists or all estimates are equal.
    """
    (outcome, p, weight), groups = uncertain_rows(problem, groups)
    if (spline := _fit_spline(p, outcome, weight)) is None:
        return (np.empty(0),) * 4
    fit, knots = spline
    order = np.argsort(p, kind="stable")
    rank = np.cumsum(weight[order])
    n = rank[-1]
    left_out = N_LEFT_OUT if n >= MIN_ROWS_TO_LEAVE_OUT else 0
    low, high = p[order[np.searchsorted(rank, [left_out, n - left_out - 0.5], "right")]]
    points = np.linspace(low, high, N_POINTS), expit(np.linspace(logit(low), logit(high), N_POINTS))
    estimate = np.unique(np.concatenate(points))
    at_points = spline_features(logit(estimate), knots)
    middle = at_points @ fit.theta
    spread = np.einsum("ij,jk,ik->i", at_points, covariance(fit, groups, weight), at_points)
    half = float(ndtri((1 + level) / 2)) * np.sqrt(np.maximum(spread, 0))
    return estimate, expit(middle), expit(middle - half), expit(middle + half)


def _fit_spline(
    p: FloatArray, outcome: FloatArray, weight: FloatArray
) -> tuple[LogisticFit, FloatArray] | None:
    """Return the regression on the spline of the log-odds and its knots; None without a maximum."""
    if is_separated(p, outcome):
        return None
    z, order = logit(p), np.argsort(p, kind="stable")
    n_cases = min(weight @ outcome, weight @ (1 - outcome))
    information = np.cumsum((weight * p * (1 - p))[order])
    for min_cases, shares in (*KNOT_QUANTILES, (0, ())):
        at = np.searchsorted(information, np.array(shares) * information[-1] * (1 - 1e-12))
        knots = np.unique(z[order[at]])
        if n_cases < min_cases or len(knots) < len(shares):
            continue
        features = spline_features(z, knots)[:, None]
        fit = fit_offset_regression(
            np.zeros((len(z), 2)), features, outcome.astype(np.intp), weight
        )
        if fit.converged:
            return fit, knots
    return None


@dataclass(frozen=True)
class CalibrationDistances:
    """Distances |p - c(p)| of estimates from their smooth calibration curve c, over the rows.

    Attributes
    ----------
    ici : IntervalEstimate
        Integrated calibration index: the mean distance.
    e50, e90, emax : IntervalEstimate
        Median, 90% quantile and maximum of the distance.
    """

    ici: IntervalEstimate
    e50: IntervalEstimate
    e90: IntervalEstimate
    emax: IntervalEstimate


def calibration_distances(
    y: ArrayLike,
    p: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
    n_draws: int = 200,
    random_state: int = 0,
) -> CalibrationDistances:
    """Return the integrated calibration index, E50, E90 and Emax with bootstrap intervals.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.
    groups, level
        As in ``calibration_line``. The bootstrap draws whole groups.
    n_draws, random_state : int
        Number of bootstrap samples, and their seed.

    Notes
    -----
    Austin & Steyerberg (2019), Statistics in Medicine 38, 4051-4065, with the curve of
    `reliability_curve`. Intervals are of bootstrap percentiles, and of the distance itself, which
    may be below them: it cannot be negative, so of calibrated probabilities they lie above 0 too.
    Rows whose p is 0 or 1 are left out, and all numbers are NaN if the curve has no maximum of the
    likelihood.
    """
    check_inside(level, "level")
    check_count(n_draws, "n_draws")
    check_count(random_state, "random_state", 0)
    problem = positive_problem(y, p, sample_weight, classes, pos_label)
    numbers = group_numbers(groups, p, sample_weight)
    (outcome, estimate, weight), unit = uncertain_rows(problem, numbers)
    unit = np.arange(len(estimate)) if unit is None else unit
    of_rows = _distances_to_curve(estimate, outcome, weight)
    draws = np.full((n_draws, 4), np.nan)
    if np.isfinite(of_rows).all():
        n_units = int(unit.max()) + 1
        distinct, rank = np.unique(estimate, return_inverse=True)
        cells = min(len(distinct), MAX_SAMPLE_CELLS)
        cell = rank * cells // len(distinct)  # of neighbours in the order of the estimates
        of_cell = np.bincount(cell, weights=weight * estimate) / np.bincount(cell, weights=weight)
        corner, p_of_corner = 2 * cell + (outcome > 0), np.repeat(of_cell, 2)
        outcomes = np.tile([0.0, 1.0], cells)
        rng = np.random.default_rng(random_state)
        for draw in draws:
            times = weight * rng.multinomial(n_units, np.full(n_units, 1 / n_units))[unit]
            sums = np.bincount(corner, weights=times, minlength=2 * cells).astype(np.float64)
            draw[:] = _distances_to_curve(p_of_corner[sums > 0], outcomes[sums > 0], sums[sums > 0])
    draws = draws[np.isfinite(draws).all(axis=1)]
    tails = (1 - level) / 2, (1 + level) / 2
    ends = np.quantile(draws, tails, axis=0) if len(draws) else np.full((2, 4), np.nan)
    ends = np.stack([np.minimum(ends[0], of_rows), np.maximum(ends[1], of_rows)])
    return CalibrationDistances(
        *(IntervalEstimate(*map(float, values)) for values in zip(of_rows, *ends, strict=True))
    )


def _distances_to_curve(p: FloatArray, outcome: FloatArray, weight: FloatArray) -> FloatArray:
    """Return mean, median, 90% quantile and maximum of the distances from the curve, (4,)."""
    if not len(p) or (spline := _fit_spline(p, outcome, weight)) is None:
        return np.full(4, np.nan)
    fit, knots = spline
    distance = np.abs(p - expit(spline_features(logit(p), knots) @ fit.theta))
    order = np.argsort(distance)
    rank = np.cumsum(weight[order]) / weight.sum()
    quantiles = distance[order[np.searchsorted(rank, np.array([0.5, 0.9]) * (1 - 1e-12))]]
    return np.array([weight @ distance / weight.sum(), *quantiles, distance.max()])


def spline_features(z: FloatArray, knots: FloatArray) -> FloatArray:
    """Return the features (n, max(2, m)) 1, z and cubic terms of a natural spline with m knots.

    Harrell (2015), section 2.4.5.
    """
    columns = [np.ones(len(z)), z]
    if len(knots) > 2:
        *first, before, last = knots
        cubes = {knot: np.maximum(z - knot, 0) ** 3 for knot in knots}
        for knot in first:
            ends = (last - knot) * cubes[before] - (before - knot) * cubes[last]
            columns.append((cubes[knot] - ends / (last - before)) / (last - knots[0]) ** 2)
    return np.column_stack(columns)
