"""What commands tell people on stderr and programs on stdout."""

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
    ProgressColumn,
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
    show(CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        say(f"Note: {note}")


def shares_of(counts: Mapping[str, float], digits: int) -> str:
    """Return how frequent classes are, the most frequent first."""
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return listed(ordered, 8, lambda one: f"{one[0]!r} {one[1] / total:.{digits}%}")


def names_in(text: str) -> list[str]:
    """Return the names of a list like ``A,B``."""
    return [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show on stderr that something goes on, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def bar_of(console: Console, *left: ProgressColumn) -> Progress:
    """Return a bar that is gone when it is done; ``left`` shows the time left."""
    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*shown, TimeElapsedColumn(), *left, console=console, transient=True)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """Show a bar with the time left on stderr, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with bar_of(console, TextColumn("left"), TimeRemainingColumn()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def measures_sentence(measures: Mapping[str, Any]) -> str:
    """Return the measures of a fit as a sentence."""
    numbers = {name: value for name, value in measures.items() if type(value) in (int, float)}
    needed = ("accuracy", "baseline_accuracy", "brier_score", "baseline_brier_score")
    if not all(name in numbers for name in needed):
        return ""
    text = (
        "Out of sample: accuracy {accuracy:.1%} ({baseline_accuracy:.1%} by always predicting "
        "the largest class), Brier score {brier_score:.4f} ({baseline_brier_score:.4f} by always "
        "predicting the class frequencies)"
    )
    if "mean_width" in numbers:
        text += "; bounds are {mean_width:.4f} wide on average"
    return text.format(**numbers) + "."
