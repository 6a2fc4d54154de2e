"""Forests whose leaves hold the class distribution of all training examples."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from vennforest._validation import FloatArray, IntArray
from vennforest.forest import Membership


class TrainingSetForest(RandomForestClassifier):
    """A random forest whose leaves hold the class distribution of all training examples in them.

    Boström (2008, section 3.1): "the entire set of training examples", including those out of bag
    for the tree. Leaves that are pure among the examples a tree was grown from then need not be
    pure, which is why forests of PETs differ from forests of classification trees.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees, then re-estimate the leaves' class distributions (without weights)."""
        super().fit(X, y, sample_weight)
        codes, k = np.searchsorted(self.classes_, y), len(self.classes_)
        for tree in self.estimators_:
            leaf = tree.apply(X)
            value = tree.tree_.value  # a view: writing to it changes the tree
            counts = np.bincount(leaf * k + codes, minlength=len(value) * k).reshape(-1, k)
            filled = counts.any(axis=1)  # leaves only; inner nodes keep their values
            value[filled, 0] = counts[filled] / counts[filled].sum(axis=1, keepdims=True)
        return self


def scores_of_others(
    forest: TrainingSetForest, X: FloatArray, y: IntArray, votes: Literal["hard", "soft"]
) -> tuple[FloatArray, IntArray]:
    """Return out-of-bag scores that leave each example out of its own leaves, and labels.

    Parameters
    ----------
    forest : TrainingSetForest
        Fitted to X and y.
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    votes : {"hard", "soft"}
        Majority votes of the leaves, or their class distributions.

    Returns
    -------
    scores : ndarray of shape (m,) or (m, k)
        Of the examples that are out of bag for some tree.
    labels : ndarray of shape (m,)
    """
    codes, k = np.searchsorted(forest.classes_, y), len(forest.classes_)
    total, count = np.zeros((len(y), k)), np.zeros(len(y))
    free = Membership.from_forest(forest, len(y)).dense()
    for tree, out_of_bag in zip(forest.estimators_, free, strict=True):
        leaf = tree.apply(X)
        counts = np.bincount(leaf * k + codes, minlength=tree.tree_.node_count * k).reshape(-1, k)
        rows = np.flatnonzero(out_of_bag)
        others = counts[leaf[rows]]
        # Never the last example of a leaf, which also has in-bag examples.
        others[np.arange(len(rows)), codes[rows]] -= 1
        if votes == "hard":
            total[rows, others.argmax(axis=1)] += 1
        else:
            total[rows] += others / others.sum(axis=1, keepdims=True)
        count[rows] += 1
    scored = np.flatnonzero(count)
    return as_scores(total[scored] / count[scored, None]), y[scored]


def as_scores(p: FloatArray) -> FloatArray:
    """Return probabilities (n, k) as scores: those of the second class if there are two."""
    return np.ascontiguousarray(p[:, 1]) if p.shape[1] == 2 else p
