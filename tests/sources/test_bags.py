"""Bags that do not fill the leaves of their trees."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree

from vennforest.forest.bags import Bag, BagsError, verify_bag


def test_a_tree_with_a_leaf_that_nobody_is_in_is_refused():
    X, codes = np.arange(4, dtype=np.float32)[:, None], np.array([0, 0, 1, 1])
    tree = DecisionTreeClassifier().fit(X, codes)
    bag = Bag(tree, np.arange(4), None, tree, np.arange(2))
    verify_bag(bag, X, codes, None)
    state = tree.tree_.__getstate__()
    nodes, values = state["nodes"].copy(), state["values"].copy()
    nodes["threshold"][0] = 9.0  # all go left
    nodes["weighted_n_node_samples"][1:] = 4.0, 0.0
    values[1] = 0.5
    tree.tree_ = Tree(1, np.array([2], np.intp), 1)
    tree.tree_.__setstate__({**state, "nodes": nodes, "values": values})
    with pytest.raises(BagsError, match="whose leaves contain other examples"):
        verify_bag(bag, X, codes, None)
