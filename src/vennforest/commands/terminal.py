"""What commands tell people on stderr and programs on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Stopped(Exception):  # noqa: N818
    """The user stopped a command that has kept something; the message says what and where."""


def say(message: str) -> None:
    """Print a line on stderr."""
    print(message, file=sys.stderr)  # noqa: T201


def print_json(summary: Any) -> None:
    """Print a summary for machines on stdout."""
    print(json.dumps(summary, indent=2, ensure_ascii=False))  # noqa: T201


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


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """Show a bar with the time left on stderr, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def folds_bar() -> Iterator[Callable[[Any], None] | None]:
    """Show the progress of a paper's experiment on stderr, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("Folds", total=None, left="")

        def show(now: Any) -> None:
            left = "" if now.left is None else f"{timedelta(seconds=round(now.left))} left"
            bar.update(task, completed=now.done, total=now.total, left=left)

        yield show
