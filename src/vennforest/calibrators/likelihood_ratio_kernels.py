"""Compiled loops of the likelihood-ratio interval for a monotone probability.

Examples at m distinct scores are counted in cumulative sums W (weight) and Y (weight of the
positive class), W[0] = Y[0] = 0. For a score x and a value theta (Banerjee & Wellner 2001)

    2 log lambda(theta) = 2 [max l(f) - max {l(f): f(x) = theta}],

l the Bernoulli log likelihood, f not decreasing. The constrained maximum is min(., theta) of the
isotonic regression of the examples below x, theta at x itself, and max(., theta) of the isotonic
regression of the examples above. By reversing the order and exchanging the labels the examples
above become examples below, so one kind of table, of the isotonic regressions of all
prefixes, serves for both.

The regression of the first l scores ends in some block; before it stand the blocks of a shorter
prefix (pool adjacent violators never looks ahead). So the regressions of all prefixes form a tree:
node l contains the last block and points to the prefix before it. Values fall on the way to the
root, node 0, the empty prefix.
"""

import math

import numpy as np

from vennforest._jit import kernel

FINE = 1e-12
"""Ends are found to this part of themselves; they err outwards."""


@kernel
def log_likelihood(positive, weight):
    """Return the largest Bernoulli log likelihood of so much positive weight in so much weight."""
    negative = weight - positive
    found = 0.0
    if positive > 0.0:
        found += positive * math.log(positive / weight)
    if negative > 0.0:
        found += negative * math.log(negative / weight)
    return found


@kernel
def grow(W, Y, value, parent, jump, best):
    """Fill the tree of the isotonic regressions of every prefix.

    Of node l: ``value`` of the last block (the root has -1), ``parent``, ``best`` (log likelihood
    of the whole regression), and ``jump``, an ancestor from which any other is found in
    logarithmically many steps (Myers 1983).
    """
    nodes = len(W)
    depth = np.zeros(nodes, np.int32)
    value[0], parent[0], jump[0], best[0] = -1.0, 0, 0, 0.0
    for last in range(1, nodes):
        before = last - 1
        mean = (Y[last] - Y[before]) / (W[last] - W[before])
        # Pool with earlier blocks as long as they are not below. Each pooling removes a block for
        # good, so all prefixes together take time linear in their number.
        while before > 0 and mean <= value[before]:
            before = parent[before]
            mean = (Y[last] - Y[before]) / (W[last] - W[before])
        value[last], parent[last] = min(max(mean, 0.0), 1.0), before
        best[last] = best[before] + log_likelihood(Y[last] - Y[before], W[last] - W[before])
        depth[last] = depth[before] + 1
        far = jump[before]
        if depth[before] - depth[far] == depth[far] - depth[jump[far]]:
            jump[last] = jump[far]
        else:
            jump[last] = before


@kernel
def first_not_above(node, theta, value, parent, jump):
    """Return the nearest node on the way to the root whose value is at most theta."""
    while value[node] > theta:
        node = jump[node] if value[jump[node]] > theta else parent[node]
    return node


@kernel
def ratio(theta, low, high, W, Y, below, above, largest):
    """Return 2 log lambda(theta) and its derivative for f(x) = theta.

    ``low`` scores are below x and ``high`` at most x; ``below`` and ``above`` are the trees
    (value, parent, jump, best) of prefixes and of suffixes, ``largest`` is max l(f).
    """
    last = len(W) - 1
    value, parent, jump, best = below
    left = first_not_above(low, theta, value, parent, jump)
    kept = best[left]
    # Suffixes are prefixes of reversed scores with labels exchanged: theta becomes 1 - theta.
    value, parent, jump, best = above
    right = first_not_above(last - high, 1.0 - theta, value, parent, jump)
    kept += best[right]
    # All blocks between the two have the value theta.
    weight = W[last - right] - W[left]
    positive = min(max(Y[last - right] - Y[left], 0.0), weight)
    negative = weight - positive
    pinned, slope = 0.0, 0.0
    if positive > 0.0:
        pinned += positive * math.log(theta) if theta > 0.0 else -np.inf
        slope += positive / theta if theta > 0.0 else np.inf
    if negative > 0.0:
        pinned += negative * math.log1p(-theta) if theta < 1.0 else -np.inf
        slope -= negative / (1.0 - theta) if theta < 1.0 else np.inf
    return 2.0 * (largest - kept - pinned), -2.0 * slope


@kernel
def upper_end(inside, low, high, W, Y, below, above, largest, quantile):
    """Return the largest theta with 2 log lambda(theta) <= quantile.

    ``inside`` is a theta for which it is. 2 log lambda is convex in theta, so Newton's steps from
    outside stay outside; each is accompanied by a bisection, which makes the first ones short.
    """
    outside = 1.0
    found, _ = ratio(outside, low, high, W, Y, below, above, largest)
    if found <= quantile:
        return outside
    while outside - inside > FINE * outside:
        middle = 0.5 * (inside + outside)
        if middle <= inside or middle >= outside:
            break
        found, slope = ratio(middle, low, high, W, Y, below, above, largest)
        if found <= quantile:
            inside = middle
            continue
        outside = middle
        for _ in range(8):
            if slope <= 0.0:
                break
            step = (found - quantile) / slope
            if outside - step <= inside or step <= 0.25 * FINE * outside:
                break
            outside -= step
            found, slope = ratio(outside, low, high, W, Y, below, above, largest)
        # The root is hardly below: try a point just there, so the bracket closes.
        close = outside - FINE * outside
        if close > inside:
            found, _ = ratio(close, low, high, W, Y, below, above, largest)
            if found <= quantile:
                inside = close
            else:
                outside = close
    return outside


@kernel
def intervals(places, fit, W, Y, below, above, largest, quantile, out):
    """Fill ``out`` (n,) with the upper end at each place.

    Place 2 i is the gap before score i, place 2 i + 1 the score itself; ``fit`` is the isotonic
    regression at every score, with 1 behind the last. ``quantile`` is one of each place.
    """
    for number in range(len(places)):
        low = places[number] // 2
        high = low + places[number] % 2
        # Any theta between the fits on both sides of a gap has a ratio of 0.
        inside = fit[low]
        out[number] = upper_end(inside, low, high, W, Y, below, above, largest, quantile[number])


@kernel
def ratios(places, theta, W, Y, below, above, largest, out):
    """Fill ``out`` (n,) with 2 log lambda(theta) at each place, numbered as for ``intervals``."""
    for number in range(len(places)):
        low = places[number] // 2
        high = low + places[number] % 2
        out[number], _ = ratio(theta[number], low, high, W, Y, below, above, largest)


@kernel
def drawn_ratios(W, positive, places, theta, out):
    """Fill ``out`` (draws, n) with ``ratios`` of other labels at the same scores.

    ``positive`` (draws, m) is the positive weight at each score in every draw.
    """
    nodes = len(W)
    Y, mirrored_W, mirrored_Y = np.zeros(nodes), np.empty(nodes), np.empty(nodes)
    below = (
        np.empty(nodes),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes),
    )
    above = (
        np.empty(nodes),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes),
    )
    for draw in range(len(positive)):
        for i in range(nodes - 1):
            Y[i + 1] = Y[i] + positive[draw, i]
        for i in range(nodes):
            mirrored_W[i] = W[-1] - W[nodes - 1 - i]
            mirrored_Y[i] = mirrored_W[i] - (Y[-1] - Y[nodes - 1 - i])
        grow(W, Y, below[0], below[1], below[2], below[3])
        grow(mirrored_W, mirrored_Y, above[0], above[1], above[2], above[3])
        ratios(places, theta, W, Y, below, above, below[3][-1], out[draw])
