"""Matrix scaling: multinomial regression on the logarithms of probabilities."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize

from vennforest._validation import FloatArray, check_array, check_number
from vennforest.calibrators.formula import Evaluation, Score, Term, Terms, softmax, summed
from vennforest.calibrators.regression import MAX_COEFFICIENT, fit_logistic, group_scores
from vennforest.calibrators.temperature import ProbabilityCalibrator
from vennforest.counts import ScoreCounts

Structure = Literal["shared", "diagonal", "full"]
"""Which slopes are free: one for all classes, one a class, or one for each pair of classes."""

# Weight of the shared slope's distance from 1, beside 1 of the slopes' distances from it.
SHARED = 0.1
# Length of the mean loss's gradient, in units of the curvature, at which the search ends, and its
# largest step: the sum is convex, so long ones are safe.
GRADIENT_TOLERANCE, MAX_TRUST_RADIUS = 1e-9, 1e6


def smoothed_shares(counts: ScoreCounts) -> FloatArray:
    """Return ``(n_j + 1) / (n + k)``, (k,): the shares towards which probabilities are shrunk."""
    shares: FloatArray = (counts.class_totals + 1) / (counts.total + len(counts.class_totals))
    return shares


def shrunk_logs(p: Terms, c: float, shares: FloatArray) -> Terms:
    """Return ``log(k (p + c shares) / (1 + c))`` of k classes, finite where a forest gives 0."""
    p, k = (1.0 - p[0], p[0]) if len(p) == 1 else p, len(shares)
    added = (c * shares).tolist()
    return tuple(((x + y) * (k / (1 + c))).log() for x, y in zip(p, added, strict=True))


class SoftmaxMap(ProbabilityCalibrator):
    """The map ``softmax(W log(k s) + b)``, with a choice of slopes: see `MatrixScaling`.

    Parameters
    ----------
    structure : {"shared", "diagonal", "full"}
        Which slopes are free with more than two classes: one for all, one a class, or one for each
        pair of classes.
    ridge, shrinkage : float
        Factor of the penalty, and the c of the shrinkage of scores, above 0.
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
        self.shrinkage_, self.shares_ = self.shrinkage, smoothed_shares(counts)
        if counts.scores.ndim == 1:
            counts = group_scores(counts)
        scores = tuple(Score(j) for j in range(1 if counts.scores.ndim == 1 else len(self.shares_)))
        logs = Evaluation(shrunk_logs(scores, self.shrinkage_, self.shares_))(counts.scores)
        if counts.scores.ndim == 1:
            self.coef_, self.intercept_ = fit_two_classes(logs, counts.weights, self.ridge)
        else:
            fit = fit_multinomial(logs, counts.weights, self.structure, self.ridge)
            self.coef_, self.intercept_ = fit

    def _map_formula(self, p: Terms) -> Terms:
        k, W, b = len(self.classes_), self.coef_, self.intercept_.tolist()
        logs = shrunk_logs(p, self.shrinkage_, self.shares_)

        def logit(slopes: FloatArray, intercept: float) -> Term:
            pairs = zip(slopes.tolist(), logs, strict=True)
            products = [slope * log for slope, log in pairs if slope != 0]
            return summed(products or [0.0 * logs[0]]) + intercept

        if k == 2:
            return (logit(W[1] - W[0], b[1] - b[0]).logistic(),)
        return softmax([logit(W[j], b[j]) for j in range(k)])

    def _check_state(self) -> None:
        super()._check_state()
        k, limit = len(self.classes_), MAX_COEFFICIENT
        check_number(self.shrinkage_, "shrinkage_", 1e-300, limit)
        check_array(self.shares_, "shares_", (k,), low=1e-300, high=1)
        check_array(self.coef_, "coef_", (k, k), low=-limit, high=limit)
        check_array(self.intercept_, "intercept_", (k,), low=-limit, high=limit)


class MatrixScaling(SoftmaxMap):
    """Matrix scaling: ``softmax(W log(k s) + b)`` of scores s of k classes, with a diagonal W.

    Minimises the log loss of the calibration set plus a penalty that shrinks the map towards
    leaving the scores alone. With probabilities as scores this is a form of Dirichlet calibration
    (Kull et al. 2019, eq. 4); with logits, which temperature scaling turns into probabilities
    first, of vector scaling (Guo, Pleiss, Sun & Weinberger 2017, section 4.2).

    Attributes
    ----------
    coef_ : ndarray of shape (k, k)
        W; row j has the slopes of class j's logit.
    intercept_ : ndarray of shape (k,)
        b.

    Notes
    -----
    The penalty is half of ``sum_j (w_jj - a)**2 + (a - 1)**2 / 10 + sum_j b_j**2``, with the shared
    slope a that makes it smallest. Scores are shrunk to the shares pi of the classes first,
    ``(s + c pi) / (1 + c)`` with c = 0.01, so zeros, which forests give, have logarithms. Of two
    classes a higher score never gets a lower probability.

    Examples
    --------
    >>> scores = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.4, 0.1]]
    >>> model = MatrixScaling().fit(scores, ["a", "b", "c", "b"])
    >>> model.predict_proba([[0.4, 0.4, 0.2]]).round(2)
    array([[0.29, 0.6 , 0.11]])
    """

    title = "Matrix scaling"
    structure: Structure = "diagonal"
    ridge = 1.0
    shrinkage = 0.01

    def __init__(self) -> None:
        """Take no parameters."""


def diagonal_penalty(k: int, ridge: float) -> FloatArray:
    """Return the penalty (k, k) of slopes' distances from 1, the shared slope left to its best."""
    # min over a of ridge * (SHARED * (a - 1)**2 + sum (w - a)**2) is a quadratic form in w - 1.
    penalty: FloatArray = ridge * (np.eye(k) - np.full((k, k), 1 / (SHARED + k)))
    return penalty


class MultinomialLoss:
    """The mean log loss with its penalty: rows of slopes (1 or k) above a row of intercepts."""

    def __init__(
        self, logs: FloatArray, weights: FloatArray, ridge: float, structure: Structure
    ) -> None:
        k = logs.shape[1]
        mass = max(float(weights.sum()), 1.0)  # the penalty stays finite where little counts
        self.logs, self.weights, self.ridge = logs, weights / mass, ridge / mass
        self.total: FloatArray = self.weights.sum(axis=1, keepdims=True)
        self.is_full, self.is_shared = structure == "full", structure == "shared"
        self.diagonal: FloatArray = diagonal_penalty(k, self.ridge)
        if self.is_shared:  # each of the k equal slopes bears its part
            self.diagonal = np.eye(k) * SHARED * self.ridge / k
        self.mean = np.vstack([np.eye(k) if self.is_full else np.ones((1, k)), np.zeros((1, k))])

    def logits(self, theta: FloatArray) -> FloatArray:
        """Return logits (n, k)."""
        z = self.logs @ theta[:-1] if self.is_full else self.logs * theta[0]
        return np.asarray(z + theta[-1])

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss, and the estimates (n, k)."""
        z, offset = self.logits(theta), theta - self.mean
        largest = z.max(axis=1, keepdims=True)
        p = np.exp(z - largest)
        divisor = p.sum(axis=1, keepdims=True)
        loss = (self.total * (np.log(divisor) + largest)).sum() - (self.weights * z).sum()
        return float(loss + (self.pull(offset) * offset).sum() / 2), p / divisor

    def pull(self, offset: FloatArray) -> FloatArray:
        """Return the derivative of the penalty at an offset from its minimum."""
        pull = self.ridge * offset
        if not self.is_full:
            pull[0] = self.diagonal @ offset[0]
            return pull
        pull[:-1] *= offset.shape[1]
        np.fill_diagonal(pull[:-1], self.diagonal @ np.diag(offset[:-1]))
        return pull

    def back(self, g: FloatArray, logs: FloatArray) -> FloatArray:
        """Return the derivative of ``sum g * logits`` by the parameters."""
        slopes = logs.T @ g if self.is_full else (logs * g).sum(axis=0, keepdims=True)
        if self.is_shared:
            slopes[:] = slopes.mean()
        return np.vstack([slopes, g.sum(axis=0, keepdims=True)])

    def gradient(self, theta: FloatArray, p: FloatArray) -> FloatArray:
        """Return the derivative of the loss by the parameters."""
        return self.back(self.total * p - self.weights, self.logs) + self.pull(theta - self.mean)

    def curve(self, p: FloatArray, v: FloatArray) -> FloatArray:
        """Return the second derivative of the loss, applied to a change v of the parameters."""
        dz = self.logits(v)
        dz -= (p * dz).sum(axis=1, keepdims=True)
        return self.back(self.total * p * dz, self.logs) + self.pull(v)


@np.errstate(under="ignore")
def fit_multinomial(
    logs: FloatArray, weights: FloatArray, structure: Structure, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return the W (k, k) and b (k,) of `MatrixScaling`, for logarithms (n, k)."""
    problem = MultinomialLoss(logs, weights, ridge, structure)
    start = problem.mean
    if problem.is_full:
        W, b = fit_multinomial(logs, weights, "diagonal", ridge)
        start = np.vstack([W.T, b])
    p, at = problem.evaluate(start)[1], np.empty(0)
    # Parameters in units that their own curvature makes about equally large.
    scale = 1 / np.sqrt(problem.back(problem.total * p * (1 - p), logs**2) + problem.ridge)

    def parameters(t: FloatArray) -> FloatArray:
        return np.asarray(start + scale * t.reshape(scale.shape))

    def loss(t: FloatArray) -> tuple[float, FloatArray]:
        nonlocal p, at
        value, p = problem.evaluate(parameters(t))
        at = t.copy()
        return value, (scale * problem.gradient(parameters(t), p)).ravel()

    def curve(t: FloatArray, v: FloatArray) -> FloatArray:
        if not np.array_equal(t, at):
            loss(t)
        return np.ravel(scale * problem.curve(p, scale * v.reshape(scale.shape)))

    options = {"gtol": GRADIENT_TOLERANCE, "max_trust_radius": MAX_TRUST_RADIUS}
    result: Any = minimize(  # type: ignore[call-overload]
        loss, np.zeros(scale.size), jac=True, hessp=curve, method="trust-ncg", options=options
    )
    theta = parameters(result.x)
    return (theta[:-1].T if problem.is_full else np.diag(theta[0])), theta[-1]


@np.errstate(under="ignore")
def fit_two_classes(
    logs: FloatArray, weights: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return the diagonal W (2, 2) and b (2,) of `MatrixScaling`, for logarithms (n, 2)."""
    # The difference of the two logits has slopes of the two logarithms, not below zero, and one
    # intercept; b1 = -b0 costs ridge b^2 / 2 in b = b1 - b0.
    features = np.array([-logs[:, 0], logs[:, 1], np.ones(len(logs))])
    penalty = np.diag([0.0, 0.0, ridge / 2])
    penalty[:2, :2] = diagonal_penalty(2, ridge)
    mean, bounded = np.array([1.0, 1.0, 0.0]), np.array([True, True, False])
    theta, _ = fit_logistic(features, weights, mean, bounded, mean=mean, penalty=penalty)
    return np.diag(theta[:2]), np.array([-theta[2] / 2, theta[2] / 2])
