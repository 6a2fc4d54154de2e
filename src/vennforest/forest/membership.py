"""Which examples each tree of an ensemble was trained on, one bit each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import (
    IntArray,
    check_array,
    check_number,
    require,
)
from vennforest.forest.bags import training_rows


@dataclass(frozen=True, eq=False)
class Membership:
    """Which examples are out of bag for which tree of an ensemble.

    Parameters
    ----------
    bits : ndarray of shape (n_trees, ceil(n / 64)), uint64
        Bit i % 64 of word i // 64 is set where the tree did not see example i in training, so
        that it may score it. Bits from n on are zero.
    n : int
        Number of examples.

    Examples
    --------
    >>> membership = Membership.from_samples([[0, 0, 1], [2, 1, 1]], 3)
    >>> membership.dense()
    array([[False, False,  True],
           [ True, False, False]])
    >>> membership.counts()
    array([1, 0, 1])
    """

    bits: NDArray[np.uint64]
    n: int

    def _check_state(self) -> None:
        check_number(self.n, "n", 0, integer=True)
        check_array(self.bits, "bits", (None, -(-self.n // 64)), "u")
        require(self.bits.dtype == np.uint64, "bits must be of type uint64")
        if self.n % 64:
            excess = self.bits[:, -1] >> np.uint64(self.n % 64)
            require(not excess.any(), f"bits from {self.n} on must be zero")

    @classmethod
    def from_forest(cls, ensemble: Any, n: int) -> Self:
        """Read the bags of a forest or bagging ensemble fitted to n examples."""
        return cls.from_samples(training_rows(ensemble, n), n)

    @classmethod
    def from_samples(
        cls, samples: Iterable[ArrayLike], n: int, groups: IntArray | None = None
    ) -> Self:
        """Build the membership from the indices of each tree's training examples.

        Parameters
        ----------
        samples : iterable of array-like of shape (n_drawn,), int
            For each tree indices in [0, n), as often as the example was drawn.
        n : int
            Number of examples.
        groups : ndarray of shape (n,), int, optional
            A tree that saw an example of a group, numbered from 0, counts as having seen all.
        """
        rows = []
        for sample in samples:
            indices = np.asarray(sample, dtype=np.intp)
            if indices.size and not (indices.min() >= 0 and indices.max() < n):
                wrong = indices[(indices < 0) | (indices >= n)][0]
                raise ValueError(f"samples must be indices of {n} examples, got {wrong}")
            may_score = np.ones(n, bool)
            may_score[indices] = False
            if groups is not None:
                is_seen = np.bincount(groups[indices], minlength=int(groups.max()) + 1) > 0
                may_score = ~is_seen[groups]
            rows.append(_packed(may_score[None])[0])
        return cls(np.array(rows), n)

    @classmethod
    def from_dense(cls, may_score: NDArray[np.bool_]) -> Self:
        """Build the membership from booleans (n_trees, n), True where a tree may score."""
        return cls(_packed(may_score), may_score.shape[1])

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.bits)

    def select(self, tree: int) -> NDArray[np.bool_]:
        """Return which examples a tree may score, shape (n,)."""
        octets = self.bits[tree].astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(octets, count=self.n, bitorder="little").view(bool)

    def counts(self) -> IntArray:
        """Return for each example the number of trees that may score it, shape (n,)."""
        counts = np.zeros(self.n, np.intp)
        for tree in range(len(self)):
            counts += self.select(tree)
        return counts

    def dense(self) -> NDArray[np.bool_]:
        """Return one boolean per tree and example, shape (n_trees, n)."""
        octets = self.bits.astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(octets, axis=1, count=self.n, bitorder="little").view(bool)


def _packed(may_score: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return booleans (n_trees, n) as bits, (n_trees, ceil(n / 64))."""
    n_trees, n = may_score.shape
    padded = np.zeros((n_trees, -(-n // 64) * 64), dtype=bool)
    padded[:, :n] = may_score
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)
