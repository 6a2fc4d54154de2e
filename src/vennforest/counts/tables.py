"""Tables of distinct scores and counts: made, added and compressed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, IntArray, check_weights

CountArray = NDArray[np.int64] | FloatArray
"""How many, as integers, or sums of weights."""

MOST = (1 << 63) - 1
"""The largest sum of counts: that of a 64-bit integer."""


class ScoreTable(NamedTuple):
    """Distinct scores, ascending, and how many examples of each class have them.

    ``scores`` has shape (m,) and ``counts`` (m, 2): all other classes, then the class whose score
    it is. Or, of score vectors: shapes (m, k), in lexicographic order, and (m, k).
    """

    scores: FloatArray
    counts: CountArray


def columns(x: FloatArray, k: int) -> FloatArray:
    """Return scores (n,) of two classes, or (n, k)."""
    if k == 2 and (x.ndim == 1 or x.shape[1] in (1, 2)):
        return x if x.ndim == 1 else np.ascontiguousarray(x[:, -1])
    if k > 2 and x.ndim == 2 and x.shape[1] == k:
        return x
    if not x.size:
        return np.empty((0,) if k == 2 else (0, k))
    raise ValueError(f"scores must have a column for each of {k} classes, got {x.shape}")


def whole(
    weight: ArrayLike | None, n: int, name: str = "sample_weight", zeros: bool = False
) -> Any:
    """Return weights as int64 if they are integers, else as float64; None where there are none."""
    if weight is None:
        return None
    given = np.asarray(weight)
    if given.dtype.kind not in "biu":
        floats = np.asarray(given, np.float64)
        if not zeros or floats.any() or floats.shape != (n,):
            checked = check_weights(floats, n, name)
            return np.ones(n) if checked is None else checked
        return floats
    if given.ndim == 0 and not zeros:
        given = np.full(n, given)
    if given.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {given.shape}")
    wrong = (given < 0) | (given > MOST)
    if wrong.any():
        rule = "not be negative" if (given < 0).any() else "be at most 2**63 - 1"
        raise ValueError(f"{name} must {rule}, got {given[wrong][0]}")
    whole = given.astype(np.int64)
    if (total := column_sums(whole[:, None])[0]) > MOST:
        raise ValueError(f"{name} must sum to at most 2**63 - 1, got {total}: use floats")
    return whole


def column_sums(counts: NDArray[Any]) -> list[int] | list[float]:
    """Return the exact sums of columns of integers, or the sums of floats."""
    if counts.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return [float(one) for one in counts.sum(axis=0)]
    low = 32  # halves of so many bits add up without overflow
    high = (counts >> low).sum(axis=0, dtype=np.int64).tolist()
    rest = (counts & ((1 << low) - 1)).sum(axis=0, dtype=np.int64).tolist()
    return [(int(a) << low) + int(b) for a, b in zip(high, rest, strict=True)]


def tabulate(x: FloatArray, codes: IntArray, k: int, weight: CountArray | None) -> ScoreTable:
    """Add up examples by score, or score vector, and class."""
    x = x + 0.0  # one zero
    if x.ndim == 2:
        distinct, row = np.unique(x, axis=0, return_inverse=True)
    else:
        distinct, row = np.unique(x, return_inverse=True)
    cell = row.reshape(-1) * k + codes
    size = len(distinct) * k
    counts: CountArray
    if weight is None:
        counts = np.bincount(cell, minlength=size).astype(np.int64)
    elif weight.dtype.kind == "f":
        counts = np.bincount(cell, weight, size).astype(np.float64)
    else:  # bincount would add integers as floats
        counts = np.zeros(size, np.int64)
        np.add.at(counts, cell, weight)
    return ScoreTable(distinct, counts.reshape(-1, k))


def merge(one: ScoreTable, two: ScoreTable) -> ScoreTable:
    """Return the counts of both tables at every score of either."""
    both = np.concatenate([one.scores, two.scores])
    if both.ndim == 2:
        scores, row = np.unique(both, axis=0, return_inverse=True)
        row = row.reshape(-1)
    else:
        scores, row = np.unique(both, return_inverse=True)
    counts = np.zeros((len(scores), one.counts.shape[1]), np.result_type(one.counts, two.counts))
    counts[row[: len(one.scores)]] += one.counts
    counts[row[len(one.scores) :]] += two.counts
    return ScoreTable(scores, counts)


def compress(table: ScoreTable, size: int) -> tuple[ScoreTable, int | float]:
    """Return the table at no more than ``size`` scores, and the largest weight that moved."""
    x, counts = table
    if len(x) <= size:
        return table, 0
    weight = counts.sum(axis=1)
    ends = np.cumsum(weight)
    before, total = ends - weight, ends[-1]
    if counts.dtype.kind == "f":
        group = np.minimum((before / total * size).astype(np.int64), size - 1)
    elif int(total) <= MOST // size:
        group = before * size // total
    else:  # the product would overflow; the step is at least total / size
        group = np.minimum(before // -(-int(total) // size), size - 1)
    start = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    last = np.append(start[1:], len(x)) - 1
    moved = (before[last] - before[start]).max()
    return ScoreTable(x[last], np.add.reduceat(counts, start, axis=0)), moved.item()
