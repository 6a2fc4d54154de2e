"""Compiled loops over the examples of a stream."""

import numpy as np

from vennforest._jit import kernel
from vennforest.sources.row_hashes import STEP, mix

JUMP_RATES = np.array([0.0, 0.001])
"""Shares of the capital that move to other bets at each step."""

HALF_BET_AFTER = 1000.0
"""Number of steps after which half of the capital is bet; two thirds after twice as many."""


@kernel
def uniform(seed, position):
    """Return the uniform number in [0, 1) at a position of a seed's sequence (SplitMix64)."""
    z = np.uint64(seed) + (np.uint64(position) + np.uint64(1)) * np.uint64(STEP)
    return np.float64(mix(z) >> np.uint64(11)) * 2.0**-53


@kernel
def log_mean(logs):
    """Return the logarithm of the mean of the exponentials of ``logs`` (n,)."""
    top = logs[0]
    for value in logs:
        top = max(top, value)
    total = 0.0
    for value in logs:
        total += np.exp(value - top)
    return top + np.log(total / len(logs))


@kernel
def column_of(cell, hit, counts, u, of_labels, limits):
    """Return the column of ``factors`` that the bets on an example use.

    ``counts`` (n_bins, 2) are the examples so far, this one included, without and with the label;
    ``u`` is uniform. The p-value is that of the label within its bin, or of the bin.
    """
    if of_labels:
        n_bin = counts[cell, 0] + counts[cell, 1]
        lower = counts[cell, 0] if hit else 0
        equal = counts[cell, 1] if hit else counts[cell, 0]
        return 2 * cell + (1 if (lower + u * equal) / n_bin >= limits[cell] else 0)
    below = 0
    total = 0
    for j in range(len(counts)):
        if j < cell:
            below += counts[j, 0]
        total += counts[j, 0]
    p = (below + u * counts[cell, 0]) / total
    column = 0
    while column < len(limits) and p >= limits[column]:
        column += 1
    return column


@kernel
def advance(scores, codes, n_before, columns, targets, of_labels, n_bets, state, log_path):
    """Update the capital of m channels with a block of examples.

    Capital is a mixture over times to begin, bets and rates of jumping between bets: the simple
    jumper of Vovk et al. (2021), Retrain or not retrain. Betting begins at step t = 0, 1, ... with
    probability 1 / (t + HALF_BET_AFTER).

    Parameters
    ----------
    scores : (n, c), codes : (n,), scores and class indices of the examples
    n_before : number of examples before this block
    columns, targets, of_labels, n_bets : (m,), see `evidence.Channels`
    state : (m,), records of `evidence.STATE`, which are updated in place
    log_path : (m, n), output: logarithm of the capital after each example
    """
    for c in range(len(state)):
        channel = state[c]
        edges, limits, factors = channel.edges, channel.limits, channel.factors
        counts, weights, log_capital = channel.counts, channel.weights, channel.log_capital
        for t in range(len(scores)):
            step = n_before + t
            # 1. The example is counted, and its p-value among all so far decides what bets pay.
            cell = 0
            while cell < len(edges) and scores[t, columns[c]] >= edges[cell]:
                cell += 1
            hit = of_labels[c] and codes[t] == targets[c]
            counts[cell, 1 if hit else 0] += 1
            u = uniform(channel.seed, step)
            column = column_of(cell, hit, counts, u, of_labels[c], limits)
            for s in range(len(JUMP_RATES)):
                # 2. A part of the capital that waits begins to bet now.
                moved = weights[s, 0] / (step + HALF_BET_AFTER)
                weights[s, 0] -= moved
                # 3. A share of what bets jumps to other bets, to all of them equally.
                active = 0.0
                for k in range(1, n_bets[c] + 1):
                    active += weights[s, k]
                moved += active * JUMP_RATES[s]
                # 4. Each bet's capital is multiplied by what it pays; weights sum to 1 again, and
                # the logarithm of the capital grows by that of their sum.
                total = weights[s, 0]
                for k in range(1, n_bets[c] + 1):
                    capital = weights[s, k] * (1 - JUMP_RATES[s]) + moved * (1 / n_bets[c])
                    weights[s, k] = capital * factors[k - 1, column]
                    total += weights[s, k]
                for k in range(n_bets[c] + 1):
                    weights[s, k] /= total
                log_capital[s] += np.log(total)
            # 5. The capital is divided equally among the rates of jumping.
            log_path[c, t] = log_mean(log_capital)
