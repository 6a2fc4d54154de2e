"""Messages for people on stderr, and summaries for programs on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from vennforest._messages import CONTROL, harmless, listed


class Stopped(Exception):  # noqa: N818
    """The user stopped a command that has kept something; the message says what and where."""


def show(text: str, stream: TextIO | None = None) -> None:
    """Print text on stdout, or another stream, with escapes for what that cannot take."""
    stream = sys.stdout if stream is None else stream
    encoding = stream.encoding or "utf-8"
    shown = harmless(text).encode(encoding, "backslashreplace").decode(encoding)
    print(shown, file=stream)


def say(message: str) -> None:
    """Print a line on stderr."""
    show(message, sys.stderr)


def print_json(summary: Any) -> None:
    """Print a summary for machines on stdout."""
    encoding = (sys.stdout.encoding or "utf-8").lower().replace("-", "")
    text = json.dumps(summary, indent=2, ensure_ascii=encoding != "utf8")
    show(CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text))


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        say(f"Note: {note}")


def shares_of(counts: Mapping[str, float], digits: int) -> str:
    """Return how frequent classes are, the most frequent first."""
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return listed(ordered, 8, lambda item: f"{item[0]!r} {item[1] / total:.{digits}%}")


def names_in(text: str) -> list[str]:
    """Return the names of a list like ``A,B``."""
    return [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show a spinner on stderr, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """Show a bar with the time left on stderr, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, *times, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def measures_sentence(measures: Mapping[str, Any]) -> str:
    """Return the measures of a fit as a sentence, "" without measures."""
    if not measures:
        return ""
    text = (
        "Out of sample: accuracy {accuracy:.1%} ({baseline_accuracy:.1%} by always predicting "
        "the largest class), Brier score {brier_score:.4f} ({baseline_brier_score:.4f} by always "
        "predicting the class frequencies)"
    )
    if "mean_width" in measures:
        text += "; bounds are {mean_width:.4f} wide on average"
    return text.format(**measures) + "."
