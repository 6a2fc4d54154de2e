"""Logistic regression: without a penalty, with one, and for many classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import nnls

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.scores import (
    Multinomial,
    logistic,
    softmax,
)

MAX_STEPS = 300
"""Newton steps; a few suffice unless the maximum lies at infinity."""

TOLERANCE = 1e-18
"""Squared length of a Newton step, relative to the rarer label's mass, after which it is over.

The method converges quadratically, so the step that is this short leaves an error of rounding.
"""


PERFECT = 1e-10
"""Mean log loss, relative to the rarer label's share, that cannot be worth improving."""


@np.errstate(under="ignore")
def fit_logistic(
    z: FloatArray,
    negative: FloatArray,
    positive: FloatArray,
    intercept: bool = True,
    start: tuple[FloatArray, float] | None = None,
) -> tuple[FloatArray, float, float]:
    """Return the coefficients and the intercept that maximise the likelihood.

    Minimises ``sum negative * log(1 + exp(f)) + positive * log(1 + exp(-f))`` over
    ``f = coefficients @ z + b`` with Newton steps that are halved until the sum decreases enough
    (Lin, Lin & Weng 2007, Algorithm 1).

    Parameters
    ----------
    z : ndarray of shape (d, n)
        One row a feature, of mean 0 and deviation 1 (or with deviation 1 only, without
        intercept).
    negative, positive : ndarray of shape (n,)
        How often each example counts as one label and as the other; smoothed targets split it.
    intercept : bool
        Whether b is fitted; 0 otherwise.
    start : (ndarray of shape (d,), float), optional
        Coefficients and intercept to begin with, where they are better than none.

    Returns
    -------
    coefficients : ndarray of shape (d,)
    intercept : float
    loss : float
        The mean of what is minimised.

    Notes
    -----
    Where the maximum lies at infinity (separable examples, one label only) the method stops as
    soon as the remaining gain is negligible, at finite values on the way there.
    """
    mass = float(negative.sum() + positive.sum())
    negative, positive = negative / mass, positive / mass
    total = negative + positive
    share = float(positive.sum())
    rarer = min(share, 1 - share)
    scale = rarer if rarer > 0 else 1.0

    def evaluate(weights: FloatArray, b: float) -> tuple[float, FloatArray, FloatArray]:
        f = np.full(len(total), b)
        for c, row in zip(weights, z, strict=True):
            f += c * row
        p, q, e = logistic(f)
        loss = negative * np.maximum(f, 0) + positive * np.maximum(-f, 0) + total * np.log1p(e)
        return float(loss.sum()), p, q

    weights = np.zeros(len(z))
    b = float(np.log((share + 1e-9) / (1 - share + 1e-9))) if intercept else 0.0
    loss, p, q = evaluate(weights, b)
    if start is not None and (tried := evaluate(*start))[0] < loss:
        (weights, b), (loss, p, q) = start, tried
    for _ in range(MAX_STEPS):
        if loss <= PERFECT * scale:
            break
        slope = negative * p - positive * q
        curve = total * p * q
        height = float(curve.sum())
        if height == 0:
            break
        # Centring by the current curvature separates the intercept from the rest, which keeps
        # the digits where the curvature gathers in a narrow range.
        middle = np.array([(curve * row).sum() / height if intercept else 0.0 for row in z])
        centred = z - middle[:, None]
        gradient = (centred * slope).sum(axis=1)
        gradient_b = float(slope.sum()) if intercept else 0.0
        hessian = np.array([(centred * (curve * row)).sum(axis=1) for row in centred])
        hessian[np.diag_indices(len(z))] += 1e-24 * height
        step: FloatArray = -np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        step_b = -gradient_b / height - float(middle @ step) if intercept else 0.0
        decrement = gradient_b**2 / height - float(gradient @ step)
        if decrement <= TOLERANCE * scale:
            return weights + step, b + step_b, loss
        length = 1.0
        # Sums of this many terms agree to about 1e-14; less of a gain cannot be seen in them.
        while (tried := evaluate(weights + length * step, b + length * step_b))[0] > (
            loss * (1 + 1e-14) - 1e-4 * length * decrement
        ):
            length /= 2
            if length < 1e-10:
                return weights, b, loss
        weights, b = weights + length * step, b + length * step_b
        loss, p, q = tried
    return weights, b, loss


MAX_PENALISED_STEPS = 200
"""Newton steps with a penalty; fewer than ten are usual."""

LEAST_GAIN = 1e-14
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
    for _ in range(MAX_PENALISED_STEPS):
        gradient = features @ (negative * p - positive * q) + penalty @ (theta - prior.mean)
        hessian = (features * (total * p * q)) @ features.T + penalty
        step = _step(hessian, gradient, theta, prior.bounded)
        aim = np.where(prior.bounded, np.maximum(theta + step, 0.0), theta + step)
        decrease, last = -float(gradient @ step), decrease
        small = max(loss, float(np.finfo(float).tiny))
        # Near the minimum each gain is far below the last one, until only rounding is left.
        if decrease <= LEAST_GAIN * small or last / 4 <= decrease <= STALLED * small:
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


Structure = Literal["shared", "diagonal", "full"]
"""Which slopes are free."""

MAX_MULTINOMIAL_STEPS = 100
"""Newton steps with many classes; fewer than ten are usual."""

INNER_STEPS = 200
"""Conjugate gradients within one Newton step."""


SHARED = 0.1
"""How much less the distance of the shared slope from 1 weighs than what sets classes apart."""


def diagonal_penalty(k: int, ridge: float) -> FloatArray:
    """Return the penalty (k, k) of slopes' distances from 1, the shared slope left to its best.

    ``min over a of ridge * (SHARED * (a - 1)**2 + sum (w - a)**2)`` is a quadratic form in w - 1.
    """
    penalty: FloatArray = ridge * (np.eye(k) - np.full((k, k), 1 / (SHARED + k)))
    return penalty


class _Problem:
    """The mean loss with its penalty over slopes and intercepts, and its derivatives.

    Parameters are a matrix: the slopes (one row where they are diagonal, else k rows) above a row
    of intercepts.
    """

    def __init__(
        self,
        logs: FloatArray,
        codes: IntArray,
        weight: FloatArray | None,
        ridge: float,
        structure: Structure,
    ) -> None:
        n, k = logs.shape
        w = np.ones(n) if weight is None else weight
        mass = max(float(w.sum()), 1.0)  # the penalty stays finite where next to nothing counts
        self.w: FloatArray = (w / mass)[:, None]
        self.logs, self.codes, self.rows, self.k = logs, codes, np.arange(n), k
        self.full, self.shared = structure == "full", structure == "shared"
        self.ridge = ridge / mass
        self.diagonal: FloatArray = diagonal_penalty(k, self.ridge)
        if self.shared:  # each of the k equal slopes bears its part
            self.diagonal = np.eye(k) * SHARED * self.ridge / k
        self.mean: FloatArray = np.vstack(
            [np.eye(k) if self.full else np.ones((1, k)), np.zeros((1, k))]
        )

    def logits(self, theta: FloatArray) -> FloatArray:
        """Return logits (n, k)."""
        z: FloatArray = self.logs @ theta[:-1] if self.full else self.logs * theta[0]
        z += theta[-1]
        return z

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss, and the estimates (n, k)."""
        z = self.logits(theta)
        p, total = softmax(z)
        loss = float(self.w[:, 0] @ (total - z[self.rows, self.codes]))
        away = theta - self.mean
        return loss + float((self.pull(away) * away).sum() / 2), p

    def pull(self, away: FloatArray) -> FloatArray:
        """Return the derivative of the penalty at a distance from its minimum."""
        pull = self.ridge * away
        if not self.full:
            pull[0] = self.diagonal @ away[0]
            return pull
        pull[:-1] *= self.k
        own = np.arange(self.k)
        pull[own, own] = self.diagonal @ away[own, own]
        return pull

    def _back(self, g: FloatArray) -> FloatArray:
        """Return the derivative of ``sum g * logits`` by the parameters."""
        slopes = self.logs.T @ g if self.full else (self.logs * g).sum(axis=0, keepdims=True)
        return np.vstack([slopes, g.sum(axis=0, keepdims=True)])

    def gradient(self, theta: FloatArray, p: FloatArray) -> FloatArray:
        """Return the derivative of the loss by the parameters."""
        g = self.w * p
        g[self.rows, self.codes] -= self.w[:, 0]
        return self._back(g) + self.pull(theta - self.mean)

    def curve(self, p: FloatArray, v: FloatArray) -> FloatArray:
        """Return the second derivative of the loss, applied to a change v of the parameters."""
        dz = self.logits(v)
        dz -= (p * dz).sum(axis=1, keepdims=True)
        dz *= p
        dz *= self.w
        return self._back(dz) + self.pull(v)

    def solve_small(self, p: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the Newton step of diagonal or shared slopes."""
        k = self.k
        steep = self.logs * p
        both = np.hstack([steep, p])
        hessian = -((both * self.w).T @ both)
        middle = np.diag((steep * self.w).sum(axis=0))
        hessian[:k, :k] += np.diag((steep * self.logs * self.w).sum(axis=0))
        hessian[:k, k:] += middle
        hessian[k:, :k] += middle
        hessian[k:, k:] += np.diag((p * self.w).sum(axis=0))
        hessian[:k, :k] += self.diagonal
        hessian[k:, k:] += self.ridge * np.eye(k)
        if not self.shared:
            return -_solve_positive(hessian, gradient.ravel()).reshape(2, k)
        join = np.zeros((2 * k, k + 1))  # the slopes of all classes move together
        join[:k, 0] = 1.0
        join[k:, 1:] = np.eye(k)
        step = join @ _solve_positive(join.T @ hessian @ join, join.T @ gradient.ravel())
        return -step.reshape(2, k)

    def _bounds(self, j: int) -> FloatArray:
        """Return the penalty of class j's own slopes and intercept, (k + 1,)."""
        penalty: FloatArray = np.full(self.k + 1, self.k * self.ridge)
        penalty[j] = penalty[-1] = self.ridge
        return penalty

    def solve_full(self, p: FloatArray, gradient: FloatArray, tolerance: float) -> FloatArray:
        """Return a Newton step of full slopes by conjugate gradients.

        These are preconditioned with the blocks of each class's own slopes and intercept.
        """
        features = np.hstack([self.logs, np.ones((len(self.logs), 1))])
        own = self.w * p * (1 - p)
        blocks = [
            cho_factor((features * own[:, j, None]).T @ features + np.diag(self._bounds(j)))
            for j in range(self.k)
        ]

        def precondition(r: FloatArray) -> FloatArray:
            return np.column_stack([cho_solve(b, r[:, j]) for j, b in enumerate(blocks)])

        step = np.zeros_like(gradient)
        residual = -gradient
        direction = z = precondition(residual)
        size = first = float((residual * z).sum())
        for _ in range(INNER_STEPS):
            if size <= tolerance**2 * first:
                break
            bent = self.curve(p, direction)
            length = size / float((direction * bent).sum())
            step = step + length * direction
            residual = residual - length * bent
            z = precondition(residual)
            size, before = float((residual * z).sum()), size
            direction = z + size / before * direction
        return step


def _solve_positive(hessian: FloatArray, right: FloatArray) -> FloatArray:
    unit = 1 / np.sqrt(np.diag(hessian))
    scaled = hessian * unit * unit[:, None] + 1e-15 * np.eye(len(unit))
    solved: FloatArray = cho_solve(cho_factor(scaled), right * unit) * unit
    return solved


@np.errstate(under="ignore")
def fit_multinomial(
    logs: FloatArray,
    codes: IntArray,
    weight: FloatArray | None,
    structure: Structure,
    ridge: float,
    start: Multinomial | None = None,
) -> Multinomial:
    """Minimise the log loss plus a ridge that shrinks the map towards the identity.

    Parameters
    ----------
    logs : ndarray of shape (n, k)
        Logarithms of scores.
    codes : ndarray of shape (n,)
        Index of each example's class.
    weight : ndarray of shape (n,) or None
        How often each example is to count, above zero.
    structure : {"shared", "diagonal", "full"}
        One slope, one a class, or one for each pair of classes.
    ridge : float
        Above zero. Half of it is added to the sum of the losses, times the squared distances of
        each class's own slope from the shared one, of the shared slope from 1 (a tenth as much),
        of the other slopes from 0 (k times as much), and of the intercepts from 0.
    start : Multinomial, optional
        Where to begin with ``"full"``; the diagonal fit otherwise.
    """
    problem = _Problem(logs, codes, weight, ridge, structure)
    theta = problem.mean
    if structure == "full":
        start = start or fit_multinomial(logs, codes, weight, "diagonal", ridge)
        theta = np.vstack([start.slopes, start.intercepts])
    loss, p = problem.evaluate(theta)
    gradient = problem.gradient(theta, p)
    first, decrease = float(np.linalg.norm(gradient)), np.inf
    for _ in range(MAX_MULTINOMIAL_STEPS):
        if structure == "full":
            size = float(np.linalg.norm(gradient))
            step = problem.solve_full(p, gradient, min(0.1, size / first if first else 0.0))
        else:
            step = problem.solve_small(p, gradient)
        decrease, last = -float((gradient * step).sum()), decrease
        small = max(loss, float(np.finfo(float).tiny))
        # Near the minimum each gain is far below the last one, until only rounding is left.
        if decrease <= LEAST_GAIN * small or last / 4 <= decrease <= STALLED * small:
            theta = theta + step
            break
        length = 1.0
        # Sums of this many terms agree to about 1e-14; less of a gain cannot be seen in them.
        while (tried := problem.evaluate(theta + length * step))[0] > (
            loss * (1 + 1e-14) - 1e-4 * length * decrease
        ) and length > 1e-10:
            length /= 2
        if length <= 1e-10:
            break
        theta = theta + length * step
        loss, p = tried
        gradient = problem.gradient(theta, p)
    if structure == "full":
        return Multinomial(theta[:-1], theta[-1])
    return Multinomial(np.diag(theta[0]), theta[1])
