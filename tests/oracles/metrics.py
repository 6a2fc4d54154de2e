"""Rows for narrow intervals, from the variances of Riley et al. (2021), slowly."""

from itertools import count
from math import log


def rows_of_slope(probabilities, half_width):
    """The inverse of the information matrix of intercept and slope, by a loop over the rows."""
    a = b = d = 0.0
    for p in probabilities:
        if 0 < p < 1:
            x = log(p / (1 - p))
            a, b, d = a + p * (1 - p), b + x * p * (1 - p), d + x * x * p * (1 - p)
    return len(probabilities) * a / (a * d - b * b) / (half_width / 1.96) ** 2


def rows_of_auc(share, auc, half_width):
    """The first number of rows for which Newcombe's (2006) variance is small enough."""

    def variance(n):
        inner = 1 + (n / 2 - 1) * (1 - auc) / (2 - auc) + (n / 2 - 1) * auc / (1 + auc)
        return auc * (1 - auc) * inner / (n**2 * share * (1 - share))

    return next(n for n in count(1) if variance(n) <= (half_width / 1.96) ** 2)
