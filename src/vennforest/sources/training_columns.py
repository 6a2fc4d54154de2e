"""Comparison of the columns of new rows with those of training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from vennforest._messages import listed, plain_number
from vennforest._validation import (
    FloatArray,
    IntArray,
    check_array,
    count_rows,
    is_arrow,
    is_frame,
    is_missing,
    require,
)

MIN_COMPARED_ROWS = 20

MAX_CATEGORIES = 1_000
"""Distinct values up to which text is compared with those of training."""

MIN_RATIO_OF_MISSING, MIN_SHARE_MISSING = 20, 0.01
MIN_SHARE_DIFFERENT = 0.5
"""Share of cells outside the range, or unknown, from which on a column differs."""

MAX_CHANCE = 1e-3
"""Probability of a finding in an unchanged table, for all columns together."""


class ColumnDifference(NamedTuple):
    """A column of new rows that differs from training; ``kind`` says in which way."""

    name: str
    kind: str
    message: str


@dataclass(frozen=True, eq=False)
class TrainingColumns:
    """What the columns of ``n_rows`` training rows contain.

    ``low`` and ``high`` (d,) are the 1% and 99% quantiles of numbers, NaN for other columns, and
    ``categories`` the distinct values of text, None for other columns and for many values.
    ``counts`` (d, 4) are numbers of cells: missing; outside of the range; values that occur once,
    by which the share of unknown values is estimated (Good–Turing); the most frequent value.
    """

    names: list[str]
    n_rows: int
    low: FloatArray
    high: FloatArray
    categories: list[list[str] | None]
    counts: IntArray

    @classmethod
    def of(cls, columns: Iterable[tuple[str, NDArray[Any]]], n_rows: int) -> TrainingColumns:
        """Return the summary of columns (n,) by name."""
        names, categories, ranges, counts = [], [], [], []
        for name, cells in columns:
            values, n_missing = _present(cells)
            is_text, is_number = values.dtype.kind == "O", values.dtype.kind == "f"
            counter = Counter(values.tolist() if is_text or is_number else ())
            low = high = np.nan
            if is_number and len(values):
                low, high = np.quantile(values, (0.01, 0.99), method="nearest").tolist()
            n_outside = int(((values < low) | (values > high)).sum()) if is_number else 0
            occurrences = np.array([0, *counter.values()])
            n_single, n_frequent = int((occurrences == 1).sum()), int(occurrences.max())
            names.append(name)
            categories.append([*counter] if is_text and len(counter) <= MAX_CATEGORIES else None)
            ranges.append((low, high))
            counts.append((n_missing, n_outside, n_single, n_frequent))
        lows, highs = np.array(ranges, dtype=np.float64).reshape(-1, 2).T.copy()
        cells = np.array(counts, dtype=np.int64).reshape(-1, 4)
        return cls(names, n_rows, lows, highs, categories, cells)

    def _check_state(self) -> None:
        d = len(self.names)
        require(all(isinstance(name, str) for name in self.names), "names must be text")
        require(len(self.categories) == d and self.n_rows > 0, "categories must be of the columns")
        for values in (self.low, self.high):
            require(values.shape == (d,) and values.dtype == float, "ranges must be of the columns")
        check_array(self.counts, "counts", (d, 4), "i", 0, self.n_rows)


class NewColumns:
    """Counts of cells of new rows, by which their columns are compared with training."""

    def __init__(self, training: TrainingColumns) -> None:
        self._training, self._n_rows = training, 0
        self._index = {name: j for j, name in enumerate(training.names)}
        self._counts = np.zeros((len(training.names), 3), np.int64)
        self._values: list[set[Any]] = [set() for _ in training.names]
        self._categories = [None if c is None else frozenset(c) for c in training.categories]

    def add(self, columns: Iterable[tuple[str, NDArray[Any]]], n_rows: int) -> None:
        """Count the cells of some rows; columns that are not of training are ignored."""
        self._n_rows += n_rows
        for name, cells in columns:
            if (j := self._index.get(name)) is None:
                continue
            values, n_missing = _present(cells)
            training, distinct, n_other = self._training, set[Any](), 0
            categories = self._categories[j]
            if values.dtype.kind == "f" and len(values):
                distinct = {values.min(), values.max()}
                is_outside = (values < training.low[j]) | (values > training.high[j])  # or NaN
                n_other = int(is_outside.sum())
            elif values.dtype.kind == "O":
                counter = Counter(values.tolist())
                distinct = set(list(counter)[:2])
                if categories is not None:
                    n_other = sum(n for text, n in counter.items() if text not in categories)
            self._counts[j] += n_missing, n_other, len(values)
            if len(self._values[j]) < 2:
                self._values[j] |= distinct

    def differences(self) -> Iterator[ColumnDifference]:
        """Yield one difference for each column that differs from training by more than chance."""
        if self._n_rows < MIN_COMPARED_ROWS:
            return
        for name, j in self._index.items():
            if (difference := self._difference(j)) is not None:
                yield ColumnDifference(name, *difference)

    def _difference(self, j: int) -> tuple[str, str] | None:
        """Return kind and message for the difference of a column, None without one."""
        training, (n_missing, n_other, n_present) = self._training, self._counts[j].tolist()
        missing, n_outside, single, frequent = training.counts[j].tolist()
        n, name = training.n_rows, training.names[j]
        present = n - missing
        share, before = n_missing / self._n_rows, missing / n
        is_more = n_missing == self._n_rows or share >= max(
            MIN_RATIO_OF_MISSING * before, MIN_SHARE_MISSING
        )
        if is_more and self._exceeds(n_missing, self._n_rows, missing, n):
            return "missing", (
                f"column {name!r} is missing in {100 * share:.3g}% of the new rows, and in "
                f"{100 * before:.3g}% of those of training"
            )
        if n_present < MIN_COMPARED_ROWS or not present:
            return None
        categories, low, high = self._categories[j], training.low[j], training.high[j]
        is_other = n_other > MIN_SHARE_DIFFERENT * n_present
        if is_other and np.isfinite(low) and self._exceeds(n_other, n_present, n_outside, present):
            return "range", (
                f"column {name!r} is outside of {plain_number(low, 4)} to {plain_number(high, 4)}, "
                f"where 98% of training is, in {n_other / n_present:.0%} of the new rows with a "
                "value: the unit may be another"
            )
        if is_other and categories and self._exceeds(n_other, n_present, single, present):
            return "unknown", (
                f"column {name!r} has none of the values of training "
                f"({listed(training.categories[j] or [], 4)}) in {n_other / n_present:.0%} of the "
                "new rows with a value: they may be written in another way"
            )
        is_constant = len(self._values[j]) == 1 and 0 < frequent < present
        if is_constant and self._exceeds(n_present, n_present, frequent, present):
            (value,) = self._values[j]
            text = repr(value) if isinstance(value, str) else plain_number(value, 4)
            return "constant", (
                f"column {name!r} is {text} in all of the new rows, and differed in training"
            )
        return None

    def _exceeds(self, count: int, n: int, training_count: int, training_n: int) -> bool:
        """Return whether a count is larger than chance leaves it, given that of training.

        The share of training has a uniform prior, so the new count is beta-binomial.
        """
        n_uncounted = training_n - training_count
        chance = betabinom.sf(count - 1, n, training_count + 1, n_uncounted + 1)
        return bool(chance < MAX_CHANCE / (4 * len(self._index)))


def columns_of_frame(X: Any) -> list[tuple[str, NDArray[Any]]]:
    """Return the columns of a frame or Arrow table as arrays by name; [] for arrays."""
    if is_arrow(X):
        return list(zip(X.column_names, map(np.asarray, X.columns), strict=True))
    columns = ((str(name), np.asarray(X[name])) for name in (X.columns if is_frame(X) else ()))
    return [(name, cells) for name, cells in columns if cells.ndim == 1]


def differences_of(training: TrainingColumns, X: Any) -> list[ColumnDifference]:
    """Return the columns of a data frame that differ from training; none of few rows."""
    new = NewColumns(training)
    new.add(columns_of_frame(X), count_rows(X))
    return list(new.differences())


def _present(cells: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return the cells that are not missing as floats, times or text, and how many are missing."""
    kind = cells.dtype.kind
    if kind in "iub":
        return cells.astype(np.float64), 0
    missing = is_missing(cells) if kind != "U" else np.zeros(len(cells), bool)
    values = cells[~missing]
    if kind == "O":
        types = {type(value) for value in values.tolist()}
        if types and all(issubclass(t, int | float | np.number | np.bool_) for t in types):
            values = values.astype(np.float64)
        else:
            values = np.array([str(value) for value in values.tolist()], dtype=object)
    elif kind == "U":
        values = values.astype(object)
    return values, int(missing.sum())
