"""The signatures of all commands: arguments, options and their help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vennforest._version import __version__

app = typer.Typer(
    name="vennforest",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dataclass
class Run:
    """Options that hold for every command."""

    debug: bool = False


def _note_debug(context: typer.Context, value: bool) -> bool:
    if value:
        context.ensure_object(Run).debug = True
    return value


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"vennforest {__version__}")  # noqa: T201
        raise typer.Exit


Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        callback=_note_debug,
        is_eager=True,
        help="Show the traceback of an error.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Jobs = Annotated[int, typer.Option(help="Processors to use; -1: all.")]
Trees = Annotated[int, typer.Option(min=1, help="Trees of each forest.")]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Leave this column out; may be given several times."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Keep this column though it looks like an identifier; may be given several times.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of data sets.  [default: $VENNFOREST_DATA]"),
]
Subforest = Annotated[
    str,
    typer.Option(
        help="Which trees score a new row for its bounds: all (no draw), exchangeable (those that "
        "did not see a calibration row drawn at random), joined (the row joins the bags) or random."
    ),
]
Draws = Annotated[
    int,
    typer.Option(min=1, help="Draws over which bounds are averaged, with exchangeable or joined."),
]
TABLE = "A table: CSV or TSV, Parquet, or Arrow."
TARGET = "The column to predict."


@app.callback(invoke_without_command=True)
def vennforest_(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Debug = False,
) -> None:
    """Calibrated class probabilities with bounds, from random forests and others."""
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", show_default=False, help=TABLE)],
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COLUMN", show_default=False, help=TARGET)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The model file to write.")
    ] = Path("model.skops"),
    method: Annotated[
        str,
        typer.Option(
            help="venn-abers, venn, platt, isotonic, bostrom, beta, temperature, matrix, "
            "quadratic, spline, pooled or none."
        ),
    ] = "venn-abers",
    trees: Trees = 300,
    calibrate_on: Annotated[
        str,
        typer.Option(help="oob, holdout, cv, cv-forest or training; auto: oob where it is honest."),
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
            help="Calibrate within the groups that this column names, so that bounds hold in each.",
        ),
    ] = None,
    drop: Drop = None,
    keep: Keep = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a calibrated random forest on your data, and write it to a file.

    Text, dates and missing cells are handled, in the same way when the model is used.
    """
    from vennforest.commands.fit import run

    run(
        data,
        target,
        output,
        as_json=as_json,
        method=method,
        trees=trees,
        calibrate_on=calibrate_on,
        merge=merge,
        subforest=subforest,
        n_draws=n_draws,
        by=by,
        drop=drop or [],
        keep=keep or [],
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
    keep: Annotated[bool, typer.Option("--keep", help="Carry all columns of DATA along.")] = False,
    carried: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Carry this column of DATA along; may be given several times.",
        ),
    ] = None,
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
    no_formulas: Annotated[
        bool,
        typer.Option(
            "--no-formulas",
            help="Put an apostrophe before text in a .csv output that a spreadsheet program would "
            "take for a formula.",
        ),
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the rows of a table with a model written by fit.

    The output has, in the order of DATA, the most probable label, its probability with lower and
    upper bound, and the probability p(c) and the bounds lower(c) and upper(c) of each class c. DATA
    may be larger than memory.
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
            help="A model file written by fit or vennforest.save.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Say what a model file holds: what was trained when and on what, how it is calibrated.

    Reads what the file says of itself, which only predict and vennforest.load check.
    """
    from vennforest.commands.show import run

    run(model, as_json=as_json)


@app.command()
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
            "column a class, or one a model.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Judge this model file on DATA, and train nothing."),
    ] = None,
    trusted: Annotated[
        list[str] | None,
        typer.Option("--trust", metavar="TYPE", help="As for predict, of --model."),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Instead of a random forest: extra-trees, hist-gradient-boosting, logistic, "
            "lightgbm, xgboost or catboost.",
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Train on DATA, and judge on the rows of this table."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Keep rows of one value together, such as those of a patient."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Train on the past: predict each row from earlier."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Look at the rows of each value separately; may be given several times.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The positive class of two.  [default: the rarer]"),
    ] = None,
    drop: Drop = None,
    keep: Keep = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Compare only these with the raw forest: platt, isotonic, beta, temperature, "
            "bostrom, matrix, quadratic, spline, venn, venn-abers.  [default: all]",
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
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    trees: Trees = 300,
    subforest: Subforest = "all",
    n_draws: Draws = 1,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Judge probabilities and ways of calibrating them, and write a page about it.

    Of a table, random forests (or others) are trained and all methods compared by cross-validation;
    text, dates and missing cells are handled. With --probability or --model nothing is trained.
    """
    from vennforest.commands.report import Columns, Judged, run

    run(
        data,
        target,
        output,
        as_json=as_json,
        example=example,
        test=test,
        columns=Columns(groups, time, by or [], drop or [], keep or []),
        judged=Judged(probability or [], model, trusted or []),
        costs=costs,
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


@app.command()
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER", help="johansson2018, bostrom2008, vovk2014 or niculescu2005."
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
        int | None, typer.Option(min=1, help="Repeats of the cross-validation.  [default: paper's]")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Folds of the cross-validation.  [default: paper's]")
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
    jobs: Annotated[int, typer.Option(help="Processes to use; -1: one a processor.")] = -1,
    debug: Debug = False,
) -> None:
    """Run a paper's experiment and print its tables, with the published numbers beside ours."""
    from vennforest.commands.reproduce import run

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


@app.command()
def datasets(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """List the named data sets: sizes, papers, source, licence, and where each is found."""
    from vennforest.commands.datasets import run

    run(data_dir, as_json=as_json)
