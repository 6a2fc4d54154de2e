"""Examples that occur more than once: they calibrate by their own copies."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.sparse import issparse

from vennforest._validation import CodeArray
from vennforest._warn import warn
from vennforest.sources.draws import HashArray, hash_rows

FEW = 0.05
"""Share of repeated examples up to which nothing is said: bounds hardly move."""

MOST_MIXED = 200_000
"""Rows of anything but numbers that are looked at; more take seconds in plain Python."""


def warn_of_repeats(X: Any, codes: CodeArray) -> None:
    """Warn where many examples have an exact twin, features and label.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, d)
    codes : ndarray of shape (n,)
        Class numbers.

    Warns
    -----
    UserWarning
        With the share of examples that have a twin, if that is above 5%.
    """
    share = share_of_repeats(X, codes)
    if share > FEW:
        warn(
            f"about {share:.0%} of the examples occur more than once, features and label: one copy "
            "trains where another calibrates, and bounds that repeats support may be too narrow. "
            "Give weights in place of copies, or groups= to keep copies together"
        )


def share_of_repeats(X: Any, codes: CodeArray) -> float:
    """Return the share of examples that have an exact twin, in [0, 1]."""
    hashes = _hashes(X)
    if hashes is None or not len(hashes):
        return 0.0
    keys = np.stack([hashes, codes.astype(np.uint64)], axis=1)
    _, counts = np.unique(keys, axis=0, return_counts=True)
    return float(counts[counts > 1].sum() / len(codes))


def _hashes(X: Any) -> HashArray | None:
    """Return a hash of each row, None where there are too many to look at."""
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        if hasattr(X, "hash_rows"):  # polars
            return np.asarray(X.hash_rows(), dtype=np.uint64)
        try:
            hashed = sys.modules["pandas"].util.hash_pandas_object(X, index=False)
        except (KeyError, TypeError):  # another library's frame, or cells without a hash
            return None
        return np.asarray(hashed, dtype=np.uint64)
    if issparse(X):
        return hash_rows(X)
    table = np.asarray(X)
    if table.dtype.kind not in "fiub" and len(table) > MOST_MIXED:
        return None
    return hash_rows(table)
