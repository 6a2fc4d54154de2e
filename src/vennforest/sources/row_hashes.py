"""Hashes of rows, to find copies and to draw calibration examples."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._jit import kernel

HashArray = NDArray[np.uint64]

MAX_SKETCHED_ROWS, MIN_SHARE_OF_DISTINCT_ROWS = 256, 0.95
"""Hashes in a sketch of rows, and share of distinct rows below which there is none."""

MIN_HASHED_ROWS = 5
"""Rows below which it is not said how many of them are in a sketch."""

# The digits of pi, and 2**64 divided by the golden ratio: no pattern that data could have.
START = 0x243F6A8885A308D3
STEP = 0x9E3779B97F4A7C15

INFINITY = np.uint64(0x7FF0000000000000)
SINGLE_INFINITY = np.uint64(0x7F800000)
"""The bits of infinity as float64 and as float32."""


@kernel
def mix(h: Any) -> Any:
    """Scramble 64 bits so each depends on all: SplitMix64 (Steele, Lea & Flood 2014)."""
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@kernel
def add_cell(h: Any, column: Any, bits: Any, infinity: Any, is_text: Any) -> Any:
    """Return the hash after one more cell: the bits of a number, or the digest of a text."""
    if not is_text:
        # Without the sign: 0.0 and -0.0, dense or left out of a sparse row, change nothing.
        magnitude = bits & (infinity | (infinity - np.uint64(1)))
        if magnitude == 0:
            return h
        # Every NaN is one number, whatever its payload.
        if magnitude > infinity:
            bits = infinity + np.uint64(1)
    # The column's number goes in, so the same numbers in other columns have another hash.
    return mix(h ^ (bits + (np.uint64(column) + np.uint64(1)) * np.uint64(STEP)))


@kernel
def hash_cells(bits: Any, is_text: Any, infinity: Any, out: HashArray) -> None:
    """Hash the rows of a table (n, d) of cells; ``is_text`` is (n, d), or empty without text."""
    n, d = bits.shape
    for i in range(n):
        h = np.uint64(START)
        for j in range(d):
            text = is_text.size > 0 and is_text[i, j]
            h = add_cell(h, j, np.uint64(bits[i, j]), infinity, text)
        out[i] = h


@kernel
def hash_csr(pointers: Any, columns: Any, bits: Any, infinity: Any, out: HashArray) -> None:
    """Hash the rows of a CSR table with sorted columns: as the dense table is hashed."""
    for i in range(len(out)):
        h = np.uint64(START)
        for at in range(pointers[i], pointers[i + 1]):
            h = add_cell(h, columns[at], np.uint64(bits[at]), infinity, False)
        out[i] = h


@kernel
def draw_by_hash(hashes: HashArray, seed: Any, n_examples: int, out: Any) -> None:
    """Draw an example for every row from its hash (n,) and the seed: out (n,) intp."""
    # The seed is mixed before it meets the row's hash: seeds 0 and 1 give unrelated draws.
    start = mix(seed + np.uint64(STEP))
    for i in range(len(hashes)):
        # The upper 32 bits as a fraction: no draw is likelier than another by more than 2**-32.
        high = mix(mix(hashes[i] ^ start)) >> np.uint64(32)
        out[i] = np.intp((high * np.uint64(n_examples)) >> np.uint64(32))


def hash_rows(X: Any) -> HashArray:
    """Return a hash (n,) of each row of any table (n, d) a classifier may take.

    float32 numbers count by their bits, other numbers by their value as float64, and any other cell
    by what Python prints of it. -0.0 and 0.0 are equal, all NaN, and dense and sparse tables.
    """
    if hasattr(X, "tocsr"):
        sparse = X.tocsr()
        if not sparse.has_canonical_format:
            sparse = sparse.copy()
            sparse.sum_duplicates()
        bits, infinity = _bits(sparse.data)
        out = np.empty(sparse.shape[0], np.uint64)
        hash_csr(
            sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64), bits, infinity, out
        )
        return out
    columns = None
    if hasattr(X, "iloc") and X.ndim == 2:
        columns = [np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]
    if columns is None or all(column.dtype.kind in "fiub" for column in columns):
        table = as_array(X)
        table = table.reshape(len(table), math.prod(table.shape[1:]))
        if table.dtype.kind in "fiub" or not table.size:
            bits, infinity = _bits(table)
            out = np.empty(len(table), np.uint64)
            hash_cells(bits, np.empty((0, 0), bool), infinity, out)
            return out
        columns = list(table.T)
    # Cell by cell: what one row contains must not decide how another is read.
    cells, is_text = zip(*(_cell_hashes(column) for column in columns), strict=True)
    out = np.empty(len(cells[0]), np.uint64)
    hash_cells(np.column_stack(cells), np.column_stack(is_text), INFINITY, out)
    return out


def as_array(X: Any) -> NDArray[Any]:
    """Return an array of rows, one object a row where rows are of different lengths."""
    try:
        return np.asarray(X)
    except ValueError:
        rows = np.empty(len(X), object)
        for i, row in enumerate(X):
            rows[i] = row
        return rows


def _bits(values: NDArray[Any]) -> tuple[NDArray[Any], np.uint64]:
    """Return numbers as unsigned integers of their width, and the bits of infinity."""
    if values.dtype == np.float32:
        return np.require(values, requirements=["C", "W"]).view(np.uint32), SINGLE_INFINITY
    return np.require(values, np.float64, ["C", "W"]).view(np.uint64), INFINITY


def _cell_hashes(values: NDArray[Any]) -> tuple[HashArray, NDArray[np.bool_]]:
    """Return the cells of a column: bits of numbers or digests of text, and which are text."""
    is_text = np.zeros(len(values), bool)
    if values.dtype.kind in "mM":
        return values.astype(f"{values.dtype.kind}8[us]").view(np.uint64), ~is_text
    if values.dtype.kind in "fiub":
        return _bits(values.astype(np.float64))[0], is_text
    cells = values.tolist()
    if set(map(type, cells)) <= {float, int, bool, type(None)}:
        with suppress(OverflowError):
            return _bits(np.array(cells, np.float64))[0], is_text
    digest = cache(_digest)  # because most text comes again
    bits = np.empty(len(cells), np.uint64)
    for i, cell in enumerate(cells):
        try:
            bits[i], is_text[i] = digest(cell)
        except TypeError:  # of a cell without a hash
            bits[i], is_text[i] = _digest(cell)
    return bits, is_text


def _digest(cell: Any) -> tuple[int, bool]:
    """Return the bits of a number or the digest of a text, and whether it is text."""
    if not isinstance(cell, str | bytes):
        with suppress(TypeError, ValueError, OverflowError):
            return int(_bits(np.array([math.nan if cell is None else float(cell)]))[0][0]), False
    digest = hashlib.blake2b(str(cell).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little"), True


def draw_examples(hashes: HashArray, seed: int, n_examples: int) -> NDArray[np.intp]:
    """Draw an example (n,), below ``n_examples``, for each row by its hash (n,) and a seed."""
    out = np.empty(len(hashes), np.intp)
    draw_by_hash(hashes, np.uint64(seed), n_examples, out)
    return out


def count_equal_pairs(hashes: HashArray) -> float:
    """Return how many pairs of rows are equal, from their hashes (n,)."""
    counts = np.unique(hashes, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1) / 2).sum())


def sketch_rows(hashes: HashArray) -> HashArray:
    """Return the smallest hashes, by which rows are recognised; none where many rows are equal."""
    distinct = np.unique(hashes)
    is_useful = len(distinct) >= MIN_SHARE_OF_DISTINCT_ROWS * len(hashes)
    return distinct[: MAX_SKETCHED_ROWS if is_useful else 0].copy()


def share_in_sketch(hashes: HashArray, sketch: HashArray) -> float:
    """Return the estimated share of rows (n,) that are in a sketch; 0 where too few can tell."""
    comparable = hashes
    if len(sketch) == MAX_SKETCHED_ROWS:
        comparable = hashes[hashes <= sketch[-1]]
    if not len(sketch) or len(comparable) < MIN_HASHED_ROWS:
        return 0.0
    return float(np.isin(comparable, sketch).mean())
