"""What comes with the examples of a stream: times and labels, which may be missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, InputError, columns, encode_labels


def check_times(time: ArrayLike | None, n: int, last: float | None) -> FloatArray | None:
    """Return times as numbers that do not decrease; dates as seconds since 1970.

    Dates are numpy's, pandas's, or text in the form of ISO 8601; the latest so far was ``last``.
    """
    if time is None:
        return None
    given: NDArray[Any] = np.atleast_1d(np.asarray(time))
    if given.shape != (n,):
        raise InputError(f"time must have shape ({n},), got {given.shape}")
    times = as_numbers(given)
    if np.isnan(times).any():
        at = int(np.isnan(times).argmax())
        raise InputError(f"time must be known in every row, got {_shown(given[at])} in row {at}")
    back = np.diff(times, prepend=times[:1] if last is None else last) < 0
    if back.any():
        at = int(back.argmax())
        before = "the last update" if at == 0 else f"row {at - 1}"
        raise InputError(
            f"time must not run backwards, got {_shown(given[at])} in row {at} after {before}: "
            "sort the rows by the time at which their labels became known, or begin again with fit"
        )
    return times


def _shown(value: Any) -> str:
    """Return a time as it was written, without numpy's name of its type."""
    if not isinstance(value, np.generic):
        return repr(value)
    return str(value) if value.dtype.kind == "M" else repr(value.item())


def as_numbers(given: NDArray[Any]) -> FloatArray:
    """Return times as numbers, NaN where one is missing."""
    if given.dtype.kind in "fiub":
        return given.astype(np.float64)
    try:
        dates = given.astype("datetime64[us]")
    except (ValueError, TypeError):
        raise InputError(
            f"time must be numbers or dates in the form of ISO 8601, got {_shown(given.ravel()[0])}"
        ) from None
    seconds: FloatArray = dates.astype(np.int64) / 1e6
    return np.where(np.isnat(dates), np.nan, seconds)


def is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell for each label whether it is None or NaN (also pandas's NA and NaT)."""
    if labels.dtype.kind == "f":
        missing: NDArray[np.bool_] = np.isnan(labels)
        return missing
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), bool)
    return np.array([one is None or _is_nan(one) for one in labels.tolist()], dtype=bool)


def _is_nan(value: Any) -> bool:
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def label_codes(
    y: ArrayLike, classes: NDArray[Any], n: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return each label's class number, 0 where it is missing, and whether it is known.

    Takes microseconds, unless a label is unknown or of another type than the classes.
    """
    labels: NDArray[Any] = np.atleast_1d(np.asarray(y))
    if labels.shape != (n,):
        raise InputError(f"y must have {n} labels as there are rows, got shape {labels.shape}")
    known = ~is_missing(labels)
    codes = np.zeros(n, np.intp)
    if not known.any():
        return codes, known
    there = labels if known.all() else labels[known]
    if there.dtype.kind in "fO" and classes.dtype.kind in "biu":
        there = _exactly(there, classes)  # a missing label made floats or objects of them
    if there.dtype.kind == classes.dtype.kind != "O":
        found = np.searchsorted(classes, there).clip(max=len(classes) - 1)
        if (classes[found] == there).all():
            codes[known] = found
            return codes, known
    codes[known] = encode_labels(there, classes)[0]
    return codes, known


def _exactly(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels in the type of the classes, if that changes none of them."""
    try:
        plain = labels.astype(classes.dtype)
    except (TypeError, ValueError):
        return labels
    return plain if bool((plain == labels).all()) else labels


def score_columns(scores: FloatArray, k: int) -> FloatArray:
    """Return one column of scores of two classes, a column per class of k > 2."""
    own = columns(scores, k)
    return own[:, None] if own.ndim == 1 else own
