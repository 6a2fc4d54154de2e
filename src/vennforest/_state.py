"""Fitted states: frozen values that check themselves when they are made, stored by short names.

What ``fit`` learns is an ``attrs.frozen`` class whose fields carry the validators below, and whose
``__attrs_post_init__`` holds the rules between fields. ``fit``, ``load``, ``from_json`` and the
engines all call its constructor, so a value that exists is sound and nothing is checked later.

Compiled code follows indices without looking, and a probability is shown as it is stored: compare
every index with what it indexes, and every number that becomes a probability with [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Protocol, Self, TypeVar

import attrs
import numpy as np

LARGEST = float(np.finfo(np.float64).max)

Validator = Callable[[Any, Any, Any], None]
"""What attrs calls with an instance, the attribute and the value to check."""

Type = TypeVar("Type", bound=type)


class HasState(Protocol):
    """An object that is not frozen, such as an estimator, and says what it is made from."""

    def to_state(self) -> Mapping[str, Any]:
        """Return the arguments of ``from_state``."""
        ...

    @classmethod
    def from_state(cls, **state: Any) -> Self:
        """Return the object; raise a ValueError unless it is one that ``fit`` could have left."""
        ...


STORED: dict[str, type] = {}
"""The types that model files may hold, by the names they are stored under."""

_NAMES: dict[type, str] = {}


def stored(name: str) -> Callable[[Type], Type]:
    """Register a class under the short name by which files refer to it.

    The class is an attrs class, stored as its fields and made from them, or has ``to_state`` and
    ``from_state`` (`HasState`).

    Raises
    ------
    ValueError
        If another class has the name.
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


_FUNCTIONS: dict[type, tuple[Callable[[Any], Mapping[str, Any]], Callable[..., Any]]] = {}


def store_type(
    name: str,
    cls: type,
    to_state: Callable[[Any], Mapping[str, Any]],
    from_state: Callable[..., Any],
) -> None:
    """Register a class of another package: two functions stand for its missing methods.

    Raises
    ------
    ValueError
        If another class has the name.
    """
    stored(name)(cls)
    _FUNCTIONS[cls] = to_state, from_state


def state_of(value: Any) -> Mapping[str, Any]:
    """Return what a stored value is made from: its attrs fields, or its ``to_state``."""
    if type(value) in _FUNCTIONS:
        return _FUNCTIONS[type(value)][0](value)
    if hasattr(value, "to_state"):
        state: Mapping[str, Any] = value.to_state()
        return state
    return {
        one.alias or one.name: getattr(value, one.name)
        for one in attrs.fields(type(value))
        if one.init
    }


def from_state(cls: type, state: Mapping[str, Any]) -> Any:
    """Construct a stored value again; its own validators check it."""
    make: Callable[..., Any]
    make = _FUNCTIONS[cls][1] if cls in _FUNCTIONS else getattr(cls, "from_state", cls)
    return make(**state)


def require(sound: Any, rule: str) -> None:
    """Refuse what does not keep a rule.

    Raises
    ------
    ValueError
        Saying the rule.
    """
    if not bool(sound):
        raise ValueError(rule)


def check_number(
    value: Any, name: str, low: float = -math.inf, high: float = math.inf, *, integer: bool = False
) -> None:
    """Refuse anything but a finite number from ``low`` to ``high``, an integer where one is due.

    Raises
    ------
    ValueError
        Naming the number.
    """
    kind = Integral if integer else Real
    sound = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    require(
        sound and math.isfinite(value) and low <= value <= high,
        f"{name} must be {'an integer' if integer else 'a number'} in [{low}, {high}]",
    )


def check_array(
    value: Any,
    name: str,
    shape: tuple[int | None, ...],
    kinds: str = "f",
    low: float = -math.inf,
    high: float = math.inf,
) -> None:
    """Refuse anything but an array of finite numbers from ``low`` to ``high``.

    Parameters
    ----------
    value : object
    name : str
        What the message calls it.
    shape : tuple of int or None
        None: any length.
    kinds : str
        Letters of ``dtype.kind`` that are right; ``"f"`` means float64.
    low, high : float
        Both included.

    Raises
    ------
    ValueError
        Naming the array.
    """
    # Workers of joblib are handed large arrays as maps of files.
    require(type(value) in (np.ndarray, np.memmap), f"{name} must be an array")
    require(
        value.ndim == len(shape)
        and all(n is None or n == m for n, m in zip(shape, value.shape, strict=True)),
        f"{name} must have shape {shape}",
    )
    require(
        value.dtype.kind in kinds and (value.dtype.kind != "f" or value.dtype == np.float64),
        f"{name} must not be of type {value.dtype}",
    )
    if value.dtype.kind in "fiub" and value.size:
        # One comparison refuses NaN too.
        require(
            value.min() >= max(low, -LARGEST) and value.max() <= min(high, LARGEST),
            f"{name} must be finite and in [{low}, {high}]",
        )


def check_increasing(value: Any, name: str) -> None:
    """Refuse an array of which one number is not above the one before.

    Raises
    ------
    ValueError
        Naming the array.
    """
    require((value[1:] > value[:-1]).all(), f"{name} must increase")


def check_labels(classes: Any, name: str = "classes_") -> None:
    """Refuse anything but two or more different labels in sorted order.

    Raises
    ------
    ValueError
        Naming the array.
    """
    require(type(classes) is np.ndarray and classes.ndim == 1, f"{name} must be a vector")
    require(len(classes) >= 2, f"{name} must name two classes or more")
    try:
        ordered = bool((classes[1:] > classes[:-1]).all())
    except TypeError:
        ordered = False
    require(ordered, f"{name} must be in sorted order")


def same_labels(one: Any, other: Any) -> bool:
    """Return whether two arrays hold the same labels in the same order."""
    return (
        type(one) is np.ndarray
        and type(other) is np.ndarray
        and one.shape == other.shape
        and bool((one == other).all())
    )


def array(
    *shape: int | None, kinds: str = "f", low: float = -math.inf, high: float = math.inf
) -> Validator:
    """Return an attrs validator for an array of finite numbers: see `check_array`."""

    def check(instance: Any, attribute: Any, value: Any) -> None:
        check_array(value, attribute.name, shape, kinds, low, high)

    return check


def number(low: float = -math.inf, high: float = math.inf, *, integer: bool = False) -> Validator:
    """Return an attrs validator for a finite number: see `check_number`."""

    def check(instance: Any, attribute: Any, value: Any) -> None:
        check_number(value, attribute.name, low, high, integer=integer)

    return check


def labels(instance: Any, attribute: Any, value: Any) -> None:
    """Validate that a field is two or more different labels in sorted order, as attrs asks."""
    check_labels(value, attribute.name)
