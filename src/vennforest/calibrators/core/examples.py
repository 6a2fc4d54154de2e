"""Calibration examples that a new score leaves out, or whose scores it changes, by number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, IntArray


class LeftOut(NamedTuple):
    """Which calibration examples are absent for each of m new scores."""

    rows: IntArray  # (m,) a row given to ``_fit``, or where there are groups a group; -1: none
    groups: IntArray | None  # (n,) the group, from 0, of each row given to ``_fit``


class JoinedScores(NamedTuple):
    """Scores of new objects that change those of calibration examples: see ``predict_joined``."""

    scores: FloatArray
    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    changed: FloatArray


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


def joined_scores(
    scores: ArrayLike,
    offsets: ArrayLike,
    rows: ArrayLike,
    changed: ArrayLike,
    k: int,
    n: int,
    row_of: IntArray | None,
) -> JoinedScores:
    """Return what ``predict_joined`` is given as plain arrays, examples as ``_fit`` knows them.

    Parameters
    ----------
    scores, offsets, rows, changed
        As given to ``predict_joined``.
    k, n : int
        Number of classes, and of examples as given to ``fit``.
    row_of : ndarray of shape (n,) or None
        As for `left_out_rows`.

    Raises
    ------
    ValueError
        If shapes do not fit, a score is not finite, or an example does not exist.
    """
    own = np.require(scores, np.float64, ["C", "W"])
    then = np.require(changed, np.float64, ["C", "W"])
    who, ends = np.asarray(rows), np.asarray(offsets)
    m, shape = len(own), () if k == 2 else (k,)
    if own.shape != (m, k, *shape):
        raise ValueError(f"scores must have shape {('m', k, *shape)}, got {own.shape}")
    if who.ndim != 1 or then.shape != (len(who), *shape):
        raise ValueError(f"changed must have shape {(len(who), *shape)}, got {then.shape}")
    if ends.shape != (m * k + 1,) or ends[0] != 0 or ends[-1] != len(who):
        raise ValueError(f"offsets must be {m * k + 1} numbers from 0 to {len(who)}")
    if (np.diff(ends) < 0).any():
        raise ValueError("offsets must not decrease")
    if not np.isfinite(own).all() or not np.isfinite(then).all():
        raise ValueError("scores and changed must be finite, got NaN or inf")
    if ((who < 0) | (who >= n)).any():
        raise ValueError(f"rows must lie between 0 and {n - 1}")
    who, ends = who.astype(np.int32, copy=False), ends.astype(np.int64, copy=False)
    if row_of is not None:
        who = row_of[who].astype(np.int32)
        there = who >= 0
        ends = np.append(0, np.cumsum(there))[ends]
        who, then = who[there], then[there]
    return JoinedScores(own, ends, who, then)


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
