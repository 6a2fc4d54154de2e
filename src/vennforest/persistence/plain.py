"""Models as plain parts that skops writes: numbers, text, arrays, and estimators of scikit-learn.

An object that this library has fitted becomes a `Stored`: the short name of its type and its
fields. Reading calls the constructor of that type, which checks the fields.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from vennforest._files import one_line
from vennforest._messages import InputError
from vennforest._state import STORED, from_state, state_of, stored_name
from vennforest.persistence.forests import copy_without, pack_forest, unpack_forest

FOREST = "packed-forest"
TYPE_MODULES = (
    "classifier",
    "forest.mixed",
    "groups",
    "monitoring",
    "tables.columns",
    "tables.vectorize",
)
"""Modules whose import registers the types that files may contain."""

Memo = dict[int, tuple[Any, Any]]
"""The result for each object by its id, and the object, so that no other gets its id."""


class Stored:
    """The fields of an object of this library, under the short name of its type."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.name, self.fields = name, fields


def to_plain(value: Any, memo: Memo) -> Any:
    """Return a model with `Stored` in the place of objects of this library and of forests.

    The model itself is not changed. Parts without such objects are shared with it, and an object
    that stands in it twice stands in the result twice.
    """
    if isinstance(value, str | int | float | None):
        return value
    if id(value) not in memo:
        memo[id(value)] = _to_plain(value, memo), value
    return memo[id(value)][0]


def _to_plain(value: Any, memo: Memo) -> Any:
    name = stored_name(type(value))
    fields = dict(state_of(value)) if name is not None else pack_forest(value)
    if fields is not None:
        return Stored(name or FOREST, {key: to_plain(part, memo) for key, part in fields.items()})
    if isinstance(value, np.memmap):  # joblib gives its workers large arrays as files
        return np.asarray(value)
    if type(value) is dict:
        parts = {key: to_plain(part, memo) for key, part in value.items()}
        return parts if any(parts[key] is not value[key] for key in parts) else value
    if type(value) in (list, tuple):
        items = [to_plain(part, memo) for part in value]
        changed = any(new is not old for new, old in zip(items, value, strict=True))
        return type(value)(items) if changed else value
    if isinstance(value, BaseEstimator):
        attributes = to_plain(vars(value), memo)
        if attributes is not vars(value):
            copy = copy_without(value, *vars(value))
            vars(copy).update(attributes)
            return copy
    return value


def from_plain(value: Any, memo: Memo) -> Any:
    """Return the model of which `to_plain` returned the parts; estimators are changed in place."""
    if isinstance(value, str | int | float | None):
        return value
    if id(value) not in memo:
        memo[id(value)] = _from_plain(value, memo), value
    return memo[id(value)][0]


def _from_plain(value: Any, memo: Memo) -> Any:
    if type(value) is Stored:
        return _restored(value.name, {key: from_plain(v, memo) for key, v in value.fields.items()})
    if type(value) is dict:
        return {key: from_plain(part, memo) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(from_plain(part, memo) for part in value)
    if isinstance(value, BaseEstimator):
        vars(value).update({key: from_plain(part, memo) for key, part in vars(value).items()})
    return value


def _restored(name: str, fields: dict[str, Any]) -> Any:
    if name != FOREST and name not in STORED:
        for module in TYPE_MODULES:
            import_module(f"vennforest.{module}")
    if name != FOREST and name not in STORED:
        raise InputError(f"vennforest has no type {name!r}")
    try:
        return unpack_forest(**fields) if name == FOREST else from_state(STORED[name], fields)
    except MemoryError:
        raise
    except Exception as error:  # a field that is missing, of another type or out of range
        raise InputError(f"a {name} in it is not a result of fit ({one_line(error)})") from error


# --- trusted types -----------------------------------------------------------------------------

TRUSTED = frozenset(
    {
        f"{Stored.__module__}.{Stored.__name__}",
        "vennforest.report.estimators.NumberedLabels",
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
"""Types beside those that skops trusts."""

TRUSTED_SKRUB = frozenset({
    "All", "And", "ApplyToCols", "ApplyToEachCol", "CheckInputDataFrame", "CleanCategories",
    "CleanNullStrings", "Cols", "DatetimeEncoder", "DropUninformative", "DurationToFloat", "Filter",
    "PassThrough", "ShortReprDict", "StringEncoder", "Sub", "TableVectorizer", "ToDatetime",
    "ToFloat", "ToFloat32", "ToStr", "_cardinality_below", "_created_by_predicate", "is_any_date",
    "is_categorical", "is_numeric",
})  # fmt: skip
"""What a fitted TableVectorizer of skrub consists of; its modules move between versions."""


def is_trusted(name: str) -> bool:
    """Tell whether a model file may contain a type, in addition to those that skops trusts."""
    is_splitter = name.startswith("sklearn.model_selection._split.")
    is_skrub = name.startswith("skrub.") and name.rpartition(".")[2] in TRUSTED_SKRUB
    return name in TRUSTED or is_splitter or is_skrub
