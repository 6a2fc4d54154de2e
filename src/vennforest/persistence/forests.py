"""Forests in model files: all trees in a few arrays, not one description and two files a tree.

skops describes each of 300 trees with its twenty attributes, which takes it longer to read than
scikit-learn takes to be imported. Here trees are what differs between them: their nodes and values,
one after another, and their seeds. They are made again, the same to the last bit, and then checked
as trees of scikit-learn are (``vennforest.persistence.estimators``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.tree._tree import Tree

from vennforest._validation import check_array, check_labels, check_number, require
from vennforest.forest.packed import FORESTS

TREES = (DecisionTreeClassifier, ExtraTreeClassifier)
OWN = ("tree_", "random_state")
"""Attributes in which the trees of a forest differ."""

MOST_NODES = 1 << 30
"""What a packed forest takes."""


def array_types() -> tuple[type, ...]:
    """Return the classes of forests, of all registered kinds, whose trees are held as arrays."""
    return FORESTS


class PackedTrees(NamedTuple):
    """A forest without its trees, a tree without its nodes, and what the trees differ in.

    Their nodes (n,), as scikit-learn has them, and class distributions (n, k), tree after tree, and
    of each tree the number of its nodes, its depth and its ``random_state``.
    """

    forest: Any
    tree: Any
    nodes: NDArray[Any]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    depths: NDArray[np.int64]
    seeds: NDArray[np.int64]


def pack_trees(forest: Any) -> PackedTrees | None:
    """Return a fitted forest taken apart, None for what is none, or none of scikit-learn's.

    None as well where trees differ in more than their nodes and seeds, as a user may have it.
    """
    if type(forest) not in array_types() or not isinstance(
        getattr(forest, "estimators_", None), list
    ):
        return None
    trees = forest.estimators_
    if not trees or any(type(tree) not in TREES for tree in trees):
        return None
    first = trees[0]
    if not all(_alike(tree, first) for tree in trees):
        return None
    if len(first.classes_) < 2 or first.n_outputs_ != 1:
        return None
    states = [tree.tree_.__getstate__() for tree in trees]
    return PackedTrees(
        _without(forest, "estimators_"),
        _without(first, *OWN),
        _in_a_row([state["nodes"] for state in states]),
        np.concatenate([state["values"][:, 0] for state in states]),
        np.array([state["node_count"] for state in states], dtype=np.int64),
        np.array([state["max_depth"] for state in states], dtype=np.int64),
        np.array([tree.random_state for tree in trees], dtype=np.int64),
    )


def unpack_trees(packed: PackedTrees) -> Any:
    """Return the forest with its trees."""
    forest, tree, nodes, values, counts, depths, seeds = packed
    require(
        type(forest) in array_types() and not hasattr(forest, "estimators_"),
        "forest must be a forest",
    )
    require(type(tree) in TREES and not hasattr(tree, "tree_"), "tree must be a tree")
    check_labels(tree.classes_)
    k = len(tree.classes_)
    check_number(tree.n_features_in_, "n_features_in_", 1, 2**31 - 1, integer=True)
    check_number(k, "the number of classes", 2, 2**20, integer=True)
    require(type(counts) is np.ndarray and len(counts), "there must be a tree")
    n_trees = len(counts)
    check_array(counts, "counts", (n_trees,), "i", 1, MOST_NODES)
    total = int(counts.sum())
    require(total < MOST_NODES, f"a forest must have less than {MOST_NODES} nodes")
    check_array(depths, "depths", (n_trees,), "i", 0, total)
    check_array(seeds, "seeds", (n_trees,), "i", 0, 2**32 - 1)
    require(type(nodes) is np.ndarray and nodes.shape == (total,), f"nodes must be {total}")
    require(nodes.dtype.names is not None, "nodes must be of scikit-learn's type")
    check_array(values, "values", (total, k))
    nodes, values = np.ascontiguousarray(nodes), np.ascontiguousarray(values)
    ends = np.cumsum(counts)
    n_classes = np.array([k], dtype=np.intp)
    members = []
    for stop, n, depth, seed in zip(
        ends.tolist(), counts.tolist(), depths.tolist(), seeds.tolist(), strict=True
    ):
        made = Tree(int(tree.n_features_in_), n_classes, 1)
        part = slice(stop - n, stop)
        made.__setstate__(
            {
                "max_depth": depth,
                "node_count": n,
                "nodes": nodes[part],
                "values": values[part, None],
            }
        )
        member = _without(tree)
        member.random_state, member.tree_ = seed, made
        members.append(member)
    forest.estimators_ = members
    return forest


def _in_a_row(records: list[NDArray[Any]]) -> NDArray[Any]:
    """Return records one after another, with zeros between their fields.

    What lies there in memory was never written to, and would differ from file to file.
    """
    ends = np.cumsum([len(part) for part in records])
    row = np.zeros(ends[-1], records[0].dtype)
    for stop, part in zip(ends.tolist(), records, strict=True):
        row[stop - len(part) : stop] = part
    return row


def _without(thing: Any, *names: str) -> Any:
    """Return a shallow copy that lacks some attributes."""
    copy = object.__new__(type(thing))
    copy.__dict__.update({key: value for key, value in vars(thing).items() if key not in names})
    return copy


def _alike(tree: Any, first: Any) -> bool:
    """Tell whether two trees differ in nodes and seeds alone."""
    one, other = vars(tree), vars(first)
    return (
        type(tree) is type(first)
        and type(one.get("random_state")) is int
        and 0 <= one["random_state"] < 2**32
        and type(one.get("tree_")) is Tree
        and list(one) == list(other)
        and all(_equal(one[name], other[name]) for name in one if name not in OWN)
    )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        same = type(other) is np.ndarray and one.dtype == other.dtype
        return same and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)
