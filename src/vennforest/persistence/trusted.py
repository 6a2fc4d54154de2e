"""The types that a model file may hold besides those skops knows to be harmless."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable

ROOMS = (
    "calibrators",
    "classifier",
    "counts",
    "forest",
    "groups",
    "monitoring",
    "sources",
    "tables",
    "transductive",
)
"""Where our own types come from: every class there that has a method ``check_loaded``."""

# scikit-learn's own that skops leaves out. Trees are checked before and after they are made.
_SKLEARN = {
    "ensemble._hist_gradient_boosting.predictor": ["TreePredictor"],
    "model_selection._split": [
        "GroupKFold",
        "GroupShuffleSplit",
        "KFold",
        "LeaveOneGroupOut",
        "LeaveOneOut",
        "LeavePGroupsOut",
        "LeavePOut",
        "PredefinedSplit",
        "RepeatedKFold",
        "RepeatedStratifiedKFold",
        "ShuffleSplit",
        "StratifiedGroupKFold",
        "StratifiedKFold",
        "StratifiedShuffleSplit",
        "TimeSeriesSplit",
    ],
    "neural_network._stochastic_optimizers": ["AdamOptimizer", "SGDOptimizer"],
    "tree._tree": ["Tree"],
}

# What a fitted TableVectorizer with its default encoders consists of. They are known by name,
# since skrub moves them from one private module to another between its versions.
_SKRUB = frozenset(
    {
        "All",
        "And",
        "ApplyToCols",
        "ApplyToEachCol",
        "CheckInputDataFrame",
        "CleanCategories",
        "CleanNullStrings",
        "Cols",
        "DatetimeEncoder",
        "DropUninformative",
        "DurationToFloat",
        "Filter",
        "PassThrough",
        "ShortReprDict",
        "StringEncoder",
        "Sub",
        "TableVectorizer",
        "ToDatetime",
        "ToFloat",
        "ToFloat32",
        "ToStr",
        "_cardinality_below",
        "_created_by_predicate",
        "is_any_date",
        "is_categorical",
        "is_numeric",
    }
)

OTHERS = (
    *(f"sklearn.{module}.{name}" for module, names in _SKLEARN.items() for name in names),
    "collections.OrderedDict",
    "numpy.dtype",
    *(f"scipy.sparse._{f}.{f}_{kind}" for f in ("csr", "csc") for kind in ("array", "matrix")),
)


def trusted_among(names: Iterable[str]) -> list[str]:
    """Return those of the types that a file names which vennforest makes by itself.

    Parameters
    ----------
    names : iterable of str
        Types with their modules, such as ``"vennforest.calibrators.platt.PlattMap"``. Of these
        only modules of vennforest are imported.
    """
    return [name for name in names if name in OTHERS or _is_skrubs(name) or _is_own(name)]


def _is_skrubs(name: str) -> bool:
    return name.startswith("skrub.") and name.rpartition(".")[2] in _SKRUB


def _is_own(name: str) -> bool:
    module, _, own = name.rpartition(".")
    if not re.fullmatch(rf"vennforest\.({'|'.join(ROOMS)})(\.[a-z_0-9]+)*", module):
        return False
    try:
        found = getattr(importlib.import_module(module), own, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module and hasattr(found, "check_loaded")
