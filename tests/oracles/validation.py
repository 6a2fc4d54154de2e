"""Tests of grades and of segments from their definitions, slowly."""

from math import log

import numpy as np


def beta_cdf(x, events, n):
    """Distribution function of Beta(events + 1/2, n - events + 1/2), integrated by t = sin² u."""
    nodes, weights = np.polynomial.legendre.leggauss(400)

    def integral(top):
        u = top / 2 * (nodes + 1)
        return (
            top / 2 * float(weights @ (np.sin(u) ** (2 * events) * np.cos(u) ** (2 * (n - events))))
        )

    return integral(np.arcsin(np.sqrt(x))) / integral(np.pi / 2)


def holm(p_values):
    """Each p-value: the largest of (m - rank) p among those not above it."""
    m = len(p_values)
    ordered = sorted(p_values)
    return [min(1, max((m - i) * q for i, q in enumerate(ordered) if q <= p)) for p in p_values]


def stability_index(counts, others):
    """Σ (a - b) log(a / b) over shares of 0.0001 or more."""
    first = [max(c / sum(counts), 1e-4) for c in counts]
    second = [max(c / sum(others), 1e-4) for c in others]
    return sum((a - b) * log(a / b) for a, b in zip(first, second, strict=True))


def scaled_deviance(rows, outcome, p):
    """Deviance of the events in some rows, times the ratio of the two variances."""
    n, events = len(rows), sum(outcome[i] for i in rows)
    expected, variance = sum(p[i] for i in rows), sum(p[i] * (1 - p[i]) for i in rows)

    def term(observed, mean):
        if observed == 0:
            return 0.0
        return observed * log(observed / mean) if mean > 0 else np.inf

    deviance = 2 * (term(events, expected) + term(n - events, n - expected))
    return deviance if variance == 0 else deviance * expected * (n - expected) / n / variance


def step_down(statistics, drawn):
    """Adjusted p-values: each statistic against the largest drawn one of those not above it."""
    order = sorted(range(len(statistics)), key=lambda i: -statistics[i])
    p_values, largest = [0.0] * len(statistics), 0.0
    for position, i in enumerate(order):
        rest = order[position:]
        reached = sum(max(row[j] for j in rest) >= statistics[i] for row in drawn)
        largest = max(largest, (reached + 1) / (len(drawn) + 1))
        p_values[i] = largest
    return p_values


def pair_correlation(y, p, codes):
    """Return the correlation in groups: over pairs, products of residuals over covariances."""
    products = largest = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if i != j and codes[i] == codes[j]:
                products += (y[i] - p[i]) * (y[j] - p[j])
                largest += min(p[i], p[j]) * (1 - max(p[i], p[j]))
    return min(1.0, max(0.0, products / largest)) if largest else 0.0
