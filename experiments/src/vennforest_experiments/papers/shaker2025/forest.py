"""Forests tuned by out-of-bag loss, and read at nodes above their leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from vennforest._validation import FloatArray, IntArray

DEPTHS: tuple[int | None, ...] = (None, 4, 8)
LEAVES = (1, 2, 5, 10)
"""What a forest is tuned over: depths of trees, and examples that a leaf holds at least."""

COUNTS = (1, 2, 5, 10, 20, 40, 80)
"""What curtailment chooses from: examples that the node that answers holds at least."""


class Cut(NamedTuple):
    """Which nodes of a tree may answer: the deepest one on an object's path that may, does.

    Cutting at a depth gives trees that are distributed as ones grown to that depth. Zadrozny &
    Elkan (2001) cut where a node holds too few examples (curtailment).
    """

    depth: int | None = None
    least: int = 0


class Scores(NamedTuple):
    """Scores (n, k) of training objects, out of bag, and (m, k) of new ones by all trees.

    A training object that is out of bag for no tree has NaN.
    """

    own: FloatArray
    new: FloatArray


def read(forest: RandomForestClassifier, X: Any, X_new: Any, cuts: Sequence[Cut]) -> list[Scores]:
    """Return the scores that a fitted forest gives under each cut.

    Parameters
    ----------
    forest : RandomForestClassifier
        Fitted to ``X``.
    X : array of shape (n, d)
        Training objects, in the order in which the forest has seen them.
    X_new : array of shape (m, d)
        New objects.
    cuts : sequence of Cut
        What to read.
    """
    rows = np.concatenate([X, X_new]).astype(np.float32)
    n, k = len(X), len(forest.classes_)
    own, new = np.zeros((len(cuts), n, k)), np.zeros((len(cuts), len(X_new), k))
    trees = np.zeros(n)
    for member, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        left_out = np.bincount(bag, minlength=n) == 0
        trees += left_out
        tree = member.tree_
        leaves, shares = tree.apply(rows), tree.value[:, 0]
        for answers, unseen, home in zip(own, new, homes(tree, cuts), strict=True):
            found = shares[home[leaves]]
            answers[left_out] += found[:n][left_out]
            unseen += found[n:]
    with np.errstate(invalid="ignore"):
        own /= trees[:, None]
    new /= len(forest.estimators_)
    return [Scores(*pair) for pair in zip(own, new, strict=True)]


def homes(tree: Any, cuts: Sequence[Cut]) -> list[IntArray]:
    """Return for each cut the node that answers for each node: itself or one above it."""
    parent = np.zeros(tree.node_count, np.intp)
    for children in (tree.children_left, tree.children_right):
        inner = np.flatnonzero(children >= 0)
        parent[children[inner]] = inner
    depth, above = np.zeros(tree.node_count, np.intp), np.arange(tree.node_count)
    while above.any():
        depth += above > 0
        above = parent[above]
    found = []
    for cut in cuts:
        may = tree.weighted_n_node_samples >= cut.least
        if cut.depth is not None:
            may &= depth <= cut.depth
        may[0] = True
        home = np.arange(tree.node_count)
        while not may[home].all():
            home = np.where(may[home], home, parent[home])
        found.append(home)
    return found


def brier(p: FloatArray, y: IntArray) -> float:
    """Return the mean squared distance of probabilities (n, k) from labels; NaN rows are left out.

    With no other row it is infinite.
    """
    right = np.eye(p.shape[1])[y]
    known = ~np.isnan(p[:, 0])
    if not known.any():
        return float("inf")
    return float(((p[known] - right[known]) ** 2).sum(axis=1).mean())


class Tuned(NamedTuple):
    """Scores of three forests, the first of which, fitted, can be grown on; what was chosen."""

    forest: RandomForestClassifier
    plain: Scores
    tuned: Scores
    curtailed: Scores
    depth: int | None
    leaf: int


def tune(X: FloatArray, y: IntArray, X_new: FloatArray, trees: int, seed: int) -> Tuned:
    """Grow a forest for each leaf size, and read it where the out-of-bag Brier score is least.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Training objects; missing numbers are NaN.
    y : ndarray of shape (n,)
        Labels 0 to k - 1, all of which occur.
    X_new : ndarray of shape (m, d)
        New objects.
    trees : int
        Number of trees of each forest.
    seed : int
        Seed of each forest.
    """
    found = []
    plain, curtailed, first = None, None, None
    for leaf in LEAVES:
        forest = RandomForestClassifier(trees, min_samples_leaf=leaf, random_state=seed).fit(X, y)
        cuts = [Cut(depth) for depth in DEPTHS]
        if leaf == 1:
            cuts += [Cut(least=least) for least in COUNTS]
        scores = read(forest, X, X_new, cuts)
        if leaf == 1:
            first, plain = forest, scores[0]
            curtailed = min(scores[len(DEPTHS) :], key=lambda one: brier(one.own, y))
        found += [(one, depth, leaf) for one, depth in zip(scores, DEPTHS, strict=False)]
    tuned, depth, leaf = min(found, key=lambda one: brier(one[0].own, y))
    assert first is not None and plain is not None and curtailed is not None
    return Tuned(first, plain, tuned, curtailed, depth, leaf)
