"""Confidence bands of calibration curves and differences of net benefit, from the definitions."""

import numpy as np
from scipy.special import bdtri, stdtrit


def groups(p, y, largest=200):
    """Distinct estimates as (first, last, positives, rows), joined to this many of equal count."""
    joined = {}
    for rank, value in enumerate(sorted(set(p))):
        below = sum(q <= value for q in p)
        key = rank if len(set(p)) <= largest else -(-below * largest // len(p))
        labels = [label for q, label in zip(p, y, strict=True) if q == value]
        first, _, s, n = joined.get(key, (value, value, 0, 0))
        joined[key] = (first, value, s + sum(labels), n + len(labels))
    return list(joined.values())


def band_at(groups, x, level):
    """Lower and upper bound of the curve at x: the best of those of all intervals of groups.

    ``bdtri(s, n, e)`` is the probability with which at most s of n events happen with chance e.
    """
    m = len(groups)
    error = (1 - level) / (m * (m + 1))
    lower, upper = [0.0], [1.0]
    for i in range(m):
        for j in range(i, m):
            s = sum(group[2] for group in groups[i : j + 1])
            n = sum(group[3] for group in groups[i : j + 1])
            if groups[i][0] >= x and s < n:
                upper.append(bdtri(s, n, error))
            if groups[j][1] <= x and s > 0:
                lower.append(1 - bdtri(n - s, n, error))
    return max(lower), min(upper)


def difference_of_net_benefit(y, p, q, threshold, groups, level):
    """Difference, and half the width of its interval.

    Half a row more of each kind of gain, times the design effect of groups, at least 1; degrees of
    freedom of Kish's number of rows, or groups, of the rarer label.
    """
    odds = threshold / (1 - threshold)
    gains = [
        ((a >= threshold) - float(b >= threshold)) * (1 if label else -odds)
        for label, a, b in zip(y, p, q, strict=True)
    ]
    mean = sum(gains) / len(gains)
    labels = sorted(set(groups))
    sums = [sum(g - mean for g, h in zip(gains, groups, strict=True) if h == k) for k in labels]
    independent = sum((g - mean) ** 2 for g in gains)
    clustered = sum(s**2 for s in sums) * len(labels) / (len(labels) - 1)
    effect = 1.0
    if not isinstance(groups, range) and independent > 1e-12:
        effect = max(1.0, clustered / independent)
    total = effect * (independent + sum(kind**2 / 2 for kind in [1, -1, odds, -odds]))
    counts = [[sum(a == b and h == k for a, h in zip(y, groups, strict=True)) for k in labels]
              for b in (0, 1)]  # fmt: skip
    units = min(sum(c) ** 2 / max(1, sum(m**2 for m in c)) for c in counts)
    margin = np.sqrt(total) / len(gains)
    return mean, stdtrit(units - 1, (1 + level) / 2) * margin if units >= 2 else np.nan
