"""Many classes from maps for two: one map per class, then normalisation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, ClassVar, Protocol

import attrs
import numpy as np

from vennforest._blocks import blocks
from vennforest._state import require, stored
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.formula import Term, Terms, summed
from vennforest.calibrators.core.interface import Calibrator, Learnt, as_tuple
from vennforest.calibrators.core.logistic import SMALLEST
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

    def formula(self, x: Term) -> Term:
        """Return the probability as a formula of the score."""
        ...


@stored("maps")
@attrs.frozen(eq=False)
class Maps(Learnt):
    """The map of the second class's score (two classes), or one map a class."""

    maps: tuple[Any, ...] = attrs.field(converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        """Refuse what is no map."""
        sound = (callable(one) and not isinstance(one, type) for one in self.maps)
        require(all(sound), "maps must hold maps")

    def check_classes(self, k: int) -> None:
        """Refuse another number of maps than there are columns of scores."""
        require(
            len(self.maps) == (1 if k == 2 else k), "maps must be one for each column of scores"
        )


class OneVsRestCalibrator(Calibrator):
    """A calibrator for two classes; for more, one map per class against the rest, normalised.

    The scores are those of the one many-class model: no further models are trained (Boström 2008,
    section 2.2.3). Where every class gets probability 0 the row falls back to its raw scores.

    Attributes
    ----------
    maps_ : tuple of BinaryMap
        One map of the second class's score (two classes), or one map per class.
    """

    _learns: ClassVar[type[Maps]] = Maps
    _map_type: ClassVar[type | tuple[type, ...]] = object
    """The class of its maps."""

    @property
    def maps_(self) -> tuple[Any, ...]:
        """The fitted maps: one for two classes, else one a class."""
        maps: tuple[Any, ...] = self._learnt.maps
        return maps

    def _check_parameters(self) -> None:
        kind = self._map_type
        sound = all(isinstance(one, kind) for one in self._learnt.maps)
        require(sound, f"maps must be of {kind}")

    @abstractmethod
    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> BinaryMap:
        """Fit to scores (n,), labels (n,) in {0.0, 1.0}, and weights (n,) above zero."""

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int) -> Maps:
        if scores.ndim == 1:
            return self._fit_columns([(scores, codes.astype(np.float64), weight)])
        return self._fit_columns(
            (np.ascontiguousarray(scores[:, j]), (codes == j).astype(np.float64), weight)
            for j in range(k)
        )

    def _fit_counts(self, counts: ScoreCounts) -> Learnt:
        if counts.vectors:
            return super()._fit_counts(counts)
        return self._fit_columns(against_rest(counts))

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        """Fit the map of each column: scores, labels and weights."""
        return Maps([self._fit_map(*column) for column in columns])

    def _formula(self, scores: Terms) -> Terms:
        p = tuple(one.formula(x) for one, x in zip(self._learnt.maps, scores, strict=True))
        return p if len(p) == 1 else normalised_formula(p, scores)

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        if scores.ndim == 1:
            p = self._learnt.maps[0](scores)
            return np.column_stack([1 - p, p])
        p = np.column_stack(
            [one(np.ascontiguousarray(scores[:, j])) for j, one in enumerate(self._learnt.maps)]
        )
        return normalise(p, scores)


def normalised_formula(p: Terms, raw: Terms) -> Terms:
    """Return the formulas of `normalise`."""
    whole, fallback = summed(p), summed(raw)
    least = reduce(Term.min, raw)
    shares = []
    for one, score in zip(p, raw, strict=True):
        equal = 1 / len(p)
        usable = fallback.unless_above(0.0, equal, score / fallback)
        unusable = least.unless_above(-SMALLEST, equal, usable)
        shares.append(whole.unless_above(0.0, unusable, one / whole))
    return tuple(shares)


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


def normalised_bounds_formulas(p0: Terms, p1: Terms) -> tuple[Terms, Terms]:
    """Return the formulas of `normalised_bounds`."""
    all_p0, all_p1 = summed(p0), summed(p1)
    lower, upper = [], []
    for low, up in zip(p0, p1, strict=True):
        least, most = low + (all_p1 - up).max(0.0), up + (all_p0 - low).max(0.0)
        lower.append(low.min(least.unless_above(0.0, 0.0, low / least)))
        upper.append(up.max(most.unless_above(0.0, 1.0, up / most)).min(1.0))
    return tuple(lower), tuple(upper)


def _normalised_bounds(p0: FloatArray, p1: FloatArray) -> tuple[FloatArray, FloatArray]:
    least = p0 + np.maximum(p1.sum(axis=1, keepdims=True) - p1, 0)
    most = p1 + np.maximum(p0.sum(axis=1, keepdims=True) - p0, 0)
    zeros, ones = np.zeros_like(p0), np.ones_like(p1)
    lower = np.minimum(p0, np.divide(p0, least, out=zeros, where=least > 0))
    upper = np.maximum(p1, np.divide(p1, most, out=ones, where=most > 0))
    return lower, np.minimum(upper, 1.0)
