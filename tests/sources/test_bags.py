"""What examples weigh in a forest's trees, beside what the trees themselves hold."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree
from sklearn.utils.class_weight import compute_sample_weight

from vennforest.forest.membership import Bag, BagsError, samples_of, verify_bag
from vennforest.joined.scorer import Bags
from vennforest.sources.base import TrainingData


@pytest.mark.parametrize("class_weight", [None, "balanced_subsample"])
@pytest.mark.parametrize("in_leaves", [False, True])
def test_examples_weigh_what_the_roots_hold(class_weight, in_leaves):
    rng = np.random.default_rng(7)
    n = 90
    X, codes = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    weight = rng.integers(1, 4, n) * 0.5
    forest = RandomForestClassifier(9, class_weight=class_weight, random_state=3)
    forest.fit(X, codes, sample_weight=None if in_leaves else weight)
    if in_leaves:  # as scikit-learn has it before 1.9, whichever is installed
        for tree, drawn in zip(forest.estimators_, list(samples_of(forest, n)), strict=True):
            own = np.bincount(drawn, minlength=n) * weight
            if class_weight is not None:
                own *= compute_sample_weight("balanced", codes, indices=drawn)
            tree.set_params(class_weight=None).fit(X, codes, sample_weight=own)
    bags = Bags.read(forest, TrainingData(X, codes, codes, np.arange(3), weight=weight))
    each = list(bags.weights())
    assert len(each) == 9
    for found, tree in zip(each, forest.estimators_, strict=True):
        held = tree.tree_.weighted_n_node_samples[0] * tree.tree_.value[0, 0]
        np.testing.assert_allclose(np.bincount(codes, found), held, rtol=1e-12)


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
