"""The command ``datasets``: the named data sets, and which of them are here."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from vennforest._validation import InputError
from vennforest.commands.terminal import print_json
from vennforest_experiments.datasets import available

HERE = {"folder": "folder", "cache": "cache", "openml": "OpenML", None: "–"}


def run(data_dir: Path | None, *, as_json: bool) -> None:
    """List the named data sets.

    Raises
    ------
    InputError
        If there is no such folder.
    """
    if data_dir is not None and not data_dir.is_dir():
        raise InputError(f"--data-dir must be a folder, got {data_dir}")
    listed = available(data_dir)
    if as_json:
        print_json([asdict(one) for one in listed])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("name", "rows", "columns", "classes", "found in", "papers", "source", "licence"):
        right = name in ("rows", "columns", "classes")
        table.add_column(
            name, justify="right" if right else "left", no_wrap=right or name == "name"
        )
    for one in listed:
        table.add_row(
            one.name,
            f"{one.rows:,}",
            str(one.features),
            str(one.classes),
            HERE[one.place],
            ", ".join(one.papers),
            one.source,
            one.licence,
        )
    # Piped into a file or another program a line stays a line.
    Console(width=None if sys.stdout.isatty() else 400).print(table)
