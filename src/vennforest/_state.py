"""Objects of this library that are read from files: their attributes, checked when they are read.

A class that files may contain has ``_check_state``, which raises a ValueError for attributes that
no fit leaves: compiled code does not check indices, and a probability is shown as it is stored. So
each index is compared with the size of the array that it points into, and each number that becomes
a probability with [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _is_fitted

Type = TypeVar("Type", bound=type)


def stored(name: str) -> Callable[[Type], Type]:
    """Return a class as it is."""
    return lambda cls: cls


def is_own_type(value: Any) -> bool:
    """Tell whether something is a class of vennforest that files may contain."""
    return (
        isinstance(value, type)
        and value.__module__.startswith("vennforest.")
        and (
            hasattr(value, "_check_state")
            or hasattr(value, "from_state")
            or attrs.has(value)
            or issubclass(value, BaseEstimator)
        )
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
    """Raise an error for an object of vennforest with attributes that no fit leaves."""
    if isinstance(value, BaseEstimator) and not _is_fitted(value):
        return
    if hasattr(value, "_check_state"):
        value._check_state()
    elif attrs.has(type(value)):
        attrs.validate(value)
        if hasattr(value, "__attrs_post_init__"):
            value.__attrs_post_init__()
