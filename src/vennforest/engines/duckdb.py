"""DuckDB: large files on one machine, read, counted and spilled by its own readers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from vennforest._files import check_output, files_of, is_same_file, one_line, written_whole
from vennforest._messages import needed
from vennforest._remote import local_copy, sent_whole
from vennforest._validation import InputError, check_count
from vennforest.batch import BatchPredictor
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.scores import Increasing
from vennforest.engines._counting import Counting, Grid, Statement, fitted_to, quoted

__all__ = ["calibrate", "predict"]

ROWS_AT_ONCE = 1 << 17
"""Rows that are predicted together."""

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Any
"""Files, or a relation of DuckDB's."""


def calibrate(
    source: Source,
    *,
    score: str | Sequence[str],
    target: str,
    method: str | Calibrator = "venn-abers",
    weight: str | None = None,
    classes: Sequence[Any] | None = None,
    grid: Grid = "auto",
    increasing: Increasing = True,
    config: Mapping[str, Any] | None = None,
) -> Calibrator:
    """Fit a calibrator to scores and labels in files of any size.

    Counting is a GROUP BY, which DuckDB does in parallel and in bounded memory.

    Parameters
    ----------
    source : path, sequence of paths, or DuckDBPyRelation
        Parquet or CSV files (``*`` and ``?`` stand for several), here or at an address such as
        ``s3://bucket/scores.parquet`` or ``https://…``, or a relation such as
        ``duckdb.sql("SELECT …")``, with its own connection. Columns of CSV are numbers or text.
    score : str or sequence of str
        The column of the second of two classes' scores, or a column per class in sorted order of
        the labels.
    target : str
        The column of the labels: numbers, booleans or text.
    method : str or calibrator, default="venn-abers"
        As of `CalibratedClassifier`.
    weight : str, optional
        A column of weights, not below zero; integers count so many examples.
    classes : sequence, optional
        Every class, when some may be missing from the data.
    grid : ScoreGrid, "auto" or None, default="auto"
        On which scores are counted, and new ones put. "auto": 2**20 cells from 0 to 1; none for
        methods that need all scores of an example together. None: every distinct score, of which
        there may be as many as rows.
    increasing : bool or "auto", default=True
        Whether the second of two classes becomes more likely as the score rises; "auto": as
        the data show.
    config : mapping, optional
        Settings of DuckDB, such as ``{"memory_limit": "4GB", "threads": 2}``.

    Returns
    -------
    Calibrator
        Fitted, equal to a fit to all rows.

    Raises
    ------
    InputError
        If a file or column is missing or of another kind, a score is not finite or outside the
        grid, or a label is missing; with the file and the row, from 1.
    """
    counting = Counting.of(score, target, weight, method, grid, classes)
    with opened(source, config) as table:
        statement = Statement.of(counting, table.schema(), '"', table.shown)
        groups = [table.run(query) for query in statement.groups("source")]
        counts = counting.of_groups(groups, table.shown, lambda: table.check(counting))
        if weight is None:
            table.check_rows(int(sum(groups[0]["n"].to_pylist())))
        return fitted_to(method, counts, increasing)


def predict(
    source: Source,
    model: Any,
    output: str | os.PathLike[str],
    *,
    columns: str | Sequence[str] | None = None,
    carried: Sequence[str] = (),
    answers: str | Sequence[str] | None = None,
    level: float = 0.95,
    rows_at_once: int = ROWS_AT_ONCE,
    config: Mapping[str, Any] | None = None,
) -> int:
    """Write the predictions of a fitted model for every row of files of any size, in their order.

    Parameters
    ----------
    source : path, sequence of paths, or DuckDBPyRelation
        As for `calibrate`.
    output : path-like
        Ends in .parquet, .csv or .arrow; written whole or not at all; here or in an object store.
    model, columns, carried, answers, level, rows_at_once
        As of `vennforest.BatchPredictor`.
    config : mapping, optional
        As for `calibrate`.

    Returns
    -------
    int
        How many rows there were.

    Raises
    ------
    InputError
        If a file or column is missing or of another kind, or the model refuses a row.
    """
    check_count(rows_at_once, "rows_at_once")
    from vennforest.tables.write import output_format, table_writer

    done = 0
    with (
        opened(source, config) as table,
        sent_whole(output) as output,
    ):
        how = output_format(output)
        check_output(output)
        for path in table.paths:
            if is_same_file(path, output):
                raise InputError(f"the output must not be the data file {path} itself")
        predictor = BatchPredictor(
            model,
            table.schema(),
            columns=columns,
            carried=carried,
            answers=answers,
            level=level,
            rows_at_once=rows_at_once,
        )
        wanted = list(dict.fromkeys([*predictor.columns, *carried]))
        with (
            written_whole(output) as part,
            table_writer(part, how, predictor.schema) as writer,
        ):
            for batch in predictor(table.batches(wanted, rows_at_once), table.shown):
                writer.write_batch(batch)
                done += batch.num_rows
            table.check_rows(done)
    return done


class Files:
    """What a connection calls ``source``: files, or a relation, which has no ``paths``."""

    def __init__(self, query: Callable[..., Any], shown: str, paths: list[Path]) -> None:
        self._query, self.shown, self.paths = query, shown, paths

    def schema(self) -> pa.Schema:
        return self.run("SELECT * FROM source LIMIT 0").schema

    def run(self, query: str) -> pa.Table:
        """Return the rows of a query."""
        with _said_in_a_sentence(self.shown):
            return self._query(query).to_arrow_table()

    def batches(
        self, columns: Sequence[str], size: int, source: str = "source"
    ) -> Iterator[pa.RecordBatch]:
        names = ", ".join(quoted(name, '"') for name in columns)
        with _said_in_a_sentence(self.shown):
            yield from self._query(f"SELECT {names} FROM {source}").to_arrow_reader(size)

    def check(self, counting: Counting) -> None:
        """Refuse the first row that cannot be counted.

        Rows are read in their order and looked at here: a query that asks for the wrong ones would
        be answered with whatever DuckDB takes for wrong, in any order.
        """
        if not self.paths:
            counting.check(self.batches(counting.columns, ROWS_AT_ONCE), self.shown)
        for path in self.paths:
            rows = self.batches(counting.columns, ROWS_AT_ONCE, f"({_query([path])})")
            counting.check(rows, str(path))

    def check_rows(self, n: int) -> None:
        """Refuse another number of rows than the Parquet files say that they have."""
        if not self.paths or _is_text(self.paths[0]):
            return
        rows = sum(parquet.read_metadata(path).num_rows for path in self.paths)
        if n != rows:
            raise InputError(
                f"{self.shown} must stay as it is while it is read, got {n:,} rows where its "
                f"files have {rows:,}"
            )


@contextmanager
def opened(source: Source, config: Mapping[str, Any] | None) -> Iterator[Files]:
    """Give the data as ``source``, in a connection of its own or in that of a relation."""
    duckdb = need_duckdb()
    if isinstance(source, duckdb.DuckDBPyRelation):
        if config is not None:
            raise InputError(
                "config must be left out for a relation, whose connection has its own, got "
                f"{dict(config)}: SET it there"
            )
        yield Files(lambda query: source.query("source", query), "the relation", [])
        return
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    with ExitStack() as stack:
        paths = _paths([stack.enter_context(local_copy(one)) for one in given])
        shown = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more files"
        with _said_in_a_sentence(shown):
            connection = stack.enter_context(duckdb.connect(config=dict(config or {})))
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"CREATE VIEW source AS {_query(paths)}")
        yield Files(connection.sql, shown, paths)


def _paths(given: Sequence[Path]) -> list[Path]:
    """Return the files that are named, those of a pattern in the order of their names."""
    paths: list[Path] = []
    for one in given:
        found = files_of(Path(one))
        if found is None and Path(one).is_file():
            found = [Path(one)]
        if not found:
            raise InputError(f"there is no file {one}")
        paths += found
    if not paths:
        raise InputError("source must name a file or more, got none")
    return paths


def _query(paths: Sequence[Path]) -> str:
    """Return the query that reads these files and no others.

    They are of one kind, and have the columns of the first. Nothing in a name is a pattern, and
    folders called ``run=7`` are no column.
    """
    kinds = {"csv" if _is_text(path) else "parquet" for path in paths}
    if len(kinds) > 1:
        raise InputError("source must be files of one kind, got Parquet and CSV")
    listed = ", ".join(_literal(path) for path in paths)
    if "csv" in kinds:
        from vennforest.tables.text import text_format

        _refuse_case(text_format(paths[0]).names, paths[0])
        # Whether "no" is a label or false is not for each version of DuckDB to say.
        types = "auto_type_candidates=['BIGINT', 'DOUBLE', 'VARCHAR']"
        return f"SELECT * FROM read_csv([{listed}], {types}, hive_partitioning=false)"
    names = _columns_of(paths)
    _refuse_case(names, paths[0])
    columns = ", ".join(quoted(name, '"') for name in names)
    # By name: else the types of the first file would be those of all, integers of later fractions.
    return (
        f"SELECT {columns} FROM "
        f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"
    )


def _refuse_case(names: list[str], path: Path) -> None:
    """Refuse columns that differ by case alone, among which DuckDB would take any."""
    lower = [name.lower() for name in names]
    alike = [name for name in names if lower.count(name.lower()) > 1]
    alike = [name for name in alike if name.lower() == alike[0].lower()]
    if alike:
        raise InputError(
            f"the columns {' and '.join(map(repr, alike))} of {path} must differ by more than "
            "case, which DuckDB does not tell apart: rename one, or use vennforest calibrate, "
            "which reads such a table"
        )


def _literal(path: Path) -> str:
    """Return a path as text in SQL, in which letters that make a pattern stand for themselves."""
    name = re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))
    return "'" + name.replace("'", "''") + "'"


def _columns_of(paths: Sequence[Path]) -> list[str]:
    """Return the columns of the first of several Parquet files, which all others must have."""
    first: list[str] = []
    for path in paths:
        try:
            names = parquet.read_schema(path).names
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"DuckDB cannot read {path}: {one_line(error)}") from error
        first = first or names
        missing = [name for name in first if name not in names]
        if missing:
            raise InputError(
                f"the files must have the same columns, got none called {missing[0]!r} in {path}"
            )
    return first


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) != b"PAR1"


@contextmanager
def _said_in_a_sentence(shown: str) -> Iterator[None]:
    """Turn DuckDB's errors into one sentence."""
    duckdb = need_duckdb()
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            f"DuckDB ran out of memory on {shown}: give a higher memory_limit, a temp_directory "
            f"with more room, or fewer cells ({one_line(error)})"
        ) from error
    except duckdb.Error as error:
        raise InputError(f"DuckDB cannot read {shown}: {one_line(error)}") from error


def need_duckdb() -> Any:
    """Return duckdb."""
    return needed("duckdb", "files read by DuckDB", "duckdb")
