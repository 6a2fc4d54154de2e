"""Multinomial regression on the logarithms of scores, shrunk towards the identity."""

from __future__ import annotations

from typing import Literal

import attrs
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from vennforest._state import array, require, stored
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.logistic import LARGEST_SLOPE

Structure = Literal["shared", "diagonal", "full"]
"""Which slopes are free."""

MAX_STEPS = 100
"""Newton steps; fewer than ten are usual."""

TOLERANCE = 1e-14
"""Expected gain of a Newton step, relative to the loss, that makes it the last."""

STALLED = 1e-9
"""Expected gain, relative likewise, below which steps that no longer gain less are rounding."""

INNER_STEPS = 200
"""Conjugate gradients within one Newton step."""


@stored("multinomial")
@attrs.frozen(eq=False)
class Multinomial:
    """A fitted map ``softmax(logs @ slopes + intercepts)``.

    Attributes
    ----------
    slopes : ndarray of shape (k, k)
    intercepts : ndarray of shape (k,)
    """

    slopes: FloatArray = attrs.field(
        validator=array(None, None, low=-LARGEST_SLOPE, high=LARGEST_SLOPE)
    )
    intercepts: FloatArray = attrs.field(
        validator=array(None, low=-LARGEST_SLOPE, high=LARGEST_SLOPE)
    )

    def __attrs_post_init__(self) -> None:
        """Refuse slopes and intercepts of different classes."""
        k = len(self.intercepts)
        require(self.slopes.shape == (k, k), f"slopes must have shape {(k, k)}")

    def __call__(self, logs: FloatArray) -> FloatArray:
        """Return probabilities (n, k) for logarithms (n, k)."""
        # Not a matrix product: its last bits depend on how many rows there are.
        z = np.tile(self.intercepts, (len(logs), 1))
        for column, slopes in zip(logs.T, self.slopes, strict=True):
            z += column[:, None] * slopes
        return softmax(z)[0]


@np.errstate(under="ignore")
def softmax(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the softmax (n, k) of logits (n, k), and the logarithm of its divisor, (n,)."""
    largest = z.max(axis=1, keepdims=True)
    p = np.exp(z - largest)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    return p, (np.log(total) + largest)[:, 0]


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
    for _ in range(MAX_STEPS):
        if structure == "full":
            size = float(np.linalg.norm(gradient))
            step = problem.solve_full(p, gradient, min(0.1, size / first if first else 0.0))
        else:
            step = problem.solve_small(p, gradient)
        decrease, last = -float((gradient * step).sum()), decrease
        small = max(loss, float(np.finfo(float).tiny))
        # Near the minimum each gain is far below the last one, until only rounding is left.
        if decrease <= TOLERANCE * small or last / 4 <= decrease <= STALLED * small:
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
