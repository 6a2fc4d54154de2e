"""The command ``apply``: a calibrator and a table of scores in, probabilities out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vennforest._answers import Answers, answers_for, first_refused
from vennforest._files import one_line
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator
from vennforest.classifier.intervals import Known
from vennforest.commands.calibrator_file import read_calibrator
from vennforest.commands.options import Apply
from vennforest.commands.rows import format_of, over_rows, write_answers
from vennforest.tables.scores import check_names, read_scores
from vennforest.tables.stream import Batch, TableFile


def run(options: Apply) -> None:
    """Calibrate every row of a table, and say how many rows."""
    over_rows(options, _apply)


def _apply(
    options: Apply,
    note: Callable[[str], None],
    progress: Callable[[int, int | None], None] | None,
) -> dict[str, Any]:
    """Calibrate every row of a table, and write its columns with those of `Answers` after them.

    Returned are the number of rows, the columns written and the means of those that were added.
    """
    data, how = options.data, format_of(options)
    read = read_calibrator(options.calibrator, options.scores or ())
    read = read.with_prior(options.prior) if options.prior else read
    calibrator, named = read.calibrator, read.scores
    table = TableFile(data, options.decimal)
    check_names(table, named)
    check_names(table, options.carried or ())
    carried = options.carried or table.names
    answers = answers_for(calibrator, options.columns, options.level, note)
    added = [field.name for field in answers.fields]
    taken = [name for name in added if name in carried]
    if taken:
        raise InputError(
            f"{data} has a column {taken[0]!r} already, which the output adds: rename it, or name "
            "the columns to copy with --id"
        )
    kinds = zip(carried, table.types(carried), strict=True)
    schema = pa.schema([*kinds, *answers.fields])
    sums = np.zeros(len(added) - 1)

    def answer(batch: Batch, done: int) -> pa.Table:
        scores = [read_scores(batch.rows[name], name, table.place) for name in named]
        arrays = answers.arrays(_predict(calibrator, answers, scores, done, named, table))
        sums[:] += [array.to_numpy().sum() for array in arrays[1:]]
        return pa.Table.from_arrays([*batch.carried, *arrays], schema=schema)

    columns = named, carried, named
    done, written = write_answers(options, how, schema, table, columns, answer, progress)
    mean = dict(zip(added[1:], (sums / max(done, 1)).tolist(), strict=True))
    return {"n_rows": done, "columns": written, "mean": mean}


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
