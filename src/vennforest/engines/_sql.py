"""The SQL that counts, in what DuckDB and Spark have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vennforest._validation import InputError
from vennforest.engines._counting import Counting, bad_score, bad_weight

LARGEST = "1.7976931348623157e308"


@dataclass(frozen=True)
class Statement:
    """The queries of one count.

    Attributes
    ----------
    counting : Counting
    quote : str
        The character around names.
    whole : bool
        Whether weights are integers.
    floats : bool
        Whether labels are floating numbers, among which NaN is none.
    """

    counting: Counting
    quote: str
    whole: bool = True
    floats: bool = False

    def name(self, column: str) -> str:
        """Return a quoted name."""
        return quoted(column, self.quote)

    def good(self) -> str:
        """Return the condition that a row can be counted."""
        counting, target = self.counting, self.name(self.counting.target)
        tests = [f"{target} IS NOT NULL", *([f"NOT isnan({target})"] if self.floats else [])]
        for score in counting.scores:
            s = f"CAST({self.name(score)} AS DOUBLE)"
            low, high = f"-{LARGEST}", LARGEST
            if counting.grid is not None:
                low, high = repr(counting.grid.low), repr(counting.grid.high)
            tests.append(f"({s} IS NOT NULL AND NOT isnan({s}) AND {s} >= {low} AND {s} <= {high})")
        if counting.weight is not None:
            w = f"CAST({self.name(counting.weight)} AS DOUBLE)"
            tests.append(f"({w} IS NOT NULL AND NOT isnan({w}) AND {w} >= 0 AND {w} < {LARGEST})")
        return "(" + " AND ".join(tests) + ")"

    def groups(self, source: str) -> list[str]:
        """Return the queries, one a column of scores, or one of score vectors.

        Their columns: where examples are (``place0``: the number of a cell, or the score; of
        vectors also ``place1``, …), the ``label``, and their number or weight ``n``. Rows that
        cannot be counted have no label.
        """
        counting = self.counting
        label = f"CASE WHEN {self.good()} THEN {self.name(counting.target)} END AS label"
        n = "COUNT(*)"
        if counting.weight is not None:
            w = self.name(counting.weight)
            kind = "DECIMAL(38, 0)" if self.whole else "DOUBLE"
            n = f"SUM(CASE WHEN {self.good()} THEN CAST({w} AS {kind}) END)"
        columns = [
            f"CASE WHEN {self.good()} THEN {self._place(score)} END" for score in counting.scores
        ]
        chosen = [columns] if counting.vectors else [[column] for column in columns]
        queries = []
        for some in chosen:
            places = ", ".join(f"{column} AS place{i}" for i, column in enumerate(some))
            keys = ", ".join(str(i + 1) for i in range(len(some) + 1))
            queries.append(f"SELECT {places}, {label}, {n} AS n FROM {source} GROUP BY {keys}")
        return queries

    def _place(self, score: str) -> str:
        s = f"CAST({self.name(score)} AS DOUBLE)"
        return s if self.counting.grid is None else self.counting.grid.to_sql(s)


def quoted(column: str, quote: str) -> str:
    """Return a name between quotes, those in it doubled."""
    return quote + column.replace(quote, 2 * quote) + quote


def explain(counting: Counting, row: dict[str, Any], place: str) -> InputError:
    """Return the error that names what is wrong with a row that cannot be counted."""
    label = row[counting.target]
    if label is None or label != label:
        return InputError(
            f"column {counting.target!r} must hold a label in every row, got none in {place}"
        )
    grid = counting.grid
    for name in counting.scores:
        value = row[name] if row[name] is None else float(row[name])
        outside = grid is not None and value is not None and not grid.low <= value <= grid.high
        if value is None or not np.isfinite(value) or outside:
            return bad_score(name, value, grid, place)
    assert counting.weight is not None
    return bad_weight(counting.weight, row[counting.weight], place)
