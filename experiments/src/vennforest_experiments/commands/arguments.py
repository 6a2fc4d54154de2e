"""The signatures of the commands about papers and their data sets, named in ``pyproject.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vennforest.commands.arguments import Debug, Seed

DataDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of data sets.", show_default="$VENNFOREST_DATA"),
]


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
            help="Folder for the results; a run that was stopped resumes from there.",
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
    from vennforest_experiments.commands.reproduce import run

    run(
        paper,
        data_dir,
        datasets,
        output,
        repeats=repeats,
        folds=folds,
        settings=settings or [],
        seed=seed,
        jobs=jobs,
    )


def datasets(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """List the named data sets: sizes, papers, source, licence, and where each is found."""
    from vennforest_experiments.commands.datasets import run

    run(data_dir, as_json=as_json)
