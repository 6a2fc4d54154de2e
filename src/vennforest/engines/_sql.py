"""The SQL that counts, in what DuckDB and Spark have in common."""

from __future__ import annotations

from dataclasses import dataclass

from vennforest.counts.grid import sql_number
from vennforest.engines._counting import Counting

LARGEST = "1.7976931348623157e308"

FINITE = {
    '"': "isfinite({x})",
    "`": f"NOT isnan({{x}}) AND {{x}} BETWEEN -{LARGEST} AND {LARGEST}",
}
"""The test for a finite number of DuckDB and of Spark, by their quotes.

DuckDB answers other tests from the range that a Parquet file declares, which knows nothing of NaN:
``isnan`` is then false in every row, and ``BETWEEN`` true.
"""


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
        tests = [f"{target} IS NOT NULL", *([not_nan(target, self.quote)] if self.floats else [])]
        for score in counting.scores:
            s = f"CAST({self.name(score)} AS DOUBLE)"
            tests.append(is_finite(s, self.quote))
            if counting.grid is not None:
                low, high = sql_number(counting.grid.low), sql_number(counting.grid.high)
                tests.append(f"{s} BETWEEN {low} AND {high}")
        if counting.weight is not None:
            w = f"CAST({self.name(counting.weight)} AS DOUBLE)"
            tests.append(f"{is_finite(w, self.quote)} AND {w} >= 0")
        # A test of a missing cell is neither true nor false, and its opposite neither.
        return f"coalesce({' AND '.join(tests)}, FALSE)"

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


def is_finite(number: str, quote: str) -> str:
    """Return the test that a double is there and finite; NULL where it is missing."""
    return FINITE[quote].format(x=number)


def not_nan(number: str, quote: str) -> str:
    """Return the test that a double is not NaN."""
    if quote == "`":
        return f"NOT isnan({number})"
    return f"({is_finite(number, quote)} OR isinf({number}))"
