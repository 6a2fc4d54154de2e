"""Messages for people on stderr, and summaries for programs on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from rich.console import Console
from rich.progress import Progress

from vennforest._messages import harmless, listed

QUIET = ContextVar("QUIET", default=False)
"""Whether notes, warnings and progress are left out."""

STDOUT_IS_FILE = ContextVar("STDOUT_IS_FILE", default=False)
"""Whether a file is written to stdout, so that all text goes to stderr."""


@contextmanager
def streams_of(quiet: bool, stdout_is_file: bool) -> Iterator[None]:
    """Set what is printed, and where, during a command."""
    tokens = QUIET.set(quiet), STDOUT_IS_FILE.set(stdout_is_file)
    try:
        yield
    finally:
        QUIET.reset(tokens[0])
        STDOUT_IS_FILE.reset(tokens[1])


def leave_stdout() -> None:
    """Discard further text for stdout, which its reader, such as ``head``, has closed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(text: str, stream: TextIO | None = None) -> None:
    """Print text on a stream, by default stdout; escape characters that it cannot encode.

    Control characters are escaped on stderr and for terminals: of other streams, such as that of a
    query, a program reads names with them.
    """
    if stream is None:
        stream = sys.stderr if STDOUT_IS_FILE.get() else sys.stdout
    encoding = stream.encoding or "utf-8"
    text = harmless(text) if stream is sys.stderr or stream.isatty() else text
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def say(message: str) -> None:
    """Print a line on stderr, unless the command is quiet."""
    if not QUIET.get():
        show(message, sys.stderr)


def say_notes(notes: Iterable[str]) -> None:
    """Print notes, one a line, on stderr."""
    for note in notes:
        say(f"Note: {note}")


def print_json(summary: Any) -> None:
    """Print a summary as JSON on stdout."""
    show(json.dumps(summary, indent=2).replace("\x7f", "\\u007f"))


def shares_text(counts: Mapping[str, float], digits: int) -> str:
    """Return the shares of classes as text, the most frequent class first."""
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return listed(ordered, 8, lambda item: f"{item[0]!r} {item[1] / total:.{digits}%}")


@contextmanager
def progress_bar(task: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar on stderr if that is a terminal; yield the function that updates it."""
    console = Console(stderr=True)
    if QUIET.get() or not console.is_terminal:  # before rich 14.3 a disabled bar prints a line
        yield lambda n, total: None
        return
    with Progress(console=console, transient=True) as bar:
        number = bar.add_task(task, total=None)
        yield lambda n, total: bar.update(number, completed=n, total=total)
