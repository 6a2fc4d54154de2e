"""The predictions for a table's rows, written to a table part by part."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from vennforest._files import STREAM, shown_path
from vennforest._validation import InputError
from vennforest.batch import BatchPredictor, kinds_of
from vennforest.commands.files import output_file
from vennforest.commands.options import Apply, Predict
from vennforest.commands.terminal import print_json, progress_bar, say, say_notes
from vennforest.tables.files import TableFile
from vennforest.tables.read import find_name
from vennforest.tables.write import all_as_text, output_format, table_writer


def open_table(options: Predict | Apply) -> TableFile:
    """Return the table of a command whose output and columns to copy are sound."""
    if options.as_json and str(options.output) == STREAM:
        raise InputError("--json prints where the output would go: name a file with --output")
    _format_of(options)
    table = TableFile(options.data, options.decimal)
    for name in options.carried or ():
        find_name(table.names, name, "column to copy", where=f" in {options.data}")
    return table


def make_predictor(
    options: Predict | Apply, model: Any, table: TableFile, notes: list[str], **choices: Any
) -> BatchPredictor:
    """Return what predicts a table by a model; ``choices`` are further ones of `BatchPredictor`."""
    kinds = kinds_of(model, options.columns, "--columns")
    if options.columns is None and "confidence" not in kinds:
        notes.append(f"No columns of confidence intervals: a {type(model).__name__} has none.")
    return BatchPredictor(
        model,
        table.schema,
        answers=options.columns,
        level=options.level,
        **choices,
    )


def write_predictions(
    options: Predict | Apply, table: TableFile, predictor: BatchPredictor, notes: list[str]
) -> None:
    """Write the predictions for a table's rows, and say how many rows."""
    start = time.perf_counter()
    n_rows, labels = _write(options, table, predictor)
    seconds, output = time.perf_counter() - start, shown_path(options.output)
    say_notes(notes)
    if options.as_json:
        counts = {str(label): labels[label] for label in predictor.model.classes_.tolist()}
        summary = {"n_rows": n_rows, "counts": counts, "columns": predictor.schema.names}
        print_json({**summary, "seconds": seconds, "output": output, "notes": notes})
    elif str(options.output) != STREAM:
        say(f"Wrote {output}: {n_rows:,} rows ({seconds:.0f} s)")


def _write(
    options: Predict | Apply, table: TableFile, predictor: BatchPredictor
) -> tuple[int, Counter[Any]]:
    """Write the output; return the number of rows, and of rows of each predicted label."""
    file_format, n_rows, labels = _format_of(options), 0, Counter[Any]()
    safe = all_as_text if file_format == "csv" else (lambda part: part)
    schema = safe(predictor.schema.empty_table()).schema
    with (
        progress_bar("Rows") as progress,
        output_file(options.output) as file,
        table_writer(file, file_format, schema) as writer,
    ):
        for batch in predictor.over(table):
            writer.write_table(safe(pa.Table.from_batches([batch])))
            n_rows += batch.num_rows
            for entry in batch["label"].value_counts().to_pylist():
                labels[entry["values"]] += entry["counts"]
            if progress is not None:
                progress(n_rows, table.n_rows)
    return n_rows, labels


def _format_of(options: Predict | Apply) -> str:
    """Return the format of the output by its suffix; standard output is CSV."""
    address = str(options.output).partition("?")[0]  # the rest may be a key
    return "csv" if address == STREAM else output_format(Path(address))
