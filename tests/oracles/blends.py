"""Slow and obvious versions of the blend of several models."""

import numpy as np
from scipy.optimize import minimize


def objective(theta, logs, codes, weight, ridge=10.0):
    """Return the penalised log loss of ``softmax(sum_m w_m log p_m + b)``, theta = (w, b)."""
    n_models, n, _ = logs.shape
    w, b = theta[:n_models], theta[n_models:]
    total = 0.0
    for i in range(n):
        z = sum(w[m] * logs[m, i] for m in range(n_models)) + b
        total += weight[i] * (np.log(np.exp(z - z.max()).sum()) + z.max() - z[codes[i]])
    return total + ridge / 2 * (((w - 1 / n_models) ** 2).sum() + (b**2).sum())


def weights(logs, codes, weight, ridge=10.0):
    """Return w and b by a search without derivatives given, from the equal weights."""
    n_models, _, k = logs.shape
    start = np.append(np.full(n_models, 1 / n_models), np.zeros(k))
    bounds = [(0, None)] * n_models + [(None, None)] * k
    result = minimize(
        objective, start, (logs, codes, weight, ridge), bounds=bounds, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    return result.x[:n_models], result.x[n_models:]
