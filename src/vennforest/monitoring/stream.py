"""Times and labels of a stream, which may be missing, and rows that come again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, InputError, check_array, encode_labels, require
from vennforest.sources.row_hashes import HashArray

MIN_REMEMBERED_ROWS, MAX_REMEMBERED_ROWS = 30, 10_000

MAX_SHARE_EQUAL_BY_CHANCE = 0.05
"""Expected share of new rows that equal one of the remembered rows by chance, at most."""


def check_times(time: ArrayLike | None, n: int, last: float | None) -> FloatArray | None:
    """Return times (n,) as numbers that do not decrease, dates as seconds since 1970.

    Dates are numpy's, pandas's, or text in the form of ISO 8601; ``last`` is the latest so far.
    """
    if time is None:
        return None
    values: NDArray[Any] = np.atleast_1d(np.asarray(time))
    if values.shape != (n,):
        raise InputError(f"time must have shape ({n},), got {values.shape}")
    times = as_numbers(values)
    if np.isnan(times).any():
        row = int(np.isnan(times).argmax())
        raise InputError(f"time must be known in every row, got {_text(values[row])} in row {row}")
    runs_back = np.diff(times, prepend=times[:1] if last is None else last) < 0
    if runs_back.any():
        row = int(runs_back.argmax())
        before = "the last update" if row == 0 else f"row {row - 1}"
        raise InputError(
            f"time must not run backwards, got {_text(values[row])} in row {row} after {before}: "
            "sort the rows by the time at which their labels became known, or begin again with fit"
        )
    return times


def _text(value: Any) -> str:
    """Return a time as it was written, without numpy's name of its type."""
    if not isinstance(value, np.generic):
        return repr(value)
    return str(value) if value.dtype.kind == "M" else repr(value.item())


def as_numbers(times: NDArray[Any]) -> FloatArray:
    """Return times (n,) as numbers, NaN where one is missing."""
    if times.dtype.kind in "fiub":
        return times.astype(np.float64)
    try:
        dates = times.astype("datetime64[us]")
    except (ValueError, TypeError):
        raise InputError(
            f"time must be numbers or dates in the form of ISO 8601, got {_text(times.ravel()[0])}"
        ) from None
    seconds: FloatArray = dates.astype(np.int64) / 1e6
    return np.where(np.isnat(dates), np.nan, seconds)


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values (n,) are None or NaN, or pandas's NA or NaT."""
    if values.dtype.kind == "f":
        missing: NDArray[np.bool_] = np.isnan(values)
        return missing
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    return np.array([value is None or _is_nan(value) for value in values.tolist()], dtype=bool)


def _is_nan(value: Any) -> bool:
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def label_codes(
    y: ArrayLike, classes: NDArray[Any], n: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return each label's class number (n,), 0 where it is missing, and which are not missing.

    Takes microseconds, unless a label is unknown or of another type than the classes.
    """
    labels: NDArray[Any] = np.atleast_1d(np.asarray(y))
    if labels.shape != (n,):
        raise InputError(f"y must have {n} labels as there are rows, got shape {labels.shape}")
    is_labelled = ~is_missing(labels)
    codes = np.zeros(n, np.intp)
    if not is_labelled.any():
        return codes, is_labelled
    present = labels if is_labelled.all() else labels[is_labelled]
    if present.dtype.kind in "fO" and classes.dtype.kind in "biu":
        present = _cast_exactly(present, classes.dtype)  # a missing label made floats of integers
    if present.dtype.kind == classes.dtype.kind != "O":
        positions = np.searchsorted(classes, present).clip(max=len(classes) - 1)
        if (classes[positions] == present).all():
            codes[is_labelled] = positions
            return codes, is_labelled
    codes[is_labelled] = encode_labels(present, classes)[0]
    return codes, is_labelled


def _cast_exactly(labels: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return labels in another type, if that changes none of them."""
    try:
        cast = labels.astype(dtype)
    except (TypeError, ValueError):
        return labels
    return cast if bool((cast == labels).all()) else labels


class RecentRows:
    """Hashes of the rows that came last, of which each counts once.

    Parameters
    ----------
    window : int
        Number of rows that are remembered; 0 where equal rows are common by nature.
    hashes : uint64 ndarray of shape (m,)
        Those remembered, the oldest first.
    """

    def __init__(self, window: int, hashes: HashArray) -> None:
        self.window = window
        self.hashes = hashes

    @classmethod
    def start(cls, n: int, n_equal_pairs: float) -> RecentRows:
        """Return an empty memory for rows like n rows with so many pairs of equal ones.

        It is as long as chance makes at most one new row in twenty equal a remembered one. Three
        more pairs could have been equal and were not (the rule of three). Where that leaves fewer
        than 30 rows, equal rows are common and none is remembered.
        """
        share = (3 + n_equal_pairs) / max(n * (n - 1) / 2, 1)
        window = int(min(MAX_REMEMBERED_ROWS, MAX_SHARE_EQUAL_BY_CHANCE / share))
        return cls(window if window >= MIN_REMEMBERED_ROWS else 0, np.empty(0, np.uint64))

    def add(self, hashes: HashArray, is_counted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Remember rows (n,) and return which did not come within the window before, (n,).

        Rows that are not counted, since they have no label, are not remembered.
        """
        is_new = np.ones(len(hashes), bool)
        if not self.window:
            return is_new
        order = dict.fromkeys(self.hashes.tolist())  # a dict keeps the order of its keys
        for row in np.flatnonzero(is_counted).tolist():
            value = int(hashes[row])
            if value in order:
                is_new[row] = False
                del order[value]  # the latest time counts
            elif len(order) == self.window:
                del order[next(iter(order))]
            order[value] = None
        self.hashes = np.array(list(order), np.uint64)
        return is_new

    def _check_state(self) -> None:
        window = self.window
        is_window = isinstance(window, int) and 0 <= window <= MAX_REMEMBERED_ROWS
        require(is_window, "window must be a number of rows")
        check_array(self.hashes, "hashes", (None,), "u")
        n_distinct = len(np.unique(self.hashes))
        is_sound = self.hashes.dtype == np.uint64 and n_distinct == len(self.hashes) <= window
        require(is_sound, "hashes must be of different rows")
