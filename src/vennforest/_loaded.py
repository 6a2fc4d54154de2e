"""What a class that stands in model files uses to check what was read into it.

Compiled code follows indices without looking, and a probability is shown as it is stored. So
every class of ours that a model file may hold has a method ``check_loaded``, which raises a
``ValueError`` unless the object is one that ``fit`` could have made, and is called after loading.
Having the method is also what lets a class be read from a file at all.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

LARGEST = float(np.finfo(np.float64).max)


def expect(sound: Any, rule: str) -> None:
    """Refuse what does not keep a rule.

    Raises
    ------
    ValueError
        Saying the rule.
    """
    if not bool(sound):
        raise ValueError(rule)


def expect_number(
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
    expect(
        sound and math.isfinite(value) and low <= value <= high,
        f"{name} must be {'an integer' if integer else 'a number'} in [{low}, {high}]",
    )


def expect_array(
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
    expect(type(value) in (np.ndarray, np.memmap), f"{name} must be an array")
    expect(
        value.ndim == len(shape)
        and all(n is None or n == m for n, m in zip(shape, value.shape, strict=True)),
        f"{name} must have shape {shape}",
    )
    expect(
        value.dtype.kind in kinds and (value.dtype.kind != "f" or value.dtype == np.float64),
        f"{name} must not be of type {value.dtype}",
    )
    if value.dtype.kind in "fiub" and value.size:
        # One comparison refuses NaN too.
        expect(
            value.min() >= max(low, -LARGEST) and value.max() <= min(high, LARGEST),
            f"{name} must be finite and in [{low}, {high}]",
        )


def expect_increasing(value: Any, name: str) -> None:
    """Refuse an array of which one number is not above the one before.

    Raises
    ------
    ValueError
        Naming the array.
    """
    expect((value[1:] > value[:-1]).all(), f"{name} must increase")


def expect_labels(classes: Any, name: str = "classes_") -> None:
    """Refuse anything but two or more different labels in sorted order.

    Raises
    ------
    ValueError
        Naming the array.
    """
    expect(type(classes) is np.ndarray and classes.ndim == 1, f"{name} must be a vector")
    expect(len(classes) >= 2, f"{name} must name two classes or more")
    try:
        ordered = bool((classes[1:] > classes[:-1]).all())
    except TypeError:
        ordered = False
    expect(ordered, f"{name} must be in sorted order")


def same_labels(one: Any, other: Any) -> bool:
    """Tell whether two arrays hold the same labels in the same order."""
    return (
        type(one) is np.ndarray
        and type(other) is np.ndarray
        and one.shape == other.shape
        and bool((one == other).all())
    )
