"""The types that model files may contain, and the check of the parts that are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import _split
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from vennforest._state import check_state, is_own_type
from vennforest._validation import check_labels, require
from vennforest.forest import FORESTS, MixedForestClassifier

NO_CHILD, NO_FEATURE = -1, -2
"""Children and feature of a leaf in scikit-learn's trees."""


def check_parts(model: Any) -> None:
    """Raise an error if a part of a model that was read cannot result from a fit.

    The parts of scikit-learn that are checked are forests and trees, since their nodes are followed
    without a check.
    """
    for part in _parts_of(model, {}):
        if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
            _check_tree(part)
        if isinstance(part, (*FORESTS, MixedForestClassifier)) and hasattr(part, "estimators_"):
            _check_forest(part)
        if is_own_type(type(part)):
            check_state(part)


def _parts_of(value: Any, visited: dict[int, Any]) -> Iterator[Any]:
    """Yield the parts of an object that are not ``visited``, and then the object."""
    if isinstance(value, str | int | float | None) or id(value) in visited:
        return
    visited[id(value)] = value
    parts: Iterable[Any] = ()
    if isinstance(value, list | tuple):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, np.ndarray) and value.dtype == object:
        parts = value.ravel().tolist()
    elif isinstance(value, BaseEstimator) or is_own_type(type(value)):
        parts = value.__getstate__().values()
    for part in parts:
        yield from _parts_of(part, visited)
    yield value


def _check_forest(forest: Any) -> None:
    """Refuse parameters that no forest has, and trees of other classes or features."""
    forest._validate_params()
    require(isinstance(forest.estimator, BaseDecisionTree), "estimator must be a tree")
    check_labels(forest.classes_)
    k, trees = len(forest.classes_), forest.estimators_
    require(forest.n_outputs_ == 1 and forest.n_classes_ == k, f"n_classes_ must be {k}")
    require(isinstance(trees, list) and trees, "estimators_ must be a list of trees")
    for tree in trees:
        require(isinstance(tree, BaseDecisionTree), "estimators_ must be trees")
        require(tree.n_features_in_ == forest.n_features_in_, "trees must have its features")
        # Trees of a forest are fitted to class indices.
        require(np.array_equal(tree.classes_, np.arange(k)), "trees must have its classes")


def _check_tree(estimator: Any) -> None:
    """Refuse parameters that no tree has, and nodes out of place."""
    estimator._validate_params()
    tree, n_features = estimator.tree_, estimator.n_features_in_
    require(type(tree) is Tree and tree.n_features == n_features, "tree_ must be of its features")
    require(0 < tree.node_count == tree.capacity, "node_count must be the number of nodes")
    require(estimator.n_outputs_ == tree.n_outputs, "n_outputs_ must be that of the tree")
    state = tree.__getstate__()
    nodes, values, n_nodes = state["nodes"], state["values"], tree.node_count
    children = np.stack([nodes["left_child"], nodes["right_child"]])
    is_inner = children[0] != NO_CHILD
    require((is_inner == (children[1] != NO_CHILD)).all(), "nodes must have two children or none")
    links, parents = children[:, is_inner], np.flatnonzero(is_inner)
    is_in_tree = (links > parents) & (links < n_nodes)
    require(is_in_tree.all(), "children must come after their parent, in its tree")
    is_tree = len(np.unique(links)) == links.size == n_nodes - 1
    require(is_tree, "nodes must have one parent each")
    level, depth = np.zeros(1, np.intp), -1
    while len(level):
        level, depth = children[:, level[is_inner[level]]].ravel(), depth + 1
    require(tree.max_depth == depth, f"max_depth must be {depth}")
    feature = nodes["feature"]
    is_feature = np.where(is_inner, (feature >= 0) & (feature < n_features), feature == NO_FEATURE)
    require(is_feature.all(), f"features must be in [0, {n_features})")
    require(not np.isnan(nodes["threshold"]).any(), "threshold must be numbers")
    require(np.isfinite(values).all(), "values must be finite")
    if is_classifier(estimator) and tree.n_outputs == 1:
        k = len(estimator.classes_)
        require(estimator.n_classes_ == values.shape[2] == k, f"n_classes_ must be {k}")
        leaves = values[~is_inner]
        is_share = (leaves >= 0).all() and np.abs(leaves.sum(axis=2) - 1).max() < 1e-6
        require(is_share, "values must sum to 1 in leaves")


TRUSTED = frozenset(
    {
        "collections.OrderedDict",
        "numpy.dtype",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        *(f"scipy.sparse._{f}.{f}_{kind}" for f in ("csr", "csc") for kind in ("array", "matrix")),
    }
)
"""Types of other packages that files may contain, besides those that skops trusts."""

TRUSTED_SKRUB = frozenset({
    "All", "And", "ApplyToCols", "ApplyToEachCol", "CheckInputDataFrame", "CleanCategories",
    "CleanNullStrings", "Cols", "DatetimeEncoder", "DropUninformative", "DurationToFloat", "Filter",
    "PassThrough", "ShortReprDict", "StringEncoder", "Sub", "TableVectorizer", "ToDatetime",
    "ToFloat", "ToFloat32", "ToStr", "_cardinality_below", "_created_by_predicate", "is_any_date",
    "is_categorical", "is_numeric",
})  # fmt: skip
"""Types in a fitted TableVectorizer of skrub; their modules differ between versions."""


SPLITTERS = (_split.BaseCrossValidator, _split.BaseShuffleSplit, _split._RepeatedSplits)


BOOSTERS = {
    "lightgbm": ("lightgbm.basic.Booster", "lightgbm.sklearn.LGBMClassifier"),
    "xgboost": (
        "xgboost.core.Booster", "xgboost.sklearn.XGBClassifier", "xgboost.sklearn.XGBRFClassifier",
    ),
    "catboost": ("catboost.core.CatBoostClassifier",),
}  # fmt: skip
"""Types in the files of models of other packages, which are trusted where a user names these."""


def names_of_types(trusted: Sequence[str | type]) -> list[str]:
    """Return the full names of types that a user trusts: types, names, or a package's name."""
    names = [t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in trusted]
    return [name for entry in names for name in BOOSTERS.get(entry, (entry,))]


def is_trusted(name: str) -> bool:
    """Return whether a model file may contain a type that skops does not trust by default."""
    module, _, cls = name.rpartition(".")
    if module.startswith("vennforest."):
        try:
            return is_own_type(getattr(import_module(module), cls, None))
        except ImportError:
            return False
    if module == "sklearn.model_selection._split":
        splitter = getattr(_split, cls, None)
        return isinstance(splitter, type) and issubclass(splitter, SPLITTERS)
    return name in TRUSTED or (module.startswith("skrub.") and cls in TRUSTED_SKRUB)
