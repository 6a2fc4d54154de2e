"""Whether rows are those that a model was fitted to, from a sketch of a few hundred hashes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SIZE = 256
"""Hashes in a sketch: the smallest of all rows', so rows to compare are found by their own."""

FEWEST = 5
"""Rows to compare, below which nothing is said."""

MOST_REPEATED = 0.05
"""Share of repeated rows from which on equal rows say nothing."""


def sketch_rows(rows: pd.DataFrame) -> list[str]:
    """Return the smallest hashes of rows, none where many rows are alike.

    Rows are as `TableColumns` returns them, so one value has one form.
    """
    hashes = _hashes(rows)
    distinct = np.unique(hashes)
    if len(distinct) < (1 - MOST_REPEATED) * len(hashes):
        return []
    return [f"{value:016x}" for value in distinct[:SIZE].tolist()]


def share_known(rows: pd.DataFrame, sketch: Sequence[str]) -> float:
    """Return the share of rows among those of a sketch, estimated; 0 where too few tell."""
    known = np.array([int(value, 16) for value in sketch], dtype=np.uint64)
    if not len(known):
        return 0.0
    hashes = _hashes(rows)
    told = hashes if len(known) < SIZE else hashes[hashes <= known.max()]
    return float(np.isin(told, known).mean()) if len(told) >= FEWEST else 0.0


def _hashes(rows: pd.DataFrame) -> NDArray[np.uint64]:
    return pd.util.hash_pandas_object(rows, index=False).to_numpy().astype(np.uint64)
