"""Logistic regression on counts with a quadratic penalty and coefficients not below zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import nnls

from vennforest._validation import FloatArray
from vennforest.calibrators.core.logistic import logistic

MAX_STEPS = 200
"""Newton steps; fewer than ten are usual."""

TOLERANCE = 1e-14
"""Expected gain of a Newton step, relative to the loss and the penalty, that makes it the last.

The method converges quadratically, so the step that gains this little leaves an error of rounding.
"""


STALLED = 1e-9
"""Expected gain, relative likewise, below which steps that no longer gain less are rounding."""


class Counts(NamedTuple):
    """Scores and how often either label was seen at each, three arrays of shape (m,)."""

    x: FloatArray
    negative: FloatArray
    positive: FloatArray


@dataclass(frozen=True)
class Prior:
    """The quadratic penalty ``(theta - mean) @ penalty @ (theta - mean) / 2`` of d coefficients.

    Attributes
    ----------
    mean : ndarray of shape (d,)
        The coefficients that cost nothing; not below zero where they are bounded.
    penalty : ndarray of shape (d, d)
        Symmetric and positive definite.
    bounded : ndarray of shape (d,)
        Which coefficients must not be below zero.
    """

    mean: FloatArray
    penalty: FloatArray
    bounded: NDArray[np.bool_]


@dataclass(frozen=True)
class PenalisedFit:
    """Coefficients, and what leaving out one example does to them.

    Attributes
    ----------
    theta : ndarray of shape (d,)
        The coefficients.
    inverse : ndarray of shape (d, d)
        The inverse of the loss's second derivative, 0 in the rows and columns of coefficients
        that are held at zero.
    """

    theta: FloatArray
    inverse: FloatArray

    def left_out_loss(self, features: FloatArray, counts: Counts) -> float:
        """Return the log loss of each example under the fit to all others, added up.

        One Newton step from the fit to all, ``f + g h / (1 - h p (1 - p))`` with the gradient g
        and the leverage h of the example (Rad & Maleki 2020, approximate leave-one-out).
        """
        f = self.theta @ features
        p, q, _ = logistic(f)
        leverage = np.einsum("in,in->n", features, self.inverse @ features)
        spread = np.maximum(1 - leverage * p * q, 1e-3)
        with np.errstate(under="ignore"):
            without_negative = f + p * leverage / spread
            without_positive = f - q * leverage / spread
            return float(
                counts.negative @ np.logaddexp(0, without_negative)
                + counts.positive @ np.logaddexp(0, -without_positive)
            )


@np.errstate(under="ignore")
def fit_penalised(
    features: FloatArray, counts: Counts, prior: Prior, start: FloatArray | None = None
) -> PenalisedFit:
    """Return the coefficients that minimise log loss plus penalty.

    ``sum negative * log(1 + exp(f)) + positive * log(1 + exp(-f))`` with ``f = theta @ features``
    and the prior's penalty. The sum is strictly convex: Newton steps, each the exact minimum of
    the quadratic model within the bounds, halved until the sum decreases enough.

    Parameters
    ----------
    features : ndarray of shape (d, m)
        One row a coefficient.
    counts : Counts
        How often each label was seen at each of the m points.
    prior : Prior
        The penalty and the bounds.
    start : ndarray of shape (d,), optional
        Where to begin, within the bounds; the prior's mean otherwise.
    """
    # Where next to nothing is counted, the penalty stays finite.
    mass = max(float(counts.negative.sum() + counts.positive.sum()), 1.0)
    negative, positive = counts.negative / mass, counts.positive / mass
    total = negative + positive
    penalty = prior.penalty / mass
    theta = prior.mean if start is None else start

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        f = theta @ features
        p, q, e = logistic(f)
        loss = negative * np.maximum(f, 0) + positive * np.maximum(-f, 0) + total * np.log1p(e)
        away = theta - prior.mean
        return float(loss.sum() + away @ penalty @ away / 2), p, q

    loss, p, q = evaluate(theta)
    hessian, decrease = penalty, np.inf
    for _ in range(MAX_STEPS):
        gradient = features @ (negative * p - positive * q) + penalty @ (theta - prior.mean)
        hessian = (features * (total * p * q)) @ features.T + penalty
        step = _step(hessian, gradient, theta, prior.bounded)
        aim = np.where(prior.bounded, np.maximum(theta + step, 0.0), theta + step)
        decrease, last = -float(gradient @ step), decrease
        small = max(loss, float(np.finfo(float).tiny))
        # Near the minimum each gain is far below the last one, until only rounding is left.
        if decrease <= TOLERANCE * small or last / 4 <= decrease <= STALLED * small:
            theta = aim
            break
        length = 1.0
        # Sums of this many terms agree to about 1e-14; less of a gain cannot be seen in them.
        while (tried := evaluate(theta + length * step))[0] > (
            loss * (1 + 1e-14) - 1e-4 * length * decrease
        ):
            length /= 2
            if length < 1e-10:
                break
        if length < 1e-10:
            break
        theta = aim if length == 1 else theta + length * step
        loss, p, q = tried
    return PenalisedFit(theta, _inverse(hessian, ~prior.bounded | (theta > 0)) / mass)


def _step(
    hessian: FloatArray, gradient: FloatArray, theta: FloatArray, bounded: NDArray[np.bool_]
) -> FloatArray:
    """Return the step d with the least ``d @ hessian @ d / 2 + gradient @ d``.

    Bounded coefficients, theta plus the step, stay at or above zero.
    """
    unit = 1 / np.sqrt(np.diag(hessian))  # with a unit diagonal the factor keeps its digits
    scaled = hessian * unit * unit[:, None] + 1e-15 * np.eye(len(unit))

    def solve(kept: NDArray[np.bool_]) -> FloatArray:
        """Return the step where the coefficients that are not kept become zero."""
        step = np.where(kept, 0.0, -theta)
        if not kept.any():
            return step
        right = -(gradient + hessian @ step) * unit
        factor = cho_factor(scaled[np.ix_(kept, kept)])
        step[kept] = cho_solve(factor, right[kept]) * unit[kept]
        return step

    free = solve(np.ones(len(unit), np.bool_))
    if (theta + free)[bounded].min(initial=0.0) >= 0:
        return free
    # |factor t - target|^2 is the same function; a free coefficient is a difference of two.
    factor = cholesky(scaled)
    target = solve_triangular(factor, (hessian @ theta - gradient) * unit, trans="T")
    both = np.hstack([factor, -factor[:, ~bounded]])
    t = nnls(both, target, maxiter=50 * both.shape[1])[0]
    found = t[: len(unit)]
    found[~bounded] -= t[len(unit) :]
    exact = solve(~bounded | (found > 0))
    if (theta + exact)[bounded].min() >= -1e-12 * np.abs(theta).max():
        return exact
    return np.asarray(found * unit - theta)


def _inverse(hessian: FloatArray, kept: NDArray[np.bool_]) -> FloatArray:
    inverse = np.zeros_like(hessian)
    inverse[np.ix_(kept, kept)] = np.linalg.pinv(hessian[np.ix_(kept, kept)], hermitian=True)
    return inverse
