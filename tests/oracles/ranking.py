"""Ranking, thresholds and weak calibration, row by row and pair by pair, from the formulas."""

from fractions import Fraction

import numpy as np


def auc(outcome, p):
    """The share of pairs ranked right, ties half, as a fraction."""
    good = Fraction(0)
    pairs = 0
    for i in np.flatnonzero(outcome):
        for j in np.flatnonzero(~np.asarray(outcome, bool)):
            good += Fraction(1) if p[i] > p[j] else Fraction(1, 2) if p[i] == p[j] else 0
            pairs += 1
    return good / pairs


def delong_variance(outcome, p):
    """DeLong et al. (1988), eqs. 4-6, with the placements taken pair by pair."""
    kernel = [
        [1.0 if p[i] > p[j] else 0.5 if p[i] == p[j] else 0.0 for j in np.flatnonzero(outcome == 0)]
        for i in np.flatnonzero(outcome == 1)
    ]
    kernel = np.array(kernel)
    m, n = kernel.shape
    v10, v01, area = kernel.mean(axis=1), kernel.mean(axis=0), kernel.mean()
    s10 = ((v10 - area) ** 2).sum() / (m - 1)
    s01 = ((v01 - area) ** 2).sum() / (n - 1)
    return s10 / m + s01 / n


def weighted_auc_of(codes, p, weight):
    """The mean of the classes' areas weighted by their shares, for weighted rows."""
    total = 0.0
    for j in range(p.shape[1]):
        own = codes == j
        top = bottom = 0.0
        for i in np.flatnonzero(own):
            for o in np.flatnonzero(~own):
                pair = weight[i] * weight[o]
                top += pair * (1.0 if p[i, j] > p[o, j] else 0.5 if p[i, j] == p[o, j] else 0.0)
                bottom += pair
        total += weight[own].sum() / weight.sum() * top / bottom
    return total


def jackknife_moves(codes, p, step=1e-6):
    """The derivative of the weighted area by each row's weight, times n."""
    n = len(codes)
    moves = []
    for i in range(n):
        up, down = np.ones(n), np.ones(n)
        up[i] += step
        down[i] -= step
        moves.append(
            (weighted_auc_of(codes, p, up) - weighted_auc_of(codes, p, down)) / (2 * step) * n
        )
    return np.array(moves)


def threshold_row(outcome, p, weight, t, low=None, high=None):
    """Every entry of a row of the threshold table, counted row by row."""
    tp = fp = tn = fn = 0.0
    three = {"yes": [0.0, 0.0], "no": [0.0, 0.0], "depends": [0.0, 0.0]}
    for i in range(len(p)):
        if p[i] >= t and outcome[i]:
            tp += weight[i]
        elif p[i] >= t:
            fp += weight[i]
        elif outcome[i]:
            fn += weight[i]
        else:
            tn += weight[i]
        if low is not None:
            which = "yes" if low[i] >= t else "no" if high[i] < t else "depends"
            three[which][0] += weight[i]
            three[which][1] += weight[i] * outcome[i]
    nan = float("nan")
    return {
        "flagged": (tp + fp) / weight.sum(),
        "sensitivity": tp / (tp + fn) if tp + fn else nan,
        "specificity": tn / (tn + fp) if tn + fp else nan,
        "positive_value": tp / (tp + fp) if tp + fp else nan,
        "negative_value": tn / (tn + fn) if tn + fn else nan,
        "net_benefit": (tp - fp * t / (1 - t)) / weight.sum() if t < 1 else nan,
        "three": three,
    }
