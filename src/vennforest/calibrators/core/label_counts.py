"""Calibration examples as counts of labels at scores, and folds of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, IntArray

FINEST = 16_384
"""Distinct scores from which on near-equal ones are put together."""

FARTHEST = 40.0
"""Log-odds beyond which scores are put together."""


def count_labels(
    scores: FloatArray, positive: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return distinct scores, ascending, with their weights and positive weights, each (m,).

    Scores are put together as in `group` where many of them differ.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Any finite numbers.
    positive : ndarray of shape (n,)
        Labels, 0.0 or 1.0.
    weight : ndarray of shape (n,) or None
        How often each example is to count, above zero.
    """
    w = np.ones(len(scores)) if weight is None else weight
    if more_differ(scores, FINEST):
        return group(scores, w, w * positive)
    x, point = np.unique(scores, return_inverse=True)
    total: FloatArray = np.bincount(point, w, len(x)).astype(np.float64)
    share: FloatArray = np.bincount(point, w * positive, len(x)).astype(np.float64)
    return x, total, share


def more_differ(scores: FloatArray, number: int) -> bool:
    """Tell whether scores (n,) hold more distinct ones than a number.

    So that the answer is the same for examples and for counts of them; where nearly all differ the
    first of them tell.
    """
    if len(scores) <= number:
        return False
    return len(np.unique(scores[: 2 * number])) > number or len(np.unique(scores)) > number


def group(
    x: FloatArray, weight: FloatArray, positive: FloatArray, cells: int = FINEST
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up counts over equal cells of the log-odds, or of the scores.

    To a smooth map that spans the range, scores within one cell are as good as equal; each cell
    is represented by its mean score. The log-odds count where all scores are within [0, 1].

    Parameters
    ----------
    x : ndarray of shape (n,)
        Scores.
    weight, positive : ndarray of shape (n,)
        Their weights, and the weights of the positive class.
    cells : int
        How many cells.
    """
    z = x
    if x.min() >= 0 and x.max() <= 1:
        with np.errstate(divide="ignore"):
            z = np.clip(np.log(x) - np.log1p(-x), -FARTHEST, FARTHEST)
    low, high = float(z.min()), float(z.max())
    with np.errstate(over="ignore"):
        width = high - low
    if not 0 < width < np.inf:
        return x, weight, positive
    cell: IntArray = ((z - low) / width * cells).astype(np.intp)
    total = np.bincount(cell, weight)
    there = total > 0
    mean: FloatArray = np.bincount(cell, x * weight)[there] / total[there]
    share: FloatArray = np.bincount(cell, positive)[there].astype(np.float64)
    return np.clip(mean, x.min(), x.max()), total[there].astype(np.float64), share


CELLS = 4_096
"""Scores of two classes from which on near-equal ones are put together."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct pairs of score and label, with their weights.

    Label by label, each in the order of that label's own score.

    Attributes
    ----------
    scores : ndarray of shape (m,) or (m, k)
    codes : ndarray of shape (m,)
        Index of the class.
    weight : ndarray of shape (m,)
        Above zero.
    """

    scores: FloatArray
    codes: IntArray
    weight: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> Cells:
        """Return the cells of a calibration set.

        Many scores of two classes are put together where they are nearly equal, see `group`.
        """
        w = np.ones(len(codes)) if weight is None else weight
        if scores.ndim == 1 and more_differ(scores, CELLS):
            x, total, positive = group(scores, w, w * (codes == 1), CELLS)
            both = np.concatenate([total - positive, positive])
            code = np.repeat(np.arange(2), len(x))
            scores, codes, w = np.tile(x, 2)[both > 0], code[both > 0], both[both > 0]
        rows = scores[:, None] if scores.ndim == 1 else scores
        if scores.ndim == 1:
            own = np.where(codes == 1, scores, -scores)
            order = np.lexsort([own, codes])
        else:
            own = scores[np.arange(len(codes)), codes]
            order = np.lexsort([*scores.T[::-1], own, codes])
        rows, codes, w = rows[order], codes[order], w[order]
        new = np.append(True, (codes[1:] != codes[:-1]) | (rows[1:] != rows[:-1]).any(axis=1))
        total = np.add.reduceat(w, np.flatnonzero(new))
        return cls(scores[order][new], codes[new], total)

    def select(self, weight: FloatArray) -> Cells:
        """Return the cells of which something is left under other weights (m,)."""
        there = weight > 0
        return Cells(self.scores[there], self.codes[there], weight[there])

    def split(self, n_folds: int) -> Iterator[FloatArray]:
        """Yield each fold's share (m,) of the cells' weights.

        The examples of a label lie side by side on a line in the cells' order, each as long as
        its weight, and the units of the line are dealt out to the folds in a shuffled order that
        is always the same. So the folds do not depend on the order of the examples, an example of
        weight 2 is treated as two examples are, and exchanging labels (and scores) changes
        nothing. Without the shuffle every fold would have nearly the same shares of labels at
        each score, and a map that follows chance would look as good as it does on what it was
        fitted to.
        """
        ends = np.cumsum(self.weight)
        first = np.flatnonzero(np.append(True, self.codes[1:] != self.codes[:-1]))
        sizes = np.diff(np.append(first, len(ends)))
        ends -= np.repeat((ends - self.weight)[first], sizes)
        # Sums of other weights than integers may leave a hair beyond a unit.
        units = np.ceil(np.maximum.reduceat(ends, first) * (1 - 1e-12)).astype(np.int64)
        deals = [_deal(int(n), n_folds) for n in np.clip(units, 1, LONGEST)]
        for fold in range(n_folds):
            share = np.empty(len(ends))
            for start, size, deal in zip(first, sizes, deals, strict=True):
                line = np.append(0.0, ends[start : start + size])
                share[start : start + size] = np.diff(_length_within(line, deal == fold))
            yield np.clip(share, 0.0, self.weight)


LONGEST = 1 << 20
"""Units of a line that are shuffled; a longer line repeats them."""


def _deal(units: int, n_folds: int) -> IntArray:
    """Return the fold of each unit, (units,): equally many each, in shuffled order."""
    deal: IntArray = np.random.RandomState(0).permutation(np.arange(units) % n_folds)
    return deal


def _length_within(x: FloatArray, mine: NDArray[np.bool_]) -> FloatArray:
    """Return how much of each [0, x] lies in the units that are mine, repeated without end."""
    total = np.append(0.0, np.cumsum(mine))
    rounds = np.floor(x / len(mine))
    rest = np.clip(x - rounds * len(mine), 0.0, len(mine))
    unit = np.minimum(rest.astype(np.intp), len(mine) - 1)
    length: FloatArray = rounds * total[-1] + total[unit] + (rest - unit) * mine[unit]
    return length
