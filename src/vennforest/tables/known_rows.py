"""Whether rows are those that a model was fitted to, from a sketch of a few hundred hashes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MAX_HASHES = 256
"""Hashes in a sketch: the smallest of all rows', so rows to compare are those of small hashes."""

MIN_ROWS_TO_COMPARE = 5

MIN_DISTINCT_SHARE = 0.95
"""Share of distinct rows below which equal rows say nothing."""


def sketch_rows(rows: pd.DataFrame) -> list[str]:
    """Return the smallest hashes of rows read by `TableColumns`, none where many are alike."""
    hashes = _hashes(rows)
    distinct = np.unique(hashes)
    if len(distinct) < MIN_DISTINCT_SHARE * len(hashes):
        return []
    return [f"{value:016x}" for value in distinct[:MAX_HASHES].tolist()]


def share_known(rows: pd.DataFrame, sketch: Sequence[str]) -> float:
    """Return the estimated share of rows that are in a sketch, 0 where too few can be compared."""
    known = np.array([int(value, 16) for value in sketch], dtype=np.uint64)
    hashes = _hashes(rows)
    if len(known) == MAX_HASHES:
        hashes = hashes[hashes <= known.max()]
    return float(np.isin(hashes, known).mean()) if len(hashes) >= MIN_ROWS_TO_COMPARE else 0.0


def _hashes(rows: pd.DataFrame) -> NDArray[np.uint64]:
    return pd.util.hash_pandas_object(rows, index=False).to_numpy().astype(np.uint64)
