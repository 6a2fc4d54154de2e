"""The command ``apply``: a calibrator and a table of scores in, probabilities out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vennforest._answers import Answers, answers_for, first_refused
from vennforest._files import check_output, one_line
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators.core.interface import Calibrator
from vennforest.classifier.intervals import Known
from vennforest.commands.calibrator_file import read_calibrator
from vennforest.commands.streams import STREAM, format_of, output_file, over_rows
from vennforest.tables.scores import check_names, read_scores
from vennforest.tables.stream import TableFile
from vennforest.tables.write import all_as_text, table_writer

ROWS_AT_ONCE = 100_000
"""Rows that are calibrated together; the probabilities do not depend on it."""

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Applied:
    """What ``apply_file`` did: columns of the output, and means of those that were added."""

    n_rows: int
    columns: list[str]
    mean: dict[str, float]
    seconds: float


def run(calibrator: Path, data: Path, output: Path, *, as_json: bool, **options: Any) -> None:
    """Calibrate as `apply_file`, and say how many rows."""
    over_rows(apply_file, (calibrator, data, output), as_json, options)


def apply_file(
    path: Path,
    data: Path,
    output: Path,
    *,
    scores: Sequence[str] = (),
    carried: Sequence[str] = (),
    prior: Sequence[str] = (),
    columns: str | None = None,
    level: float = 0.95,
    sheet: str | None = None,
    rows_at_once: int = ROWS_AT_ONCE,
    no_formulas: bool = False,
    note: Callable[[str], None] = lambda _: None,
    progress: Progress | None = None,
) -> Applied:
    """Calibrate every row of a table, and write its columns with those of `Answers` after them.

    Parameters are options of ``vennforest apply``. ``note`` takes sentences for the user, and
    ``progress`` the rows done and, where known, all of them.
    """
    start = time.perf_counter()
    how = format_of(output, no_formulas)
    if output != STREAM:
        check_output(output, {"calibrator": path, "table of scores": data})
    read = read_calibrator(path, scores)
    read = read.with_prior(prior) if prior else read
    calibrator, named = read.calibrator, read.scores
    table = TableFile(data, sheet)
    check_names(table, named)
    check_names(table, carried)
    carried = list(carried) or table.names
    answers = answers_for(calibrator, columns, level, note)
    added = [field.name for field in answers.fields]
    taken = [name for name in added if name in carried]
    if taken:
        raise InputError(
            f"{data} has a column {taken[0]!r} already, which the output adds: rename it, or name "
            "the columns to copy with --id"
        )
    kinds = zip(carried, table.types(carried), strict=True)
    schema = pa.schema([*kinds, *answers.fields])
    sums, done = np.zeros(len(added) - 1), 0
    safe = all_as_text if no_formulas else (lambda table: table)
    written = safe(schema.empty_table()).schema
    with output_file(output) as part, table_writer(part, how, written) as writer:
        for batch in table.batches(named, carried, rows_at_once, named):
            n = len(batch.rows)
            if n:
                read_in = [read_scores(batch.rows[name], name, table.place) for name in named]
                arrays = answers.arrays(_predict(calibrator, answers, read_in, done, named, table))
                sums += [array.to_numpy().sum() for array in arrays[1:]]
                rows = pa.Table.from_arrays([*batch.carried, *arrays], schema=schema)
                writer.write_table(safe(rows))
            done += n
            if progress is not None:
                progress(done, table.n_rows)
    mean = dict(zip(added[1:], (sums / max(done, 1)).tolist(), strict=True))
    return Applied(done, list(written.names), mean, time.perf_counter() - start)


def _predict(
    calibrator: Calibrator,
    answers: Answers,
    columns: list[FloatArray],
    done: int,
    names: Sequence[str],
    table: TableFile,
) -> Known:
    scores = columns[0] if len(columns) == 1 else np.column_stack(columns)
    try:
        return answers.predict(scores)
    except ValueError as error:  # scores of another kind than it was fitted to
        row = table.place(done + first_refused(calibrator, scores))
        raise InputError(f"{' and '.join(map(repr, names))} in {row}: {one_line(error)}") from error
