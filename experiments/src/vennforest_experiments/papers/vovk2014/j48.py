"""A decision tree that stops and is pruned as C4.5 does, in place of Weka's J48."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Self

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from vennforest._validation import FloatArray

LEAF = -1


class J48(DecisionTreeClassifier):
    """scikit-learn's tree grown by entropy, at least two examples per leaf, pruned by C4.5's rules.

    A split of a numeric column is kept if it saves more bits than encoding its threshold costs,
    ``log2(distinct values - 1)`` (Quinlan 1996). Then, from the leaves up, a subtree becomes a leaf
    if the upper confidence limit of the leaf's errors exceeds that of the subtree's by at most
    0.1 (Quinlan 1993, section 4.2).

    Parameters
    ----------
    confidence : float, default=0.25
        Confidence of the limits, in (0, .5]; the smaller, the more is pruned.
    random_state : int, RandomState or None, default=None
        Seed of the order of the columns, which decides between equally good splits.

    Notes
    -----
    C4.5's multiway splits of nominal columns, its gain ratio, its larger minimum number of examples
    on either side of a threshold, and subtree raising are not implemented.
    """

    def __init__(self, confidence: float = 0.25, *, random_state: Any = None) -> None:
        super().__init__(criterion="entropy", min_samples_leaf=2, random_state=random_state)
        self.confidence = confidence

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Self:
        """Grow the tree on X, shape (n, d), and labels y, shape (n,); prune it."""
        super().fit(X, y, sample_weight=sample_weight, check_input=check_input)
        tree = self.tree_
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
        worth = self._bits_saved() > self._bits_of_thresholds(np.asarray(X)[weight > 0])
        n = tree.weighted_n_node_samples
        errors = n * (1 - tree.value[:, 0].max(axis=1))
        limits = np.empty(tree.node_count)
        for node in reversed(range(tree.node_count)):  # children come after their parent
            left, right = tree.children_left[node], tree.children_right[node]
            limits[node] = upper_errors(float(n[node]), float(errors[node]), self.confidence)
            if left == LEAF:
                continue
            if worth[node] and limits[node] > limits[left] + limits[right] + 0.1:
                limits[node] = limits[left] + limits[right]
            else:
                tree.children_left[node] = tree.children_right[node] = LEAF
        return self

    def _bits_saved(self) -> FloatArray:
        """Return by how many bits each node's split reduces the entropy of its examples."""
        tree = self.tree_
        bits = tree.weighted_n_node_samples * tree.impurity
        saved: FloatArray = bits - bits[tree.children_left] - bits[tree.children_right]
        return saved

    def _bits_of_thresholds(self, X: FloatArray) -> FloatArray:
        """Return the cost of each node's threshold; infinite in leaves."""
        tree = self.tree_
        cost = np.full(tree.node_count, np.inf)
        members = tree.decision_path(np.asarray(X, dtype=np.float32)).tocsc()
        for node in np.flatnonzero(tree.children_left != LEAF):
            own = members.indices[members.indptr[node] : members.indptr[node + 1]]
            column = X[own, tree.feature[node]]
            distinct = len(np.unique(column[~np.isnan(column)]))
            cost[node] = np.log2(max(distinct - 1, 1))
        return cost


def upper_errors(n: float, errors: float, confidence: float) -> float:
    """Return the upper confidence limit of a leaf's errors on as many new examples.

    Exact for no errors, linear from there to one error, and from one error on by the normal
    approximation of the binomial distribution with a continuity correction.

    Parameters
    ----------
    n : float
        Examples in the leaf, above 0.
    errors : float
        Those of them whose label is not the leaf's, in [0, n].
    confidence : float
        Probability, at most .5, that the limit is exceeded.
    """
    none: float = n * (1 - confidence ** (1 / n))
    if errors < 1:
        return none if errors <= 0 else none + errors * (upper_errors(n, 1, confidence) - none)
    if errors + 0.5 >= n:
        return n
    z = NormalDist().inv_cdf(1 - confidence)
    share = (errors + 0.5) / n
    spread = z * np.sqrt(share / n - share**2 / n + (z / (2 * n)) ** 2)
    return float(n * (share + z**2 / (2 * n) + spread) / (1 + z**2 / n))
