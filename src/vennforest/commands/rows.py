"""A table of answers for the rows of a table, written part by part."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from vennforest._files import STREAM, shown_path
from vennforest._validation import InputError
from vennforest.commands.files import output_file
from vennforest.commands.options import Apply, Predict
from vennforest.commands.terminal import print_json, progress_bar, say, say_notes
from vennforest.tables.stream import Batch, TableFile
from vennforest.tables.write import all_as_text, output_format, table_writer

Progress = Callable[[int, int | None], None] | None


def over_rows(options: Predict | Apply, work: Callable[..., dict[str, Any]]) -> None:
    """Run what writes a table of answers for a table, and say how many rows.

    ``work`` takes the options, what takes sentences for the user, and what takes the rows done and,
    where known, all of them.
    """
    start, to_stdout = time.perf_counter(), str(options.output) == STREAM
    if options.as_json and to_stdout:
        raise InputError("--json prints where the output would go: name a file with --output")
    notes: list[str] = []
    with progress_bar("Rows") as progress:
        summary = work(options, notes.append, progress)
    seconds, output = time.perf_counter() - start, shown_path(options.output)
    say_notes(notes)
    if options.as_json:
        print_json({**summary, "seconds": seconds, "output": output, "notes": notes})
    elif not to_stdout:
        say(f"Wrote {output}: {summary['n_rows']:,} rows ({seconds:.0f} s)")


def format_of(options: Predict | Apply) -> str:
    """Return the format that the name of an output stands for; standard output is CSV."""
    address = str(options.output).partition("?")[0]  # what follows may be a key
    return "csv" if address == STREAM else output_format(Path(address))


def write_answers(
    options: Predict | Apply,
    how: str,
    schema: pa.Schema,
    table: TableFile,
    columns: tuple[Sequence[str], Sequence[str], Sequence[str]],
    answer: Callable[[Batch, int], pa.Table],
    progress: Progress,
) -> tuple[int, list[str]]:
    """Write the answers for batches of a table; return how many rows and which columns it has.

    ``columns`` are those to read, to carry along, and those of numbers; ``answer`` takes a batch
    and how many rows are before it.
    """
    read, carried, numbers = columns
    safe = all_as_text if how.startswith(("csv", "tsv")) else (lambda table: table)
    written, done = safe(schema.empty_table()).schema, 0
    with output_file(options.output) as part, table_writer(part, how, written) as writer:
        for batch in table.batches(read, carried, options.rows_at_once, numbers):
            if len(batch.rows):
                writer.write_table(safe(answer(batch, done)))
            done += len(batch.rows)
            if progress is not None:
                progress(done, table.n_rows)
    return done, list(written.names)
