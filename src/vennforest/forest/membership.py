"""Which tree of an ensemble may score which training example, a bit each."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from vennforest._state import check_array, number, require, stored
from vennforest._validation import IntArray
from vennforest.forest import kernels

INDICES_AT_ONCE = 1 << 23
"""Training indices of a forest that are held at once, at least those of one tree."""


@stored("membership")
@attrs.frozen(eq=False)
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

    bits: NDArray[np.uint64] = attrs.field()
    n: int = attrs.field(validator=number(0, integer=True))

    def __attrs_post_init__(self) -> None:
        check_array(self.bits, "bits", (None, -(-self.n // 64)), "u")
        require(self.bits.dtype == np.uint64, "bits must be of type uint64")
        if self.n % 64:
            beyond = self.bits[:, -1] >> np.uint64(self.n % 64)
            require(not beyond.any(), f"bits from {self.n} on must be zero")

    @classmethod
    def from_forest(cls, ensemble: Any, n: int) -> Self:
        """Read the bootstrap samples of a fitted forest or bagging ensemble.

        Parameters
        ----------
        ensemble : RandomForestClassifier, ExtraTreesClassifier or BaggingClassifier
            Fitted; its public ``estimators_samples_`` is read.
        n : int
            Number of examples it was fitted to.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If the ensemble drew an example from ``n`` on.
        """
        check_is_fitted(ensemble)
        return cls.from_samples(samples_of(ensemble, n), n, len(ensemble.estimators_))

    @classmethod
    def from_samples(
        cls,
        samples: Iterable[ArrayLike],
        n: int,
        n_trees: int | None = None,
        groups: IntArray | None = None,
    ) -> Self:
        """Take each tree's training examples from an array of their indices.

        Parameters
        ----------
        samples : iterable of array-like of shape (n_drawn,)
            For each tree the indices in [0, n) of the examples it saw, in any order, repeated or
            not.
        n : int
            Number of examples.
        n_trees : int, optional
            Number of arrays in ``samples``, where it has no length.
        groups : ndarray of shape (n,), int, optional
            Each example's group, numbered from 0: a tree that saw one example of a group saw all.

        Raises
        ------
        ValueError
            If an index is not in [0, n).
        """
        if n_trees is None:
            samples = list(samples)
            n_trees = len(samples)
        everyone = np.zeros(-(-n // 64) * 64, dtype=bool)
        everyone[:n] = True
        bits = np.tile(_pack(everyone[None]), (n_trees, 1))
        for row, drawn in zip(bits, samples, strict=True):
            indices = np.array(drawn, dtype=np.int64)
            if indices.size and not (indices.min() >= 0 and indices.max() < n):
                wrong = indices[(indices < 0) | (indices >= n)][0]
                raise ValueError(f"samples must be indices of {n} examples, got {wrong}")
            if groups is not None:
                seen = np.zeros(int(groups.max(initial=-1)) + 1, dtype=bool)
                seen[groups[indices]] = True
                indices = np.flatnonzero(seen[groups]).astype(np.int64)
            kernels.clear_bits(indices, row)
        return cls(bits, n)

    @classmethod
    def from_dense(cls, may_score: ArrayLike) -> Self:
        """Take one boolean per tree and example.

        Parameters
        ----------
        may_score : array-like of shape (n_trees, n), bool
            True where the tree may score the example.

        Raises
        ------
        ValueError
            If the array is not boolean or has not two dimensions.
        """
        dense = np.asarray(may_score)
        if dense.dtype != bool or dense.ndim != 2:
            raise ValueError(
                "may_score must be boolean of shape (n_trees, n), "
                f"got {dense.dtype} of shape {dense.shape}"
            )
        return cls(_pack(dense), dense.shape[1])

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.bits)

    def counts(self) -> IntArray:
        """Return for each example the number of trees that may score it, shape (n,)."""
        counts = np.zeros(self.n, dtype=np.int64)
        kernels.count_bits(self.bits, counts)
        return counts.astype(np.intp, copy=False)

    def dense(self) -> NDArray[np.bool_]:
        """Return one boolean per tree and example, shape (n_trees, n)."""
        octets = self.bits.astype("<u8", copy=False).view(np.uint8)
        unpacked = np.unpackbits(octets, axis=1, count=self.n, bitorder="little")
        return unpacked.astype(bool)


def _pack(dense: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return booleans (rows, n) as bits (rows, ceil(n / 64))."""
    octets = np.packbits(dense, axis=1, bitorder="little")
    padded = np.zeros((len(dense), -(-dense.shape[1] // 64) * 8), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view("<u8").astype(np.uint64, copy=False)


def samples_of(ensemble: Any, n: int) -> Iterable[NDArray[Any]]:
    """Yield the training indices of each estimator.

    The property draws those of all estimators anew and returns them in one list, 4 n bytes an
    estimator. A copy of the ensemble that has a few of the estimators returns theirs alone;
    where it does not (bagging keeps the seeds apart) the whole list has to do.
    """
    estimators = ensemble.estimators_
    at_once = max(1, INDICES_AT_ONCE // max(n, 1))
    if at_once < len(estimators):
        part = copy.copy(ensemble)
        part.estimators_ = estimators[:1]
        if len(part.estimators_samples_) == 1:
            for first in range(0, len(estimators), at_once):
                part.estimators_ = estimators[first : first + at_once]
                yield from part.estimators_samples_
            return
    yield from ensemble.estimators_samples_
