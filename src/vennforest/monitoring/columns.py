"""Two-sample tests for columns that changed at a row, corrected for multiple testing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, ks_2samp
from scipy.stats.contingency import crosstab

from vennforest._messages import plain_number
from vennforest._validation import is_missing

MIN_ROWS_A_SIDE = 30

MAX_WATCHED_VALUES = 20
"""Number of most frequent values of a text column that are compared separately."""


SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class ColumnChange:
    """Difference of a column before and after a row.

    Attributes
    ----------
    name : str
        Name of the column.
    distance : float
        Kolmogorov–Smirnov distance of numbers and dates, total variation of others; in [0, 1].
    p_value : float
        P-value of the two-sample test, corrected by Holm's method for the number of columns.
    before, after : str
        Median of numbers or dates, or share of the value whose share has changed most, as text.
    """

    name: str
    distance: float
    p_value: float
    before: str
    after: str


def column_changes(columns: Mapping[str, NDArray[Any]], row: int) -> list[ColumnChange]:
    """Return the change of every column at a row, sorted by p-value.

    If the row was chosen by the same data, p-values of columns that depend on the labels are
    slightly too small. The list is empty with fewer than 30 rows before or after the row.
    """
    n = len(next(iter(columns.values()))) if columns else 0
    if min(row, n - row) < MIN_ROWS_A_SIDE:
        return []
    change_of_kind = dict.fromkeys("fiub", _number_change) | {"M": _date_change}
    changes = [
        change_of_kind.get(values.dtype.kind, _text_change)(name, values, row)
        for name, values in columns.items()
    ]
    p_values = holm(np.array([change.p_value for change in changes]))
    pairs = zip(changes, p_values.tolist(), strict=True)
    corrected = [replace(change, p_value=p) for change, p in pairs]
    return sorted(corrected, key=lambda change: (change.p_value, -change.distance))


def _number_change(name: str, column: NDArray[Any], row: int) -> ColumnChange:
    """Return the change of numbers (n,) from ``row`` on; missing ones rank lowest."""
    values = column.astype(np.float64)
    missing = np.isnan(values)
    ranked = np.where(missing, -np.inf, values)
    test = ks_2samp(ranked[:row], ranked[row:], method="asymp")
    texts = []
    for side in (slice(row), slice(row, None)):
        present = values[side][~missing[side]]
        text = f"median {plain_number(np.median(present), 4)}" if len(present) else "–"
        texts.append(text + (f", {missing[side].mean():.0%} missing" if missing.any() else ""))
    return ColumnChange(name, float(test.statistic), float(test.pvalue), *texts)


def _date_change(name: str, column: NDArray[Any], row: int) -> ColumnChange:
    """Return the change of dates (n,) from ``row`` on, tested as numbers and shown as days."""
    seconds = np.where(np.isnat(column), np.nan, column.astype("datetime64[s]").astype(np.float64))
    change = _number_change(name, seconds, row)
    sides = [side[~np.isnan(side)] for side in (seconds[:row], seconds[row:])]
    if not all(map(len, sides)):
        return change
    days = [np.datetime64(int(np.median(side) // SECONDS_A_DAY), "D") for side in sides]
    n = int((days[1] - days[0]).astype(int))
    texts = [f"median {day}" for day in days]
    if n:
        texts[1] += f", {abs(n):,} day{'s' * (abs(n) > 1)} {'later' if n > 0 else 'earlier'}"
    return replace(change, before=texts[0], after=texts[1])


def _text_change(name: str, column: NDArray[Any], row: int) -> ColumnChange:
    """Return the change of values (n,) of any type from ``row`` on, missing being one of them."""
    missing = is_missing(column)
    texts = np.array(["" if m else str(v) for v, m in zip(column.tolist(), missing, strict=True)])
    values, codes = np.unique(texts, return_inverse=True)
    # The most frequent values, then all others together.
    frequent = np.argsort(-np.bincount(codes), kind="stable")[:MAX_WATCHED_VALUES]
    group_of_value = np.full(len(values), len(frequent))
    group_of_value[frequent] = np.arange(len(frequent))
    labels = [*values[frequent].tolist(), "other values"]
    (_, groups), counts = crosstab(np.arange(len(codes)) >= row, group_of_value[codes])
    shares = counts / counts.sum(axis=1, keepdims=True)
    difference = np.abs(shares[0] - shares[1])
    largest = int(difference.argmax())
    p = float(chi2_contingency(counts).pvalue) if len(groups) > 1 else 1.0
    label = labels[groups[largest]] or "missing"
    before, after = (f"{share:.1%} {label!r}" for share in shares[:, largest])
    return ColumnChange(name, float(difference.sum() / 2), p, before, after)


def holm(p_values: NDArray[Any]) -> NDArray[Any]:
    """Return p-values (m,) corrected for multiple testing (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    steps = (len(p_values) - np.arange(len(p_values))) * p_values[order]
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected
