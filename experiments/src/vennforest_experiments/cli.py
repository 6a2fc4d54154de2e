"""The command ``vennforest-experiments``: ``reproduce`` runs a paper, ``datasets`` lists data."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from vennforest._files import is_same_file
from vennforest._messages import InputError
from vennforest.cli import main as run_command
from vennforest.commands.options import Debug, Seed
from vennforest.commands.terminal import print_json, say, show

if TYPE_CHECKING:
    from vennforest_experiments.papers import Progress as FoldProgress

app = typer.Typer(
    name="vennforest-experiments",
    help="Reproduce five papers about calibrated probabilities, and list the data sets they need.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DataDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of data sets.", show_default="$VENNFOREST_DATA"),
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 for errors of the user, 1 for defects.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    return run_command(arguments or ["--help"], commands=app)


@app.command()
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER",
            help="johansson2018, bostrom2008, vovk2014, niculescu2005 or shaker2025.",
        ),
    ],
    data_dir: DataDir = None,
    datasets: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Only these data sets, named as in the paper."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the results; a stopped run resumes from there.",
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Repeats of the cross-validation.", show_default="paper's"),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Folds of the cross-validation.", show_default="paper's"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Another setting, such as trees=100; may be given several times.",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes to use; -1: one per processor.")] = -1,
    debug: Debug = False,
) -> None:
    """Run a paper's experiment and print its tables, with the published numbers beside ours."""
    from vennforest_experiments.datasets.loading import ENVIRONMENT
    from vennforest_experiments.papers import reproduce

    folder = data_dir or os.environ.get(ENVIRONMENT)
    if output is not None and folder and is_same_file(output, folder):
        raise InputError(f"the output must not be the folder of data sets, got {output} for both")
    names = None if datasets is None else [name.strip() for name in datasets.split(",") if name]
    try:
        with _progress_bar() as progress:
            reproduction = reproduce(
                paper,
                data_dir,
                names,
                repeats=repeats,
                folds=folds,
                n_jobs=jobs,
                seed=seed,
                output=output,
                progress=progress,
                **_parse_settings(settings or []),
            )
    except FileNotFoundError as error:
        raise InputError(str(error)) from error
    except KeyboardInterrupt:
        if output is None:
            raise
        say(f"Stopped: finished folds are in {output}; the same command resumes from there.")
        raise SystemExit(130) from None
    show(reproduction.to_markdown())
    if output is not None:
        say(f"Wrote {output / 'index.html'}")


def _parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the settings of ``--set``: numbers, true and false, else text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--set must be followed by NAME=VALUE, got {pair!r}")
        try:
            settings[name] = json.loads(text.lower())
        except json.JSONDecodeError:
            settings[name] = text
    return settings


@contextmanager
def _progress_bar() -> Iterator[Callable[[FoldProgress], None] | None]:
    """Show the progress of an experiment on stderr, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    time_columns = (TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, *time_columns, console=console, transient=True) as bar:
        task = bar.add_task("Folds", total=None, left="")

        def update(state: FoldProgress) -> None:
            left = "" if state.left is None else f"{timedelta(seconds=round(state.left))} left"
            bar.update(task, completed=state.done, total=state.total, left=left)

        yield update


@app.command(name="datasets")
def list_datasets(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """List the named data sets: sizes, papers, source, licence, and where each is read from."""
    from vennforest_experiments.datasets import available

    if data_dir is not None and not data_dir.is_dir():
        raise InputError(f"--data-dir must be a folder, got {data_dir}")
    entries = available(data_dir)
    if as_json:
        print_json([asdict(entry) for entry in entries])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("name", "rows", "columns", "classes", "read from", "papers", "source", "licence"):
        is_number = name in ("rows", "columns", "classes")
        table.add_column(
            name, justify="right" if is_number else "left", no_wrap=is_number or name == "name"
        )
    for entry in entries:
        table.add_row(
            entry.name,
            f"{entry.rows:,}",
            str(entry.features),
            str(entry.classes),
            {"openml": "OpenML", None: "–"}.get(entry.place, entry.place),
            ", ".join(entry.papers),
            entry.source,
            entry.licence,
        )
    # Piped into a file or another program, a row stays a line.
    Console(width=None if sys.stdout.isatty() else 400).print(table)
