"""Rows of a stream that came before: within the stream, or before it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vennforest._state import stored
from vennforest._validation import check_array, check_number, require
from vennforest.sources.row_hashes import WINDOW, HashArray

BATCH = 30
"""Rows of which a batch is recognised when it comes again."""

BATCHES = 20
"""Batches that are remembered."""

BITS = 40.0
"""Surprise, in bits, at a batch that comes again by chance, below which nothing is said."""


@stored("recent-rows")
class RecentRows:
    """The rows that a stream held last, and its last batches, by their hashes.

    Parameters
    ----------
    window : int
        How many rows are remembered; 0 where equal rows say nothing.
    hashes : ndarray of shape (m,), uint64
        Of the rows, the oldest first.
    batches : ndarray of shape (b, 2), int64
        Length and checksum of the last batches, the oldest first.

    Raises
    ------
    ValueError
        If a stream leaves no such rows or batches.
    """

    def __init__(self, window: int, hashes: HashArray, batches: NDArray[np.int64]) -> None:
        check_number(window, "window", 0, WINDOW, integer=True)
        check_array(hashes, "hashes", (None,), "u")
        check_array(batches, "batches", (None, 2), "i", 0)
        require(len(batches) <= BATCHES, f"batches must be at most {BATCHES}")
        # A dict keeps the order in which its keys came.
        self._order: dict[int, None] = dict.fromkeys(hashes.tolist())
        same = len(self._order) == len(hashes) <= window
        require(same and hashes.dtype == np.uint64, "hashes must be of different rows")
        self.window = window
        self._batches: list[list[int]] = batches.tolist()

    @classmethod
    def at_first(cls, window: int) -> Self:
        """Return the memory of a stream before it began."""
        return cls(window, np.empty(0, np.uint64), np.empty((0, 2), np.int64))

    def has_batch(self, hashes: HashArray, codes: NDArray[Any]) -> bool:
        """Tell whether a batch came before, and not by chance.

        Parameters
        ----------
        hashes : ndarray of shape (n,), uint64
        codes : ndarray of shape (n,)
            Class numbers.
        """
        n = len(hashes)
        if n < BATCH or _batch(hashes, codes) not in self._batches:
            return False
        shares = np.unique(hashes ^ codes.astype(np.uint64), return_counts=True)[1] / n
        return bool(-n * np.log2((shares**2).sum()) >= BITS)

    def take(
        self, hashes: HashArray, codes: NDArray[Any], wanted: NDArray[np.bool_], twins: HashArray
    ) -> NDArray[np.bool_]:
        """Remember a batch, and return which of its rows did not come within the window before.

        Parameters
        ----------
        hashes : ndarray of shape (n,), uint64
        codes : ndarray of shape (n,)
            Class numbers.
        wanted : ndarray of shape (n,), bool
            Rows that count; others are not remembered.
        twins : ndarray of shape (t,), uint64
            Of rows that come again by nature, and are always new.
        """
        if len(hashes) >= BATCH:
            self._batches = [*self._batches, _batch(hashes, codes)][-BATCHES:]
        if not self.window:
            return np.ones(len(hashes), bool)
        order, common = self._order, set(twins.tolist())
        new = np.ones(len(hashes), bool)
        for i in np.flatnonzero(wanted).tolist():
            value = int(hashes[i])
            if value in common:
                continue
            if value in order:
                new[i] = False
                del order[value]  # the latest time counts
            elif len(order) == self.window:
                del order[next(iter(order))]
            order[value] = None
        return new

    def to_state(self) -> Mapping[str, Any]:
        """Return what a file holds."""
        return {
            "window": self.window,
            "hashes": np.array(list(self._order), np.uint64),
            "batches": np.array(self._batches, np.int64).reshape(-1, 2),
        }

    @classmethod
    def from_state(cls, window: int, hashes: HashArray, batches: NDArray[np.int64]) -> Self:
        """Return the memory."""
        return cls(window, hashes, batches)


def _batch(hashes: HashArray, codes: NDArray[Any]) -> list[int]:
    return [len(hashes), zlib.crc32(codes.tobytes(), zlib.crc32(hashes.tobytes()))]
