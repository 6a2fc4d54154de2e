"""Rows of tables of any kind, one below another, and which of them are equal."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.utils.validation import check_array

from vennforest._validation import IntArray, is_frame


def check_table(X: Any) -> Any:
    """Return frames as they are, sparse matrices by rows, and everything else as an array."""
    if is_frame(X):
        return X
    if issparse(X):
        matrix: Any = X
        return matrix.tocsr()
    return check_array(X, dtype=None, ensure_all_finite=False)


def stack(above: Any, below: Any) -> Any:
    """Return the rows of two tables as one."""
    if issparse(above) or issparse(below):
        return vstack([above, below], format="csr")
    if not (is_frame(above) and is_frame(below)):
        return np.concatenate([np.asarray(above), np.asarray(below)])
    # pandas and polars both have concat; neither has to be installed for this module.
    library = sys.modules[type(above).__module__.partition(".")[0]]
    if library.__name__ == "polars":
        return library.concat([above, below], how="vertical_relaxed")
    return library.concat([above, below], ignore_index=True)


def first_of_equal_rows(X: Any) -> IntArray:
    """Return for each row the number of the first row with the same values, shape (n,)."""
    if issparse(X):
        matrix: Any = X
        X = matrix.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        bounds = X.indptr
        keys: Any = [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in pairwise(bounds)]
    else:
        table = np.asarray(X)
        if table.dtype.kind in "fiub":
            keys = [row.tobytes() for row in table + table.dtype.type(0)]  # -0.0 becomes 0.0
        else:
            keys = [repr(row) for row in table.tolist()]
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(key, i) for i, key in enumerate(keys)], np.intp)
