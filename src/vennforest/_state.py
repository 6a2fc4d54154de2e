"""Objects of this library read from files: their attributes are checked when they are read.

A class that files may contain has ``_check_state``, which raises a ValueError for attributes that
no fit leaves, because compiled code does not check indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import _is_fitted


def is_own_type(value: Any) -> bool:
    """Tell whether something is a class of vennforest that files may contain."""
    return (
        isinstance(value, type)
        and value.__module__.startswith("vennforest.")
        and hasattr(value, "_check_state")
    )


def with_state(cls: type, state: Mapping[str, Any]) -> Any:
    """Return an object of a class with these attributes, without a call of its constructor."""
    instance: Any = object.__new__(cls)
    if hasattr(instance, "__setstate__"):
        instance.__setstate__(state)
    else:
        vars(instance).update(state)
    return instance


def check_state(value: Any) -> None:
    """Raise a ValueError for an object of vennforest with attributes that no fit leaves."""
    if not isinstance(value, BaseEstimator) or _is_fitted(value):
        value._check_state()
