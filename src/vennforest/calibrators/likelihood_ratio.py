"""Likelihood-ratio intervals for a probability that does not decrease with the score."""

from __future__ import annotations

from typing import NamedTuple, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators import likelihood_ratio_kernels as kernels


class Regressions(NamedTuple):
    """The isotonic regressions of all prefixes of the scores, as a tree: see the kernels."""

    value: FloatArray
    parent: NDArray[np.int32]
    jump: NDArray[np.int32]
    best: FloatArray

    @classmethod
    def of(cls, W: FloatArray, Y: FloatArray) -> Self:
        """Return the tree for cumulative sums (m + 1,) that begin at 0."""
        m = len(W)
        tree = cls(np.empty(m), np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m))
        kernels.grow(W, Y, *tree)
        return tree

    def fit(self) -> FloatArray:
        """Return the isotonic regression of all scores, (m,)."""
        fit = np.empty(len(self.value) - 1)
        last = len(fit)
        while last > 0:
            first = int(self.parent[last])
            fit[first:last] = self.value[last]
            last = first
        return fit


@attrs.frozen(eq=False)
class LikelihoodRatio:
    """What the likelihood ratio of examples of two classes leaves possible, at any score.

    The interval at x is the set of all theta with 2 log lambda(theta) <= q, where lambda is the
    ratio of the largest Bernoulli likelihood over all functions f that do not decrease to that over
    those of them with f(x) = theta (Banerjee & Wellner 2001, Annals of Statistics 29). It is the
    same for all x between two neighbouring scores.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Distinct calibration scores, increasing.
    W, Y : ndarray of shape (m + 1,)
        Cumulative weight of the examples, and of those of the positive class, from 0.
    below, above : Regressions
        Of all prefixes, and of all suffixes (reversed, with labels exchanged).
    fit : ndarray of shape (m,)
        The isotonic regression.
    """

    x: FloatArray
    W: FloatArray
    Y: FloatArray
    below: Regressions
    above: Regressions
    fit: FloatArray

    @classmethod
    def from_counts(cls, x: FloatArray, total: ArrayLike, positive: ArrayLike) -> Self:
        """Make the tables for weights above zero, (m,), at increasing scores (m,)."""
        W = np.append(0.0, np.cumsum(np.asarray(total, np.float64)))
        Y = np.append(0.0, np.cumsum(np.asarray(positive, np.float64)))
        below = Regressions.of(W, Y)
        return cls(x, W, Y, below, Regressions.of(*_mirrored(W, Y)), below.fit())

    @classmethod
    def from_examples(
        cls,
        scores: FloatArray,
        positive: NDArray[np.bool_],
        weight: FloatArray | None = None,
    ) -> Self:
        """Make the tables for examples with scores (n,) and weights above zero (n,)."""
        x, number = np.unique(scores, return_inverse=True)
        weight = np.ones(len(scores)) if weight is None else weight
        m = len(x)
        return cls.from_counts(
            x, np.bincount(number, weight, m), np.bincount(number, weight * positive, m)
        )

    def places(self, scores: FloatArray) -> IntArray:
        """Return where scores (n,) stand: 2 i in the gap before score i, 2 i + 1 at it."""
        low = np.searchsorted(self.x, scores, "left")
        return low + np.searchsorted(self.x, scores, "right")

    def ends(self, scores: FloatArray, quantile: float) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends (n,) at scores (n,) for one quantile of 2 log lambda."""
        places, back = np.unique(self.places(scores), return_inverse=True)
        low, up = self.ends_at(places, np.full(len(places), float(quantile)))
        return low[back], up[back]

    def ends_at(self, places: IntArray, quantile: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends (n,) at places (n,), each for its own quantile."""
        m = len(self.x)
        out = np.empty((2, len(places)))
        largest = self.below.best[-1]
        fit = np.append(self.fit, 1.0)
        kernels.intervals(
            places, fit, self.W, self.Y, self.below, self.above, largest, quantile, out[1]
        )
        # The lower end is the upper one of reversed scores with labels exchanged.
        W, Y = _mirrored(self.W, self.Y)
        fit = np.append(1.0 - self.fit[::-1], 1.0)
        kernels.intervals(
            2 * m - places, fit, W, Y, self.above, self.below, largest, quantile, out[0]
        )
        return 1.0 - out[0], out[1]

    def ratio(self, places: IntArray, theta: FloatArray) -> FloatArray:
        """Return 2 log lambda(theta) at places (n,) for values theta (n,)."""
        out = np.empty(len(places))
        kernels.ratios(
            places, theta, self.W, self.Y, self.below, self.above, self.below.best[-1], out
        )
        return out


def _mirrored(W: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the cumulative sums of reversed scores with labels exchanged."""
    weight = W[-1] - W[::-1]
    return weight, weight - (Y[-1] - Y[::-1])
