"""Fitted states: frozen values that check themselves when they are made, stored by short names.

What ``fit`` learns is an ``attrs.frozen`` class whose fields carry validators of ``_validation``,
and whose ``__attrs_post_init__`` has the rules between fields. ``fit``, ``load``, ``from_json`` and
the engines call its constructor, so a value that exists is sound and nothing is checked later.

Compiled code follows indices without looking, and a probability is shown as it is stored: compare
every index with what it indexes, and every number that becomes a probability with [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import attrs

Type = TypeVar("Type", bound=type)


STORED: dict[str, type] = {}
"""The types that model files may contain, by the names they are stored under."""

_NAMES: dict[type, str] = {}


def stored(name: str) -> Callable[[Type], Type]:
    """Register a class under the short name by which files refer to it.

    The class is an attrs class, stored as its fields and made from them, or has ``to_state``, which
    returns the arguments of its ``from_state``; that raises a ValueError for what ``fit`` could not
    have left. A name that another class has is refused.
    """

    def register(cls: Type) -> Type:
        known = STORED.get(name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise ValueError(f"name must be new, got {name!r}, which {known.__qualname__} has")
        STORED[name] = cls
        _NAMES[cls] = name
        return cls

    return register


def stored_name(cls: type) -> str | None:
    """Return the name under which a class itself is stored, None if it is not registered."""
    return _NAMES.get(cls)


def state_of(value: Any) -> Mapping[str, Any]:
    """Return what a stored value is made from: its attrs fields, or its ``to_state``."""
    if hasattr(value, "to_state"):
        state: Mapping[str, Any] = value.to_state()
        return state
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return {
        one.alias or one.name: getattr(value, one.name)
        for one in attrs.fields(type(value))
        if one.init
    }


def from_state(cls: type, state: Mapping[str, Any]) -> Any:
    """Construct a stored value again; its own validators check it."""
    make: Callable[..., Any] = getattr(cls, "from_state", cls)
    value = make(**state)
    if hasattr(value, "_check_state"):
        value._check_state()
    return value
