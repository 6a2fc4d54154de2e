"""The signature of the command that judges probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vennforest.commands.arguments import (
    TABLE,
    TARGET,
    Debug,
    Draws,
    Drop,
    Estimator,
    Groups,
    HelpWithNames,
    Jobs,
    Json,
    Keep,
    Missing,
    Seed,
    Sheet,
    Subforest,
    Trees,
    Types,
    WriteTypes,
    app,
)


@app.command(cls=HelpWithNames)
def report(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", show_default=False, help=TABLE)
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help=TARGET)
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    example: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A data set shipped with scikit-learn, instead of DATA: breast-cancer, digits, "
            "iris or wine.",
        ),
    ] = None,
    probability: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Judge this column of probabilities (or scores) and train nothing; several: a "
            "column per class, or one per model.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Evaluate this model file, or calibrator, on DATA; train nothing.",
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            "-s",
            metavar="COLUMN",
            help="With a calibrator, the scores.",
            show_default="the columns that it was calibrated on",
        ),
    ] = None,
    trusted: Annotated[
        list[str] | None,
        typer.Option(
            "--trust", metavar="TYPE", help="As for predict: accept this type in --model."
        ),
    ] = None,
    estimator: Estimator = None,
    test: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Train on DATA, and evaluate on this table."),
    ] = None,
    groups: Groups = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Train on the past: predict each row from earlier. With --probability or --model: "
            "show calibration over time.",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Report on the rows of each value separately, of dates by week, month or quarter; "
            "may be given several times.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The positive class of two.", show_default="the rarer"),
    ] = None,
    sheet: Sheet = None,
    drop: Drop = None,
    keep: Keep = None,
    types: Types = None,
    missing: Missing = None,
    guessed: WriteTypes = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Compare only these with the raw forest: COMPARED.",
            show_default="all",
        ),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|JSON",
            help="What decisions cost: "
            '\'{"observed class": {"decision": cost, …}, …}\', or a file of it, or of CSV.',
        ),
    ] = None,
    calibrator: Annotated[
        Path | None,
        typer.Option(
            "--write-calibrator",
            metavar="FILE",
            help="With --probability, calibrate the column on DATA and write the calibrator, as "
            "calibrate does.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Percentage points by which reliable probabilities may be off.",
            show_default="2, or a fifth of the share of a rare class",
        ),
    ] = None,
    rows: Annotated[
        bool,
        typer.Option(
            "--rows",
            help="List single rows with their values: the most uncertain, and the most confident "
            "mistakes.",
        ),
    ] = False,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    trees: Trees = 300,
    subforest: Subforest = "all",
    n_draws: Draws = 1,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Evaluate probabilities and ways of calibrating them, and write a report.

    Of a table, random forests (or others) are trained and all methods compared by cross-validation;
    text, dates and missing cells are handled. With --probability or --model nothing is trained.
    """
    from vennforest.commands.report_run import run
    from vennforest.commands.report_table import Columns, Judged
    from vennforest.commands.terminal import names_in

    evaluation = run(
        data,
        target,
        output,
        as_json=as_json,
        example=example,
        test=test,
        columns=Columns(
            groups, time, by or [], drop or [], keep or [], types, names_in(missing or ""), sheet
        ),
        judged=Judged(probability or [], model, trusted or [], scores or []),
        costs=costs,
        guessed=guessed,
        rows=rows,
        calibrator=calibrator,
        tolerance=None if tolerance is None else tolerance / 100,
        estimator=estimator,
        positive=positive,
        methods=methods,
        folds=folds,
        trees=trees,
        subforest=subforest,
        n_draws=n_draws,
        seed=seed,
        jobs=jobs,
    )
    if calibrator is not None:
        from vennforest.commands.calibrate import write_calibrator

        write_calibrator(calibrator, evaluation)
