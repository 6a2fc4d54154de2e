"""Scores and labels in Parquet files, counted by DuckDB as `vennforest.tables.scores` counts them.

Which cells are missing, which labels stand for one class, and when scores go on a grid is decided
there; only the reading and the GROUP BY are DuckDB's. So the counts are the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vennforest.counts import ScoreCounts, ScoreGrid, sql_number
from vennforest.engines._counting import is_finite, not_nan, quoted
from vennforest.engines.duckdb import Files, differing_by_case, opened
from vennforest.tables.cells import Column
from vennforest.tables.scores import (
    classes_of,
    on_grid,
    too_many_classes,
    too_many_vectors,
)
from vennforest.tables.stream import TableFile
from vennforest.tables.target import MOST_CLASSES

SURELY = 4
"""By what factor an estimate, which may be wrong by a third, must exceed what is kept."""


@contextmanager
def parquet_columns(
    table: TableFile, scores: Sequence[str], target: str, weight: str | None
) -> Iterator[ParquetColumns | None]:
    """Give the columns of a table, if DuckDB is installed and reads all of them as we do.

    None: the table is no Parquet, DuckDB is not installed, two columns differ by case alone, or a
    column is one of text that says numbers, of decimals, or of dates.
    """
    if not table.parquet_files or not is_installed() or differing_by_case(table.names):
        yield None
        return
    with opened(table.parquet_files, None, None, tempfile.gettempdir()) as files:
        columns = ParquetColumns(files, scores, target, weight)
        yield columns if columns.are_plain() else None


class ParquetColumns:
    """The columns of Parquet files that contain scores, labels, and perhaps weights.

    Parameters
    ----------
    files : Files
    scores : sequence of str
        One column of scores (two classes), or one a class.
    target : str
        The labels.
    weight : str or None
        How often each row is to count.
    """

    def __init__(
        self, files: Files, scores: Sequence[str], target: str, weight: str | None
    ) -> None:
        self.files, self.scores, self.target, self.weight = files, list(scores), target, weight
        self._kinds = {field.name: field.type for field in files.schema()}
        self._labelled, self._parameters = "TRUE", list[Any]()
        self._cells: list[list[Any]] = []

    def are_plain(self) -> bool:
        """Tell whether scores and weights are numbers, and labels numbers, booleans or text."""
        numbers = [*self.scores, *([self.weight] if self.weight else [])]
        kind = self._kinds[self.target]
        return all(_is_number(self._kinds[name]) for name in numbers) and (
            _is_number(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
        )

    def labels(self) -> tuple[list[Any], int]:
        """Return the distinct labels, sorted, and how many rows have none."""
        y = quoted(self.target, '"')
        (about,) = self._rows(f"SELECT approx_count_distinct({y}) AS about FROM source")
        if about["about"] > SURELY * MOST_CLASSES:
            raise too_many_classes(self.target)
        found = self.files.run(f"SELECT {y} AS cell, COUNT(*) AS n FROM source GROUP BY 1")
        numbers = found["n"].to_numpy()
        column = Column(pd.Series(found["cell"].to_pylist(), dtype=object), self.target)
        cells = column.present.tolist()
        if len(cells) > MOST_CLASSES:
            raise too_many_classes(self.target)
        classes, code = classes_of(cells, self.target)
        self._cells = [[] for _ in classes]
        for cell in cells:
            self._cells[code[cell]].append(cell)
        missing = int(numbers[~column.there].sum())
        self.files.check_rows(int(numbers.sum()))
        absent = [cell for cell in column.cells[~column.there] if isinstance(cell, str)]
        tests = [f"{y} IS NOT NULL"]
        if pa.types.is_floating(self._kinds[self.target]):
            tests.append(not_nan(y, '"'))
        if absent:
            tests.append(f"{y} NOT IN ({_marks(absent)})")
        self._labelled, self._parameters = " AND ".join(tests), absent
        return classes, missing

    def count(
        self, classes: Sequence[Any], grid: ScoreGrid | None, vectors: bool, most: int
    ) -> tuple[ScoreCounts, int] | None:
        """Return the counts of rows with a label, and how many rows these are; after ``labels``.

        Parameters
        ----------
        classes : sequence
            What ``labels`` returned.
        grid : ScoreGrid or None
            Put scores on this grid.
        vectors : bool
            Keep score vectors.
        most : int
            Distinct scores up to which they are kept as they are; beyond, probabilities go on a
            grid of log-odds. None is returned where they are not probabilities, or a cell is none
            that can be counted: who reads row by row says which.
        """
        found = self._look(grid)
        if found["wrong"]:
            return None
        if vectors:
            if found["vectors"] > SURELY * most:
                raise too_many_vectors(most)
            counts = self._vectors(classes)
            if len(counts) > most:
                raise too_many_vectors(most)
            return counts, found["n"]
        probable = not found["n"] or (found["low"] >= 0 and found["high"] <= 1)
        on = grid
        if grid is None and found["about"] > SURELY * most * len(self.scores):
            if not probable:
                return None
            on = ScoreGrid(on="logit")
        counts = self._tables(classes, on)
        if on is None and len(counts) > most * len(counts.tables):
            if not probable:
                return None
            counts = on_grid(counts, ScoreGrid(on="logit"))
        return counts, found["n"]

    def _look(self, grid: ScoreGrid | None) -> dict[str, Any]:
        """Return what there is to know before counting, of rows of weight above zero.

        ``wrong``, how many cannot be counted; ``n``, how many can; ``low`` and ``high``, the range
        of their scores; ``about``, an estimate of how many distinct ones all columns have
        together, and ``vectors``, of how many distinct rows of them.
        """
        some = [self._number(name) for name in self.scores]
        tests = [is_finite(s, '"') for s in some]
        if grid is not None:
            low, high = sql_number(grid.low), sql_number(grid.high)
            tests += [f"{s} BETWEEN {low} AND {high}" for s in some]
        counted = "TRUE"
        if self.weight is not None:
            weight = self._number(self.weight)
            tests.append(f"{is_finite(weight, chr(34))} AND {weight} >= 0")
            counted = f"{weight} > 0"
        fine = f"coalesce({' AND '.join(tests)}, FALSE)"
        taken = f"FILTER (WHERE {fine} AND {counted})"
        asked = [f"COUNT(*) FILTER (WHERE NOT {fine}) AS wrong", f"COUNT(*) {taken} AS n"]
        for what, functions, join in (
            ("low", [f"MIN({s}) {taken}" for s in some], "LEAST"),
            ("high", [f"MAX({s}) {taken}" for s in some], "GREATEST"),
            ("about", [f"approx_count_distinct({s}) {taken}" for s in some], "+"),
        ):
            together = " + ".join(functions) if join == "+" else f"{join}({', '.join(functions)})"
            asked.append(f"{together} AS {what}")
        asked.append(f"approx_count_distinct(hash({', '.join(some)})) {taken} AS vectors")
        (found,) = self._rows(
            f"SELECT {', '.join(asked)} FROM source WHERE {self._labelled}", self._parameters
        )
        return found

    def _tables(self, classes: Sequence[Any], grid: ScoreGrid | None) -> ScoreCounts:
        """Return counts of one class against the rest, or of each."""
        if len(classes) == 2:
            return self._against_rest(self.scores[0], 1, classes, grid)
        parts = [
            self._against_rest(name, code, [0, 1], grid) for code, name in enumerate(self.scores)
        ]
        return ScoreCounts.one_vs_rest(parts, classes)

    def _against_rest(
        self, score: str, code: int, names: Sequence[Any], grid: ScoreGrid | None
    ) -> ScoreCounts:
        s, y, cells = self._number(score), quoted(self.target, '"'), self._cells[code]
        place = s if grid is None else grid.to_sql(s)
        columns = [
            f"coalesce({self._sum()} FILTER (WHERE {y} {among} ({_marks(cells)})), 0) AS {name}"
            for among, name in (("NOT IN", "negatives"), ("IN", "positives"))
        ]
        table = self.files.run(
            f"SELECT {place} AS place, {', '.join(columns)} FROM source "
            f"WHERE {self._counted()} GROUP BY 1",
            [*cells, *cells, *self._parameters],
        )
        x, negatives, positives = (table[name].to_numpy() for name in table.column_names)
        if grid is not None:
            x = grid.score_of(x)
        return ScoreCounts.from_counts(x, negatives, positives, classes=names, grid=grid)

    def _vectors(self, classes: Sequence[Any]) -> ScoreCounts:
        """Return the counts of score vectors."""
        y = quoted(self.target, '"')
        keys = [*(self._number(name) for name in self.scores), y]
        names = [*(f"s{i}" for i in range(len(self.scores))), "cell", "n"]
        columns = ", ".join(
            f"{column} AS {name}" for column, name in zip([*keys, self._sum()], names, strict=True)
        )
        grouped = ", ".join(str(i + 1) for i in range(len(keys)))
        table = self.files.run(
            f"SELECT {columns} FROM source WHERE {self._counted()} GROUP BY {grouped}",
            self._parameters,
        )
        code = {cell: code for code, cells in enumerate(self._cells) for cell in cells}
        codes = np.array([code[cell] for cell in table["cell"].to_pylist()], np.intp)
        return ScoreCounts.from_scores(
            np.column_stack([table[name].to_numpy() for name in names[:-2]]),
            np.asarray(classes)[codes],
            sample_weight=table["n"].to_numpy(),
            classes=classes,
            vectors=True,
        )

    def _counted(self) -> str:
        """Return the condition that a row counts: it has a label and a weight above zero."""
        if self.weight is None:
            return self._labelled
        return f"{self._number(self.weight)} > 0 AND {self._labelled}"

    def _sum(self) -> str:
        return "COUNT(*)" if self.weight is None else f"SUM({self._number(self.weight)})"

    def _number(self, name: str) -> str:
        return f"CAST({quoted(name, chr(34))} AS DOUBLE)"

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.files.run(query, parameters).to_pylist()
        return found


def _marks(cells: Sequence[Any]) -> str:
    return ", ".join("?" * len(cells))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )


def is_installed() -> bool:
    """Tell whether DuckDB is."""
    return find_spec("duckdb") is not None
