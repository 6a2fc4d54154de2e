"""A sketch of rows, by which rows that come again are recognised."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from vennforest._state import stored
from vennforest._validation import array, check_increasing, number, require
from vennforest.sources.row_hashes import HashArray, hash_rows

MOST = 4096
"""Hashes that are kept: the smallest, so rows to compare are found by their own."""

TWINS = 0.05
"""Share of rows with an equal one above which equal rows say nothing."""

WINDOW = 10_000

BY_CHANCE = 0.05
"""Expected share of rows of an honest stream that equal another of the window, at most."""

FEWEST = 5
"""Rows to compare, below which nothing is said."""

KNOWN = 0.5
"""Share of the rows compared from which on they are taken for rows met before."""


def _hashes(instance: Any, attribute: Any, value: Any) -> None:
    array(None, kinds="u")(instance, attribute, value)
    require(value.dtype == np.uint64 and len(value) <= MOST, f"{attribute.name} must be hashes")
    check_increasing(value, attribute.name)


@stored("known-rows")
@attrs.frozen(eq=False)
class KnownRows:
    """A sketch of rows, by which most of them are known again.

    ``hashes``: the 4,096 smallest of the rows' hashes, or all, sorted; ``twins``: those of rows
    that were there more than once, which say nothing when they come again; ``window``: in so many
    rows at most one in twenty equals another by chance.
    """

    hashes: HashArray = attrs.field(validator=_hashes)
    twins: HashArray = attrs.field(validator=_hashes)
    window: int = attrs.field(validator=number(1, WINDOW, integer=True))

    @classmethod
    def of(cls, rows: Any) -> Self | None:
        """Return a sketch of a table (n, d); None where many rows are equal, or have no hash."""
        try:
            hashes = hash_rows(rows)
        except Exception:  # whatever a table of another library does
            return None
        distinct, counts = np.unique(hashes, return_counts=True)
        n, again = len(hashes), counts > 1
        # Rule of three: as many pairs more could have been equal, and were not by chance.
        alike = 3 + float((counts * (counts - 1) / 2).sum())
        window = int(min(WINDOW, BY_CHANCE * n * (n - 1) / 2 / alike))
        if counts[again].sum() > TWINS * n or again.sum() > MOST or window < 1:
            return None
        return cls(distinct[:MOST], distinct[again], window)

    def compared(self, hashes: HashArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which of m rows the sketch says anything of, and which of them it knows, (m,)."""
        told: NDArray[np.bool_] = np.ones(len(hashes), bool)
        if len(self.hashes) == MOST:
            told = hashes <= self.hashes[-1]
        told &= ~np.isin(hashes, self.twins)
        return told, told & np.isin(hashes, self.hashes)

    def knows(self, hashes: HashArray) -> bool:
        """Tell whether most of m rows are among those of the sketch."""
        told, known = self.compared(hashes)
        return are_known(int(told.sum()), int(known.sum()))


def are_known(compared: int, known: int) -> bool:
    """Tell whether rows are known ones, from how many were compared and how many are known."""
    return known >= FEWEST and known >= KNOWN * compared
