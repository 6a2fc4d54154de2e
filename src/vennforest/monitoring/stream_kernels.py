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


@kernel
def recalibrate(logs, sharpness, shift, out):
    """Normalise exp(sharpness * log p + shift) over the classes."""
    top = -np.inf
    for c in range(len(logs)):
        out[c] = sharpness * logs[c] + shift[c]
        top = max(top, out[c])
    total = 0.0
    for c in range(len(logs)):
        out[c] = np.exp(out[c] - top)
        total += out[c]
    for c in range(len(logs)):
        out[c] /= total


@kernel
def protect(logs, codes, n_before, sharpness, shifts, jumps, wait, state, weights, learn, out):
    """Mix experts' recalibrations of logarithms of probabilities, and learn whom to trust.

    Parameters
    ----------
    logs : (n, k) natural logarithms of the model's probabilities
    codes : (n,) class numbers; below zero: unknown, nothing is learnt
    n_before : examples learnt from before
    sharpness : (n_experts,), shifts : (n_experts, k), what each expert does
    jumps : (n_rates,) share of the weights that is spread again before each example
    wait : the chance that an expert is followed from step t on is 1 / (t + wait)
    state : (1 + n_rates,) weight on the model for ever, and till a change at each rate
    weights : (n_rates, n_experts)
    learn : whether labels change the weights; all weights sum to 1
    out : (n, k) the probabilities, each before its label is known
    """
    n_experts, k = shifts.shape
    own = np.empty(k)
    experts = np.empty((n_experts, k))
    at = n_before
    before = state.copy()
    mixed = weights.copy()
    for t in range(len(logs)):
        # 1. What the model and each expert say of this object.
        recalibrate(logs[t], 1.0, np.zeros(k), own)
        for e in range(n_experts):
            recalibrate(logs[t], sharpness[e], shifts[e], experts[e])
        for c in range(k):
            out[t, c] = 0.0
        # 2. Weights before its label is known. At each rate a part of those who still follow the
        # model begin to follow experts, and a share of these spreads over all experts.
        before[0] = state[0]
        still = state[0]
        for s in range(len(jumps)):
            coming = state[1 + s] / (at + wait)
            before[1 + s] = state[1 + s] - coming
            still += before[1 + s]
            total = 0.0
            for e in range(n_experts):
                total += weights[s, e]
            coming += total * jumps[s]
            # 3. The probabilities are the mean of all, by these weights.
            for e in range(n_experts):
                mixed[s, e] = weights[s, e] * (1 - jumps[s]) + coming / n_experts
                for c in range(k):
                    out[t, c] += mixed[s, e] * experts[e, c]
        for c in range(k):
            out[t, c] += still * own[c]
        if not learn or codes[t] < 0:
            continue
        # 4. Bayes' rule: weights times the probability that each gave to the label.
        y = codes[t]
        total = out[t, y]
        for s in range(len(before)):
            state[s] = before[s] * own[y] / total
        for s in range(len(jumps)):
            for e in range(n_experts):
                weights[s, e] = mixed[s, e] * experts[e, y] / total
        at += 1
