"""Compiled loops over a stream, one example after the other."""

import numpy as np

from vennforest._jit import kernel
from vennforest.sources.hash_kernels import STEP, mix


@kernel
def draw(seed, at):
    """Return number ``at`` of the uniform numbers of a seed, in [0, 1) (SplitMix64)."""
    z = np.uint64(seed) + (np.uint64(at) + np.uint64(1)) * np.uint64(STEP)
    return np.float64(mix(z) >> np.uint64(11)) * 2.0**-53


@kernel
def log_mean(logs):
    """Return the logarithm of the mean of exponentials."""
    top = logs[0]
    for one in logs:
        top = max(top, one)
    if top == -np.inf:
        return top
    total = 0.0
    for one in logs:
        total += np.exp(one - top)
    return top + np.log(total / len(logs))


@kernel
def column_of(cell, hit, counts, uniform, of_labels, limits):
    """Return what an example is to the bets, by its smoothed p-value.

    ``counts`` (n_bins, 2) counts every example so far, this one among them, without and with the
    label. Of labels: the p-value of the label among the examples of the same bin, and the column is
    twice the bin, and one more where the p-value is at least the bin's limit. Of objects: the
    p-value of the bin among all bins, and the column is the number of limits up to it.
    """
    if of_labels:
        here = counts[cell, 0] + counts[cell, 1]
        first = counts[cell, 0] if hit else 0
        same = counts[cell, 1] if hit else counts[cell, 0]
        return 2 * cell + (1 if (first + uniform * same) / here >= limits[cell] else 0)
    below = 0
    total = 0
    for j in range(len(counts)):
        if j < cell:
            below += counts[j, 0]
        total += counts[j, 0]
    p = (below + uniform * counts[cell, 0]) / total
    column = 0
    while column < len(limits) and p >= limits[column]:
        column += 1
    return column


@kernel
def watch(
    cells,
    hits,
    n_before,
    seed,
    counts,
    of_labels,
    limits,
    factors,
    logs,
    jumps,
    wait,
    ville,
    weights,
    scales,
    sums,
    begins,
    out,
):
    """Advance the evidence of one channel by a block of examples.

    Parameters
    ----------
    cells : (n,) int64, bin of each example's score
    hits : (n,) bool, whether it has the label
    n_before : examples before this block
    counts : (n_bins, 2) int64, state: examples so far, the reference among them
    of_labels, limits : what p-values are of, and where they are cut, see ``column_of``
    factors : (n_bets, n_columns), what each bet multiplies its capital by in each column
    logs : (n_bets, n_columns), their logarithms
    jumps : (n_rates,) share of the capital that jumps to another bet at each step
    wait : the chance that betting begins at step t of 0, 1, ... is 1 / (t + wait)
    ville : whether it is a martingale; otherwise a Shiryaev–Roberts statistic
    weights : (n_rates, n_bets + 1), scales : (n_rates,), state; column 0 has not begun to bet
    sums : (n_bets,), begins : (n_bets,) int64, state: log-likelihood of each bet since it began
    out : (n,) logarithm of the evidence after each example
    """
    n_bets = len(factors)
    for t in range(len(cells)):
        at = n_before + t
        # 1. The example is counted, and its p-value among all so far decides what each bet pays.
        counts[cells[t], 1 if hits[t] else 0] += 1
        column = column_of(cells[t], hits[t], counts, draw(seed, at), of_labels, limits)
        for s in range(len(jumps)):
            # 2. What begins to bet now. A martingale: a part of what waits, all of it in the end.
            coming = 0.0
            if ville:
                coming = weights[s, 0] / (at + wait)
                weights[s, 0] -= coming
            # Shiryaev-Roberts, R_t = (R_(t-1) + 1) times what is won: one more unit at each step.
            else:
                top = max(scales[s], 0.0)
                kept, coming = np.exp(scales[s] - top), np.exp(-top)
                for k in range(1, n_bets + 1):
                    weights[s, k] *= kept
                scales[s] = top
            # 3. A share of what bets jumps to other bets, in the proportions of the prior.
            active = 0.0
            for k in range(1, n_bets + 1):
                active += weights[s, k]
            coming += active * jumps[s]
            # 4. Each bet's capital is multiplied by what it pays; weights sum to 1 again, and the
            # logarithm of the capital is in the scale.
            total = weights[s, 0]
            for k in range(1, n_bets + 1):
                stay = weights[s, k] * (1 - jumps[s]) + coming * (1 / n_bets)
                weights[s, k] = stay * factors[k - 1, column]
                total += weights[s, k]
            for k in range(n_bets + 1):
                weights[s, k] /= total
            scales[s] += np.log(total)
        # 5. Page's sums: since when each bet has won on the whole.
        for k in range(n_bets):
            if sums[k] <= 0:
                sums[k] = 0.0
                begins[k] = at
            sums[k] += logs[k, column]
        # 6. The capital is divided equally among the rates of jumping.
        out[t] = log_mean(scales)
