"""One hash a row: copies are found by it, and calibration examples are drawn by it."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vennforest._validation import IntArray
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
        table = _as_array(X)
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


def _as_array(X: Any) -> NDArray[Any]:
    """Return an array of rows, one object a row where rows are of different lengths."""
    try:
        return np.asarray(X)
    except ValueError:
        rows = np.empty(len(X), object)
        for i, row in enumerate(X):
            rows[i] = row
        return rows


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
    digests: dict[Any, tuple[int, bool]] = {}
    bits = np.empty(len(cells), np.uint64)
    for i, cell in enumerate(cells):
        try:
            digest = digests[cell]
        except KeyError:
            digest = digests[cell] = _cell(cell)
        except TypeError:
            digest = _cell(cell)
        bits[i], text[i] = digest
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


def count_equal_pairs(hashes: HashArray) -> float:
    """Return how many pairs of rows are equal, from their hashes (n,)."""
    counts = np.unique(hashes, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1) / 2).sum())
