"""Bergmann and Hommel's procedure: adjusted p-values over exhaustive sets of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray

MOST_METHODS = 12
"""Bergmann and Hommel's procedure goes through every partition: 4,213,597 of 12 methods."""


def bergmann_hommel(p: ArrayLike) -> FloatArray:
    """Adjust the p-values of all pairs of k methods by Bergmann and Hommel's dynamic procedure.

    Parameters
    ----------
    p : array-like of shape (k, k)
        Symmetric; the p-value of "these two methods are equal". The diagonal is not read.

    Returns
    -------
    ndarray of shape (k, k)
        Adjusted p-values in [0, 1], 1 on the diagonal: the largest ``|I| min of p over I`` over
        the exhaustive sets I that hold the pair (García & Herrera 2008, section 3.1).

    Raises
    ------
    ValueError
        If p is not square, symmetric and in [0, 1], or there are more than 12 methods.

    Notes
    -----
    A set of pairs is exhaustive when exactly those equalities can be true together: when it is
    the set of pairs within the blocks of a partition of the methods. So partitions are gone
    through (115,975 for ten methods), not sets of pairs (2**45). A pair is rejected at level
    alpha exactly when its adjusted p-value is at most alpha; these need not be in the order of
    the p-values themselves, since pairs lie in different exhaustive sets.
    """
    p = np.asarray(p, dtype=np.float64)
    k = len(p)
    if p.shape != (k, k):
        raise ValueError(f"p must have shape (k, k), got {p.shape}")
    off = ~np.eye(k, dtype=bool)
    if not (np.array_equal(p[off], p.T[off]) and ((p[off] >= 0) & (p[off] <= 1)).all()):
        raise ValueError("p must be symmetric and in [0, 1]")
    if k > MOST_METHODS:
        raise ValueError(f"p must be of at most {MOST_METHODS} methods, got {k}: use Nemenyi")
    adjusted = np.ones((k, k))
    pairs = list(combinations(range(k), 2))
    largest = np.zeros(len(pairs))
    for blocks in _partitions(k):
        size = np.zeros(blocks.shape[1], dtype=np.intp)
        smallest = np.ones(blocks.shape[1])
        for i, j in pairs:
            together = blocks[i] == blocks[j]
            size += together
            np.minimum(smallest, p[i, j], out=smallest, where=together)
        value = size * smallest
        for at, (i, j) in enumerate(pairs):
            together = blocks[i] == blocks[j]
            largest[at] = max(largest[at], value.max(where=together, initial=0.0))
    for at, (i, j) in enumerate(pairs):
        adjusted[i, j] = adjusted[j, i] = min(1.0, largest[at])
    return adjusted


def _partitions(k: int, most: int = 10) -> Iterator[NDArray[np.int8]]:
    """Yield all partitions of k methods, some at a time: arrays (k, m) of block numbers."""
    blocks = np.zeros((min(k, 1), 1), dtype=np.int8)
    for _ in range(1, min(k, most)):
        blocks = _with_one_more(blocks)
    if k <= most:
        yield blocks
        return
    for part in np.array_split(blocks, 1 + blocks.shape[1] // 4096, axis=1):
        extended = part
        for _ in range(most, k):
            extended = _with_one_more(extended)
        yield extended


def _with_one_more(blocks: NDArray[np.int8]) -> NDArray[np.int8]:
    """Put one more method into every block that there is, and into one of its own."""
    choices = blocks.max(axis=0).astype(np.intp) + 2
    repeated = np.repeat(blocks, choices, axis=1)
    starts = np.repeat(np.cumsum(choices) - choices, choices)
    chosen = (np.arange(len(starts)) - starts).astype(np.int8)
    return np.vstack([repeated, chosen])
