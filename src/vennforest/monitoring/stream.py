"""Times, labels and repeated rows of a stream."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, InputError, encode_labels, is_missing, label_vector
from vennforest.sources.row_hashes import HashArray

MIN_REMEMBERED_ROWS, MAX_REMEMBERED_ROWS, MAX_REMEMBERED_KEYS = 30, 10_000, 1_000_000

MAX_LOG_CHANCE = -50.0
"""Logarithm of the largest chance that an update equals another one for it to be remembered."""

MAX_SHARE_EQUAL_BY_CHANCE = 0.05
"""Largest expected share of new rows that equal a remembered row by chance."""


def check_times(time: ArrayLike, n: int, last: float | None) -> FloatArray:
    """Return times (n,) as numbers; raise an error if they decrease or are before ``last``."""
    values: NDArray[Any] = np.atleast_1d(np.asarray(time))
    if values.shape != (n,):
        raise InputError(f"time must have shape ({n},), got {values.shape}")
    times = times_as_numbers(values)
    # A missing time is never as late as the one before.
    is_wrong = ~(np.diff(times, prepend=times[:1] if last is None else last) >= 0)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise InputError(
            f"time must not run backwards or be missing, got {values[row]} in row {row}: sort the "
            "rows by time"
        )
    return times


def times_as_numbers(times: NDArray[Any]) -> FloatArray:
    """Return times (n,) as numbers, dates as seconds since 1970, missing ones as NaN."""
    if times.dtype.kind in "fiub":
        return times.astype(np.float64)
    try:
        dates = times.astype("datetime64[us]")
    except (ValueError, TypeError):
        raise InputError(
            f"time must be numbers or dates in the form of ISO 8601, got {times.ravel()[0]!r}"
        ) from None
    seconds: FloatArray = dates.astype(np.int64) / 1e6
    return np.where(np.isnat(dates), np.nan, seconds)


def label_codes(
    y: ArrayLike, classes: NDArray[Any], n: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return class indices (n,), 0 for missing labels, and a mask (n,) of those not missing."""
    rows: Any = y if hasattr(y, "__len__") and not isinstance(y, str) else [y]
    labels = label_vector(rows, n)
    is_labelled = ~is_missing(labels)
    codes = np.zeros(n, np.intp)
    if is_labelled.any():
        present = labels[is_labelled]
        if present.dtype.kind == "O":
            present = np.array(present.tolist())  # of their own type
        codes[is_labelled] = encode_labels(present, classes)[0]
    return codes, is_labelled


def window_length(n: int, n_equal_pairs: float) -> int:
    """Return the number of rows to remember, given the number of equal pairs among n rows.

    If equal rows are common, it is 0.
    """
    # Three more pairs could have been equal and were not (the rule of three).
    share = (3 + n_equal_pairs) / max(n * (n - 1) / 2, 1)
    window = int(min(MAX_REMEMBERED_ROWS, MAX_SHARE_EQUAL_BY_CHANCE / share))
    return window if window >= MIN_REMEMBERED_ROWS else 0


def hash_batch(
    hashes: HashArray, codes: NDArray[np.intp], is_labelled: NDArray[np.bool_]
) -> np.uint64 | None:
    """Return a hash of rows (n,) with their labels, in their order.

    None if they are few, or if rows drawn as these are could well be the same by chance.
    """
    rows = np.column_stack([hashes, codes, is_labelled]).astype(np.uint64)
    shares = np.unique(rows, axis=0, return_counts=True)[1] / max(len(rows), 1)
    if len(rows) * (shares * np.log(shares)).sum() > MAX_LOG_CHANCE:
        return None
    return np.uint64(int.from_bytes(blake2b(rows.tobytes(), digest_size=8).digest(), "little"))


def remember_rows(
    remembered: HashArray, window: int, hashes: HashArray, is_counted: NDArray[np.bool_]
) -> tuple[HashArray, NDArray[np.bool_]]:
    """Return the updated hashes of remembered rows, and a mask (n,) of rows not among them."""
    is_new = np.ones(len(hashes), bool)
    if not window:
        return remembered, is_new
    order = dict.fromkeys(remembered.tolist())  # a dict keeps the order of its keys
    for row in np.flatnonzero(is_counted).tolist():
        value = int(hashes[row])
        if value in order:
            is_new[row] = False
            del order[value]  # the latest time counts
        elif len(order) == window:
            del order[next(iter(order))]
        order[value] = None
    return np.array(list(order), np.uint64), is_new
