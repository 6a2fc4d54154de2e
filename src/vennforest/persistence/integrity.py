"""Checks of what was read from a file: numbers that compiled code takes for places in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree._tree import Tree

from vennforest._validation import InputError
from vennforest.forest import LeafIndex, Membership
from vennforest.sources.joined import JoinedScorer

LEAF = -1
PLAIN = (str, bytes, int, float, bool, type(None), type, np.generic, np.dtype)


def check_structure(model: Any, name: str) -> None:
    """Refuse a model whose trees or bit sets point outside themselves.

    Compiled code follows these places without looking, scikit-learn's as well as ours: a forged
    file could read memory that is not its own.

    Parameters
    ----------
    model : object
        As it was read.
    name : str
        What the error message calls the file.

    Raises
    ------
    InputError
        If a tree's child, feature or class, a bit set's example, or an example in an index of
        leaves does not exist.
    """
    for thing in _parts(model):
        if isinstance(thing, Tree):
            sound = _tree_is_sound(thing)
        elif isinstance(thing, TreePredictor):
            sound = _predictor_is_sound(thing)
        elif isinstance(thing, Membership):
            sound = _membership_is_sound(thing)
        elif isinstance(thing, JoinedScorer):
            sound = _joined_is_sound(thing)
        else:
            continue
        if not sound:
            raise InputError(
                f"{name} is damaged: a {type(thing).__name__} in it points outside itself"
            )


def _parts(model: Any) -> Iterator[Any]:
    """Yield every object that a model consists of, once."""
    seen: dict[int, Any] = {}
    todo = [model]
    while todo:
        thing = todo.pop()
        if isinstance(thing, PLAIN) or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, np.ndarray):
            if thing.dtype == object:
                todo.extend(thing.ravel().tolist())
            continue
        yield thing
        if isinstance(thing, dict):
            todo.extend(thing.values())
        elif isinstance(thing, list | tuple | set):
            todo.extend(thing)
        else:
            todo.extend(getattr(thing, "__dict__", {}).values())


def _tree_is_sound(tree: Any) -> bool:
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    n = tree.node_count
    if not n or not len(left) == len(right) == len(feature) == len(tree.value) == n:
        return False
    return _children_are_sound(left, right, left == LEAF, feature, tree.n_features)


def _children_are_sound(
    left: NDArray[Any],
    right: NDArray[Any],
    leaf: NDArray[np.bool_],
    feature: NDArray[Any],
    n_features: int | None,
) -> bool:
    """Tell whether children come after their parent, which rules out circles, and exist."""
    n, inner = len(left), ~leaf
    places = np.arange(n)[inner]
    for child in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        if not ((child > places) & (child < n)).all():
            return False
    used = feature[inner].astype(np.int64)
    return bool((used >= 0).all() and (n_features is None or (used < n_features).all()))


def _predictor_is_sound(predictor: Any) -> bool:
    nodes = predictor.nodes
    if not len(nodes):
        return False
    category = nodes["is_categorical"].astype(bool) & ~nodes["is_leaf"].astype(bool)
    sets = nodes["bitset_idx"][category].astype(np.int64)
    for bitsets in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
        if bitsets.ndim != 2 or bitsets.shape[1] != 8 or (sets >= len(bitsets)).any():
            return False
    return _children_are_sound(
        nodes["left"], nodes["right"], nodes["is_leaf"].astype(bool), nodes["feature_idx"], None
    )


def _membership_is_sound(membership: Membership) -> bool:
    bits = membership.bits
    return (
        isinstance(bits, np.ndarray)
        and bits.dtype == np.uint64
        and bits.ndim == 2
        and isinstance(membership.n, int)
        and 0 <= membership.n <= 64 * bits.shape[1]
    )


def _joined_is_sound(scorer: JoinedScorer) -> bool:
    forest = getattr(scorer.answers, "forest", None)
    index, thresholds, units = scorer.index, scorer.thresholds, scorer.units
    if forest is None or not isinstance(index, LeafIndex) or not scorer.n_calibration > 0:
        return False
    k, trees = len(forest.classes_), [tree.tree_ for tree in forest.estimators_]
    return (
        index.is_sound(sum(tree.node_count for tree in trees), scorer.n_calibration)
        and thresholds.dtype == np.uint64
        and thresholds.ndim == 2
        and len(thresholds) in (1, k)
        and thresholds.shape[1] > 0
        and units.dtype == np.float64
        and units.shape == (len(trees), k)
    )
