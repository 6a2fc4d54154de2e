"""The logarithmic pool of several models' probabilities, with fitted weights."""

from __future__ import annotations

import numpy as np

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.newton import minimise

BLEND_RIDGE = 10.0
"""Factor of the penalty of a blend, in units of rows."""

MAX_ROWS_TO_START = 4_096
"""Rows with which the search begins where there are more than twice as many."""


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
    same = [next(i for i, other in enumerate(logs) if np.array_equal(log, other)) for log in logs]
    first, model, counts = np.unique(same, return_inverse=True, return_counts=True)
    m, k = len(first), logs.shape[2]
    total = np.ones(logs.shape[1]) if sample_weight is None else sample_weight
    mean = np.concatenate([np.full(m, 1 / m), np.zeros(k)])
    theta = _fit_distinct(logs[first], codes, total, mean, mean)
    return (theta[:m] / counts)[model], theta[m:]


@np.errstate(under="ignore")
def _fit_distinct(
    logs: FloatArray, codes: IntArray, total: FloatArray, mean: FloatArray, start: FloatArray
) -> FloatArray:
    """Return the weights and the intercept, (m + k,), of the least penalised loss of m models.

    ``total`` (n,) are the weights of the rows, and ``mean`` (m + k,) has no penalty. The search
    begins at ``start``.
    """
    m, n, k = logs.shape
    if n > 2 * MAX_ROWS_TO_START:  # some rows tell nearly where the minimum is
        rows = slice(None, None, n // MAX_ROWS_TO_START)
        some = total[rows] * (total.sum() / max(total[rows].sum(), np.finfo(float).tiny))
        start = _fit_distinct(logs[:, rows], codes[rows], some, mean, start)
    of_label = np.arange(n), codes

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray]:
        z = np.tensordot(theta[:m], logs, 1) + theta[m:]
        z -= z.max(axis=1, keepdims=True)
        of_labels, offset = float(total @ z[of_label]), theta - mean
        p = np.exp(z, out=z)
        divisor = p.sum(axis=1, keepdims=True)
        p /= divisor
        loss = float(total @ np.log(divisor[:, 0])) - of_labels
        return loss + BLEND_RIDGE / 2 * float(offset @ offset), p

    def derivatives(theta: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        share = total[:, None] * p
        residual = share.copy()
        residual[of_label] -= total
        gradient = np.append(np.tensordot(logs, residual, 2), residual.sum(axis=0))
        gradient += BLEND_RIDGE * (theta - mean)
        centred = logs - np.einsum("mij,ij->mi", logs, p)[:, :, None]
        weighted = centred * share
        hessian = BLEND_RIDGE * np.eye(m + k)
        hessian[:m, :m] += np.tensordot(weighted, centred, ([1, 2], [1, 2]))
        hessian[:m, m:] = weighted.sum(axis=1)
        hessian[m:, :m] = hessian[:m, m:].T
        hessian[m:, m:] += np.diag(share.sum(axis=0)) - share.T @ p
        return gradient, hessian

    return minimise(evaluate, derivatives, start, np.arange(m + k) < m, np.linalg.solve)[0]
