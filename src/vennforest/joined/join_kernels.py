"""The new object joins the bags: arrays in, arrays out.

Answers of trees are whole numbers of a small unit, kept as float64: their sums and differences are
exact, in whatever order. Examples that have equal scores when everything is computed again have
them here too, whoever came last.
"""

import numpy as np

from vennforest._jit import kernel
from vennforest.sources.hash_kernels import STEP, mix


@kernel
def coarse(x):
    """Round to 40 significant bits, so sums of weights that should be equal are."""
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
    """Draw how often each tree's bag contains an object, from its hash: one tree at least never.

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
def own_score(leaves, bags, nodes, table, unit, score):
    """Step 3: write the score of an object, the mean answer of the trees whose bags lack it.

    leaves, bags : (n_trees,), the object's leaf in each tree, and how often its bag contains it;
    score : (c,)
    """
    n_free = 0.0
    score[:] = 0.0
    for t in range(len(bags)):
        if bags[t] == 0:
            n_free += 1.0
            row = nodes[leaves[t], 3]
            for j in range(len(score)):
                score[j] += table[row, j]
    for j in range(len(score)):
        score[j] /= n_free * unit


@kernel
def joined_answer(frequencies, total, y, weight, before, hard, unit, contents, change):
    """Step 4: write by how much a leaf's answer changes where an object of label y joins it.

    Parameters
    ----------
    frequencies, total : (k,), float
        Class frequencies of the leaf, and the weight of its contents.
    weight : float
        What the object weighs there.
    before : (c,)
        The leaf's answer without it, in units.
    contents, change : (k,), (c,)
        Scratch space; becomes the change.

    Returns
    -------
    bool
        Whether there is any.
    """
    for j in range(len(contents)):
        contents[j] = coarse(frequencies[j] * total)
    contents[y] += weight
    answer(contents, total + weight, hard, unit, change)
    differs = False
    for j in range(len(change)):
        change[j] -= before[j]
        differs |= change[j] != 0
    return differs


@kernel
def add_change(outside, change, sums, used, slots, rows, changed):
    """Step 5: add the change of a leaf's answer to the sums of examples that are out of bag in it.

    Parameters
    ----------
    outside : (n_outside,)
        Numbers of these examples.
    change : (c,)
    sums : (n, c)
        Sums of answers without the object.
    used : int
        Places of ``rows`` and ``changed`` that are taken.
    slots : (n,)
        The place of each example, -1: none yet.

    Returns
    -------
    int
        Places that are taken then; -1 where there are too few.
    """
    for e in outside:
        slot = slots[e]
        if slot < 0:
            if used == len(rows):
                return -1
            slot = used
            slots[e], rows[used] = used, e
            used += 1
            for j in range(len(change)):
                changed[slot, j] = sums[e, j]
        for j in range(len(change)):
            changed[slot, j] += change[j]
    return used


@kernel
def release(begin, end, rows, slots):
    """Give back the places of examples from ``begin`` to ``end``."""
    for s in range(begin, end):
        slots[rows[s]] = -1


@kernel
def join(objects, drawing, forest, index, known, setting, start, slots, scores, offsets, out):
    """Let new objects from number ``start`` on join the bags, with every label in turn.

    The steps are those of README.md beside this file.

    Parameters
    ----------
    objects : (leaves, hashes)
        Numbers of nodes, (m, n_trees) uint32; (m,) uint64.
    drawing : (seed, draw, thresholds, units)
        ``thresholds`` (1, n) or (k, n) uint64, see ``draw_bag``: for all labels or for each;
        ``units`` (n_trees, k): what one draw of an object weighs in a leaf, for each label.
    forest : (nodes, distributions, table)
        Packed; ``table`` (n_distinct, c): answers of the last c classes, in units: of one class
        for two, of all for more.
    index : (totals, begins, examples)
        Of ``LeafIndex``.
    known : (sums, counts)
        Of the calibration examples: sums of answers (n, c) in units, numbers of trees (n,).
    setting : (hard, unit, alone)
        ``alone``: the objects are only scored; what they change is not looked for.
    slots : (n,) int64, all -1, and left so
    scores : (m * k, c)
        Becomes the score of each object with each label.
    offsets : (m * k + 1,) int64
        Becomes where the changed examples of each object and label begin.
    out : (rows, changed), (capacity,) int32 and (capacity, c)
        Become their numbers and new scores.

    Returns
    -------
    int
        The first object for whose examples there was no space; m if there was for all.
    """
    leaves, hashes = objects
    seed, draw, thresholds, units = drawing
    nodes, distributions, table = forest
    totals, begins, examples = index
    sums, counts = known
    hard, unit, alone = setting
    rows, changed = out
    m, n_trees = leaves.shape
    k, c = distributions.shape[1], table.shape[1]
    bags = np.empty(n_trees, np.int64)
    contents, change = np.empty(k), np.empty(c)
    begin = mix(seed + np.uint64(STEP))
    used = np.int64(0)
    offsets[start * k] = 0
    for i in range(start, m):
        h = mix(mix(hashes[i] ^ begin) + np.uint64(draw))
        for y in range(k):
            item, bottom = i * k + y, used
            # Step 1. Labels with weights of their own are drawn with rates of their own.
            if y == 0 or len(thresholds) > 1:
                draw_bag(h, thresholds[min(y, len(thresholds) - 1)], bags)
            own_score(leaves[i], bags, nodes, table, unit, scores[item])
            for t in range(n_trees):
                node = leaves[i, t]
                weight = bags[t] * units[t, y]
                if alone or weight == 0 or begins[node] == begins[node + 1]:
                    continue
                row = nodes[node, 3]
                if joined_answer(
                    distributions[row],
                    totals[node],
                    y,
                    weight,
                    table[row],
                    hard,
                    unit,
                    contents,
                    change,
                ):
                    outside = examples[begins[node] : begins[node + 1]]
                    after = add_change(outside, change, sums, used, slots, rows, changed)
                    if after < 0:
                        # The places that this leaf took before they ran out are given back too.
                        release(bottom, len(rows), rows, slots)
                        return i
                    used = after
            # The end of step 5: from sums to scores.
            for s in range(bottom, used):
                e = rows[s]
                slots[e] = -1
                for j in range(c):
                    changed[s, j] /= counts[e] * unit
            offsets[item + 1] = used
    return m
