"""Validation of objects read from files.

A class that files may contain has a method ``_check_state``, which raises a ValueError if its
attributes cannot result from a fit. They are validated because kernels do not check indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import _is_fitted


def is_own_type(value: Any) -> bool:
    """Return whether a value is a class of vennforest that files may contain."""
    return (
        isinstance(value, type)
        and value.__module__.startswith("vennforest.")
        and hasattr(value, "_check_state")
    )


def with_state(cls: type, state: Mapping[str, Any]) -> Any:
    """Return an object with the given attributes without calling its constructor."""
    instance: Any = object.__new__(cls)
    if hasattr(instance, "__setstate__"):
        instance.__setstate__(state)
    else:
        vars(instance).update(state)
    return instance


def check_state(value: Any) -> None:
    """Raise a ValueError if the attributes of an object cannot result from a fit."""
    if isinstance(value, BaseEstimator):
        value.get_params(deep=False)  # which are all there, or an AttributeError names one
    if not isinstance(value, BaseEstimator) or _is_fitted(value):
        value._check_state()
