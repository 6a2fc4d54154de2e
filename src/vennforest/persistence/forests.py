"""Forests as a few arrays instead of two files and twenty attributes for each tree.

The trees of a fitted forest differ in their nodes, class distributions and seeds. These are stored
one tree after another, and everything else once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.tree._tree import NODE_DTYPE, Tree

from vennforest._validation import check_array, check_labels, check_number, require
from vennforest.forest import FORESTS

TREES = (DecisionTreeClassifier, ExtraTreeClassifier)
TREE_ATTRIBUTES = ("tree_", "random_state")
"""Attributes in which the trees of a forest differ."""

FIELD_TYPES = {
    name: np.dtype(np.int32) if NODE_DTYPE[name].kind == "i" else NODE_DTYPE[name]
    for name in NODE_DTYPE.names
}
"""Types of the fields of nodes in a file."""

MAX_NODES = 1 << 30
LEAF = -1


def pack_forest(forest: Any) -> dict[str, Any] | None:
    """Return a fitted forest of scikit-learn as arrays.

    Returns
    -------
    dict or None
        ``forest`` without its trees, ``tree``: the first tree without its nodes, ``nodes``: an
        array (n,) for each field of scikit-learn's nodes, ``values`` (n, k), and for each tree
        ``counts`` (its number of nodes), ``depths`` and ``seeds``. None for any other object, and
        for a forest whose trees differ in more than that.
    """
    trees = getattr(forest, "estimators_", None)
    if type(forest) not in FORESTS or not isinstance(trees, list) or not trees:
        return None
    first = trees[0]
    if not all(_differ_in_nodes_only(tree, first) for tree in trees):
        return None
    if len(first.classes_) < 2 or first.n_outputs_ != 1:
        return None
    states = [tree.tree_.__getstate__() for tree in trees]
    return {
        "forest": copy_without(forest, "estimators_"),
        "tree": copy_without(first, *TREE_ATTRIBUTES),
        "nodes": {
            name: np.concatenate([state["nodes"][name] for state in states]).astype(dtype)
            for name, dtype in FIELD_TYPES.items()
        },
        "values": np.concatenate([state["values"][:, 0] for state in states]),
        "counts": np.array([state["node_count"] for state in states], dtype=np.int64),
        "depths": np.array([state["max_depth"] for state in states], dtype=np.int64),
        "seeds": np.array([tree.random_state for tree in trees], dtype=np.int64),
    }


def unpack_forest(
    forest: Any,
    tree: Any,
    nodes: dict[str, NDArray[Any]],
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    depths: NDArray[np.int64],
    seeds: NDArray[np.int64],
) -> Any:
    """Return the forest that `pack_forest` took apart, after a check of its arrays."""
    require(type(forest) in FORESTS and type(tree) in TREES, "forest must be a forest of trees")
    check_labels(tree.classes_)
    n_features, k = tree.n_features_in_, len(tree.classes_)
    check_number(n_features, "n_features_in_", 1, 2**31 - 1, integer=True)
    require(forest.n_features_in_ == n_features, "trees must have the features of the forest")
    require(len(forest.classes_) == k, "trees must have the classes of the forest")
    check_array(counts, "counts", (None,), "i", 1, MAX_NODES)
    n_trees, total = len(counts), int(counts.sum())
    require(n_trees > 0 and total < MAX_NODES, f"nodes must be fewer than {MAX_NODES}")
    check_array(depths, "depths", (n_trees,), "i", 0, total)
    check_array(seeds, "seeds", (n_trees,), "i", 0, 2**32 - 1)
    check_array(values, "values", (total, k), low=0, high=1 + 1e-9)
    _check_nodes(nodes, counts, n_features)
    records, values = np.zeros(total, NODE_DTYPE), np.ascontiguousarray(values)
    for name in FIELD_TYPES:
        records[name] = nodes[name]
    n_classes = np.array([k], dtype=np.intp)
    trees = []
    start = 0
    for count, depth, seed in zip(counts.tolist(), depths.tolist(), seeds.tolist(), strict=True):
        rows = slice(start, start + count)
        start += count
        structure = Tree(int(n_features), n_classes, 1)
        structure.__setstate__(
            {
                "max_depth": depth,
                "node_count": count,
                "nodes": records[rows],
                "values": values[rows, None],
            }
        )
        member = copy_without(tree)
        member.random_state, member.tree_ = seed, structure
        trees.append(member)
    forest.estimators_ = trees
    return forest


def _check_nodes(
    nodes: dict[str, NDArray[Any]], counts: NDArray[np.int64], n_features: int
) -> None:
    """Refuse nodes that are no trees: kernels follow their indices without looking."""
    total = int(counts.sum())
    for name, dtype in FIELD_TYPES.items():
        column = nodes[name]
        sound = type(column) is np.ndarray and column.shape == (total,) and column.dtype == dtype
        require(sound, f"{name} must have {total} elements of type {dtype}")
    require(not np.isnan(nodes["threshold"]).any(), "thresholds must be numbers")
    left, right, feature = nodes["left_child"], nodes["right_child"], nodes["feature"]
    first = np.cumsum(counts) - counts
    index = np.arange(total, dtype=np.int32) - np.repeat(first.astype(np.int32), counts)
    size = np.repeat(counts.astype(np.int32), counts)
    is_leaf = left == LEAF
    after_parent = (left > index) & (left < size) & (right > index) & (right < size)
    require((after_parent | is_leaf).all(), "children must come after their parent, in its tree")
    require((right[is_leaf] == LEAF).all(), "leaves have no child")
    known = (feature >= 0) & (feature < n_features)
    require((known | is_leaf).all(), f"features must be in [0, {n_features})")


def copy_without(thing: Any, *names: str) -> Any:
    """Return a shallow copy of an object without some of its attributes."""
    copy = object.__new__(type(thing))
    copy.__dict__.update({key: value for key, value in vars(thing).items() if key not in names})
    return copy


def _differ_in_nodes_only(tree: Any, first: Any) -> bool:
    attributes, others = vars(tree), vars(first)
    return (
        type(tree) is type(first)
        and type(tree) in TREES
        and type(tree.random_state) is int
        and 0 <= tree.random_state < 2**32
        and type(attributes.get("tree_")) is Tree
        and list(attributes) == list(others)
        and all(
            _equal(attributes[name], others[name])
            for name in attributes
            if name not in TREE_ATTRIBUTES
        )
    )


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, np.ndarray):
        return (
            type(other) is np.ndarray
            and value.dtype == other.dtype
            and np.array_equal(value, other)
        )
    return type(value) is type(other) and bool(value == other)
