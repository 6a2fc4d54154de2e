"""Matrix scaling: multinomial regression on the logarithms of probabilities."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from vennforest._state import stored
from vennforest._validation import FloatArray, check_array, check_number
from vennforest.calibrators.formula import Term, Terms, softmax, summed
from vennforest.calibrators.regression import (
    MAX_COEFFICIENT,
    Prior,
    fit_penalised,
    group_scores,
    halved,
    is_last,
)
from vennforest.calibrators.temperature import ProbabilityCalibrator
from vennforest.counts import ScoreCounts

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


def shrunk_logs(p: FloatArray, c: float, shares: FloatArray) -> FloatArray:
    """Return ``log(k (p + c shares) / (1 + c))``, (n, k), of probabilities (n,) or (n, k).

    A forest gives exact zeros, whose logarithms are infinite; shrunk towards the shares of the
    classes they are finite, and the logarithms of nearly 0 and of 0 are nearly the same.
    """
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    logs: FloatArray = np.log((p + c * shares) * (p.shape[1] / (1 + c)))
    return logs


def shrunk_log_terms(p: Terms, c: float, shares: FloatArray) -> Terms:
    """Return the formulas of `shrunk_logs`, without the constant."""
    p = (1.0 - p[0], p[0]) if len(p) == 1 else p
    added = (c * shares).tolist()
    return tuple(((x + share) / (1 + c)).log() for x, share in zip(p, added, strict=True))


@stored("softmax-map")
class SoftmaxMap(ProbabilityCalibrator):
    """The map ``softmax(W log(k s) + b)``, with a choice of slopes: see `MatrixScaling`.

    Parameters
    ----------
    structure : {"shared", "diagonal", "full"}
        Which slopes are free: one for all classes (temperature scaling with intercepts), one a
        class (vector scaling), or one for each pair of classes.
    ridge : float
        Above 0: see `MatrixScaling`.
    shrinkage : float
        Above 0: scores are shrunk to ``(s + c pi) / (1 + c)`` with this c and the shares pi of the
        classes.
    """

    shrinkage_: float
    shares_: FloatArray
    coef_: FloatArray
    intercept_: FloatArray

    def __init__(
        self, structure: Structure = "diagonal", ridge: float = 1.0, shrinkage: float = 0.01
    ) -> None:
        self.structure = structure
        self.ridge = ridge
        self.shrinkage = shrinkage

    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        totals = counts.class_totals
        self.shrinkage_ = self.shrinkage
        self.shares_ = (totals + 1) / (totals.sum() + len(totals))
        if counts.scores.ndim == 1:
            counts = group_scores(counts)
        logs = shrunk_logs(counts.scores, self.shrinkage_, self.shares_)
        fit = fit_two_classes if counts.scores.ndim == 1 else fit_multinomial
        self.coef_, self.intercept_ = fit(logs, counts.weights, self.structure, self.ridge)

    def _map_formula(self, p: Terms) -> Terms:
        k = len(self.classes_)
        terms = shrunk_log_terms(p, self.shrinkage_, self.shares_)
        logs = tuple(term + math.log(k) for term in terms)
        W, b = self.coef_, self.intercept_.tolist()

        def logit(slopes: FloatArray, intercept: float) -> Term:
            pairs = zip(slopes.tolist(), logs, strict=True)
            products = [slope * log for slope, log in pairs if slope != 0]
            return summed(products or [0.0 * logs[0]]) + intercept

        if k == 2:
            return (logit(W[1] - W[0], b[1] - b[0]).logistic(),)
        return softmax([logit(W[j], b[j]) for j in range(k)])

    def _check_state(self) -> None:
        super()._check_state()
        k, limits = len(self.classes_), {"low": -MAX_COEFFICIENT, "high": MAX_COEFFICIENT}
        check_number(self.shrinkage_, "shrinkage_", 1e-300, MAX_COEFFICIENT)
        check_array(self.shares_, "shares_", (k,), low=1e-300, high=1)
        check_array(self.coef_, "coef_", (k, k), **limits)
        check_array(self.intercept_, "intercept_", (k,), **limits)


@stored("matrix-scaling")
class MatrixScaling(SoftmaxMap):
    """Matrix scaling: ``softmax(W log(k s) + b)`` of scores s of k classes, with a diagonal W.

    Minimises the log loss of the calibration set plus a penalty that shrinks the map towards
    leaving the scores alone. With probabilities as scores this is a form of Dirichlet calibration
    (Kull et al. 2019, eq. 4), for logits, which temperature scaling turns into probabilities first,
    vector scaling (Guo, Pleiss, Sun & Weinberger 2017, section 4.2).

    Attributes
    ----------
    coef_ : ndarray of shape (k, k)
        W; row j has the slopes of class j's logit.
    intercept_ : ndarray of shape (k,)
        b.

    Notes
    -----
    The penalty is half of ``sum_j (w_jj - a)**2 + (a - 1)**2 / 10 + sum_j b_j**2``, with the shared
    slope a that makes it least: what all classes share is nearly free, what sets them apart is not.
    As it is added to the sum over examples, it weighs the less the more there are. Scores are
    shrunk to the shares pi of the classes first, ``(s + c pi) / (1 + c)`` with c = 0.01, so zeros,
    which forests give, have logarithms.

    The sum is strictly convex, so there is one minimum, which Newton steps find. It stays finite
    where labels are separable or a class is missing: such a class keeps a small probability. Two
    classes are fitted to counts at distinct scores, from 16,384 on to groups of near-equal ones. As
    in beta calibration, the difference of their two logits has slopes that are not below zero, so a
    higher score never gets a lower probability.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, ICML. Kull et
    al. (2019), Beyond temperature scaling, NeurIPS.

    Examples
    --------
    >>> scores = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.4, 0.1]]
    >>> model = MatrixScaling().fit(scores, ["a", "b", "c", "b"])
    >>> model.predict_proba([[0.4, 0.4, 0.2]]).round(2)
    array([[0.29, 0.61, 0.1 ]])
    """

    title = "Matrix scaling"
    structure: Structure = "diagonal"
    ridge = 1.0
    shrinkage = 0.01

    def __init__(self) -> None:
        """Take no parameters."""


@np.errstate(under="ignore")
def probabilities(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the softmax (n, k) of logits (n, k), and the logarithm of its divisor, (n,)."""
    largest = z.max(axis=1, keepdims=True)
    p = np.exp(z - largest)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    return p, (np.log(total) + largest)[:, 0]


class _Problem:
    """The mean loss with its penalty over slopes and intercepts, and its derivatives.

    Parameters are a matrix: the slopes (one row where they are diagonal, else k rows) above a row
    of intercepts.
    """

    def __init__(
        self,
        logs: FloatArray,
        weights: FloatArray,
        ridge: float,
        structure: Structure,
    ) -> None:
        k = logs.shape[1]
        mass = max(float(weights.sum()), 1.0)  # the penalty stays finite where little counts
        self.weights = weights / mass
        self.w: FloatArray = self.weights.sum(axis=1, keepdims=True)
        self.logs, self.k = logs, k
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
        p, total = probabilities(z)
        loss = float(self.w[:, 0] @ total - (self.weights * z).sum())
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
        return self._back(self.w * p - self.weights) + self.pull(theta - self.mean)

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
    return cho_solve(cho_factor(scaled), right * unit) * unit


@np.errstate(under="ignore")
def fit_multinomial(
    logs: FloatArray, weights: FloatArray, structure: Structure, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return the W (k, k) and b (k,) of `MatrixScaling` for logarithms (n, k) and weights (n, k).

    A full matrix is searched from the diagonal fit on.
    """
    problem = _Problem(logs, weights, ridge, structure)
    theta = problem.mean
    if structure == "full":
        start, intercept = fit_multinomial(logs, weights, "diagonal", ridge)
        theta = np.vstack([start.T, intercept])
    loss, p = problem.evaluate(theta)
    gradient = problem.gradient(theta, p)
    first, decrease = float(np.linalg.norm(gradient)), np.inf
    for _ in range(MAX_MULTINOMIAL_STEPS):
        if structure == "full":
            size = float(np.linalg.norm(gradient))
            step = problem.solve_full(p, gradient, min(0.1, size / first if first else 0.0))
        else:
            step = problem.solve_small(p, gradient)
        decrease, before = -float((gradient * step).sum()), decrease
        if is_last(decrease, before, loss):
            theta = theta + step
            break
        halving = halved(problem.evaluate, theta, step, loss, decrease)
        if halving is None:
            break
        length, loss, p = halving
        theta = theta + length * step
        gradient = problem.gradient(theta, p)
    return (theta[:-1].T if structure == "full" else np.diag(theta[0])), theta[-1]


@np.errstate(under="ignore")
def fit_two_classes(
    logs: FloatArray, weights: FloatArray, structure: Structure, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Fit two classes, counted at logarithms (m, 2), as a regression of the second on the first.

    The difference of the two logits has slopes d1 and d0 of the two logarithms and one intercept;
    among the matrices that give these the penalty takes the cheapest.
    """
    # b1 = -b0 costs ridge b^2 / 2 in b = b1 - b0.
    b_penalty = ridge / 2
    rising, falling = logs[:, 1], -logs[:, 0]
    ones = np.ones(len(rising))
    if structure == "shared":
        features = np.array([rising + falling, ones])
        penalty = np.diag([ridge * SHARED, b_penalty])
    else:
        features = np.array([falling, rising, ones])
        penalty = np.zeros((3, 3))
        penalty[2, 2] = b_penalty
        penalty[:2, :2] = diagonal_penalty(2, ridge)
        if structure == "full":
            # The slope of the difference is 1 + d = (1 + x) - w with the other entry w, which
            # costs 2 ridge w^2: what x is left with minimises x P x + 2 ridge (d - x)^2.
            off = 2 * ridge * np.eye(2)
            own = np.linalg.solve(penalty[:2, :2] + off, off)  # x = own @ d
            rest = np.eye(2) - own
            penalty[:2, :2] = own.T @ penalty[:2, :2] @ own + rest.T @ off @ rest
    d = len(features) - 1
    mean = np.append(np.ones(d), 0.0)
    theta = fit_penalised(features, weights, Prior(mean, penalty, np.arange(d + 1) < d)).theta
    slopes, b = theta[:-1], theta[-1]
    W = np.diag(np.broadcast_to(slopes, 2))
    if structure == "full":
        x = own @ (slopes - 1)
        w = x - (slopes - 1)
        W = np.array([[1 + x[0], w[1]], [w[0], 1 + x[1]]])
    return W, np.array([-b / 2, b / 2])
