"""Logistic regression with offsets, and a Gaussian prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from vennforest._validation import FloatArray, IntArray

MAX_STEPS, TOLERANCE = 60, 1e-12
"""Maximum number of Newton steps, and relative decrement of the loss at convergence."""


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A fitted logistic regression.

    ``theta`` (c * r,) are coefficients of r features for each of c classes, ``hessian`` the
    negative second derivatives of the penalised log likelihood, ``scores`` (n, c * r) the
    derivatives of each row's log likelihood. ``converged`` is False if no maximum was reached.
    """

    theta: FloatArray
    hessian: FloatArray
    scores: FloatArray
    log_likelihood: float
    converged: bool


@np.errstate(over="ignore", invalid="ignore")  # of steps along a direction that is not determined
def fit_offset_regression(
    offset: FloatArray,
    features: FloatArray,
    codes: IntArray,
    weight: FloatArray | None = None,
    precision: FloatArray | None = None,
) -> LogisticFit:
    """Fit ``log q_j = offset_j + features_j · theta_j + const`` by Newton's method.

    ``offset`` has shape (n, k). ``features`` (n, c, r) are those of the last c classes; other
    classes only have an offset. ``codes`` (n,) are class indices, and ``precision`` (c * r,) is
    that of a normal prior with mean 0 for the coefficients.
    """
    n, c, r = features.shape
    weight = np.ones(n) if weight is None else weight
    precision = np.zeros(c * r) if precision is None else precision
    hits = (codes[:, None] == np.arange(offset.shape[1])[-c:]).astype(np.float64)

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray]:
        log_q = shifted_log_probabilities(offset, features, theta)
        value = weight @ log_q[np.arange(n), codes] - 0.5 * precision @ theta**2
        return float(value), np.exp(log_q)[:, -c:]

    theta = np.zeros(c * r)
    value, q = evaluate(theta)
    converged = False
    for _ in range(MAX_STEPS):
        residual = weight[:, None] * (hits - q)
        gradient = np.einsum("ij,ijr->jr", residual, features).ravel() - precision * theta
        try:
            step = np.linalg.solve(_hessian(features, q, weight) + np.diag(precision), gradient)
        except np.linalg.LinAlgError:
            break
        slack = TOLERANCE * max(1.0, abs(value))
        converged = bool(gradient @ step <= slack)
        length = 1.0
        while (trial := evaluate(theta + length * step))[0] < value - slack and length > 1e-10:
            length /= 2
        theta, (value, q) = theta + length * step, trial
        if converged:
            break
    scores = ((hits - q)[:, :, None] * features).reshape(n, -1)
    hessian = _hessian(features, q, weight) + np.diag(precision)
    return LogisticFit(theta, hessian, scores, value, converged)


def shifted_log_probabilities(
    offset: FloatArray, features: FloatArray, theta: FloatArray
) -> FloatArray:
    """Return log probabilities (n, k): the log-softmax of ``offset`` (n, k), some columns shifted.

    Its last c columns rise by the products of ``features`` (n, c, r) and ``theta`` (c * r,).
    """
    c, r = features.shape[1:]
    logits = offset.copy()
    logits[:, -c:] += np.einsum("ijr,jr->ij", features, theta.reshape(c, r))
    return np.asarray(log_softmax(logits, axis=1))


def is_separated(x: FloatArray, outcome: FloatArray) -> bool:
    """Return whether a threshold on x (n,) separates the outcomes, or x or they are constant."""
    first, second = x[outcome == 0], x[outcome == 1]
    if not len(first) or not len(second):
        return True
    is_constant = np.ptp(x) <= 1e-12 * max(1.0, np.abs(x).max())  # but for rounding
    return bool(is_constant or first.max() <= second.min() or second.max() <= first.min())


def _hessian(features: FloatArray, q: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the negative second derivatives of the log likelihood, (c * r, c * r)."""
    n, c, r = features.shape
    weighted = (q[:, :, None] * features).reshape(n, c * r)
    hessian: FloatArray = -(weighted * weight[:, None]).T @ weighted
    for j in range(c):
        block = slice(j * r, (j + 1) * r)
        hessian[block, block] += (features[:, j] * (weight * q[:, j])[:, None]).T @ features[:, j]
    return hessian
