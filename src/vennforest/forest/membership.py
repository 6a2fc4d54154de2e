"""Which examples each tree of an ensemble was trained on, one bit each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

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
        check_is_fitted(ensemble)
        return cls.from_samples(training_rows(ensemble, n), n, len(ensemble.estimators_))

    @classmethod
    def from_samples(
        cls,
        samples: Iterable[ArrayLike],
        n: int,
        n_trees: int | None = None,
        groups: IntArray | None = None,
    ) -> Self:
        """Build the membership from the indices of each tree's training examples.

        Parameters
        ----------
        samples : iterable of array-like of shape (n_drawn,), int
            For each tree indices in [0, n), as often as the example was drawn.
        n : int
            Number of examples.
        n_trees : int, optional
            Number of trees, where ``samples`` has no length.
        groups : ndarray of shape (n,), int, optional
            A tree that saw an example of a group, numbered from 0, counts as having seen all.
        """
        if n_trees is None:
            samples = list(samples)
            n_trees = len(samples)
        bits = np.empty((n_trees, -(-n // 64)), np.uint64)
        unseen = np.zeros(64 * bits.shape[1], bool)
        for row, sample in zip(bits, samples, strict=True):
            indices = np.asarray(sample, dtype=np.intp)
            if indices.size and not (indices.min() >= 0 and indices.max() < n):
                wrong = indices[(indices < 0) | (indices >= n)][0]
                raise ValueError(f"samples must be indices of {n} examples, got {wrong}")
            unseen[:n] = True
            unseen[indices] = False
            if groups is not None:
                n_groups = int(groups.max(initial=-1)) + 1
                is_seen = np.bincount(groups[indices], minlength=n_groups) > 0
                unseen[:n] = ~is_seen[groups]
            row[:] = np.packbits(unseen, bitorder="little").view("<u8")
        return cls(bits, n)

    @classmethod
    def from_dense(cls, may_score: ArrayLike) -> Self:
        """Build the membership from booleans (n_trees, n), True where a tree may score."""
        dense = np.asarray(may_score)
        if dense.dtype != bool or dense.ndim != 2:
            raise ValueError(
                "may_score must be boolean of shape (n_trees, n), "
                f"got {dense.dtype} of shape {dense.shape}"
            )
        padded = np.zeros((len(dense), -(-dense.shape[1] // 64) * 64), dtype=bool)
        padded[:, : dense.shape[1]] = dense
        bits = np.packbits(padded, axis=1, bitorder="little").view("<u8")
        return cls(bits.astype(np.uint64, copy=False), dense.shape[1])

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
