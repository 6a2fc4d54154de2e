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

from vennforest._files import STREAM, Input, marked, refuse_special, written_whole
from vennforest._messages import InputError
from vennforest._remote import local_copy, sent_whole

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
        refuse_special(path)
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


def check_suffix(path: Path, suffix: str) -> None:
    """Refuse an output whose name does not end in the suffix of its format."""
    if path.suffix.lower() != suffix:
        raise InputError(f"--output must end in {suffix}, the format that is written, got {path}")
