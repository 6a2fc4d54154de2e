"""Spline calibration: a smooth map of log-odds that never decreases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from scipy.special import expit

from vennforest._validation import FloatArray, check_array
from vennforest.calibrators.base import normalised_formula
from vennforest.calibrators.formula import Term, entry_or_row
from vennforest.calibrators.newton import fit_logistic, group_scores
from vennforest.calibrators.softmax import ProbabilityCalibrator, shrunk_pair, smoothed_shares
from vennforest.counts import ScoreCounts

N_KNOTS = 8  # knots of the slope
# Penalties of the bend to choose among, from the straightest map to the most pliable.
ROUGHNESS = (1000.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
MAX_SLOPE = 1e100  # of a map that is read: sums of larger ones overflow
SPLINE_RIDGE = 0.3  # penalty of the distance of the mean slope from 1 and of the intercept from 0
NARROW_RANGE = 1e-9  # relative range of the log-odds up to which all of them count as one


class SplineCalibration(ProbabilityCalibrator):
    """Spline calibration: ``1 / (1 + exp(-f(z)))`` with a smooth f that never decreases.

    f is a spline of the log-odds z of the score: its slope runs straight from knot to knot and is
    nowhere negative. It is fitted by maximum likelihood with a penalty on the bend, as in
    smoothing splines (Lucena 2018; Eilers & Marx 1996), and a ridge that shrinks it towards leaving
    the scores alone. Scores are shrunk as in `VectorScaling`. Many classes: one map per class
    against the rest, normalised.

    Parameters
    ----------
    on : {"auto", "probability", "logit", "score"}, default="auto"
        What scores are: see ``vennforest.scores``.

    Attributes
    ----------
    knots_, slopes_ : list of ndarray
        Of the second class or of each: eight log-odds near quantiles of the calibration scores',
        and the slopes there, with straight lines between and level beyond.
    intercept_ : ndarray of shape (1,) or (k,)
        f(0).
    roughness_ : ndarray of shape (1,) or (k,)
        The penalty of the bend, of nine that with the smallest approximate leave-one-out loss.

    Examples
    --------
    >>> model = SplineCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.14, 0.92])
    """

    title = "Spline"
    shrinkage: float = 0.01
    """The c of the shrinkage of scores, which `PooledCalibration` chooses."""
    shares_: FloatArray
    """Shares of the rest and of the class towards which scores are shrunk, (1 or k, 2)."""
    knots_: list[FloatArray]
    slopes_: list[FloatArray]
    intercept_: FloatArray
    roughness_: FloatArray

    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        fits = []
        for column in map(group_scores, counts.columns()):
            share = smoothed_shares(column)
            of_rest, of_class = shrunk_pair(column.scores, self.shrinkage, *share)
            z = np.log(of_class) - np.log(of_rest)
            knots = place_knots(z, column.weights.sum(axis=1))
            theta, roughness = fit_slopes(z, column.weights, knots)
            fits.append((knots, theta[:-1], share, theta[-1], roughness))
        self.knots_, self.slopes_, *arrays = map(list, zip(*fits, strict=True))
        self.shares_, self.intercept_, self.roughness_ = map(np.array, arrays)

    def _check_map(self) -> None:
        for slopes in self.slopes_:
            check_array(slopes, "slopes_", (None,), low=0, high=MAX_SLOPE)
        super()._check_map()

    def _map_formula(self, p: Term) -> Term:
        of_rest, of_class = shrunk_pair(p, self.shrinkage, *map(entry_or_row, self.shares_.T))
        z = of_class.log() - of_rest.log()
        # On each interval f is a parabola in the distance from the knot before it: rows of the
        # table of a class have the knot, f and its slope there, and half of the bend.
        tables = []
        for knots, slopes, at_0 in zip(self.knots_, self.slopes_, self.intercept_, strict=True):
            bends = np.append(np.diff(slopes) / np.diff(knots) / 2, 0.0)
            values = integrals(knots, knots, slopes[:, None])[:, 0] + at_0
            rows = np.column_stack([knots, values, slopes, bends])
            tables.append(np.vstack([[*rows[0, :3], 0.0], rows]).T)
        columns = zip(("knot", "value", "slope", "bend"), zip(*tables, strict=True), strict=True)
        row = z.look_up(self.knots_, dict(columns))
        t = z - row["knot"]
        f = row["value"] + t * (row["slope"] + t * row["bend"])
        return normalised_formula(f.logistic(), p, len(tables))


def fit_slopes(z: FloatArray, weights: FloatArray, knots: FloatArray) -> tuple[FloatArray, float]:
    """Return slopes at m knots and the intercept, (m + 1,), and the roughness chosen.

    ``z`` (n,) are the log-odds of the scores, and ``weights`` (n, 2) those of both classes. The
    roughness of `ROUGHNESS` with the smallest approximate leave-one-out loss is chosen.
    """
    m = len(knots)
    # What a slope of 1 at one knot and 0 at the others adds to f, and the intercept.
    features = np.vstack([integrals(z, knots, np.eye(m)).T, np.ones(len(z))])
    mean, bounded = np.append(np.ones(m), 0.0), np.arange(m + 1) < m
    theta = mean
    fits, losses = [], []
    for roughness in ROUGHNESS:
        penalty = slope_penalty(knots, roughness)
        theta, hessian = fit_logistic(features, weights, theta, bounded, mean=mean, penalty=penalty)
        fits.append(theta)
        losses.append(left_out_loss(features, weights, theta, hessian, ~bounded | (theta > 0)))
    best = int(np.argmin(losses))
    return fits[best], ROUGHNESS[best]


def left_out_loss(
    features: FloatArray,
    weights: FloatArray,
    theta: FloatArray,
    hessian: FloatArray,
    is_free: NDArray[np.bool_],
) -> float:
    """Return the log loss summed over examples, each under an approximate fit to all others.

    ``features`` is (d, n), ``weights`` (n, 2); ``theta`` (d,) and ``hessian`` (d, d) are of the fit
    to all, and ``is_free`` (d,) marks coefficients that are not at their bound.
    """
    # One Newton step from the fit to all, f + g h / (1 - h p (1 - p)) with the gradient g and the
    # leverage h of the example (Rad & Maleki 2020, approximate leave-one-out).
    x = features[is_free]
    leverage = np.einsum("in,in->n", x, np.linalg.solve(hessian[is_free][:, is_free], x))
    f = theta @ features
    p, q = expit(f), expit(-f)
    remaining = np.maximum(1 - leverage * p * q, 1e-3)
    negative, positive = weights.T
    return float(
        negative @ np.logaddexp(0, f + p * leverage / remaining)
        + positive @ np.logaddexp(0, -(f - q * leverage / remaining))
    )


def integrals(z: FloatArray, knots: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the integrals (n, d) from 0 to each z (n,) of d slopes (m, d), level beyond knots."""
    if len(knots) == 1:
        return np.asarray(z[:, None] * slopes)
    slope = make_interp_spline(knots, slopes, k=1)
    area = slope.antiderivative()

    def from_first(x: FloatArray) -> FloatArray:
        clipped = np.clip(x, knots[0], knots[-1])
        return np.asarray(area(clipped) + (x - clipped)[:, None] * slope(clipped))

    return from_first(z) - from_first(np.zeros(1))


def slope_penalty(knots: FloatArray, roughness: float) -> FloatArray:
    """Return the penalty (m + 1, m + 1) of the slopes' distance from 1, the intercept, the bend."""
    m = len(knots)
    penalty = np.diag(np.append(np.full(m, SPLINE_RIDGE / m), SPLINE_RIDGE / 2))
    if m > 1:
        width = np.diff(knots)  # the integral of the squared bend, in units of the knots' range
        bends = np.diff(np.eye(m), axis=0) / np.sqrt(width / width.sum())[:, None]
        penalty[:m, :m] += roughness * bends.T @ bends
    return penalty


def place_knots(z: FloatArray, weight: FloatArray) -> FloatArray:
    """Return knots at quantiles of ascending log-odds; a single knot where these hardly differ."""
    if z[-1] - z[0] <= NARROW_RANGE * max(1.0, abs(z[0]), abs(z[-1])):
        return z[:1]
    mass = np.cumsum(weight)
    middle = (mass - weight / 2) / mass[-1]
    part = np.linspace(0, 1, N_KNOTS)
    quantiles = np.interp(part, middle, z)
    quantiles[0], quantiles[-1] = z[0], z[-1]
    # A tenth towards even spacing: the bend between knots too near each other loses its digits.
    knots: FloatArray = 0.9 * quantiles + 0.1 * (z[0] + part * (z[-1] - z[0]))
    knots[0], knots[-1] = z[0], z[-1]
    return knots
