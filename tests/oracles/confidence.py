"""The likelihood-ratio interval for a monotone probability, straight from its definition."""

import numpy as np
from scipy.optimize import brentq, isotonic_regression


def log_likelihood(p, y, weight):
    """Return the Bernoulli log likelihood, with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(y > 0, y * np.log(p), 0) + np.where(y < 1, (1 - y) * np.log1p(-p), 0)
    return float((weight * terms).sum())


def isotonic(scores, y, weight):
    """Return the isotonic regression at each example; equal scores are one point."""
    if not len(scores):
        return np.empty(0)
    _, back = np.unique(scores, return_inverse=True)
    total = np.bincount(back, weight)
    mean = np.bincount(back, weight * y) / total
    return isotonic_regression(mean, weights=total).x.clip(0, 1)[back]


def ratio(scores, y, weight, x, theta):
    """Return 2 log lambda for f(x) = theta."""
    free = isotonic(scores, y, weight)
    below, above = scores < x, scores > x
    bound = np.full(len(scores), float(theta))
    bound[below] = np.minimum(isotonic(scores[below], y[below], weight[below]), theta)
    bound[above] = np.maximum(isotonic(scores[above], y[above], weight[above]), theta)
    return 2 * (log_likelihood(free, y, weight) - log_likelihood(bound, y, weight))


def interval(scores, y, weight, x, quantile):
    """Return the least and the largest theta with 2 log lambda(theta) <= quantile."""
    free = isotonic(scores, y, weight)
    at = free[scores == x]
    inner_low = at[0] if len(at) else max(free[scores < x], default=0.0)
    inner_high = at[0] if len(at) else min(free[scores > x], default=1.0)

    def excess(theta):
        return min(ratio(scores, y, weight, x, theta), 1e6) - quantile

    low = 0.0 if excess(0.0) <= 0 else brentq(excess, 0.0, inner_low, xtol=1e-14)
    high = 1.0 if excess(1.0) <= 0 else brentq(excess, inner_high, 1.0, xtol=1e-14)
    return low, high
