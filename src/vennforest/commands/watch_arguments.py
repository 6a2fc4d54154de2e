"""The signature of the command that watches a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vennforest.commands.arguments import TABLE, Debug, Json, Seed, Sheet, app


@app.command()
def watch(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="A model file written by fit, a calibrator written by calibrate, or a monitor "
            "saved with --keep.",
        ),
    ],
    data: Annotated[Path, typer.Argument(metavar="DATA", show_default=False, help=TABLE)],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column of labels that have become known.",
            show_default="watch objects alone, and estimate the performance",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="When each label became known: numbers or dates.",
            show_default="the order of DATA",
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            "-s",
            metavar="COLUMN",
            help="With a calibrator, the scores.",
            show_default="the column that it was calibrated on",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("watch.html"),
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the monitor here, to continue with later rows."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="Probability of ever raising a false alarm.", show_default="0.05"),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(help="ville, or for endless streams: shiryaev-roberts or cusum."),
    ] = None,
    run_length: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="For the last two: a false alarm within n rows has a probability of at most n "
            "divided by this.",
            show_default="10000",
        ),
    ] = None,
    trusted: Annotated[
        list[str] | None,
        typer.Option(
            "--trust",
            metavar="TYPE",
            help="Accept objects of this type in the model, see predict.",
        ),
    ] = None,
    sheet: Sheet = None,
    seed: Seed = 0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Test whether rows still look like those the model was calibrated on.

    Prints a verdict, and writes a page: when a change began, what moved and what it costs. Without
    --target the page has the performance that is expected of the rows, by week or month with
    --time. The chance of a false alarm, however many rows there are, is at most --alpha.
    """
    from vennforest.commands.watch import run

    run(
        model,
        data,
        target,
        output,
        as_json=as_json,
        time=time,
        keep=keep,
        trusted=trusted or [],
        seed=seed,
        scores=scores or [],
        sheet=sheet,
        options={"alpha": alpha, "form": form, "run_length": run_length},
    )
