"""The logarithmic pool of several models' probabilities, with fitted weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from vennforest._validation import FloatArray, IntArray
from vennforest.linear import softmax

BLEND_RIDGE = 10.0
"""Factor of the penalty of a blend, in units of rows."""


def blend_probabilities(
    logs: Sequence[FloatArray] | FloatArray, weights: FloatArray, intercept: FloatArray
) -> FloatArray:
    """Return ``softmax(sum_m w_m log p_m + b)``, (n, k), of logarithms (n, k) of each model."""
    z = np.zeros_like(logs[0]) + intercept
    for weight, log in zip(weights.tolist(), logs, strict=True):
        z += weight * log
    return softmax(z)


def fit_blend(
    logs: FloatArray, codes: IntArray, sample_weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the weights (M,), not below 0, and the intercept (k,) of a blend of M models.

    They minimise the log loss, summed over rows, of ``softmax(sum_m w_m log p_m + b)`` plus
    ``BLEND_RIDGE / 2`` times ``sum_m (w_m - 1 / M)**2 + sum_j b_j**2``. Models with the same
    probabilities count as one, whose weight they share.

    Parameters
    ----------
    logs : ndarray of shape (M, n, k)
        Logarithms of the probabilities of rows by models that did not see them.
    codes : ndarray of shape (n,)
        Index of each row's class.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows.
    """
    _, n, k = logs.shape
    same = [next(i for i, other in enumerate(logs) if np.array_equal(log, other)) for log in logs]
    first, model, counts = np.unique(same, return_inverse=True, return_counts=True)
    distinct = logs[first]
    m = len(first)
    total = np.ones(n) if sample_weight is None else sample_weight
    mass, rows = max(float(total.sum()), 1.0), np.arange(n)
    mean = np.concatenate([np.full(m, 1 / m), np.zeros(k)])

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        p = blend_probabilities(distinct, theta[:m], theta[m:])
        of_label = np.maximum(p[rows, codes], np.finfo(float).tiny)
        residual = p
        residual[rows, codes] -= 1
        residual *= total[:, None]
        gradient = np.concatenate([
            [float((residual * log).sum()) for log in distinct], residual.sum(axis=0)
        ])  # fmt: skip
        offset = theta - mean
        value = -float(total @ np.log(of_label)) + BLEND_RIDGE / 2 * float(offset @ offset)
        return value / mass, (gradient + BLEND_RIDGE * offset) / mass

    bounds = [(0.0, None)] * m + [(None, None)] * k
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 500}
    result: Any = minimize(  # type: ignore[call-overload]
        loss, mean, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return (result.x[:m] / counts)[model], result.x[m:]
