"""Conversion of models to the form that is stored, and the types that files may contain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import _split

from vennforest._state import check_state, is_own_type, with_state
from vennforest.persistence.forests import PackedTrees, check_boosting, pack_forest

Memo = dict[int, tuple[Any, Any]]
"""New and old object by id of the old one, which is kept so that its id is not reused."""


def to_stored(model: Any) -> Any:
    """Return a copy of a model in which forests are replaced by `PackedTrees`."""

    def stored(part: Any) -> Any:
        if isinstance(part, np.memmap):  # joblib gives its workers large arrays as files
            return np.asarray(part)
        return pack_forest(part) or part

    return _replaced(model, stored, {})


def from_stored(model: Any) -> Any:
    """Return the model from the result of `to_stored`.

    Raises
    ------
    ValueError
        If ``_check_state`` of an object rejects its state, or trees of boosting have wrong links.
    """
    memo: Memo = {}

    def read(part: Any) -> Any:
        packed = part if type(part) is PackedTrees else pack_forest(part)
        return part if packed is None else packed.forest()

    restored = _replaced(model, read, memo)
    for part, _ in memo.values():
        if is_own_type(type(part)):
            check_state(part)
        if isinstance(part, HistGradientBoostingClassifier) and hasattr(part, "_predictors"):
            check_boosting(part)
    return restored


def _replaced(value: Any, replace: Callable[[Any], Any], memo: Memo) -> Any:
    """Return a structure in which each part is replaced by ``replace(part)``.

    Objects with replaced parts are copied, others are shared. An object that occurs twice remains a
    single object in the result.
    """
    if isinstance(value, str | int | float | None):
        return value
    if id(value) not in memo:
        new = replace(value)
        if new is not value:
            pass
        elif type(value) is dict:
            parts = {key: _replaced(part, replace, memo) for key, part in value.items()}
            new = parts if any(parts[key] is not value[key] for key in parts) else value
        elif type(value) in (list, tuple):
            items = [_replaced(part, replace, memo) for part in value]
            is_same = all(new is old for new, old in zip(items, value, strict=True))
            new = value if is_same else type(value)(items)
        elif isinstance(value, BaseEstimator) or is_own_type(type(value)):
            state = value.__getstate__()
            new_state = _replaced(state, replace, memo)
            new = value if new_state is state else with_state(type(value), new_state)
        memo[id(value)] = new, value
    return memo[id(value)][0]


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


def is_absent(name: str) -> bool:
    """Return whether a name is of a type of vennforest that this version does not have."""
    return name.startswith("vennforest.") and _own_class(name) is None


def _own_class(name: str) -> Any:
    """Return what a module of vennforest has by a full name, None where it has nothing."""
    module, _, cls = name.rpartition(".")
    with suppress(ImportError):
        return getattr(import_module(module), cls, None)
    return None


def is_trusted(name: str) -> bool:
    """Return whether a model file may contain a type that skops does not trust by default."""
    if name.startswith("vennforest."):
        return is_own_type(_own_class(name))
    module, _, cls = name.rpartition(".")
    if module == "sklearn.model_selection._split":
        splitter = getattr(_split, cls, None)
        return isinstance(splitter, type) and issubclass(splitter, SPLITTERS)
    return name in TRUSTED or (module.startswith("skrub.") and cls in TRUSTED_SKRUB)
