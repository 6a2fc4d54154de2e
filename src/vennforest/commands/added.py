"""Commands that other packages add to the command line, by the entry points of one group.

In the ``pyproject.toml`` of such a package::

    [project.entry-points."vennforest.commands"]
    check-ward = "ward_tools.commands:check_ward"

The name of the entry point is the name of the command; what it names is a `Command`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

import typer

GROUP = "vennforest.commands"
"""The group of entry points."""

ELSEWHERE = {"datasets": "vennforest-experiments", "reproduce": "vennforest-experiments"}
"""Commands of this project that are in another distribution: ``{command: distribution}``."""


class Command(Protocol):
    """What an entry point of the group names: a function that typer can call.

    ``typer.BadParameter``, ``OSError`` and ``ImportError`` are reported in one sentence.
    """

    __name__: str

    def __call__(self, *args: Any, **options: Any) -> None:
        """Run the command."""


def add_commands(app: typer.Typer, arguments: Sequence[str] = ()) -> None:
    """Register commands of other packages, unless ``arguments`` begin with one of ``app``'s own."""
    there = {
        command.name or getattr(command.callback, "__name__", "")
        for command in app.registered_commands
    }
    if there.intersection(arguments[:1]):
        return
    for entry in entry_points(group=GROUP):
        if entry.name not in there:
            there.add(entry.name)
            _add(app, entry)
    for name, distribution in ELSEWHERE.items():
        if name not in there:
            _add_sentence(app, name, f"{name} needs another package: pip install {distribution}")


def _add(app: typer.Typer, entry: EntryPoint) -> None:
    try:
        command: Command = entry.load()
    except Exception as error:  # another package's fault must not cost every other command
        reason = f"{entry.name} ({entry.value}) cannot be imported: {error}"
        _add_sentence(app, entry.name, reason)
    else:
        app.command(entry.name)(command)


def _add_sentence(app: typer.Typer, name: str, sentence: str) -> None:
    """Add a command that says this, whatever else is typed, and is not listed."""

    def unavailable() -> None:
        raise ImportError(sentence)

    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(name, hidden=True, context_settings=anything)(unavailable)
