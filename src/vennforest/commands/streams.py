"""Standard input and output in the place of files: the name is ``-``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from vennforest._files import written_whole
from vennforest._validation import InputError

STREAM = Path("-")


@contextmanager
def input_file(path: Path) -> Iterator[Path]:
    """Give a file to read: the one that is named, or a copy of standard input.

    Tables are looked at more than once before they are read, which a stream is not made for; the
    copy goes to the folder of temporary files.

    Raises
    ------
    InputError
        If standard input is a terminal, and what is raised while the file is read, which then
        calls it standard input.
    """
    if path != STREAM:
        yield path
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
def output_file(path: Path) -> Iterator[Path | IO[bytes]]:
    """Give a file to write, which appears whole or not at all, or standard output."""
    if path == STREAM:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with written_whole(path) as part:
        yield part
