"""``vennforest datasets``: the named data sets, and which of them are here."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from vennforest._validation import InputError

HERE = {"folder": "folder", "cache": "cache", "openml": "OpenML", None: "–"}


def datasets(
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of data sets.  [default: $VENNFOREST_DATA]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them for machines.")] = False,
) -> None:
    """List the named data sets: sizes, papers, source, licence, and where each is found."""
    from vennforest.datasets import available

    if data_dir is not None and not data_dir.is_dir():
        raise InputError(f"--data-dir must be a folder, got {data_dir}")
    listed = available(data_dir)
    if as_json:
        print(json.dumps([asdict(one) for one in listed], indent=2, ensure_ascii=False))  # noqa: T201
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
