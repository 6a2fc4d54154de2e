"""The signatures of the commands that make and use model files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vennforest.commands.arguments import (
    TABLE,
    TARGET,
    Columns,
    Debug,
    Draws,
    Drop,
    Estimator,
    Groups,
    HelpWithNames,
    Jobs,
    Json,
    Keep,
    Level,
    Method,
    Missing,
    NoFormulas,
    Seed,
    Sheet,
    Subforest,
    Trees,
    Types,
    WriteTypes,
    app,
)


@app.command(cls=HelpWithNames)
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", show_default=False, help=TABLE)],
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COLUMN", show_default=False, help=TARGET)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The model file to write.")
    ] = Path("model.skops"),
    estimator: Estimator = None,
    method: Method = "venn-abers",
    trees: Trees = 300,
    calibrate_on: Annotated[
        str,
        typer.Option(
            help="Where calibration scores come from: SOURCES; auto: oob where that is valid."
        ),
    ] = "auto",
    merge: Annotated[
        str,
        typer.Option(
            help="Where the probability comes from: pooled (maps of all trees' score), or the "
            "bounds by log, brier, midpoint or smooth."
        ),
    ] = "auto",
    subforest: Subforest = "all",
    n_draws: Draws = 1,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            show_default=False,
            help="Calibrate within the groups of this column: bounds are then valid in each.",
        ),
    ] = None,
    groups: Groups = None,
    sheet: Sheet = None,
    drop: Drop = None,
    keep: Keep = None,
    types: Types = None,
    missing: Missing = None,
    guessed: WriteTypes = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a calibrated classifier on your data, and write it to a file.

    Text, dates and missing cells are handled, in the same way when the model is used.
    """
    from vennforest.commands.fit import run
    from vennforest.commands.terminal import names_in

    run(
        data,
        target,
        output,
        as_json=as_json,
        estimator=estimator,
        method=method,
        trees=trees,
        calibrate_on=calibrate_on,
        merge=merge,
        subforest=subforest,
        n_draws=n_draws,
        by=by,
        groups=groups,
        sheet=sheet,
        drop=drop or [],
        keep=keep or [],
        types=types,
        missing=names_in(missing or ""),
        guessed=guessed,
        seed=seed,
        jobs=jobs,
    )


@app.command()
def predict(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", show_default=False, help="A model file written by fit."),
    ],
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", show_default=False, help=f"{TABLE} -: standard input."),
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
    ] = Path("predictions.csv"),
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            show_default=False,
            help="Write the probability and the bounds of this class alone.",
        ),
    ] = None,
    columns: Columns = None,
    level: Level = 0.95,
    keep: Annotated[
        bool, typer.Option("--keep", help="Copy all columns of DATA to the output.")
    ] = False,
    carried: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Copy this column of DATA to the output; may be given several times.",
        ),
    ] = None,
    sheet: Sheet = None,
    trusted: Annotated[
        list[str] | None,
        typer.Option(
            "--trust",
            metavar="TYPE",
            help="Accept objects of this type in the model, such as "
            "xgboost.sklearn.XGBClassifier; only in files you trust. May be given several times.",
        ),
    ] = None,
    rows_at_once: Annotated[
        int,
        typer.Option(
            min=1, help="Rows held in memory at once; makes no difference to the predictions."
        ),
    ] = 20_000,
    no_formulas: NoFormulas = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the rows of a table with a model written by fit.

    The output has, in the order of DATA, the most probable label, and for each class c its
    probability p(c), the Venn–Abers bounds lower(c) and upper(c), and the ends low95(c) and
    high95(c) of the confidence interval. The same numbers of the label come first. DATA may be
    larger than memory.
    """
    from vennforest.commands.predict import run

    run(
        model,
        data,
        output,
        as_json=as_json,
        carried=carried or [],
        keep=keep,
        positive=positive,
        columns=columns,
        level=level,
        sheet=sheet,
        trusted=trusted or [],
        rows_at_once=rows_at_once,
        no_formulas=no_formulas,
    )


@app.command()
def show(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="A model file written by fit or vennforest.save, or a calibrator by calibrate.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show what a model file contains: what was trained, when, on what, and its calibration.

    This is the file's own description; predict and vennforest.load verify it. A calibrator is read
    and checked whole.
    """
    from vennforest.commands.show import run

    run(model, as_json=as_json)
