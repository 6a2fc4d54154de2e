"""Rows as hashes: what is drawn for a row, and whether it was met before."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vennforest._state import stored
from vennforest._validation import IntArray, array, check_increasing, number, require
from vennforest.sources import hash_kernels

HashArray = NDArray[np.uint64]


def hash_rows(X: Any) -> HashArray:
    """Return a hash (n,) of each row of any table (n, d) a classifier may take.

    float32 numbers count by their bits, other numbers by their value as float64, also between cells
    of text. Numbers that compare equal have one hash (-0.0 and 0.0), and so have all NaN. Any other
    cell counts by what Python prints of it. Dense and sparse tables of the same type and numbers
    have the same.
    """
    if sparse.issparse(X):
        return _hash_sparse(X)
    columns = None
    if hasattr(X, "iloc") and X.ndim == 2:
        columns = [np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]
    if columns is None or all(column.dtype.kind in "fiub" for column in columns):
        table = np.asarray(X)
        table = table.reshape(len(table), math.prod(table.shape[1:]))
        if table.dtype.kind in "fiub" or not table.size:
            bits, infinity = _bits(table)
            out = np.empty(len(table), np.uint64)
            hash_kernels.hash_cells(bits, np.empty((0, 0), bool), infinity, out)
            return out
        columns = list(table.T)
    # Cell by cell: what one row contains must not decide how another is read.
    cells, text = zip(*(_cells(column) for column in columns), strict=True)
    out = np.empty(len(cells[0]), np.uint64)
    hash_kernels.hash_cells(
        np.column_stack(cells), np.column_stack(text), np.uint64(0x7FF0000000000000), out
    )
    return out


def _hash_sparse(X: Any) -> HashArray:
    table: Any = sparse.csr_array(X)
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    bits, infinity = _bits(table.data)
    out = np.empty(table.shape[0], np.uint64)
    hash_kernels.hash_csr(
        table.indptr.astype(np.int64), table.indices.astype(np.int64), bits, infinity, out
    )
    return out


def _bits(values: NDArray[Any]) -> tuple[NDArray[Any], np.uint64]:
    """Return numbers as unsigned integers of their width, and the bits of infinity."""
    if values.dtype == np.float32:
        single = np.require(values, requirements=["C", "W"])
        return single.view(np.uint32), np.uint64(0x7F800000)
    double = np.require(values, np.float64, ["C", "W"])
    return double.view(np.uint64), np.uint64(0x7FF0000000000000)


def _cells(values: NDArray[Any]) -> tuple[HashArray, NDArray[np.bool_]]:
    """Return the cells of a column: bits of numbers or digests of text, and which are text."""
    text = np.zeros(len(values), bool)
    if values.dtype.kind in "mM":
        return values.astype(f"{values.dtype.kind}8[us]").view(np.uint64), ~text
    if values.dtype.kind in "fiub":
        return _bits(values.astype(np.float64))[0], text
    cells = values.tolist()
    if set(map(type, cells)) <= {float, int, bool, type(None)}:
        with suppress(OverflowError):
            return _bits(np.array(cells, np.float64))[0], text
    # A dictionary, because most text comes again; cells without a hash are not kept in it.
    known: dict[Any, tuple[int, bool]] = {}
    bits = np.empty(len(cells), np.uint64)
    for i, cell in enumerate(cells):
        try:
            found = known[cell]
        except KeyError:
            found = known[cell] = _cell(cell)
        except TypeError:
            found = _cell(cell)
        bits[i], text[i] = found
    return bits, text


def _cell(cell: Any) -> tuple[int, bool]:
    if not isinstance(cell, str | bytes):
        with suppress(TypeError, ValueError, OverflowError):
            return int(_bits(np.array([math.nan if cell is None else float(cell)]))[0][0]), False
    digest = hashlib.blake2b(str(cell).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little"), True


def draw_examples(hashes: HashArray, seed: int, n_examples: int) -> IntArray:
    """Draw an example (n,), below ``n_examples``, for each row by its hash (n,) and a seed."""
    out = np.empty(len(hashes), np.intp)
    hash_kernels.draw_examples(hashes, np.uint64(seed), n_examples, out)
    return out


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
