"""The progress of a paper's experiment on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import TextColumn

from vennforest.commands.terminal import bar_of
from vennforest_experiments.papers import Progress


@contextmanager
def folds_bar() -> Iterator[Callable[[Progress], None] | None]:
    """Show the progress of a paper's experiment on stderr, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with bar_of(console, TextColumn("{task.fields[left]}")) as bar:
        task = bar.add_task("Folds", total=None, left="")

        def show(now: Progress) -> None:
            left = "" if now.left is None else f"{timedelta(seconds=round(now.left))} left"
            bar.update(task, completed=now.done, total=now.total, left=left)

        yield show
