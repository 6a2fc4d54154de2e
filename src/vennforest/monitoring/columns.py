"""Which columns of a table changed at a given row: two-sample tests, corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, ks_2samp

from vennforest.monitoring.stream import is_missing

FEWEST = 30
"""Rows that there must be on either side."""

MOST_VALUES = 20
"""Of text so many most frequent values are told apart."""


@dataclass(frozen=True)
class ColumnChange:
    """How one column differs before and after a row.

    ``distance`` in [0, 1] is Kolmogorov–Smirnov's of numbers, total variation of other values; a
    missing cell counts as a value. ``p_value`` is that of the two-sample test, corrected by Holm's
    method for the number of columns. ``before`` and ``after`` have the median of numbers, or the
    share of the value whose share has changed most.
    """

    name: str
    distance: float
    p_value: float
    before: str
    after: str


def column_changes(columns: Mapping[str, NDArray[Any]], row: int) -> list[ColumnChange]:
    """Return how every column differs before and after a row, the most different first.

    The tests take the row as given and rows as independent: a row that was chosen by looking at
    the same data makes p-values of columns that move with the labels a little too small. Nothing
    is returned where fewer than 30 rows are on a side.
    """
    n = len(next(iter(columns.values()))) if columns else 0
    if min(row, n - row) < FEWEST:
        return []
    found = [
        _numbers(name, values, row) if values.dtype.kind in "fiub" else _texts(name, values, row)
        for name, values in columns.items()
    ]
    corrected = holm(np.array([one.p_value for one in found]))
    changes = [replace(one, p_value=float(p)) for one, p in zip(found, corrected, strict=True)]
    return sorted(changes, key=lambda one: (one.p_value, -one.distance))


def _numbers(name: str, given: NDArray[Any], row: int) -> ColumnChange:
    values = given.astype(np.float64)
    gone = np.isnan(values)
    placed = np.where(gone, -np.inf, values)
    test = ks_2samp(placed[:row], placed[row:], method="asymp")
    shown = []
    for part, missing in ((values[:row], gone[:row]), (values[row:], gone[row:])):
        text = "–" if missing.all() else f"median {np.median(part[~missing]):.4g}"
        shown.append(text + (f", {missing.mean():.0%} missing" if gone.any() else ""))
    return ColumnChange(name, float(test.statistic), float(test.pvalue), *shown)


def _texts(name: str, given: NDArray[Any], row: int) -> ColumnChange:
    gone = is_missing(given)
    texts = np.array(["" if m else str(v) for v, m in zip(given.tolist(), gone, strict=True)])
    values, codes = np.unique(texts, return_inverse=True)
    sizes = np.bincount(codes)
    kept = np.argsort(-sizes, kind="stable")[:MOST_VALUES]
    place = np.full(len(values), len(kept))
    place[kept] = np.arange(len(kept))
    codes = place[codes]
    table = np.stack(
        [np.bincount(part, minlength=len(kept) + 1) for part in (codes[:row], codes[row:])]
    )
    table = table[:, table.sum(axis=0) > 0]
    shares = table / table.sum(axis=1, keepdims=True)
    most = int(np.abs(shares[0] - shares[1]).argmax())
    label = str(values[kept[most]]) if most < len(kept) else "other values"
    label = label or "missing"
    p = float(chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0
    before, after = (f"{share:.1%} {label!r}" for share in shares[:, most])
    return ColumnChange(name, float(np.abs(shares[0] - shares[1]).sum() / 2), p, before, after)


def holm(p: NDArray[Any]) -> NDArray[Any]:
    """Return p-values corrected so all together are wrong as rarely as one."""
    order = np.argsort(p, kind="stable")
    steps = (len(p) - np.arange(len(p))) * p[order]
    out = np.empty(len(p))
    out[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return out
