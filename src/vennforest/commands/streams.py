"""Standard input and output in the place of files: the name is ``-``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from vennforest._files import shown_path, written_whole
from vennforest._remote import local_copy, sent_whole
from vennforest._validation import InputError
from vennforest.commands.terminal import print_json, progress_bar, say, say_notes
from vennforest.tables.write import output_format

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


def format_of(output: Path, no_formulas: bool = False) -> str:
    """Return the format that a name stands for; standard output is CSV."""
    how = "csv" if output == STREAM else output_format(output)
    if no_formulas and not how.startswith(("csv", "tsv")):
        raise InputError(f"--no-formulas is for outputs of text, as .csv is, got {output.name!r}")
    return how


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


def over_rows(
    work: Callable[..., Any], paths: tuple[Path, Path, Path], as_json: bool, options: dict[str, Any]
) -> None:
    """Run what writes a table of answers for a table, and say how many rows.

    ``work`` takes the paths of the model, the table and the output, ``options``, ``note`` and
    ``progress``, and returns a dataclass with ``n_rows`` and ``seconds``, printed with ``as_json``.
    """
    model, data, output = paths
    if as_json and output == STREAM:
        raise InputError("--json prints where the output would go: name a file with --output")
    notes: list[str] = []
    with (
        progress_bar("Rows") as progress,
        input_file(model) as read,
        input_file(data) as file,
        sent_whole(output) as out,
    ):
        done = work(read, file, out, note=notes.append, progress=progress, **options)
    say_notes(notes)
    if as_json:
        print_json({**asdict(done), "output": shown_path(output), "notes": notes})
    elif output != STREAM:
        say(f"Wrote {shown_path(output)}: {done.n_rows:,} rows ({done.seconds:.0f} s)")
