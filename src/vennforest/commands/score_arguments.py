"""The signatures of the commands that take scores of any system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vennforest.commands.arguments import (
    TABLE,
    Debug,
    HelpWithNames,
    Json,
    Method,
    NoFormulas,
    Sheet,
    app,
)

Rows = Annotated[
    int,
    typer.Option(
        "--rows-at-once", min=1, help="Rows held in memory at once; makes no other difference."
    ),
]


@app.command(cls=HelpWithNames)
def calibrate(
    data: Annotated[Path, typer.Argument(metavar="SCORES", show_default=False, help=TABLE)],
    scores: Annotated[
        list[str],
        typer.Option(
            "--score",
            "-s",
            metavar="COLUMN",
            show_default=False,
            help="The scores of the second class, in sorted order; of more than two classes "
            "several times, a column per class in sorted order.",
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="COLUMN", show_default=False, help="The column of labels."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The calibrator to write.")
    ] = Path("calibrator.json"),
    method: Method = "venn-abers",
    merge: Annotated[
        str | None,
        typer.Option(
            help="How the bounds are merged into a probability: log, brier, midpoint or smooth.",
            show_default="the method's own",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of weights: how often each row counts."),
    ] = None,
    grid: Annotated[
        str,
        typer.Option(
            help="Put scores in [0, 1] on 1,048,576 cells: of the score, of its log-odds (logit), "
            "or none; auto: of the log-odds where there are at least as many distinct scores."
        ),
    ] = "auto",
    higher_is: Annotated[
        str | None,
        typer.Option(
            "--higher-is",
            show_default="likelier, and refused where the rows show the opposite",
            help="What a higher score means for the second class: likelier, safer (such as credit "
            "scores), or auto: what the rows show.",
        ),
    ] = None,
    sheet: Sheet = None,
    rows_at_once: Rows = 200_000,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Calibrate the scores of any system on labelled rows, and write a calibrator.

    SCORES may be larger than memory. The calibrator is JSON, for apply and for other programs.
    """
    from vennforest.commands.calibrate import run

    run(
        data,
        output,
        as_json=as_json,
        scores=scores,
        target=target,
        weight=weight,
        method=method,
        merge=merge,
        grid=grid,
        higher_is=higher_is,
        sheet=sheet,
        rows_at_once=rows_at_once,
    )


@app.command()
def apply(
    calibrator: Annotated[
        Path,
        typer.Argument(
            metavar="CALIBRATOR", show_default=False, help="A file written by calibrate."
        ),
    ],
    data: Annotated[
        Path,
        typer.Argument(metavar="SCORES", show_default=False, help=f"{TABLE} -: standard input."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The table to write: .csv, .tsv, .csv.gz, .parquet or .arrow. -: CSV on standard "
            "output.",
        ),
    ] = Path("calibrated.csv"),
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            "-s",
            metavar="COLUMN",
            help="The scores; several times for more than two classes.",
            show_default="the columns that it was calibrated on",
        ),
    ] = None,
    carried: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Copy this column of SCORES to the output; may be given several times.",
            show_default="all",
        ),
    ] = None,
    sheet: Sheet = None,
    rows_at_once: Rows = 100_000,
    no_formulas: NoFormulas = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Turn scores into probabilities with a calibrator.

    The output has the columns of SCORES, then the most probable label, and the probability p(c) of
    each class c, with lower(c) and upper(c) where the method has bounds. SCORES may be larger than
    memory.
    """
    from vennforest.commands.apply import run

    run(
        calibrator,
        data,
        output,
        as_json=as_json,
        scores=scores or [],
        carried=carried or [],
        sheet=sheet,
        rows_at_once=rows_at_once,
        no_formulas=no_formulas,
    )
