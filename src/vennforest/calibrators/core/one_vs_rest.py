"""Many classes from maps for two: one map per class, then normalisation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Protocol

import numpy as np

from vennforest._blocks import blocks
from vennforest._loaded import expect
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.interface import Calibrator
from vennforest.counts import ScoreCounts

Column = tuple[FloatArray, FloatArray, FloatArray | None]
"""Scores (n,) of one class, labels (n,) in {0.0, 1.0}, and weights (n,) above zero, if any."""


def against_rest(counts: ScoreCounts) -> Iterator[Column]:
    """Yield the weighted examples of each table of counts."""
    for table in range(len(counts.tables)):
        scores, codes, weight = counts.examples(table)
        yield scores, codes.astype(np.float64), weight


class BinaryMap(Protocol):
    """A fitted map from the scores of one class to its probability."""

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,)."""
        ...


class OneVsRestCalibrator(Calibrator):
    """A calibrator for two classes; for more, one map per class against the rest, normalised.

    The scores are those of the one many-class model: no further models are trained (Boström 2008,
    section 2.2.3). Where every class gets probability 0 the row falls back to its raw scores.

    Attributes
    ----------
    maps_ : list of BinaryMap
        One map of the second class's score (two classes), or one map per class.
    """

    _learnt: ClassVar[tuple[str, ...]] = ("maps_",)
    maps_: Sequence[BinaryMap]

    @abstractmethod
    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> BinaryMap:
        """Fit to scores (n,), labels (n,) in {0.0, 1.0}, and weights (n,) above zero."""

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        if scores.ndim == 1:
            self._fit_columns([(scores, codes.astype(np.float64), weight)])
        else:
            self._fit_columns(
                (np.ascontiguousarray(scores[:, j]), (codes == j).astype(np.float64), weight)
                for j in range(scores.shape[1])
            )

    def _fit_counts(self, counts: ScoreCounts) -> None:
        if counts.vectors:
            super()._fit_counts(counts)
        else:
            self._fit_columns(against_rest(counts))

    def _fit_columns(self, columns: Iterable[Column]) -> None:
        """Fit the map of each column: scores, labels and weights."""
        self.maps_ = [self._fit_map(*column) for column in columns]

    def check_loaded(self) -> None:
        """Refuse another number of maps than there are columns of scores, or none that is a map.

        Raises
        ------
        ValueError
            If the check fails.
        """
        super().check_loaded()
        k = len(self.classes_)
        expect(
            isinstance(self.maps_, list) and len(self.maps_) == (1 if k == 2 else k),
            "maps_ must be a list with a map for each column of scores",
        )
        sound = (callable(one) and not isinstance(one, type) for one in self.maps_)
        expect(all(sound), "maps_ must hold maps")

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        if scores.ndim == 1:
            p = self.maps_[0](scores)
            return np.column_stack([1 - p, p])
        p = np.column_stack(
            [one(np.ascontiguousarray(scores[:, j])) for j, one in enumerate(self.maps_)]
        )
        return normalise(p, scores)


def normalise(p: FloatArray, raw: FloatArray) -> FloatArray:
    """Divide each row of p (n, k) by its sum; a row of zeros becomes its raw scores, normalised.

    Raw scores (n, k) that are not probabilities either (a negative one, or all zero) give equal
    shares.
    """
    total = p.sum(axis=1, keepdims=True)
    empty = total[:, 0] <= 0
    if empty.any():
        fallback = raw[empty]
        usable = (fallback >= 0).all(axis=1) & (fallback.sum(axis=1) > 0)
        p, total = p.copy(), total.copy()
        p[empty] = np.where(usable[:, None], fallback, 1.0)
        total[empty] = p[empty].sum(axis=1, keepdims=True)
    shares: FloatArray = p / total
    return shares


def normalised_bounds(p0: FloatArray, p1: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds of each class's probability that hold before and after normalisation.

    Parameters
    ----------
    p0, p1 : ndarray of shape (n, k)
        Lower and upper probability of each class against the rest, in [0, 1], ``p0 <= p1``.

    Returns
    -------
    lower, upper : ndarray of shape (n, k)
        In [0, 1], with ``lower <= p0`` and ``upper >= p1``; every row of ``lower`` sums to at most
        1 and every row of ``upper`` to at least 1, so that probabilities lie between them.

    Notes
    -----
    The guarantee of Venn prediction is that of the one-vs-rest interval [p0_j, p1_j] of each class.
    Probabilities are points of the box of all k intervals divided by their sums, and these lie
    between ``p0_j / (p0_j + sum of the other p1)`` and ``p1_j / (p1_j + sum of the other p0)``.
    The hull of the two intervals keeps both. Where 0 is divided by 0, the lower bound is 0 and the
    upper bound 1.
    """
    lower, upper = np.empty(p0.shape), np.empty(p0.shape)
    for block in blocks(*p0.shape):
        # In C order, since that of columns decides in which order a row is summed.
        rows = np.ascontiguousarray(p0[block]), np.ascontiguousarray(p1[block])
        lower[block], upper[block] = _normalised_bounds(*rows)
    return lower, upper


def _normalised_bounds(p0: FloatArray, p1: FloatArray) -> tuple[FloatArray, FloatArray]:
    least = p0 + np.maximum(p1.sum(axis=1, keepdims=True) - p1, 0)
    most = p1 + np.maximum(p0.sum(axis=1, keepdims=True) - p0, 0)
    zeros, ones = np.zeros_like(p0), np.ones_like(p1)
    lower = np.minimum(p0, np.divide(p0, least, out=zeros, where=least > 0))
    upper = np.maximum(p1, np.divide(p1, most, out=ones, where=most > 0))
    return lower, np.minimum(upper, 1.0)
