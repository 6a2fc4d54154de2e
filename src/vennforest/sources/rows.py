"""Rows as bits: what a row is hashed from, whatever its table is."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vennforest._validation import FloatArray, IntArray
from vennforest.sources import kernels


def words_of_floats(X: NDArray[np.floating[Any]]) -> NDArray[np.uint32]:
    """Return the bits of a numeric table (n, d) as (n, words) uint32.

    Numbers that compare equal have the same bits (-0.0 and 0.0), and so have all NaN.
    """
    X = X + X.dtype.type(0)  # -0.0 + 0.0 is 0.0; also makes a copy that may be written to
    X[np.isnan(X)] = np.nan
    words: NDArray[np.uint32] = np.ascontiguousarray(X).view(np.uint32)
    return words.reshape(len(X), -1)


def words_of_table(X: Any) -> NDArray[np.uint32]:
    """Return bits (n, words) uint32 of the rows of any table a classifier may take.

    Numbers count by their float64 value; rows with anything else by what Python prints of them.
    """
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        out = np.empty((X.shape[0], 4), np.uint32)
        for i in range(X.shape[0]):
            row = X[[i]].tocoo()
            columns, values = row.coords[-1], np.asarray(row.data, np.float64)
            order = np.argsort(columns[values != 0], kind="stable")
            out[i] = _digest(
                columns[values != 0][order].astype(np.int64).tobytes()
                + words_of_floats(values[values != 0][order][None]).tobytes()
            )
        return out
    array = np.asarray(X)
    if array.dtype.kind in "fiub":
        return words_of_floats(array.astype(np.float64).reshape(len(array), -1))
    try:
        return words_of_floats(array.astype(np.float64).reshape(len(array), -1))
    except (TypeError, ValueError):
        return np.array(
            [_digest("\x1f".join(map(str, row)).encode()) for row in array.tolist()]
        ).reshape(len(array), 4)


def _digest(text: bytes) -> NDArray[np.uint32]:
    return np.frombuffer(hashlib.blake2b(text, digest_size=16).digest(), np.uint32)


def draw_examples(words: NDArray[np.uint32], seed: int, n_draws: int, n_examples: int) -> IntArray:
    """Draw calibration examples for every row from a hash of its bits and the seed.

    Returns
    -------
    ndarray of shape (n_draws, n)
        Example numbers in [0, n_examples), uniform over rows and draws.
    """
    out = np.empty((n_draws, len(words)), np.intp)
    kernels.draw_examples(words, np.uint64(seed), n_draws, n_examples, out)
    return out


def draw_subsets(
    words: NDArray[np.uint32], seed: int, sizes: IntArray, n_trees: int
) -> NDArray[np.bool_]:
    """Pick as many trees as ``sizes`` says for each row, from a hash of its bits and the seed.

    Returns
    -------
    ndarray of shape (n, n_trees)
        True for the trees picked: each row's a uniform choice without replacement.
    """
    # The trees with the smallest of n_trees hashed numbers are a uniform choice.
    keys = draw_examples(words, seed, n_trees, 2**31).T
    order = np.argsort(keys, axis=1, kind="stable")
    picked = np.zeros((len(words), n_trees), np.bool_)
    np.put_along_axis(picked, order, np.arange(n_trees) < sizes[:, None], axis=1)
    return picked


def mean_over_trees(
    answers: FloatArray, members: NDArray[np.floating[Any]], counts: FloatArray
) -> FloatArray:
    """Return the mean answer of every example's trees to every row.

    Parameters
    ----------
    answers : ndarray of shape (m, n_trees) or (m, n_trees, k)
        What each tree says of each row.
    members : ndarray of shape (n_trees, r)
        1 where a tree belongs to an example, else 0.
    counts : ndarray of shape (r,)
        Trees of each example.

    Returns
    -------
    ndarray of shape (r, m) or (r, m, k)
    """
    if answers.ndim == 2:
        means: FloatArray = (answers @ members / counts).T
        return np.ascontiguousarray(means)
    per_class = [(answers[:, :, j] @ members / counts).T for j in range(answers.shape[2])]
    return np.ascontiguousarray(np.stack(per_class, axis=-1))
