"""Calibration examples that a new score leaves out, by number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import IntArray


class LeftOut(NamedTuple):
    """Which calibration examples are absent for each of m new scores."""

    rows: IntArray  # (m,) a row given to ``_fit``, or where there are groups a group; -1: none
    groups: IntArray | None  # (n,) the group, from 0, of each row given to ``_fit``


def left_out_rows(
    left_out: ArrayLike, groups: ArrayLike | None, m: int, n: int, row_of: IntArray | None
) -> LeftOut:
    """Return which rows given to ``_fit`` each of m new scores leaves out.

    Parameters
    ----------
    left_out, groups
        As given to ``predict_multiprobability``, of the examples as given to ``fit``.
    m, n : int
        Number of new scores, and of examples as given to ``fit``.
    row_of : ndarray of shape (n,) or None
        The row of each example that reached ``_fit``, -1 for one of weight zero; None: its own.

    Raises
    ------
    ValueError
        If ``left_out`` is not a vector of m integers from -1 to n - 1, or ``groups`` not one
        of n labels.
    """
    rows = np.asarray(left_out)
    if rows.shape != (m,):
        raise ValueError(f"left_out must have shape ({m},), got {rows.shape}")
    if rows.dtype.kind not in "iu" and m:
        raise ValueError(f"left_out must hold integers, got {rows.dtype}")
    wrong = (rows < -1) | (rows >= n)
    if wrong.any():
        raise ValueError(
            f"left_out must lie between -1 (none) and {n - 1} "
            f"(the last calibration example), got {rows[wrong][0]}"
        )
    rows = rows.astype(np.intp)
    if groups is not None:
        codes = _group_numbers(groups, n)
        kept = codes if row_of is None else codes[row_of >= 0]
        return LeftOut(np.where(rows < 0, -1, codes[rows]), kept)
    if row_of is not None:
        rows = np.where(rows < 0, -1, row_of[rows])
    return LeftOut(rows, None)


def _group_numbers(groups: ArrayLike, n: int) -> IntArray:
    """Return a number, 0 to n - 1, for each of n group labels."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups must have shape ({n},), one for each calibration example, got {labels.shape}"
        )
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < n:
        return labels.astype(np.intp, copy=False)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("groups must name a group for every example, got NaN")
    try:
        numbers: IntArray = np.unique(labels, return_inverse=True)[1].reshape(n)
    except TypeError:
        raise ValueError("groups must hold labels that can be sorted, all of one kind") from None
    return numbers
