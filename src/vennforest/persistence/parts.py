"""Models with packed forests, as files have them, and the types that files may contain."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from vennforest._state import check_state, is_own_type, with_state
from vennforest.persistence.forests import PackedTrees, pack_forest

Memo = dict[int, tuple[Any, Any]]
"""The new object for each old one by its id, and the old one, so that no other gets its id."""


def to_stored(model: Any) -> Any:
    """Return a copy of a model in which forests are replaced by `PackedTrees`."""
    return _replaced(model, _stored_part, {})


def from_stored(model: Any) -> Any:
    """Return the model from the result of `to_stored`.

    Raises
    ------
    ValueError
        If the state of an object could not be the result of a fit, by its ``_check_state``.
    """
    memo: Memo = {}
    restored = _replaced(model, _restored_part, memo)
    for part, _ in memo.values():
        if is_own_type(type(part)):
            check_state(part)
    return restored


def _stored_part(value: Any) -> Any:
    if isinstance(value, np.memmap):  # joblib gives its workers large arrays as files
        return np.asarray(value)
    return pack_forest(value) or value


def _restored_part(value: Any) -> Any:
    return value.forest() if type(value) is PackedTrees else value


def _replaced(value: Any, replace: Callable[[Any], Any], memo: Memo) -> Any:
    """Return a structure with ``replace(part)`` in the place of its parts.

    Objects with such parts are copied, others shared; an object that occurs twice is one object in
    the result too.
    """
    if isinstance(value, str | int | float | None):
        return value
    if id(value) not in memo:
        part = replace(value)
        memo[id(value)] = (
            (part if part is not value else _rebuilt(value, replace, memo)),
            value,
        )
    return memo[id(value)][0]


def _rebuilt(value: Any, replace: Callable[[Any], Any], memo: Memo) -> Any:
    if type(value) is dict:
        parts = {key: _replaced(part, replace, memo) for key, part in value.items()}
        return parts if any(parts[key] is not value[key] for key in parts) else value
    if type(value) in (list, tuple):
        items = [_replaced(part, replace, memo) for part in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    if isinstance(value, BaseEstimator) or is_own_type(type(value)):
        state = value.__getstate__()
        new_state = _replaced(state, replace, memo)
        if new_state is not state:
            return with_state(type(value), new_state)
    return value


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
"""Types of other packages beside those that skops trusts."""

TRUSTED_SKRUB = frozenset({
    "All", "And", "ApplyToCols", "ApplyToEachCol", "CheckInputDataFrame", "CleanCategories",
    "CleanNullStrings", "Cols", "DatetimeEncoder", "DropUninformative", "DurationToFloat", "Filter",
    "PassThrough", "ShortReprDict", "StringEncoder", "Sub", "TableVectorizer", "ToDatetime",
    "ToFloat", "ToFloat32", "ToStr", "_cardinality_below", "_created_by_predicate", "is_any_date",
    "is_categorical", "is_numeric",
})  # fmt: skip
"""What a fitted TableVectorizer of skrub consists of; its modules move between versions."""


def is_trusted(name: str) -> bool:
    """Return whether a model file may contain a type that skops does not trust by default."""
    module, _, cls = name.rpartition(".")
    if module.startswith("vennforest."):
        try:
            return is_own_type(getattr(import_module(module), cls, None))
        except ImportError:
            return False
    is_splitter = module == "sklearn.model_selection._split"
    return name in TRUSTED or is_splitter or (module.startswith("skrub.") and cls in TRUSTED_SKRUB)
