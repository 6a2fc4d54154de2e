"""What maps of one score share: log-odds of a forest's zeros, and logistic regression on counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize, nnls
from scipy.special import expit

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.formula import Term
from vennforest.counts import ScoreCounts

MIN_MARGIN, MAX_MARGIN = float(np.finfo(np.float64).eps), 0.01
"""Limits of the distance between 0 or 1 and the score at which log-odds are cut off."""

MAX_COEFFICIENT = 1e100
"""Largest coefficient of a map that is read from a file: sums of products stay finite."""

MAX_EXPONENT = 400
"""Exponent of two from which on numbers are divided before they are squared and added up."""

# --- log-odds ------------------------------------------------------------------------------------


def clip_limits(scores: FloatArray) -> tuple[float, float]:
    """Return where probabilities (n,) are clipped before logarithms are taken.

    A forest gives exact zeros and ones, whose log-odds are infinite. Each limit lies halfway
    between 0 (or 1) and the calibration score nearest to it, but not nearer to it than 2.2e-16
    and not farther than 0.01. Log-odds are not extrapolated beyond those seen.
    """
    return _margin(scores), 1 - _margin(1 - scores)


def _margin(distance: FloatArray) -> float:
    above = distance[distance > 0]
    return min(max(float(above.min()) / 2, MIN_MARGIN), MAX_MARGIN) if len(above) else MAX_MARGIN


def log_odds(scores: FloatArray, low: float, high: float) -> FloatArray:
    """Return ``log(s / (1 - s))``, (n,), of scores clipped to [low, high]."""
    s = np.clip(scores, low, high)
    return np.log(s) - np.log1p(-s)


def log_odds_term(x: Term, low: float, high: float) -> Term:
    """Return the formula of `log_odds`."""
    clipped = x.clip(low, high)
    return clipped.log() - (1.0 - clipped).log()


# --- logistic regression ----------------------------------------------------------------------


def standardise(x: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the mean and the standard deviation of numbers (n,); of equal numbers x_0 and 1."""
    # Squares of large numbers overflow; a power of two changes no digit.
    exponent = max(int(np.frexp(np.abs(x).max())[1]) - MAX_EXPONENT, 0)
    x = np.ldexp(x, -exponent)
    first = float(x[0])
    mean = float(np.average(x - first, weights=weight))
    spread = float(np.sqrt(np.average(np.square(x - first - mean), weights=weight)))
    return float(np.ldexp(first + mean, exponent)), float(np.ldexp(spread, exponent)) or 1.0


def standard_scores(x: FloatArray, center: float, scale: float) -> FloatArray:
    """Return ``(x - center) / scale``, (n,), of numbers whose difference may overflow."""
    z: FloatArray = (x / 4 - center / 4) / (scale / 4)
    return z


N_BLOCKS = 4_096
"""Blocks of neighbouring scores whose means tell where to begin."""

GRADIENT_TOLERANCE = 1e-10
"""Length of the mean loss's gradient at which the search ends; one Newton step follows."""


def fit_logistic(
    features: FloatArray, negative: FloatArray, positive: FloatArray
) -> tuple[FloatArray, float, float]:
    """Return the coefficients (d,), the intercept and the mean loss of a logistic regression.

    Minimises ``sum negative * log(1 + exp(f)) + positive * log(1 + exp(-f))`` over
    ``f = coefficients @ features + intercept``. Features (d, n) have mean 0 and deviation 1, and
    come in the order of the scores.
    Where the minimum lies at infinity (separable examples, one label only) the search stops at
    finite values on the way there.
    """
    mass = float(negative.sum() + positive.sum())
    positive = positive / mass
    total = negative / mass + positive
    X = np.vstack([features, np.ones(len(total))])
    share = float(positive.sum())
    start = np.zeros(len(X))
    start[-1] = np.log((share + 1e-9) / (1 - share + 1e-9))
    if len(total) > 2 * N_BLOCKS:  # neighbours together tell nearly where the minimum is
        block = np.arange(0, len(total), len(total) // N_BLOCKS)
        sums = np.add.reduceat(features * total, block, axis=1), np.add.reduceat(total, block)
        blocks = (np.add.reduceat(column, block) for column in (negative, positive * mass))
        start[:-1], start[-1], _ = fit_logistic(sums[0] / sums[1], *blocks)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        f = theta @ X
        p = expit(f)
        return float(total @ np.logaddexp(0, f) - positive @ f), X @ (total * p - positive)

    def hessian(theta: FloatArray) -> FloatArray:
        p = expit(theta @ X)
        curvature: FloatArray = (X * (total * p * (1 - p))) @ X.T
        return curvature

    options = {"gtol": GRADIENT_TOLERANCE * min(share, 1 - share) or GRADIENT_TOLERANCE}
    result: Any = minimize(  # type: ignore[call-overload]
        loss, start, jac=True, hess=hessian, method="trust-exact", options=options
    )
    theta: FloatArray = result.x
    step = np.linalg.lstsq(result.hess, result.jac, rcond=None)[0]
    if np.abs(step).max() <= 1e-3 * (1 + np.abs(theta).max()):
        theta = theta - step
    return theta[:-1], float(theta[-1]), float(result.fun)


Targets = Literal["smoothed", "hard"]
"""The targets of a sigmoid's fit."""


def target_weights(weights: FloatArray, targets: Targets) -> tuple[FloatArray, FloatArray]:
    """Return for weights (m, 2) how much each score counts as the one label and as the other.

    Smoothed targets are (N+ + 1) / (N+ + 2) for the N+ examples of the class and 1 / (N- + 2) for
    the N- others (Niculescu-Mizil & Caruana 2005, eq. 4).
    """
    negative, positive = weights.T
    if targets == "hard":
        return negative, positive
    low, high = 1 / (negative.sum() + 2), 1 / (positive.sum() + 2)
    return (
        negative * (1 - low) + positive * high,
        negative * low + positive * (1 - high),
    )


# --- near-equal scores together ------------------------------------------------------------------

MAX_FITTED_SCORES = 16_384
"""Distinct scores from which on near-equal ones are put together for smooth maps."""

MAX_GROUPED_LOG_ODDS = 40.0
"""Log-odds beyond which scores are put together."""


def group_scores(counts: ScoreCounts, n_cells: int = MAX_FITTED_SCORES) -> ScoreCounts:
    """Return counts of two classes at no more than so many scores, for a smooth map.

    Where more are distinct, those within one of equal cells of the range are put together at their
    mean, as good as equal to a map that spans the range. Cells are of the log-odds where all scores
    are in [0, 1].
    """
    x, weights = counts.scores, counts.weights
    if len(x) <= n_cells:
        return counts
    z = x
    if x[0] >= 0 and x[-1] <= 1:
        with np.errstate(divide="ignore"):
            z = np.clip(np.log(x) - np.log1p(-x), -MAX_GROUPED_LOG_ODDS, MAX_GROUPED_LOG_ODDS)
    with np.errstate(over="ignore"):
        width = float(z[-1]) - float(z[0])
    if not 0 < width < np.inf:
        return counts
    cell: IntArray = ((z - z[0]) / width * n_cells).astype(np.intp)
    start = np.append(0, np.flatnonzero(np.diff(cell)) + 1)
    sums = np.add.reduceat(weights, start, axis=0)
    mean = np.add.reduceat(x * weights.sum(axis=1), start) / sums.sum(axis=1)
    return ScoreCounts(counts.classes, np.clip(mean, x[0], x[-1]), sums, counts.error)


# --- penalised regression with coefficients that are not below zero ------------------------------

MAX_PENALISED_STEPS = 200
"""Newton steps with a penalty; fewer than ten are usual."""

LAST_GAIN = 1e-14
"""Expected gain of a Newton step, relative to the loss and the penalty, that makes it the last.

The method converges quadratically, so the step that gains this little leaves an error of rounding.
"""

ROUNDING_GAIN = 1e-9
"""Expected gain, relative likewise, below which steps that no longer gain less are rounding."""


@dataclass(frozen=True)
class Prior:
    """The quadratic penalty ``(theta - mean) @ penalty @ (theta - mean) / 2`` of d coefficients."""

    mean: FloatArray  # (d,), not below zero where it is bounded
    penalty: FloatArray  # (d, d), symmetric and positive definite
    bounded: NDArray[np.bool_]  # (d,) which coefficients must not be below zero


@dataclass(frozen=True)
class PenalisedFit:
    """Coefficients, and the inverse Hessian that leaving out one example needs."""

    theta: FloatArray  # (d,)
    inverse: FloatArray  # (d, d) of the loss's second derivative, 0 where theta is held at zero

    def left_out_loss(self, features: FloatArray, weights: FloatArray) -> float:
        """Return the log loss of each example under the fit to all others, added up.

        One Newton step from the fit to all, ``f + g h / (1 - h p (1 - p))`` with the gradient g
        and the leverage h of the example (Rad & Maleki 2020, approximate leave-one-out).
        """
        f = self.theta @ features
        p, q = expit(f), expit(-f)
        leverage = np.einsum("in,in->n", features, self.inverse @ features)
        remaining = np.maximum(1 - leverage * p * q, 1e-3)
        negative, positive = weights.T
        return float(
            negative @ np.logaddexp(0, f + p * leverage / remaining)
            + positive @ np.logaddexp(0, -(f - q * leverage / remaining))
        )


@np.errstate(under="ignore")
def fit_penalised(
    features: FloatArray, weights: FloatArray, prior: Prior, start: FloatArray | None = None
) -> PenalisedFit:
    """Return the coefficients that minimise log loss plus penalty.

    ``sum negative * log(1 + exp(f)) + positive * log(1 + exp(-f))`` with ``f = theta @ features``,
    features (d, m), weights (m, 2), and the prior's penalty. The sum is strictly convex: Newton
    steps, each the exact minimum of the quadratic model within the bounds, halved until the sum
    decreases enough. They begin at ``start``, within the bounds, or else at the prior's mean.
    """
    # Where next to nothing is counted, the penalty stays finite.
    mass = max(float(weights.sum()), 1.0)
    positive = weights[:, 1] / mass
    total = weights[:, 0] / mass + positive
    penalty = prior.penalty / mass
    theta = prior.mean if start is None else start

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray]:
        f = theta @ features
        offset = theta - prior.mean
        loss = total @ np.logaddexp(0, f) - positive @ f + offset @ penalty @ offset / 2
        return float(loss), expit(f)

    loss, p = evaluate(theta)
    hessian, decrease = penalty, np.inf
    for _ in range(MAX_PENALISED_STEPS):
        gradient = features @ (total * p - positive) + penalty @ (theta - prior.mean)
        hessian = (features * (total * p * (1 - p))) @ features.T + penalty
        step = _step(hessian, gradient, theta, prior.bounded)
        target = np.where(prior.bounded, np.maximum(theta + step, 0.0), theta + step)
        decrease, before = -float(gradient @ step), decrease
        small = max(loss, float(np.finfo(float).tiny))
        # Near the minimum each gain is far below the last one, until only rounding is left.
        if decrease <= LAST_GAIN * small or before / 4 <= decrease <= ROUNDING_GAIN * small:
            theta = target
            break
        length = 1.0
        new_loss, new_p = evaluate(theta + step)
        # Sums of this many terms agree to about 1e-14; less of a gain cannot be seen in them.
        while new_loss > loss * (1 + 1e-14) - 1e-4 * length * decrease and length > 1e-10:
            length /= 2
            new_loss, new_p = evaluate(theta + length * step)
        if length <= 1e-10:
            break
        theta = target if length == 1 else theta + length * step
        loss, p = new_loss, new_p
    return PenalisedFit(theta, _inverse(hessian, ~prior.bounded | (theta > 0)) / mass)


def _step(
    hessian: FloatArray, gradient: FloatArray, theta: FloatArray, bounded: NDArray[np.bool_]
) -> FloatArray:
    """Return the step d with the least ``d @ hessian @ d / 2 + gradient @ d``.

    Bounded coefficients, theta plus the step, stay at or above zero.
    """
    unit = 1 / np.sqrt(np.diag(hessian))  # with a unit diagonal the factor keeps its digits
    scaled = hessian * unit * unit[:, None] + 1e-15 * np.eye(len(unit))

    def solve(is_free: NDArray[np.bool_]) -> FloatArray:
        """Return the step where the coefficients that are not free become zero."""
        step = np.where(is_free, 0.0, -theta)
        if is_free.any():
            right = -(gradient + hessian @ step) * unit
            factor = cho_factor(scaled[np.ix_(is_free, is_free)])
            step[is_free] = cho_solve(factor, right[is_free]) * unit[is_free]
        return step

    step = solve(np.ones(len(unit), np.bool_))
    if (theta + step)[bounded].min(initial=0.0) >= 0:
        return step
    # |factor t - target|^2 is the same function; a free coefficient is a difference of two.
    factor = cholesky(scaled)
    target = solve_triangular(factor, (hessian @ theta - gradient) * unit, trans="T")
    t = nnls(np.hstack([factor, -factor[:, ~bounded]]), target, maxiter=100 * len(unit))[0]
    minimum = t[: len(unit)]
    minimum[~bounded] -= t[len(unit) :]
    exact = solve(~bounded | (minimum > 0))
    if (theta + exact)[bounded].min() >= -1e-12 * np.abs(theta).max():
        return exact
    return np.asarray(minimum * unit - theta)


def _inverse(hessian: FloatArray, is_free: NDArray[np.bool_]) -> FloatArray:
    inverse = np.zeros_like(hessian)
    block = np.ix_(is_free, is_free)
    inverse[block] = np.linalg.pinv(hessian[block], hermitian=True)
    return inverse
