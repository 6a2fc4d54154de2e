"""Penalised maps straight from their formulas, one example at a time in plain Python."""

import math
from itertools import pairwise

from scipy.special import softmax


def shrunken_logs(row, c, shares):
    """ln(k (s + c pi) / (1 + c)) of one example's scores."""
    k = len(row)
    return [math.log(k * (s + c * share) / (1 + c)) for s, share in zip(row, shares, strict=True)]


def label_shares(codes, weights, k):
    """(n_j + 1) / (n + k)."""
    counts = [sum(w for y, w in zip(codes, weights, strict=True) if y == j) for j in range(k)]
    return [(n + 1) / (sum(counts) + k) for n in counts]


def shared_slope(W):
    """The a that makes (a - 1)^2 / 10 + sum_j (w_jj - a)^2 least."""
    k = len(W)
    return (0.1 + sum(W[j][j] for j in range(k))) / (0.1 + k)


def matrix_gradient(logs, codes, weights, W, b, ridge, structure):
    """Derivatives by the free slopes and by the intercepts, one list."""
    k, a = len(b), shared_slope(W)
    by_slope = [[[] for _ in range(k)] for _ in range(k)]
    by_intercept = [[ridge * b[j]] for j in range(k)]
    for row, y, w in zip(logs, codes, weights, strict=True):
        p = softmax([math.fsum(W[j][i] * row[i] for i in range(k)) + b[j] for j in range(k)])
        for j in range(k):
            gap = w * (p[j] - (y == j))
            by_intercept[j].append(gap)
            for i in range(k):
                by_slope[j][i].append(gap * row[i])
    intercepts = [math.fsum(terms) for terms in by_intercept]
    if structure == "shared":
        every = [term for j in range(k) for term in by_slope[j][j]]
        return [math.fsum([*every, ridge * (W[0][0] - 1) / 10]), *intercepts]
    if structure == "diagonal":
        return [
            *(math.fsum([*by_slope[j][j], ridge * (W[j][j] - a)]) for j in range(k)),
            *intercepts,
        ]
    return [
        *(
            math.fsum([*by_slope[j][i], ridge * (W[j][i] - a) if i == j else ridge * k * W[j][i]])
            for j in range(k)
            for i in range(k)
        ),
        *intercepts,
    ]


def slope_value(z, knots, slopes, intercept):
    """The intercept plus the integral from 0 to z of a slope, straight between knots, level beyond.

    Added up over the pieces, each the mean of the slope at its ends times its length.
    """

    def slope(x):
        if x <= knots[0]:
            return slopes[0]
        for left, right, u, v in zip(knots, knots[1:], slopes, slopes[1:], strict=False):
            if x <= right:
                return u + (v - u) * (x - left) / (right - left)
        return slopes[-1]

    low, high = min(0.0, z), max(0.0, z)
    places = [low, *(float(k) for k in knots if low < k < high), high]
    area = math.fsum((slope(a) + slope(b)) / 2 * (b - a) for a, b in pairwise(places))
    return intercept + (area if z >= 0 else -area)


def slope_loss(z, labels, weights, knots, slopes, intercept, ridge, roughness):
    """Log loss of 1 / (1 + exp(-f)), the ridge and the roughness."""
    terms = []
    for x, y, w in zip(z, labels, weights, strict=True):
        f = slope_value(x, knots, slopes, intercept)
        terms.append(w * (max(f, 0) + math.log1p(math.exp(-abs(f))) - y * f))
    m = len(knots)
    terms.extend(ridge / 2 * (u - 1) ** 2 / m for u in slopes)
    terms.append(ridge / 4 * intercept**2)
    span = knots[-1] - knots[0]
    for left, right, u, v in zip(knots, knots[1:], slopes, slopes[1:], strict=False):
        bend = (v - u) / ((right - left) / span)  # f'' where the range of z is one unit
        terms.append(roughness / 2 * bend**2 * (right - left) / span)
    return math.fsum(terms)
