"""Forests as a few arrays instead of two files for each tree, and checks of boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.tree._tree import NODE_DTYPE, Tree

from vennforest._validation import check_array, check_labels, check_number, require
from vennforest.forest import FORESTS, MixedForestClassifier

PACKED_FORESTS = (*FORESTS, MixedForestClassifier)
TREE_TYPES = (DecisionTreeClassifier, ExtraTreeClassifier)
TREE_ATTRIBUTES = ("tree_", "random_state")
"""Attributes in which all trees of a forest differ."""

MAX_STORED_NODES = 1 << 30
NO_CHILD, NO_FEATURE = -1, -2


@dataclass(frozen=True, eq=False)
class PackedTrees:
    """A fitted forest of scikit-learn as arrays, one tree after another.

    Parameters that trees share are stored once.

    Attributes
    ----------
    bare_forest : classifier
        The forest without its trees.
    bare_trees : list of tree
        Trees of each combination of parameters, without nodes and seeds.
    kinds : ndarray of shape (n_trees,), int64
        Index of each tree's parameters in ``bare_trees``.
    nodes : dict of ndarray of shape (n_nodes,)
        The fields of scikit-learn's nodes.
    values : ndarray of shape (n_nodes, k)
        Class distributions.
    counts, seeds : ndarray of shape (n_trees,), int64
        Number of nodes and seed of each tree.
    """

    bare_forest: Any
    bare_trees: list[Any]
    kinds: NDArray[np.int64]
    nodes: dict[str, NDArray[Any]]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    seeds: NDArray[np.int64]

    def _check_state(self) -> None:
        """Refuse other types, classes and features, then arrays whose numbers are out of place."""
        forest, trees = self.bare_forest, self.bare_trees
        require(type(forest) in PACKED_FORESTS, "bare_forest must be a forest")
        require(isinstance(trees, list) and trees, "bare_trees must be a list of trees")
        require(type(forest.estimator) in TREE_TYPES, "estimator must be a tree")
        forest._validate_params()
        check_labels(forest.classes_)
        n_features, k = forest.n_features_in_, len(forest.classes_)
        check_number(n_features, "n_features_in_", 1, 2**31 - 1, integer=True)
        require(forest.n_outputs_ == 1 and forest.n_classes_ == k, f"n_classes_ must be {k}")
        for tree in trees:
            require(type(tree) in TREE_TYPES, "bare_trees must be trees")
            _copy_with(tree, random_state=0)._validate_params()
            require(tree.n_features_in_ == n_features, "trees must have the forest's features")
            is_of_classes = tree.n_outputs_ == 1 and tree.n_classes_ == k
            require(is_of_classes, f"n_classes_ of trees must be {k}")
            # Trees of a forest are fitted to class indices.
            require(np.array_equal(tree.classes_, np.arange(k)), "trees must have its classes")
        check_array(self.counts, "counts", (None,), "i", 1, MAX_STORED_NODES)
        n_trees, n_nodes = len(self.counts), int(self.counts.sum())
        is_in_range = 0 < n_nodes < MAX_STORED_NODES
        require(is_in_range, f"nodes must be fewer than {MAX_STORED_NODES}")
        check_array(self.kinds, "kinds", (n_trees,), "i", 0, len(self.bare_trees) - 1)
        check_array(self.seeds, "seeds", (n_trees,), "i", 0, 2**32 - 1)
        check_array(self.values, "values", (n_nodes, k), low=0, high=1 + 1e-9)
        for name in NODE_DTYPE.names:
            column = self.nodes[name]
            is_valid = type(column) is np.ndarray and column.shape == (n_nodes,)
            dtype = NODE_DTYPE[name]
            require(is_valid and column.dtype == dtype, f"{name} must be {n_nodes} of {dtype}")
            is_free = name in ("threshold", "impurity")  # infinite where scikit-learn says so
            require(not np.isnan(column).any(), f"{name} must be numbers")
            require(is_free or np.isfinite(column).all(), f"{name} must be finite")
        self._check_links(n_nodes, n_features)

    def _check_links(self, n_nodes: int, n_features: int) -> None:
        """Refuse children and features out of place, which kernels follow without a check."""
        children = np.stack([self.nodes["left_child"], self.nodes["right_child"]])
        is_inner, has_right = children != NO_CHILD
        require((is_inner == has_right).all(), "nodes must have two children or none")
        roots = np.cumsum(self.counts) - self.counts
        root, size = np.repeat([roots, self.counts], self.counts, axis=1)[:, is_inner]
        links, feature = children[:, is_inner], self.nodes["feature"]
        _check_parents(np.flatnonzero(is_inner) - root, links, size, feature[is_inner], n_features)
        n_parents = np.bincount((links + root).ravel(), minlength=n_nodes)
        n_parents[roots] += 1  # which have none
        require((n_parents == 1).all(), "nodes must have one parent each")
        require((feature[~is_inner] == NO_FEATURE).all(), "leaves must have no feature")
        sums = self.values[~is_inner].sum(axis=1)
        require(np.abs(sums - 1).max() < 1e-6, "values must sum to 1 in leaves")

    def forest(self) -> Any:
        """Return the forest, after a check of the arrays."""
        self._check_state()
        n_features = int(self.bare_forest.n_features_in_)
        n_classes = np.array([len(self.bare_forest.classes_)], dtype=np.intp)
        values = np.ascontiguousarray(self.values)[:, None]
        nodes = np.zeros(len(values), NODE_DTYPE)
        for name, column in self.nodes.items():
            nodes[name] = column
        trees = []
        end = np.cumsum(self.counts)
        of_trees = np.column_stack([end - self.counts, end, self.seeds, self.kinds])
        for start, stop, seed, kind in of_trees.tolist():
            tree = _copy_with(self.bare_trees[kind], random_state=seed)
            tree.tree_ = Tree(n_features, n_classes, 1)
            state = {"max_depth": 0, "node_count": stop - start, "nodes": nodes[start:stop]}
            state["values"] = values[start:stop]  # both arrays are copied
            tree.tree_.__setstate__(state)
            depth = int(tree.tree_.compute_node_depths().max()) - 1
            tree.tree_.__setstate__(state | {"max_depth": depth})
            trees.append(tree)
        return _copy_with(self.bare_forest, estimators_=trees)


def pack_forest(forest: Any) -> PackedTrees | None:
    """Pack a fitted forest of scikit-learn into arrays.

    Returns None for other objects and for forests with one class or several outputs.
    """
    if type(forest) not in PACKED_FORESTS:
        return None
    trees = getattr(forest, "estimators_", None)
    if not isinstance(trees, list) or not trees:
        return None
    are_plain = all(
        type(tree) in TREE_TYPES
        and type(getattr(tree, "tree_", None)) is Tree
        and type(tree.random_state) is int
        and 0 <= tree.random_state < 2**32
        for tree in trees
    )
    if not are_plain or forest.n_outputs_ != 1 or len(forest.classes_) < 2:
        return None
    bare_trees = [_copy_with(tree, *TREE_ATTRIBUTES) for tree in trees]
    texts = [repr((type(tree), vars(tree))) for tree in bare_trees]
    _, first, kinds = np.unique(texts, return_index=True, return_inverse=True)
    states = [tree.tree_.__getstate__() for tree in trees]
    nodes = np.concatenate([state["nodes"] for state in states])
    return PackedTrees(
        _copy_with(forest, "estimators_"),
        [bare_trees[i] for i in first],
        kinds.astype(np.int64),
        {name: nodes[name].copy() for name in NODE_DTYPE.names},
        np.concatenate([state["values"][:, 0] for state in states]),
        np.array([state["node_count"] for state in states], dtype=np.int64),
        np.array([tree.random_state for tree in trees], dtype=np.int64),
    )


def check_boosting(model: Any) -> None:
    """Refuse trees of histogram boosting whose links scikit-learn would follow out of bounds."""
    n_features = model.n_features_in_
    is_categorical = model._bin_mapper.is_categorical_
    check_array(is_categorical, "is_categorical_", (n_features,), "u", 0, 1)
    for tree in chain.from_iterable(model._predictors):
        nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
        is_shaped = nodes.ndim == 1 and len(nodes) > 0 and sets.shape[1:] == (8,)
        require(is_shaped, "trees must have nodes, and 256 bits for each set of categories")
        parents = np.flatnonzero(nodes["is_leaf"] == 0)
        inner = nodes[parents]
        links, of_set = (
            np.stack([inner["left"], inner["right"]]),
            inner[inner["is_categorical"] != 0],
        )
        _check_parents(parents, links, len(nodes), inner["feature_idx"], n_features)
        has_set = is_categorical[of_set["feature_idx"]] * (of_set["bitset_idx"] < len(sets))
        require(has_set.all(), "categories must be of categorical features")


def _check_parents(parents: Any, links: Any, size: Any, feature: Any, n_features: int) -> None:
    """Refuse links (2, m) of nodes to children, and features, out of place in trees of a size."""
    is_in_tree = (links > parents) & (links < size)
    require(is_in_tree.all(), "children must come after their parent, in its tree")
    is_column = (feature >= 0) & (feature < n_features)
    require(is_column.all(), f"features must be in [0, {n_features})")


def _copy_with(estimator: Any, *dropped: str, **attributes: Any) -> Any:
    """Return a shallow copy of an estimator without some attributes and with others."""
    copy = object.__new__(type(estimator))
    state = {name: value for name, value in vars(estimator).items() if name not in dropped}
    vars(copy).update(state | attributes)
    return copy
