"""The new object joins the bags: arrays in, arrays out.

Answers of trees are whole numbers of a small unit, kept as float64: their sums and differences are
exact, in whatever order. Examples that have equal scores when everything is computed anew have them
here too, whoever came last.
"""

import numpy as np

from vennforest._jit import kernel
from vennforest.sources.kernels import STEP, mix


@kernel
def coarse(x):
    """Round to 40 significant bits, so that sums of weights that should be equal are."""
    wide = x * 8193.0
    return wide - (wide - x)


@kernel
def answer(contents, total, hard, unit, out):
    """Write what a leaf with contents (k,) and their total says of the last len(out) classes."""
    k, c = len(contents), len(out)
    winner = 0
    if hard:
        for j in range(1, k):
            if coarse(contents[j]) > coarse(contents[winner]):
                winner = j
    for j in range(c):
        if hard:
            out[j] = unit if winner == k - c + j else 0.0
        else:
            out[j] = np.rint(contents[k - c + j] / total * unit)


@kernel
def tabulate(distributions, hard, unit, table):
    """Write what each distribution (n, k) says into the table (n, 1) or (n, k)."""
    for i in range(len(distributions)):
        answer(distributions[i], 1.0, hard, unit, table[i])


@kernel
def sum_answers(nodes, table, begins, examples, sums, counts):
    """Add up each example's out-of-bag answers in ``sums`` (n, c), their number in ``counts``."""
    for node in range(len(nodes)):
        row = nodes[node, 3]
        for at in range(begins[node], begins[node + 1]):
            e = examples[at]
            counts[e] += 1.0
            for j in range(table.shape[1]):
                sums[e, j] += table[row, j]


@kernel
def draw_bag(h, thresholds, w):
    """Draw how often each tree's bag holds an object, from its hash: one tree at least never.

    ``thresholds`` (n,): 2**64 times the probability of 0, of at most 1, ... A bag without a zero is
    drawn again under the condition that there is one: first the tree of the first zero, which
    has a geometric distribution cut off after the last tree, then the others.
    """
    n_trees = len(w)
    zeros = 0
    for t in range(n_trees):
        u = mix(h + np.uint64(t + 1) * np.uint64(STEP))
        w[t] = count_reached(u, thresholds)
        zeros += w[t] == 0
    if zeros > 0:
        return
    fraction = np.float64(mix(h) >> np.uint64(11)) * 2.0**-53
    p = np.float64(thresholds[0]) * 2.0**-64
    if p > 0:
        rest = np.log1p(-p)
        first = np.log1p(fraction * np.expm1(n_trees * rest)) / rest
    else:
        first = fraction * n_trees
    chosen = min(np.int64(first), n_trees - 1)
    w[chosen] = 0
    for t in range(chosen + 1, n_trees):
        # Those before stay as they are: above zero.
        u = mix(mix(h) + np.uint64(t + 1) * np.uint64(STEP))
        w[t] = count_reached(u, thresholds)


@kernel
def count_reached(u, thresholds):
    """Return how many of the rising thresholds are not above u."""
    n = 0
    while n < len(thresholds) and u >= thresholds[n]:
        n += 1
    return n


@kernel
def join(
    leaves,
    hashes,
    seed,
    draw,
    thresholds,
    units,
    nodes,
    distributions,
    table,
    totals,
    begins,
    examples,
    sums,
    counts,
    hard,
    unit,
    alone,
    start,
    slots,
    scores,
    offsets,
    rows,
    changed,
):
    """Let new objects from number ``start`` on join the bags, with every label in turn.

    Parameters
    ----------
    leaves : (m, n_trees) uint32, numbers of nodes
    hashes : (m,) uint64
    thresholds : (1, n) or (k, n) uint64
        See ``draw_bag``: for all labels or for each.
    units : (n_trees, k)
        What one draw of the object weighs in a leaf, for each label.
    table, sums : (n_distinct, c), (n, c)
        Answers and sums of the last c classes, in units: of one class for two, of all for more.
    totals, begins, examples
        Of ``LeafIndex``.
    alone : bool
        The objects are only scored; what they change is not looked for.
    slots : (n,) int64, all -1, and left so
    scores : (m * k, c)
        Becomes the score of each object with each label.
    offsets : (m * k + 1,) int64
        Becomes where the changed examples of each object and label begin.
    rows, changed : (capacity,) int32, (capacity, c)
        Become their numbers and new scores.

    Returns
    -------
    int
        The first object for whose examples there was no room; m if there was for all.
    """
    m, n_trees = leaves.shape
    k, c = distributions.shape[1], table.shape[1]
    w = np.empty(n_trees, np.int64)
    contents, said = np.empty(k), np.empty(c)
    begin = mix(seed + np.uint64(STEP))
    used = np.int64(0)
    offsets[start * k] = 0
    for i in range(start, m):
        h = mix(mix(hashes[i] ^ begin) + np.uint64(draw))
        for y in range(k):
            item = i * k + y
            if y == 0 or len(thresholds) > 1:
                draw_bag(h, thresholds[min(y, len(thresholds) - 1)], w)
            bottom = used
            seen = 0.0
            for j in range(c):
                scores[item, j] = 0.0
            for t in range(n_trees):
                node = leaves[i, t]
                row = nodes[node, 3]
                if w[t] == 0:
                    seen += 1.0
                    for j in range(c):
                        scores[item, j] += table[row, j]
                    continue
                weight = w[t] * units[t, y]
                if alone or weight == 0 or begins[node] == begins[node + 1]:
                    continue
                for j in range(k):
                    contents[j] = coarse(distributions[row, j] * totals[node])
                contents[y] += weight
                answer(contents, totals[node] + weight, hard, unit, said)
                same = True
                for j in range(c):
                    said[j] -= table[row, j]
                    same &= said[j] == 0
                if same:
                    continue
                for at in range(begins[node], begins[node + 1]):
                    e = examples[at]
                    slot = slots[e]
                    if slot < 0:
                        if used == len(rows):
                            for s in range(bottom, used):
                                slots[rows[s]] = -1
                            return i
                        slot = used
                        slots[e], rows[used] = used, e
                        used += 1
                        for j in range(c):
                            changed[slot, j] = sums[e, j]
                    for j in range(c):
                        changed[slot, j] += said[j]
            for s in range(bottom, used):
                e = rows[s]
                slots[e] = -1
                for j in range(c):
                    changed[s, j] /= counts[e] * unit
            for j in range(c):
                scores[item, j] /= seen * unit
            offsets[item + 1] = used
    return m
