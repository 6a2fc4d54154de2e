"""Standard input and output in the place of files: the name is ``-``."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from vennforest._files import shown_path, written_whole
from vennforest._remote import local_copy, sent_whole
from vennforest._validation import InputError
from vennforest.commands.signatures import Apply, Predict
from vennforest.commands.terminal import print_json, progress_bar, say, say_notes
from vennforest.tables.stream import Batch, TableFile
from vennforest.tables.write import all_as_text, output_format, table_writer

STREAM = Path("-")

OTHERS = {
    ".pkl", ".pickle", ".joblib", ".onnx", ".json", ".skops", ".csv", ".parquet", ".html", ".zip",
}  # fmt: skip
"""Suffixes that promise a format."""


@contextmanager
def input_file(path: Path) -> Iterator[Path]:
    """Give a file to read: the one that is named, or a copy of standard input or an address.

    Tables are looked at more than once before they are read, which a stream is not made for; the
    copy goes to the folder of temporary files.
    """
    if path != STREAM:
        with local_copy(path) as copy:
            yield copy
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("standard input must be a file or a pipe for DATA -, got a terminal")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield copy
        except InputError as error:
            raise InputError(str(error).replace(str(copy), "standard input")) from error


def check_suffix(output: Path, wanted: str, what: str) -> None:
    """Refuse a name that promises another format than the one that is written."""
    if output.suffix.lower() in OTHERS - {wanted}:
        raise InputError(
            f"the {what} must end in {wanted}, the format that is written, got {output.name!r}"
        )


@contextmanager
def output_file(path: Path) -> Iterator[Path | IO[bytes]]:
    """Give a file to write, which appears whole or not at all, or standard output."""
    if path == STREAM:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with written_whole(path) as part:
        yield part


def over_rows(options: Predict | Apply, given: Path, work: Callable[..., dict[str, Any]]) -> None:
    """Run what writes a table of answers for a table, and say how many rows.

    ``work`` takes the options with local files, that of the model or calibrator ``given``, what
    takes sentences for the user, and what takes the rows done and, where known, all of them.
    """
    start, output = time.perf_counter(), options.output
    if options.as_json and output == STREAM:
        raise InputError("--json prints where the output would go: name a file with --output")
    notes: list[str] = []
    with (
        progress_bar("Rows") as progress,
        input_file(given) as model,
        input_file(options.data) as file,
        sent_whole(output) as out,
    ):
        done = work(replace(options, data=file, output=out), model, notes.append, progress)
    seconds = time.perf_counter() - start
    say_notes(notes)
    if options.as_json:
        shown = {"seconds": seconds, "output": shown_path(output), "notes": notes}
        print_json({**done, **shown})
    elif output != STREAM:
        say(f"Wrote {shown_path(output)}: {done['n_rows']:,} rows ({seconds:.0f} s)")


def format_of(options: Predict | Apply) -> str:
    """Return the format that the name of an output stands for; standard output is CSV."""
    return "csv" if options.output == STREAM else output_format(options.output)


def write_answers(
    options: Predict | Apply,
    how: str,
    schema: pa.Schema,
    table: TableFile,
    columns: tuple[Sequence[str], Sequence[str], Sequence[str]],
    answer: Callable[[Batch, int], pa.Table],
    progress: Callable[[int, int | None], None] | None,
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
