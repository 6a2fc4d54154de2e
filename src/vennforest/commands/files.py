"""The files of a command: inputs as files on this machine, outputs whole or not at all."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from vennforest._files import STREAM, Input, marked, written_whole
from vennforest._messages import InputError
from vennforest._remote import local_copy, sent_whole

OTHER_FORMATS = {
    ".pkl", ".pickle", ".joblib", ".onnx", ".json", ".skops", ".csv", ".parquet", ".html", ".zip",
}  # fmt: skip
"""Suffixes that promise a format."""

Options = TypeVar("Options")


@contextmanager
def local_inputs(options: Options) -> Iterator[Options]:
    """Give options with copies of addresses and of standard input in the place of these.

    Tables are read more than once, for which a stream is not made.
    """
    with ExitStack() as stack:
        paths = {
            field: stack.enter_context(_local_input(path))
            for field, _ in marked(options, Input)
            if isinstance(path := getattr(options, field), Path)
        }
        yield replace(options, **paths)  # type: ignore[type-var]


@contextmanager
def _local_input(path: Path) -> Iterator[Path]:
    if str(path) != STREAM:
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


@contextmanager
def output_file(path: Path) -> Iterator[Any]:
    """Give a path to write to, for a file that appears whole or not at all, or standard output."""
    if str(path) == STREAM:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with sent_whole(path) as local, written_whole(local) as part:
        yield part


def check_suffix(output: Path, suffix: str, what: str) -> None:
    """Refuse a name that promises another format than the one that is written."""
    if output.suffix.lower() in OTHER_FORMATS - {suffix}:
        raise InputError(
            f"the {what} must end in {suffix}, the format that is written, got {output.name!r}"
        )
