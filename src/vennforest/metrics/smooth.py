"""Smooth calibration curves: a logistic regression on a spline of the log-odds."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtri

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics._inputs import EventEstimates
from vennforest.metrics.logistic import covariance, fit_logistic, is_separated

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

Curve = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def smooth_curve(problem: EventEstimates, groups: IntArray | None, level: float) -> Curve:
    """Return estimates, smoothed observed shares, and their pointwise interval, each (m,).

    The log-odds of the outcome are a natural cubic spline of those of the estimate, fitted by
    maximum likelihood. Knots are at quantiles weighted by the information p (1 - p), so that those
    of a rare event are where it happens. The interval is that of the delta method, with the
    sandwich variance of groups (n,). Rows with an estimate of 0 or 1 are left out. Arrays are empty
    if no maximum exists or all estimates are equal.
    """
    is_inside = (problem.p > 0) & (problem.p < 1)
    outcome, p, weight = (values[is_inside] for values in problem)
    empty = (np.empty(0),) * 4
    order = np.argsort(p, kind="stable")
    if is_separated(p, outcome):
        return empty
    groups = None if groups is None else np.unique(groups[is_inside], return_inverse=True)[1]
    z = logit(p)
    rank = np.cumsum(weight[order])
    n, n_cases = rank[-1], min(weight @ outcome, weight @ (1 - outcome))
    left_out = N_LEFT_OUT if n >= MIN_ROWS_TO_LEAVE_OUT else 0
    low, high = p[order[np.searchsorted(rank, [left_out, n - left_out - 0.5], "right")]]
    information = np.cumsum((weight * p * (1 - p))[order])
    for min_cases, shares in (*KNOT_QUANTILES, (0, ())):
        at = np.searchsorted(information, np.array(shares) * information[-1] * (1 - 1e-12))
        knots = np.unique(z[order[at]])
        if n_cases < min_cases or len(knots) < len(shares):
            continue
        features = spline_features(z, knots)[:, None]
        fit = fit_logistic(np.zeros((len(z), 2)), features, outcome.astype(np.intp), weight)
        if fit.converged:
            break
    else:
        return empty
    points = np.linspace(low, high, N_POINTS), expit(np.linspace(logit(low), logit(high), N_POINTS))
    estimate = np.unique(np.concatenate(points))
    at_points = spline_features(logit(estimate), knots)
    middle = at_points @ fit.theta
    spread = np.einsum("ij,jk,ik->i", at_points, covariance(fit, groups, weight), at_points)
    half = float(ndtri((1 + level) / 2)) * np.sqrt(np.maximum(spread, 0))
    return estimate, expit(middle), expit(middle - half), expit(middle + half)


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
