"""What scikit-learn's compiled code takes on trust in a fitted estimator, checked."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import sparray, spmatrix
from sklearn.base import ClassifierMixin
from sklearn.ensemble import (
    BaggingClassifier,
    BaseEnsemble,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.ensemble._forest import ForestClassifier
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, NuSVC
from sklearn.tree import BaseDecisionTree, DecisionTreeClassifier
from sklearn.tree._tree import Tree

from vennforest._files import one_line
from vennforest._validation import check_array, check_labels, check_number, require
from vennforest.forest.kinds import check_features, kind_of
from vennforest.forest.packed import FORESTS

LEAF = -1
PLAIN = (str, bytes, int, float, type(None), dict, list, tuple, set, np.ndarray, np.generic)
STATES = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}
"""Bit generators that read their memory where a number of their state says."""


def check_tree(tree: Any) -> None:
    """Refuse a tree of scikit-learn whose nodes are no tree, or whose values are no numbers."""
    left, right, feature, n = tree.children_left, tree.children_right, tree.feature, tree.node_count
    require(n >= 1, "a tree must have a node")
    require(
        len(left) == len(right) == len(feature) == len(tree.value) == n,
        "arrays must be of one tree",
    )
    inner = left != LEAF
    _check_children(left, right, inner)
    require((left[~inner] == LEAF).all() and (right[~inner] == LEAF).all(), "leaves have no child")
    _check_features(feature[inner], tree.n_features)
    require(not np.isnan(tree.threshold[inner]).any(), "thresholds must be numbers")
    require(np.isfinite(tree.value).all(), "values must be finite")
    depth = int(tree.compute_node_depths().max()) - 1
    require(tree.max_depth == depth, f"max_depth must be {depth}")


def _check_children(left: NDArray[Any], right: NDArray[Any], inner: NDArray[np.bool_]) -> None:
    """Refuse children before their parent, which rules out circles, or with two parents or none."""
    places = np.flatnonzero(inner)
    below = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    require((below > np.tile(places, 2)).all(), "children must come after their parent")
    require(
        np.array_equal(np.sort(below), np.arange(1, len(left))),
        "every node but the first must be the child of one other",
    )


def _check_features(feature: NDArray[Any], n_features: Any) -> None:
    used = feature.astype(np.int64)
    require(((used >= 0) & (used < n_features)).all(), f"features must be in [0, {n_features})")


def check_decision_tree(model: Any) -> None:
    """Refuse a tree of other features or classes than its estimator says."""
    if not hasattr(model, "tree_"):
        return
    tree = model.tree_
    require(isinstance(tree, Tree), "tree_ must be a Tree")
    require(tree.n_features == model.n_features_in_, f"n_features must be {model.n_features_in_}")
    require(tree.n_outputs == 1, "there must be one output")
    check_number(model.n_outputs_, "n_outputs_", 1, 1, integer=True)
    columns = 1
    if isinstance(model, DecisionTreeClassifier):
        columns = len(model.classes_)
        check_number(model.n_classes_, "n_classes_", columns, columns, integer=True)
        value = tree.value
        # Shares of the leaf's weight; a forest fitted elsewhere may have rounded them otherwise.
        require(value.min() >= 0 and value.max() <= 1 + 1e-9, "shares must be in [0, 1]")
        total = value[tree.children_left == LEAF].sum(axis=2)
        require((np.abs(total - 1) < 1e-6).all(), "shares of a leaf must sum to 1")
    require(
        tree.value.shape == (tree.node_count, 1, columns), f"values must be of {columns} classes"
    )


def check_bagged(model: Any) -> None:
    """Refuse a bagged ensemble that its kind refuses, and a forest with trees that are none."""
    kind = kind_of(model)
    if kind is None or not hasattr(model, "estimators_"):
        return
    kind.check(model)
    model.get_params(deep=False)  # all of which it needs to be packed
    if type(model) in FORESTS:
        for tree in model.estimators_:
            check_tree(tree.tree_)  # a packed forest was made in one piece
            check_decision_tree(tree)


def _columns_of_stages(model: Any) -> int:
    """Return how many trees each stage of a boosted model has, once it says so itself."""
    check_labels(model.classes_)
    check_features(model)
    columns = 1 if len(model.classes_) == 2 else len(model.classes_)
    require(model.n_trees_per_iteration_ == columns, f"n_trees_per_iteration_ must be {columns}")
    return columns


def check_gradient_boosting(model: Any) -> None:
    """Refuse stages of other numbers of trees than there are columns to write to."""
    if not hasattr(model, "estimators_"):
        return
    columns, trees = _columns_of_stages(model), model.estimators_
    k = len(model.classes_)
    require(model.n_classes_ == k, f"n_classes_ must be {k}")
    require(
        isinstance(trees, np.ndarray) and trees.ndim == 2 and trees.shape[1] == columns,
        f"estimators_ must have {columns} trees in every stage",
    )
    require(len(trees), "estimators_ must have a stage")
    check_number(model.learning_rate, "learning_rate")
    for tree in trees.ravel():
        require(isinstance(tree, BaseDecisionTree), "estimators_ must be trees")
        require(tree.n_features_in_ == model.n_features_in_, "trees must be of the same features")
        require(tree.tree_.value.shape[1:] == (1, 1), "trees must have one value a leaf")
    row = np.zeros((1, model.n_features_in_), np.float32)
    first = model._raw_predict_init(row)
    require(
        type(first) is np.ndarray and first.shape == (1, columns) and first.dtype == np.float64,
        f"init_ must give {columns} numbers a row",
    )


def check_predictor(predictor: Any) -> None:
    """Refuse a tree of histogram boosting whose nodes are no tree."""
    nodes = predictor.nodes
    require(len(nodes), "a tree must have a node")
    inner = ~nodes["is_leaf"].astype(bool)
    _check_children(nodes["left"], nodes["right"], inner)
    category = nodes["is_categorical"].astype(bool) & inner
    require(not np.isnan(nodes["num_threshold"][inner & ~category]).any(), "thresholds are numbers")
    require(np.isfinite(nodes["value"]).all(), "values must be finite")
    sets = nodes["bitset_idx"][category].astype(np.int64)
    for bits in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
        require(bits.dtype == np.uint32 and bits.ndim == 2 and bits.shape[1] == 8, "8 words a set")
        require((sets < len(bits)).all(), f"sets must be in [0, {len(bits)})")


def check_histogram_boosting(model: Any) -> None:
    """Refuse trees of features, categories or classes that there are none of."""
    if not hasattr(model, "_predictors"):
        return
    columns = _columns_of_stages(model)
    check_array(np.asarray(model._baseline_prediction), "_baseline_prediction", (1, columns))
    bins = model._bin_mapper
    d = len(bins.is_categorical_)
    require(
        d == model.n_features_in_, f"is_categorical_ must be of {model.n_features_in_} features"
    )
    check_array(bins.is_categorical_, "is_categorical_", (d,), "bu", 0, 1)
    require(len(bins.bin_thresholds_) == d, f"bin_thresholds_ must be of {d} features")
    for at in np.flatnonzero(bins.is_categorical_):
        known = np.asarray(bins.bin_thresholds_[at])
        require(((known >= 0) & (known <= 255)).all(), "categories must be in [0, 255]")
    for stage in model._predictors:
        require(len(stage) == columns, f"_predictors must have {columns} trees in every stage")
        for predictor in stage:
            require(isinstance(predictor, TreePredictor), "_predictors must be trees")
            nodes = predictor.nodes
            inner = ~nodes["is_leaf"].astype(bool)
            _check_features(nodes["feature_idx"][inner], d)
            category = nodes["is_categorical"].astype(bool) & inner
            of = nodes["feature_idx"][category].astype(np.int64)
            require(bins.is_categorical_[of].astype(bool).all(), "categories of numbers are none")


def check_vectors(model: Any) -> None:
    """Refuse support vectors of other numbers than their coefficients."""
    if not hasattr(model, "support_vectors_"):
        return
    k, d = len(model.classes_), model.n_features_in_
    counts, vectors = model._n_support, model.support_vectors_
    check_array(counts, "_n_support", (k,), "i", 0)
    require(counts.dtype == np.int32, "_n_support must be of type int32")
    n = int(counts.sum(dtype=np.int64))
    width = model.shape_fit_[0] if model.kernel == "precomputed" else d
    require(vectors.shape == (n, width) or model.kernel == "precomputed", "vectors must be n by d")
    check_array(model.support_, "support_", (n,), "i", 0, max(int(model.shape_fit_[0]) - 1, 0))
    require(model.support_.dtype == np.int32, "support_ must be of type int32")
    require(model._dual_coef_.shape == (k - 1, n), "_dual_coef_ must be one less than the classes")
    pairs = k * (k - 1) // 2
    require(np.shape(model._intercept_) == (pairs,), f"_intercept_ must be of {pairs} pairs")
    for name in ("_probA", "_probB"):
        require(np.shape(getattr(model, name)) in ((0,), (pairs,)), f"{name} must be of pairs")
    check_number(model._gamma, "_gamma")
    check_number(model.degree, "degree", 0, 1000)


def check_neighbours(model: Any) -> None:
    """Refuse neighbours of classes that there are none of."""
    if not hasattr(model, "_fit_X"):
        return
    require(isinstance(model.classes_, np.ndarray), "there must be one output")
    n = model._fit_X.shape[0]
    require(model.n_samples_fit_ == n, f"n_samples_fit_ must be {n}")
    require(model._fit_X.shape[1] == model.n_features_in_, "_fit_X must be of the same features")
    check_array(model._y, "_y", (n,), "i", 0, len(model.classes_) - 1)
    check_number(model.n_neighbors, "n_neighbors", 1, n, integer=True)


def check_frozen(model: Any) -> None:
    """Refuse a type in the place of a fitted estimator."""
    require(not isinstance(model.estimator, type), "estimator must be fitted, and no type")


def check_vocabulary(model: Any) -> None:
    """Refuse pieces of text that are counted in columns that there are none of."""
    if hasattr(model, "vocabulary_"):
        places = sorted(model.vocabulary_.values())
        require(places == list(range(len(places))), "vocabulary_ must number its pieces")


def check_sparse(matrix: Any) -> None:
    """Refuse a sparse matrix whose indices point outside it."""
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
    elif matrix.format == "coo":
        for of, length in zip(matrix.coords, matrix.shape, strict=True):
            check_array(of, "coordinates", (len(matrix.data),), "i", 0, length - 1)


def check_random_state(state: np.random.RandomState) -> None:
    """Refuse a random state that reads its memory beyond its end."""
    _check_bits(state.get_state(legacy=False))


def check_generator(generator: np.random.Generator) -> None:
    """Refuse a generator that reads its memory beyond its end."""
    _check_bits(generator.bit_generator.state)


def _check_bits(state: Any) -> None:
    name, most = STATES.get(state["bit_generator"], ("", 0))
    if name:
        inside = state["state"] if name in state["state"] else state
        check_number(int(inside[name]), name, 0, most)


MANY_TREES = (BaseDecisionTree, ForestClassifier, BaggingClassifier)
"""What a whole model is asked about, and not each of its parts."""

MOST_FEATURES = 100_000
"""Features of the one row that a classifier is asked about."""


def check_answers(model: Any) -> None:
    """Refuse a classifier of scikit-learn that fails on a row of zeros.

    Arrays that do not fit together would else be found when it predicts, by an error of numpy's.
    A classifier made of others may want rows of another kind, and is left alone.
    """
    known = type(model).__module__.startswith("sklearn.") and not isinstance(model, MANY_TREES)
    fitted = hasattr(model, "classes_") and hasattr(model, "n_features_in_")
    if not known or not fitted:  # asked first: a forest has many trees, and parameters take long
        return
    if {"estimator", "estimators", "base_estimator"} & set(model.get_params(False)):
        return
    check_number(model.n_features_in_, "n_features_in_", 1, 2**31 - 1, integer=True)
    ways = [one for one in ("predict_proba", "decision_function") if hasattr(model, one)]
    if model.n_features_in_ > MOST_FEATURES or not ways:
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a row without the names of its columns
        try:
            found = getattr(model, ways[0])(np.zeros((1, model.n_features_in_)))
        except ValueError:  # no neighbours, say, or a row of another kind
            return
    whole = ways[0] == "decision_function" or np.shape(found) == (1, len(model.classes_))
    require(whole, "there must be a probability for each class")


Rule = tuple[Any, Callable[[Any], None]]

RULES: tuple[Rule, ...] = (
    (Tree, check_tree),
    (TreePredictor, check_predictor),
    (np.random.RandomState, check_random_state),
    (np.random.Generator, check_generator),
    ((spmatrix, sparray), check_sparse),
    (BaseDecisionTree, check_decision_tree),
    (BaseEnsemble, check_bagged),
    (GradientBoostingClassifier, check_gradient_boosting),
    (HistGradientBoostingClassifier, check_histogram_boosting),
    ((SVC, NuSVC), check_vectors),
    (KNeighborsClassifier, check_neighbours),
    (FrozenEstimator, check_frozen),
    (CountVectorizer, check_vocabulary),
    (ClassifierMixin, check_answers),
)
"""The types with rules."""


def check_part(thing: Any) -> None:
    """Refuse a part of a model that is none that ``fit`` could have left.

    Its own parts have been checked before.
    """
    if isinstance(thing, PLAIN):
        return
    rules = [rule for kind, rule in RULES if isinstance(thing, kind)]
    try:
        for rule in rules:
            rule(thing)
    except MemoryError:
        raise
    except Exception as error:  # a missing attribute, or one of another type
        raise ValueError(
            f"a {type(thing).__name__} in it is not a result of fit ({one_line(error)})"
        ) from error
