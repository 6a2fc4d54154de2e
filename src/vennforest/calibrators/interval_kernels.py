"""Compiled loops of the likelihood-ratio interval for a monotone probability.

Examples at m distinct scores are counted in cumulative sums W (weight) and Y (weight of the
positive class), W[0] = Y[0] = 0. For a score x and a value theta (Banerjee & Wellner 2001)

    2 log lambda(theta) = 2 [max l(f) - max {l(f): f(x) = theta}],

l the Bernoulli log likelihood, f not decreasing. The constrained maximum is min(., theta) of the
isotonic regression of the examples below x, theta at x itself, and max(., theta) of the isotonic
regression of the examples above. Reversing the order and exchanging the labels turns the examples
above x into examples below it, so the isotonic regressions of all prefixes serve for both.

The regression of the first l scores ends in some block; before it stand the blocks of a shorter
prefix (pool adjacent violators never looks ahead). So the regressions of all prefixes form a tree:
node l has the value of the last block, and its parent is the prefix before that block. Values
decrease on the way to the root, node 0, the empty prefix.
"""

import math

import numpy as np

from vennforest._jit import kernel

END_PRECISION = 1e-12  # relative precision of the ends, which err outwards
SLOPE_RIDGE = 0.01  # on slopes per standard deviation of ranks: they stay finite under separation


@kernel
def log_likelihood(positive, weight):
    """Return the largest Bernoulli log likelihood of so much positive weight in so much weight."""
    negative = weight - positive
    total = 0.0
    if positive > 0.0:
        total += positive * math.log(positive / weight)
    if negative > 0.0:
        total += negative * math.log(negative / weight)
    return total


@kernel
def prefix_tree(W, Y):
    """Return the tree of the isotonic regressions of all prefixes, three arrays (m + 1,).

    Of node l: ``value`` of the last block (-1 for the root), ``parent``, and ``best``, the log
    likelihood of the regression.
    """
    nodes = len(W)
    value, best, parent = np.empty(nodes), np.empty(nodes), np.empty(nodes, np.int32)
    value[0], parent[0], best[0] = -1.0, 0, 0.0
    for node in range(1, nodes):
        start = node - 1
        mean = (Y[node] - Y[start]) / (W[node] - W[start])
        # Pool with earlier blocks as long as they are not below. Each pooling removes a block for
        # good, so all prefixes together take linear time.
        while start > 0 and mean <= value[start]:
            start = parent[start]
            mean = (Y[node] - Y[start]) / (W[node] - W[start])
        value[node], parent[node] = min(max(mean, 0.0), 1.0), start
        best[node] = best[start] + log_likelihood(Y[node] - Y[start], W[node] - W[start])
    return value, parent, best


@kernel
def mirrored(W, Y):
    """Return the cumulative sums (m + 1,) of reversed scores with exchanged labels."""
    reversed_W = W[-1] - W[::-1]
    return reversed_W, reversed_W - (Y[-1] - Y[::-1])


@kernel
def first_not_above(node, theta, tree):
    """Return the nearest node on the way to the root whose value is at most theta."""
    value, parent, _ = tree
    while value[node] > theta:
        node = parent[node]
    return node


@kernel
def ratio(theta, i, W, Y, below, above):
    """Return 2 log lambda(theta), the likelihood-ratio statistic of frequency theta at score i.

    ``W`` and ``Y`` are cumulative sums of all and of positive weight; ``below`` is the
    `prefix_tree` of the scores, and ``above`` that of the `mirrored` ones.
    """
    last = len(W) - 1
    left = first_not_above(i, theta, below)
    # Mirroring makes theta 1 - theta; the scores above x are the first last - i - 1 of them.
    right = first_not_above(last - i - 1, 1.0 - theta, above)
    # All blocks between the two have the value theta.
    weight = W[last - right] - W[left]
    positive = min(max(Y[last - right] - Y[left], 0.0), weight)
    negative = weight - positive
    constrained = below[2][left] + above[2][right]
    if positive > 0.0:
        constrained += positive * math.log(theta) if theta > 0.0 else -np.inf
    if negative > 0.0:
        constrained += negative * math.log1p(-theta) if theta < 1.0 else -np.inf
    return 2.0 * (below[2][last] - constrained)


@kernel
def upper_ends(W, Y, fit, indices, quantiles):
    """Return the upper ends (n,) at scores number ``indices`` (n,), with a quantile for each.

    The largest theta with 2 log lambda(theta) <= quantile; ``fit`` is the isotonic fit at every
    score, at which 2 log lambda is 0.
    """
    below, above = prefix_tree(W, Y), prefix_tree(*mirrored(W, Y))
    ends = np.empty(len(indices))
    for n in range(len(indices)):
        i = indices[n]
        inner, outer = fit[i], 1.0
        if ratio(outer, i, W, Y, below, above) <= quantiles[n]:
            inner = outer
        while outer - inner > END_PRECISION * outer:
            middle = 0.5 * (inner + outer)
            if middle <= inner or middle >= outer:
                break
            if ratio(middle, i, W, Y, below, above) <= quantiles[n]:
                inner = middle
            else:
                outer = middle
        ends[n] = outer
    return ends


@kernel
def simulated_ratios(weight, positive, indices, theta):
    """Return 2 log lambda(theta), (draws, n), at n scores for simulated labels (draws, m)."""
    W, Y = np.zeros(len(weight) + 1), np.zeros(len(weight) + 1)
    for i in range(len(weight)):  # an assignment to a slice takes numba seconds to compile
        W[i + 1] = W[i] + weight[i]
    ratios = np.empty((len(positive), len(indices)))
    for draw in range(len(positive)):
        for i in range(len(weight)):
            Y[i + 1] = Y[i] + positive[draw, i]
        below, above = prefix_tree(W, Y), prefix_tree(*mirrored(W, Y))
        for n in range(len(indices)):
            ratios[draw, n] = ratio(theta[n], indices[n], W, Y, below, above)
    return ratios


@kernel
def fit_line(ranks, weight, positive, start, stop):
    """Return log likelihood less penalty, intercept, slope, and the rank at the intercept.

    Of the constant, or of the logistic regression on the rank, for groups ``start`` to ``stop`` of
    examples: the line where it rises and its gain exceeds log(weight) / 2 (Schwarz 1978).
    """
    total = weight[start:stop].sum()
    center = (weight[start:stop] * ranks[start:stop]).sum() / total
    spread = math.sqrt((weight[start:stop] * (ranks[start:stop] - center) ** 2).sum() / total)
    smallest = min(0.5, 0.5 / total)
    mean = min(max(positive[start:stop].sum() / total, smallest), 1.0 - smallest)
    constant = math.log(mean / (1.0 - mean))
    flat = positive[start:stop].sum() * constant + total * math.log1p(-mean)
    if stop - start < 3 or not spread > 0.0:
        return flat, constant, 0.0, center
    intercept, slope, best = constant, 0.0, flat
    for _ in range(25):  # Newton steps, halved until the likelihood does not fall
        g0, g1, h00, h01, h11 = 0.0, -SLOPE_RIDGE * slope, 0.0, 0.0, SLOPE_RIDGE
        for i in range(start, stop):
            z = (ranks[i] - center) / spread
            p = 1.0 / (1.0 + math.exp(-(intercept + slope * z)))
            residual, variance = positive[i] - weight[i] * p, weight[i] * p * (1.0 - p)
            g0, g1 = g0 + residual, g1 + residual * z
            h00, h01, h11 = h00 + variance, h01 + variance * z, h11 + variance * z * z
        determinant = h00 * h11 - h01 * h01
        if not determinant > 0.0:
            break
        step0 = (h11 * g0 - h01 * g1) / determinant
        step1 = (h00 * g1 - h01 * g0) / determinant
        gain = -1.0
        for _ in range(20):
            likelihood = -0.5 * SLOPE_RIDGE * (slope + step1) ** 2
            for i in range(start, stop):
                logit = intercept + step0 + (slope + step1) * (ranks[i] - center) / spread
                softplus = max(logit, 0.0) + math.log1p(math.exp(-abs(logit)))
                likelihood += positive[i] * logit - weight[i] * softplus
            gain = likelihood - best
            if gain >= 0.0:
                break
            step0, step1 = 0.5 * step0, 0.5 * step1
        if not gain >= 0.0:
            break
        intercept, slope, best = intercept + step0, slope + step1, likelihood
        if gain < 1e-4:
            break
    penalty = 0.5 * math.log(max(total, 2.0))
    if slope > 0.0 and best - flat > penalty:
        return best - penalty, intercept, slope / spread, center
    return flat, constant, 0.0, center


@kernel
def best_split(ranks, weight, positive, start, stop, candidates):
    """Return the largest sum of penalised log likelihoods of two parts, and where they part."""
    best, split = -np.inf, -1
    for candidate in candidates:
        if start < candidate < stop:
            left = fit_line(ranks, weight, positive, start, candidate)[0]
            likelihood = left + fit_line(ranks, weight, positive, candidate, stop)[0]
            if likelihood > best:
                best, split = likelihood, candidate
    return best, split
