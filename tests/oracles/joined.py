"""The new object joins the bags: the four steps taken literally, in exact fractions."""

import math
from fractions import Fraction

import numpy as np

from oracles import formulas as oracle

STEP = 0x9E3779B97F4A7C15


def bag_counts(forest, n):
    """How often each tree drew each training example, a list of n counts a tree."""
    return [np.bincount(drawn, minlength=n).tolist() for drawn in forest.estimators_samples_]


def example_weights(counts, codes, k, weight=None, class_weight=None, subsample=False):
    """What every draw of an example weighs in each tree's leaves: exact fractions, (trees, n).

    ``subsample``: class weights balanced within each bag, which the bag of n draws has.
    """
    weights = []
    for bag in counts:
        row = [Fraction(1)] * len(codes)
        if weight is not None:
            row = [v * Fraction(float(w)) for v, w in zip(row, weight, strict=True)]
        if class_weight is not None:
            row = [v * Fraction(class_weight[c]) for v, c in zip(row, codes, strict=True)]
        if subsample:
            units = subsample_units(bag, codes, k)
            row = [v * units[c] for v, c in zip(row, codes, strict=True)]
        weights.append(row)
    return weights


def subsample_units(bag, codes, k):
    """Weight of one draw of each class under class_weight="balanced_subsample"."""
    drawn = [sum(b for b, c in zip(bag, codes, strict=True) if c == j) for j in range(k)]
    there = sum(d > 0 for d in drawn)
    return [Fraction(sum(bag), there * max(d, 1)) for d in drawn]


def tree_of_leaves(forest, X):
    """The number of each row's leaf in each tree, a list of rows' lists a tree."""
    return [leaves.tolist() for leaves in np.asarray(forest.apply(X)).T]


def answer(contents, votes, empty=None):
    """Distribution of a leaf's contents, or its vote: the first of equals.

    Leaves without contents stand in for ``empty``, or for one example of each class.
    """
    total = sum(contents)
    if total == 0:
        contents = [Fraction(1)] * len(contents) if empty is None else empty
        total = sum(contents)
    if votes == "soft":
        return [c / total for c in contents]
    winner = contents.index(max(contents))
    return [Fraction(int(j == winner)) for j in range(len(contents))]


def joined_scores(leaves, own, counts, weights, codes, k, w, label, units, votes, empty=None):
    """All scores when the new object is in each tree ``w[t]`` times with a label.

    Parameters
    ----------
    leaves, own : per tree the leaf of each training example, and of the object
    counts, weights : per tree and example, the draws and what each of them weighs
    w : draws of the object per tree
    units : per tree, what one draw of the object weighs under this label
    empty : per tree, what each leaf holds that holds nobody

    Returns
    -------
    list of n lists of k fractions (None for who is out of bag nowhere), and the object's list
    """
    n = len(codes)
    sums, seen = [[Fraction(0)] * k for _ in range(n + 1)], [0] * (n + 1)
    for t in range(len(leaves)):
        contents = {}
        for i in range(n):
            cell = contents.setdefault(leaves[t][i], [Fraction(0)] * k)
            cell[codes[i]] += counts[t][i] * weights[t][i]
        cell = contents.setdefault(own[t], [Fraction(0)] * k)
        cell[label] += w[t] * units[t]
        for i, leaf in enumerate([*leaves[t], own[t]]):
            if (counts[t][i] if i < n else w[t]) == 0:
                said = answer(contents[leaf], votes, empty and empty[t][leaf])
                sums[i] = [a + b for a, b in zip(sums[i], said, strict=True)]
                seen[i] += 1
    means = [
        [s / count for s in total] if count else None
        for total, count in zip(sums, seen, strict=True)
    ]
    return means[:n], means[n]


def venn_abers_values(scores, codes, k, own, label, weight=None):
    """The probability that each class gets when the object has this label: one against the rest."""
    kept = [i for i, s in enumerate(scores) if s is not None]
    weight = [1.0] * len(codes) if weight is None else weight
    values = []
    for j in range(k):
        fitted = oracle.isotonic_max_min(
            [float(scores[i][j]) for i in kept] + [float(own[j])],
            [int(codes[i] == j) for i in kept] + [int(label == j)],
            [float(weight[i]) for i in kept] + [1.0],
        )
        values.append(fitted[float(own[j])])
    return values


def venn_values(category, scores, codes, k, own, label, weight=None):
    """Share of each class in the object's category, the object with this label among them."""
    counts = [Fraction(0)] * k
    counts[label] += 1
    for i, score in enumerate(scores):
        if score is not None and category(score) == category(own):
            counts[codes[i]] += 1 if weight is None else Fraction(float(weight[i]))
    return [c / sum(counts) for c in counts]


def bounds_by_hand(found, y, k, method, weight=None):
    values = []
    for label, (scores, own) in enumerate(found):
        if method == "venn":
            values.append(
                venn_values(lambda s: oracle_label(s, k), scores, y, k, own, label, weight)
            )
        else:
            values.append(venn_abers_values(scores, y, k, own, label, weight))
    return np.array(values, float)


def oracle_label(score, k):
    """The predicted label: the first of the largest; of two classes the second above a half."""
    if k == 2:
        return int(score[1] > Fraction(1, 2))
    floats = [float(s) for s in score]
    return floats.index(max(floats))


# --- how often a bag holds the object --------------------------------------------------------


def mixed(h):
    """The finaliser of splitmix64."""
    h ^= h >> 30
    h = h * 0xBF58476D1CE4E5B9 % 2**64
    h ^= h >> 27
    h = h * 0x94D049BB133111EB % 2**64
    return h ^ (h >> 31)


def bag_by_hand(row_hash, seed, draw, n_trees, thresholds):
    """How often each tree's bag holds a row, and never at least once, in Python's integers."""
    h = mixed((mixed(row_hash ^ mixed((seed + STEP) % 2**64)) + draw) % 2**64)

    def counts(start):
        every = [mixed((start + (t + 1) * STEP) % 2**64) for t in range(n_trees)]
        return [sum(u >= c for c in thresholds) for u in every]

    w = counts(h)
    if 0 in w:
        return w
    p, fraction = thresholds[0] / 2**64, (mixed(h) >> 11) * 2.0**-53
    if p > 0:
        first = math.log1p(fraction * math.expm1(n_trees * math.log1p(-p))) / math.log1p(-p)
    else:
        first = fraction * n_trees
    first = min(int(first), n_trees - 1)
    return [*w[:first], 0, *counts(mixed(h))[first + 1 :]]
