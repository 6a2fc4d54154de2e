"""The options of every command but report and check; the work is imported when a command runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from vennforest._files import Input, Output, check_files
from vennforest._program import __version__
from vennforest.commands.files import local_inputs

METHODS = (
    "none",
    "platt",
    "isotonic",
    "beta",
    "temperature",
    "bostrom",
    "matrix",
    "spline",
    "venn",
    "venn-abers",
)
SOURCES = ("oob", "holdout", "cv", "training")
ESTIMATORS = (
    "mixed-forest",
    "random-forest",
    "extra-trees",
    "hist-gradient-boosting",
    "logistic",
    "lightgbm",
    "xgboost",
    "catboost",
)
"""Names for the help, which does not import what they name: that takes seconds."""

app = typer.Typer(
    name="vennforest",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def argument(name: str, description: str) -> Any:
    """Declare an argument that the help calls ``name``."""
    return typer.Argument(metavar=name, show_default=False, help=description)


def option(
    description: str,
    *names: str,
    metavar: str | None = None,
    default: str | bool = True,
    lowest: int | None = None,
) -> Any:
    """Declare an option; ``default`` is what the help shows as such, False: nothing."""
    return typer.Option(*names, metavar=metavar, help=description, show_default=default, min=lowest)


@dataclass
class Run:
    """What the command line knows of the command that runs."""

    debug: bool = False


def _note_debug(context: typer.Context, value: bool) -> bool:
    if value:
        context.ensure_object(Run).debug = True
    return value


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vennforest {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def vennforest_(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Calibrated class probabilities with bounds, from random forests and others."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


TABLE = "A table: CSV, Parquet, Arrow or Excel."
SEVERAL = "(several times)"

Data = Annotated[Path, argument("DATA", TABLE), Input("table")]
Scores = Annotated[Path, argument("SCORES", TABLE), Input("table of scores")]
ModelFile = Annotated[Path, argument("MODEL", "A model written by fit."), Input("model")]
Target = Annotated[str, option("The labels.", "--target", "-t", metavar="COLUMN", default=False)]
OptionalTarget = Annotated[
    str | None, option("The labels.", "--target", "-t", metavar="COLUMN", default=False)
]
ScoreColumns = Annotated[
    list[str] | None,
    option(
        "Scores for a calibrator.", "--score", "-s", metavar="COLUMN", default="as at calibrate"
    ),
]
AnswerTable = Annotated[
    Path,
    option(
        "The table to write, by its suffix; -: CSV on stdout.", "--output", "-o", metavar="FILE"
    ),
    Output("output", stream=True),
]
Page = Annotated[
    Path, option("The page to write.", "--output", "-o", metavar="FILE"), Output("page")
]
Trusted = Annotated[
    list[str] | None,
    option(f"Accept this type in a model you trust {SEVERAL}.", "--trust", metavar="TYPE"),
]
Estimator = Annotated[
    str | None,
    option(f"{', '.join(ESTIMATORS)}.", metavar="NAME", default="mixed-forest"),
]
Groups = Annotated[
    str | None, option("Keep rows of one value together, as of a patient.", metavar="COLUMN")
]
Decimal = Annotated[
    str | None, option("Decimal sign in CSV: . or ,", metavar="SIGN", default="as written")
]
Columns = Annotated[
    str | None,
    option("Any of p,bounds,confidence for each class.", metavar="KINDS", default="all"),
]
Level = Annotated[float, option("Level of the confidence intervals.")]
Method = Annotated[str, option(f"{', '.join(METHODS)}.")]
Trees = Annotated[int, option("Trees of a forest.", lowest=1)]
Drop = Annotated[list[str] | None, option(f"Leave it out {SEVERAL}.", metavar="COLUMN")]
Keep = Annotated[
    list[str] | None, option(f"Keep what looks like an identifier {SEVERAL}.", metavar="COLUMN")
]
Types = Annotated[
    str | None,
    option('Types of columns: {"ward": "category"}, or a file.', metavar="JSON"),
    Input("file of types"),
]
Missing = Annotated[
    str | None,
    option('Cells that mean missing: "n.d.,-999".', "--missing", metavar="A,B,…", default=False),
]
RowsAtOnce = Annotated[int, option("Rows held in memory.", "--rows-at-once", lowest=1)]
Jobs = Annotated[int, option("Processors to use; -1: all.")]
Seed = Annotated[int, option("Random seed.", lowest=0)]
Json = Annotated[bool, option("Print a summary as JSON.", "--json")]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug", callback=_note_debug, is_eager=True, help="Show the traceback of an error."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every command."""

    as_json: Json = False
    debug: Debug = False


Kind = TypeVar("Kind", bound=type[Options])


def command(module: str) -> Callable[[Kind], Kind]:
    """Register a dataclass of options as a command, which ``run`` of a module carries out.

    ``run`` gets the options with paths of files on this machine in the place of addresses and ``-``
    for standard input.
    """

    def register(options: Kind) -> Kind:
        def run(**arguments: Any) -> None:
            typed = options(**arguments)
            check_files(typed)
            work = import_module(f"vennforest.commands.{module}").run
            with local_inputs(typed) as local:
                work(local)

        hints = get_type_hints(options, include_extras=True)
        signature = inspect.signature(options)
        parameters = [
            parameter.replace(annotation=hints[name])
            for name, parameter in signature.parameters.items()
        ]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__doc__ = options.__doc__
        app.command(options.__name__.lower())(run)
        return options

    return register


@command("fit")
@dataclass(frozen=True)
class Fit(Options):
    """Train a calibrated classifier on a table, and write it to a file."""

    data: Data
    target: Target
    output: Annotated[
        Path, option("The model file to write.", "--output", "-o", metavar="FILE"), Output("model")
    ] = Path("model.skops")
    estimator: Estimator = None
    method: Method = "venn-abers"
    trees: Trees = 300
    calibrate_on: Annotated[str, option(f"Calibration scores: {', '.join(SOURCES)}.")] = "auto"
    subforest: Annotated[
        str, option("Trees that score a new row for its bounds: all, exchangeable.")
    ] = "all"
    by: Annotated[
        str | None, option("Calibrate within the groups of this column.", metavar="COLUMN")
    ] = None
    groups: Groups = None
    decimal: Decimal = None
    drop: Drop = None
    keep: Keep = None
    types: Types = None
    missing: Missing = None
    seed: Seed = 0
    jobs: Jobs = -1


@command("predict")
@dataclass(frozen=True)
class Predict(Options):
    """Predict the rows of a table, which may be larger than memory.

    Written are, in the order of DATA, the most probable label with its numbers, and for each class
    c its probability p(c), bounds lower(c) and upper(c), and confidence interval low95(c) and
    high95(c).
    """

    model: ModelFile
    data: Data
    output: AnswerTable = Path("predictions.csv")
    positive: Annotated[str | None, option("Write this class alone.", metavar="LABEL")] = None
    columns: Columns = None
    level: Level = 0.95
    keep: Annotated[bool, option("Copy all columns of DATA.", "--keep")] = False
    carried: Annotated[
        list[str] | None, option(f"Copy this column {SEVERAL}.", "--id", metavar="COLUMN")
    ] = None
    decimal: Decimal = None
    trusted: Trusted = None
    rows_at_once: RowsAtOnce = 20_000


@command("calibrate")
@dataclass(frozen=True)
class Calibrate(Options):
    """Calibrate the scores of any system on labelled rows, and write a calibrator.

    SCORES may be larger than memory. The calibrator is JSON, for apply and for other programs.
    """

    data: Scores
    scores: Annotated[
        list[str],
        option(
            "Scores of the second class; of more than two: a column for each (all sorted).",
            "--score",
            "-s",
            metavar="COLUMN",
            default=False,
        ),
    ]
    target: Target
    output: Annotated[
        Path,
        option("The calibrator to write.", "--output", "-o", metavar="FILE"),
        Output("calibrator"),
    ] = Path("calibrator.json")
    method: Method = "venn-abers"
    weight: Annotated[str | None, option("How often each row counts.", metavar="COLUMN")] = None
    increasing: Annotated[
        str | None,
        option("A higher score means the second class: yes, no, auto.", default="yes"),
    ] = None
    decimal: Decimal = None


@command("apply")
@dataclass(frozen=True)
class Apply(Options):
    """Turn scores into probabilities with a calibrator; SCORES may be larger than memory.

    Written are the columns of SCORES, the most probable label, and for each class c its probability
    p(c), and where the method has them bounds lower(c) and upper(c), and the confidence interval
    low95(c) and high95(c).
    """

    calibrator: Annotated[
        Path, argument("CALIBRATOR", "A file written by calibrate."), Input("calibrator")
    ]
    data: Scores
    output: AnswerTable = Path("calibrated.csv")
    scores: ScoreColumns = None
    carried: Annotated[
        list[str] | None,
        option(f"Copy this column {SEVERAL}.", "--id", metavar="COLUMN", default="all"),
    ] = None
    prior: Annotated[
        list[str] | None,
        option(
            f"Share of a class, as fraud=0.01 {SEVERAL}.",
            metavar="LABEL=SHARE",
            default="as calibrated",
        ),
    ] = None
    columns: Columns = None
    level: Level = 0.95
    decimal: Decimal = None


@command("watch")
@dataclass(frozen=True)
class Watch(Options):
    """Test whether rows still look like those that a model was calibrated on.

    Prints a verdict and writes a page. Without --target, the page estimates the performance on
    these rows. However many rows there are, the probability of a false alarm is at most --alpha.
    """

    model: Annotated[
        Path,
        argument("MODEL", "A model, a calibrator, or a monitor that --keep wrote."),
        Input("model"),
    ]
    data: Data
    target: OptionalTarget = None
    time: Annotated[
        str | None,
        option(
            "When each label became known.",
            metavar="COLUMN",
            default="the order of DATA",
        ),
    ] = None
    scores: ScoreColumns = None
    output: Page = Path("watch.html")
    keep: Annotated[
        Path | None,
        option("Save the monitor, to continue with later rows.", metavar="FILE"),
        Output("monitor"),
    ] = None
    reference: Annotated[
        Path | None,
        option("The training rows, to compare with (without --target).", metavar="TABLE"),
        Input("table of reference"),
    ] = None
    alpha: Annotated[
        float | None,
        option("Probability of ever raising a false alarm.", default="0.05"),
    ] = None
    trusted: Trusted = None
    decimal: Decimal = None
    seed: Seed = 0


@command("show")
@dataclass(frozen=True)
class Show(Options):
    """Show what a model or calibrator is: its training, columns, classes and calibration."""

    model: Annotated[
        Path, argument("MODEL", "A file of fit, calibrate or vennforest.save."), Input("model")
    ]
