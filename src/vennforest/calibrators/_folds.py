"""Folds of a calibration set that depend on the multiset of its examples alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators._counts import FINEST, group


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct pairs of score and label, in the order of label and score, with their weights.

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
        if scores.ndim == 1 and len(scores) > FINEST:
            x, total, positive = group(scores, w, w * (codes == 1))
            both = np.concatenate([total - positive, positive])
            code = np.repeat(np.arange(2), len(x))
            scores, codes, w = np.tile(x, 2)[both > 0], code[both > 0], both[both > 0]
        rows = scores[:, None] if scores.ndim == 1 else scores
        order = np.lexsort([*rows.T[::-1], codes])
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

        The examples lie side by side on a line in the cells' order, each as long as its weight,
        and every unit of the line goes to the next fold in turn. So every fold has its share of
        each class and of high and low scores, whatever the order of the examples, and an example
        of weight 2 is treated as two examples are.
        """
        ends = np.cumsum(self.weight)
        # Sums of integer weights are exact; others may leave a hair beyond a unit.
        start = ends - self.weight
        for fold in range(n_folds):
            inside = _length_within(ends, fold, n_folds) - _length_within(start, fold, n_folds)
            yield np.clip(inside, 0.0, self.weight)


def _length_within(x: FloatArray, fold: int, n_folds: int) -> FloatArray:
    """Return how much of [0, x] lies in the units that belong to a fold."""
    rounds = np.floor(x / n_folds)
    length: FloatArray = rounds + np.clip(x - rounds * n_folds - fold, 0.0, 1.0)
    return length
