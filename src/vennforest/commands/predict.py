"""The command ``predict``: a model and a table in, probabilities with their bounds out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import typer
from pyarrow import csv, parquet

from vennforest._files import is_standard, shown_path, written_whole
from vennforest._messages import counted, warn
from vennforest._validation import check_option
from vennforest.batch import BatchPredictor, feature_names, kinds_of
from vennforest.commands.models import numbers_of_labels, open_table, read_model, with_shares
from vennforest.commands.options import Apply, Predict
from vennforest.commands.terminal import print_json, progress_bar, say
from vennforest.tables.open import TableFile
from vennforest.tables.write import output_format, table_as_text

ROWS_PREDICTED_AT_ONCE = 20_000

WRITERS = {"csv": csv.CSVWriter, "parquet": parquet.ParquetWriter, "arrow": pa.ipc.new_stream}
"""Functions that open a file of a format for tables to be appended; Arrow's is the stream."""


def run_predict(options: Predict) -> None:
    """Write predictions for the rows of a table, and print the number of rows."""
    model = with_shares(read_model(options.model, options.trusted), options.prior)
    table, carried = open_table(options.data, model, options.form), list(options.carried or ())
    columns = None
    if feature_names(model) is None:
        columns = [name for name in table.names if name not in carried]
    if options.keep:
        carried += [name for name in table.names if name not in carried]
    settings: dict[str, Any] = {"of_label": True, "rows_at_once": ROWS_PREDICTED_AT_ONCE}
    write_predictions(options, model, table, columns=columns, carried=carried, **settings)


def write_predictions(
    options: Predict | Apply, model: Any, table: TableFile, **arguments: Any
) -> None:
    """Write a table's predictions; ``arguments`` are passed to `BatchPredictor`."""
    for failure in options.fail_on or ():
        check_option(failure, ("columns",), "--fail-on")
    start, n_rows, n_empty = time.perf_counter(), 0, 0
    if means := numbers_of_labels(model, options.mean, "--mean", "MEAN"):
        model = _with_means(model, means, table, arguments)
    kinds = kinds_of(model, options.columns, "--columns")
    predictor = BatchPredictor(model, table.schema, answers=kinds, level=options.level, **arguments)
    file_format = output_format(options.output, options.file_format)
    output_file = output_table(
        options.output, predictor.schema, file_format, options.escape_formulas
    )
    with progress_bar("Rows") as progress, output_file as write:
        for batch in predictor.over(table):
            write(pa.Table.from_batches([batch]))
            n_rows += batch.num_rows
            n_empty += batch["label"].null_count
            progress(n_rows, table.n_rows)
    if n_empty:
        have = "has" if n_empty == 1 else "have"
        say(f"Note: {counted(n_empty)} {have} no score, and empty probabilities.")
    differences = predictor.column_differences()
    for difference in differences:
        warn(difference.message)
    seconds, output = time.perf_counter() - start, shown_path(options.output)
    if options.as_json:
        summary = {
            "n_rows": n_rows,
            "columns": [difference._asdict() for difference in differences],
        }
        names = predictor.schema.names
        print_json({**summary, "output_columns": names, "seconds": seconds, "output": output})
    else:
        say(f"Wrote {output}: {counted(n_rows)} ({seconds:.0f} s)")
    if options.fail_on and differences:
        raise typer.Exit(1)


def _with_means(
    model: Any, means: dict[Any, float], table: TableFile, arguments: dict[str, Any]
) -> Any:
    """Return the model after the shift that gives the rows of the table these mean probabilities.

    The table is read once more before its rows are predicted.
    """
    options = {**arguments, "carried": [], "of_label": False}
    predictor = BatchPredictor(model, table.schema, answers=["p"], **options)
    names = [f"p({label})" for label in model.classes_]
    parts = [
        np.column_stack([batch[name].to_numpy(zero_copy_only=False) for name in names])
        for batch in predictor.over(table)
    ]
    p = np.concatenate(parts) if parts else np.empty((0, len(names)))
    return model._with_mean_of(means, p[np.isfinite(p).all(axis=1)])


@contextmanager
def output_table(
    output: Path, schema: pa.Schema, file_format: str, escape_formulas: bool = False
) -> Iterator[Callable[[pa.Table], None]]:
    """Open a new file, and yield a function that appends tables of the schema to it.

    What goes to standard output goes there at once, row by row.
    """

    def convert(table: pa.Table) -> pa.Table:
        return table_as_text(table, escape_formulas) if file_format == "csv" else table

    schema = convert(schema.empty_table()).schema
    with ExitStack() as stack:
        if is_standard(output):
            file: Any = sys.stdout.buffer
        else:  # an open file, since pyarrow takes no path with bytes that are not UTF-8
            file = stack.enter_context(stack.enter_context(written_whole(output)).open("wb"))
        writer = stack.enter_context(WRITERS[file_format](file, schema))
        yield lambda table: writer.write_table(convert(table))
