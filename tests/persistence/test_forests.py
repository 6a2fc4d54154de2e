"""Forests as packed arrays: the same trees, or refused."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.naive_bayes import GaussianNB

from vennforest import CalibratedClassifier, MixedForestClassifier
from vennforest.persistence.forests import pack_forest
from vennforest.persistence.parts import from_stored, to_stored

IRIS = load_iris(return_X_y=True)
ROWS = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)


@pytest.mark.parametrize(
    "kind", [RandomForestClassifier, ExtraTreesClassifier, MixedForestClassifier]
)
def test_packed_trees_are_the_same(kind):
    X, y = IRIS[0].copy(), IRIS[1]
    X[::5, 1] = np.nan
    model = kind(7, random_state=1).fit(X, y)
    again = pack_forest(model).forest()
    for tree, other in zip(model.estimators_, again.estimators_, strict=True):
        assert vars(tree).keys() == vars(other).keys() and tree.random_state == other.random_state
        state, other_state = tree.tree_.__getstate__(), other.tree_.__getstate__()
        for name in state["nodes"].dtype.names:
            np.testing.assert_array_equal(state["nodes"][name], other_state["nodes"][name])
        np.testing.assert_array_equal(state["values"], other_state["values"])
        assert state["max_depth"] == other_state["max_depth"]


@pytest.fixture(scope="module")
def packed():
    forest = RandomForestClassifier(3, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1] > 0)
    return pack_forest(forest)


def changed(packed, name, index, value):
    column = packed.nodes[name].copy()
    column[index] = value
    return replace(packed, nodes={**packed.nodes, name: column})


def test_features_of_leaves_are_refused(packed):
    leaves = packed.nodes["left_child"] == -1
    with pytest.raises(ValueError, match=r"leaves must have no feature"):
        changed(packed, "feature", leaves, 1_000_000).forest()


def test_features_beyond_the_row_are_refused(packed):
    with pytest.raises(ValueError, match=r"features must be in \[0, 3\)"):
        changed(packed, "feature", 0, 3).forest()


def test_depths_are_those_of_the_nodes(packed):
    trained = RandomForestClassifier(3, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1] > 0)
    expected = [tree.tree_.max_depth for tree in trained.estimators_]
    assert [tree.tree_.max_depth for tree in packed.forest().estimators_] == expected


def test_a_child_of_two_parents_is_refused(packed):
    right = packed.nodes["right_child"][0]
    with pytest.raises(ValueError, match="nodes must have one parent each"):
        changed(packed, "left_child", 0, right).forest()


@pytest.mark.parametrize(
    ("name", "value"), [("estimator", "a tree"), ("n_jobs", np.ones(2)), ("warm_start", {})]
)
def test_parameters_that_no_forest_has_are_refused(packed, name, value):
    forest = copy.copy(packed.bare_forest)
    setattr(forest, name, value)
    with pytest.raises(ValueError, match=name):
        replace(packed, bare_forest=forest).forest()


def test_leaves_without_probabilities_are_refused(packed):
    with pytest.raises(ValueError, match="values must sum to 1 in leaves"):
        replace(packed, values=np.zeros_like(packed.values)).forest()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left", 60_000, "children"),
        ("right", 0, "children"),
        ("feature_idx", 3, "features"),
        ("feature_idx", -1, "features"),
        ("is_categorical", 1, "categories"),
    ],
)
@pytest.mark.parametrize("is_blend", [False, True])
def test_links_of_boosting_are_checked(is_blend, field, value, message):
    y = (ROWS[:, 0] > 0) * 1
    boosting = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2)
    members = [("a", boosting), ("b", GaussianNB())] if is_blend else boosting
    model = CalibratedClassifier(members, random_state=0).fit(ROWS, y)
    stored = to_stored(model)
    from_stored(stored)
    fold = model._state.folds[0].model.members[0].folds[1] if is_blend else model._state.folds[1]
    fold.model._predictors[2][0].nodes[field][0] = value
    with pytest.raises(ValueError, match=message):
        from_stored(stored)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(4, random_state=0).fit(*load_breast_cancer(return_X_y=True))


def point(name, value):
    def change(nodes):
        nodes[name][0] = value
        return nodes

    return "nodes", change


@pytest.mark.parametrize(("name", "change"), [
    point("left_child", 10**6),
    point("right_child", 0),
    point("feature", 30),
    ("counts", lambda counts: counts + 1),
    ("bare_forest", lambda forest: RandomForestClassifier(2).fit(*load_iris(return_X_y=True))),
    ("values", lambda values: values[:, :1]),
    ("nodes", lambda nodes: {**nodes, "feature": nodes["feature"][:-1]}),
])  # fmt: skip
def test_arrays_that_are_no_forest_are_refused(forest, name, change):
    packed = pack_forest(forest)
    with pytest.raises(ValueError):
        replace(packed, **{name: change(getattr(packed, name))}).forest()


@pytest.mark.parametrize(
    "forge",
    [
        lambda tree: vars(tree).update(n_classes_=7),
        lambda tree: vars(tree).update(n_outputs_=2),
        lambda tree: vars(tree).pop("max_depth"),
        lambda tree: vars(tree).update(criterion="none"),
    ],
    ids=["n_classes_", "n_outputs_", "no max_depth", "criterion"],
)
def test_trees_that_could_not_predict_are_refused(forest, forge):
    packed = pack_forest(forest)
    forge(packed.bare_trees[0])
    with pytest.raises((ValueError, AttributeError)):
        packed.forest()
