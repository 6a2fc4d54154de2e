"""Many classes from maps for two: one map a class, then normalisation."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import numpy as np

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.base import Calibrator


class BinaryMap(Protocol):
    """A fitted map from the scores of one class to its probability."""

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,)."""
        ...


class OneVsRestCalibrator(Calibrator):
    """A calibrator for two classes; for more, one map a class against the rest, normalised.

    The scores are those of the one many-class model: no further models are trained (Boström 2008,
    section 2.2.3). Where every class gets probability 0 the row falls back to its raw scores.

    Attributes
    ----------
    maps_ : list of BinaryMap
        One map of the second class's score (two classes), or one map a class.
    """

    maps_: list[BinaryMap]

    @abstractmethod
    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> BinaryMap:
        """Fit to scores (n,), labels (n,) in {0.0, 1.0}, and weights (n,) above zero."""

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        if scores.ndim == 1:
            self.maps_ = [self._fit_map(scores, codes.astype(np.float64), weight)]
        else:
            self.maps_ = [
                self._fit_map(
                    np.ascontiguousarray(scores[:, j]), (codes == j).astype(np.float64), weight
                )
                for j in range(scores.shape[1])
            ]

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
