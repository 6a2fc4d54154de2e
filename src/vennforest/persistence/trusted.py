"""The types that a model file may contain besides those skops knows to be harmless."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from inspect import isabstract

import numpy as np
import scipy.special
import sklearn.utils
from sklearn import model_selection
from sklearn.base import BaseEstimator

from vennforest import _program
from vennforest._messages import needed

# scikit-learn's own that skops leaves out. Trees are checked before and after they are made.
_SKLEARN = {
    "ensemble._hist_gradient_boosting.predictor": ["TreePredictor"],
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

_NOT_SEARCHED = frozenset(
    {"tests", "externals", "setup", "conftest", "experimental", "estimator_checks"}
)
"""Parts of scikit-learn in which it does not look for estimators."""

OTHERS = (
    *(f"sklearn.{module}.{name}" for module, names in _SKLEARN.items() for name in names),
    "collections.OrderedDict",
    "numpy.dtype",
    *(f"scipy.sparse._{f}.{f}_{kind}" for f in ("csr", "csc") for kind in ("array", "matrix")),
)


def trusted_among(names: Iterable[str]) -> list[str]:
    """Return those of the types that a file names which vennforest makes by itself.

    Names contain modules, such as ``"sklearn.svm._classes.SVC"``; of these only public ones of
    scikit-learn are imported.
    """
    return [
        name
        for name in names
        if name in OTHERS
        or any(known(name) for known in (_is_skrubs, _is_splitter, is_estimator, is_function))
    ]


def register_own() -> None:
    """Import every module of ours whose types stand in files, so they are registered."""
    for module in ("forest.mixed", "groups", "tables.columns", "tables.vectorize"):
        importlib.import_module(f"vennforest.{module}")


def import_skops() -> None:
    """Import skops; in a process that runs a command alone without its lists of what it trusts.

    When it is imported skops imports every module of scikit-learn, to list the estimators that it
    trusts, and looks for each function of scipy in every module there is, which takes longer than
    everything else that ``vennforest predict`` does to one row. `is_estimator` and `is_function`
    check one at a time whether it would be in the lists, so we do not need them. Whoever
    else used skops in this process would miss them: hence only where there is no one.
    """
    if not _program.OWN_PROCESS or "skops.io" in sys.modules:
        needed("skops.io", "model files")
    else:
        search, special = sklearn.utils.all_estimators, vars(scipy.special)
        sklearn.utils.all_estimators = lambda *_, **__: []
        special["__dir__"] = lambda: [n for n, f in special.items() if not isinstance(f, np.ufunc)]
        try:
            needed("skops.io", "model files")
        finally:
            sklearn.utils.all_estimators = search
            del special["__dir__"]


def is_estimator(name: str) -> bool:
    """Tell whether scikit-learn's ``all_estimators`` would list a type, without listing all.

    It lists what is public, no abstract base, and not behind ``sklearn.experimental``.
    """
    module, _, own = name.rpartition(".")
    public = module.partition("._")[0]
    parts = public.split(".")
    if parts[0] != "sklearn" or own.startswith("_") or not _NOT_SEARCHED.isdisjoint(parts):
        return False
    try:
        found = getattr(importlib.import_module(public), own, None)
    except (ImportError, ValueError):
        return False
    return (
        isinstance(found, type)
        and issubclass(found, BaseEstimator)
        and found is not BaseEstimator
        and not isabstract(found)
        and f"{found.__module__}.{found.__name__}" == name
    )


def is_function(name: str) -> bool:
    """Tell whether skops would list a compiled function of ``scipy.special``, without listing all.

    It lists what is public, by its own name and that of a private module which it is from.
    """
    module, _, own = name.rpartition(".")
    if not module.startswith("scipy.special.") or module not in sys.modules or own.startswith("_"):
        return False
    found = vars(scipy.special).get(own)
    known = isinstance(found, np.ufunc) and found.__name__ == own
    return known and vars(sys.modules[module]).get(own) is found


def _is_splitter(name: str) -> bool:
    module, _, own = name.rpartition(".")
    found = getattr(model_selection, own, None) if own in model_selection.__all__ else None
    return module == "sklearn.model_selection._split" and isinstance(found, type)


def _is_skrubs(name: str) -> bool:
    return name.startswith("skrub.") and name.rpartition(".")[2] in _SKRUB
