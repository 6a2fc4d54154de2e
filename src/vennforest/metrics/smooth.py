"""Smooth calibration curves: a logistic regression on a spline of the log-odds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import expit, logit, stdtrit

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import EventEstimates
from vennforest.metrics.logistic import LogisticFit, fit_offset_regression, is_separated
from vennforest.metrics.variance import IntervalEstimate, coefficient_covariance

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


def smooth_curve(event: EventEstimates, level: float) -> Curve:
    """Return estimates, smoothed observed shares, and their pointwise interval, each (m,).

    The log-odds of the outcome are a natural cubic spline of those of the estimate, fitted by
    maximum likelihood. Knots are at quantiles weighted by the information p (1 - p), so that those
    of a rare event are where it happens. The interval is that of the delta method, with
    the covariance of `coefficient_covariance` for groups and weights. Rows with an estimate of 0 or
    1 are left out. Arrays are empty if no maximum exists or all estimates are equal.
    """
    uncertain = event.uncertain()
    outcome, p, weight, _ = uncertain
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
    spread = np.einsum("ij,jk,ik->i", at_points, _covariance(fit, knots, uncertain), at_points)
    quantile = float(stdtrit(_degrees_of_freedom(uncertain), (1 + level) / 2))
    half = quantile * np.sqrt(np.maximum(spread, 0))
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
    """Distances |p - c(p)| of estimates from their calibration curve c, over the rows.

    The distances from the smooth curve are biased upwards, since the curve follows the labels.

    Attributes
    ----------
    ici : IntervalEstimate
        Integrated calibration index: the mean distance. Its interval is of the mean distance from
        the calibration curve itself, without the bias, and may lie below the value.
    e50, e90, emax : IntervalEstimate
        Median, 90% quantile and maximum of the distance; no interval of them was found valid.
    by_chance : dict of str to float
        The medians of these four if the probabilities are calibrated.
    """

    ici: IntervalEstimate
    e50: IntervalEstimate
    e90: IntervalEstimate
    emax: IntervalEstimate
    by_chance: dict[str, float] = field(default_factory=dict)


def distances_of(
    event: EventEstimates, level: float, n_draws: int, random_state: int
) -> CalibrationDistances:
    """Return the distances of validated estimates; see `Estimates.distances`."""
    uncertain, names = event.uncertain(), ("ici", "e50", "e90", "emax")
    outcome, p, weight, _ = uncertain
    spline = _fit_spline(p, outcome, weight) if len(p) else None
    if spline is None:
        undefined = IntervalEstimate(float("nan"))
        chances = dict.fromkeys(names, float("nan"))
        return CalibrationDistances(undefined, undefined, undefined, undefined, chances)
    fit, knots = spline
    distance = np.abs(p - expit(spline_features(logit(p), knots) @ fit.theta))
    values = _summaries(distance[:, None], weight)[:, 0]
    distinct, rank = np.unique(p, return_inverse=True)
    cell = rank * min(len(distinct), MAX_SAMPLE_CELLS) // len(distinct)
    share = np.bincount(cell, weights=weight).astype(np.float64)
    of_cell = (np.bincount(cell, weights=weight * p) / share).clip(p.min(), p.max())  # rounding
    features = spline_features(logit(of_cell), knots)
    rng = np.random.default_rng(random_state)
    n_draws = max(n_draws, round(10 / (1 - level)))
    covariance = _covariance(fit, knots, uncertain)
    if not np.isfinite(covariance).all():
        ends, chance = np.full(2, np.nan), np.full(4, np.nan)
    else:
        spread, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(spread, 0))
        noise = features @ root @ rng.standard_normal((len(spread), n_draws))
        z = features[:, 1]
        excess = features @ fit.theta - z  # of the log-odds of the curve over those of the estimate

        def measures(log_odds: FloatArray) -> FloatArray:
            """Return the four measures (4, b) of curves (cells, b)."""
            return _summaries(np.abs(expit(log_odds) - of_cell[:, None]), share)

        # Squared distances rise by the variance of the curve, twice in draws around the estimate.
        # Their own variance rises with them, so the interval is a score interval.
        nulls = measures(z[:, None] + noise)
        draws = measures((z + excess)[:, None] + noise)[0] ** 2
        square = 2 * values[0] ** 2 - draws.mean()
        quantile = float(stdtrit(_degrees_of_freedom(uncertain), (1 + level) / 2))
        variance = float((nulls[0] ** 2).var())
        rise = quantile**2 * max(float(draws.var()) - variance, 0.0) / max(values[0] ** 2, 1e-300)
        half = np.sqrt(max(quantile**2 * variance + rise * square + rise**2 / 4, 0.0))
        ends = np.sqrt(np.maximum([square + rise / 2 - half, square + rise / 2 + half], 0))
        chance = np.median(nulls, axis=1)
    ici, e50, e90, emax = (IntervalEstimate(float(value)) for value in values)
    ici = replace(ici, low=float(ends[0]), high=float(ends[1])).within(0.0, 1.0)
    return CalibrationDistances(ici, e50, e90, emax, dict(zip(names, chance.tolist(), strict=True)))


def _degrees_of_freedom(event: EventEstimates) -> float:
    """Return one less than the number of groups; of independent rows it is as good as infinite."""
    return 1e9 if event.groups is None else float(event.groups.max())


def _covariance(fit: LogisticFit, knots: FloatArray, event: EventEstimates) -> FloatArray:
    """Return the covariance of the coefficients of a curve, as that of a calibration line."""
    outcome, p, weight, groups = event
    X = spline_features(logit(p), knots)
    q = expit(X @ fit.theta)
    return coefficient_covariance(X, outcome - q, q * (1 - q), groups, weight)[0]


def _summaries(distance: FloatArray, weight: FloatArray) -> FloatArray:
    """Return weighted mean, median, 90% quantile and maximum of distances (n, b), (4, b)."""
    order = np.argsort(distance, axis=0)
    rank = np.cumsum(weight[order], axis=0) / weight.sum()
    ordered = np.take_along_axis(distance, order, axis=0)
    quantiles = [
        np.take_along_axis(ordered, (rank < q * (1 - 1e-12)).sum(axis=0)[None], axis=0)[0]
        for q in (0.5, 0.9)
    ]
    return np.stack([weight @ distance / weight.sum(), *quantiles, ordered[-1]])


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
