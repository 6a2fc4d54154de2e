"""Commands and their options; the code of a command is imported when it runs."""

import inspect
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform

import typer

from vennforest._files import (
    Address,
    Input,
    Output,
    check_files,
    is_json,
    is_standard,
    local_copy,
    location,
    marked,
    shown_path,
)
from vennforest._messages import InputError
from vennforest._program import __version__
from vennforest.commands.terminal import leave_stdout, streams_of

if TYPE_CHECKING:
    from vennforest.tables.open import TableFormat

    File = Path
else:
    File = str  # as typed, since a path drops a slash of an address

# Names for the help, which does not import what they name: that takes seconds.
METHOD_CHOICES = (
    "none", "platt", "isotonic", "beta", "temperature", "bostrom", "vector", "spline", "venn",
    "venn-abers",
)  # fmt: skip
SOURCES = ("oob", "holdout", "cv", "training")
ESTIMATOR_NAMES = (
    "mixed-forest", "random-forest", "extra-trees", "hist-gradient-boosting", "small-boosting",
    "logistic", "lightgbm", "xgboost", "catboost",
)  # fmt: skip

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
    """Declare an option; the help shows ``default`` as its default."""
    return typer.Option(*names, metavar=metavar, help=description, show_default=default, min=lowest)


def column(description: str, *names: str, default: str | bool = True) -> Any:
    """Declare an option that names a column."""
    return option(description, *names, metavar="COLUMN", default=default)


def _names_in(param: typer.CallbackParam, texts: list[str] | None) -> list[str] | None:
    """Return the names in lists such as ``A,B``, which add up; None if the option is not given."""
    names = [name.strip() for text in texts or () for name in text.split(",") if name.strip()]
    if texts and not names:
        raise InputError(f"{param.opts[0]} must name one or more, got {texts[0]!r}")
    return names or None


def comma_list(description: str, metavar: str = "A,B,…", default: str | bool = True) -> Any:
    """Declare an option with names separated by commas, which may be given several times."""
    return typer.Option(metavar=metavar, help=description, show_default=default, callback=_names_in)


class Command(typer.core.TyperCommand):
    """A command that refuses an option with one value if it is given twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left after the options are read."""
        _, _, params = self.make_parser(ctx).parse_args(args=list(args))
        for param in params:
            is_list = getattr(param, "multiple", False) or getattr(param, "is_flag", False)
            if params.count(param) > 1 and not is_list:
                raise InputError(f"{param.opts[0]} must be given once, got it twice")
        return super().parse_args(ctx, args)


def _show_version(is_requested: bool) -> None:
    if is_requested:
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


Text = str | None
Names = list[str] | None

TABLE = "A table: CSV, Parquet, Arrow or Excel; - is standard input."
SEVERAL = "(several times)"
OUTPUT = option("The file to write, or -.", "--output", "-o", metavar="FILE")

Data = Annotated[File, argument("DATA", TABLE), Input("table")]
OptionalData = Annotated[File | None, argument("DATA", TABLE), Input("table")]
ScoresTable = Annotated[File, argument("SCORES", TABLE), Input("table of scores")]
Target = Annotated[str, column("Labels.", "--target", "-t")]
OptionalTarget = Annotated[Text, column("Labels.", "--target", "-t")]
ScoreColumns = Annotated[Names, column("Scores.", "--score", "-s", default="those of calibrate")]
PredictionTable = Annotated[File, OUTPUT, Output("output")]
Page = Annotated[File, OUTPUT, Output("page")]
FIGURE_FILES = tuple(
    f"{name}.{ending}"
    for name in ("calibration", "decision-curve", "intervals")
    for ending in ("svg", "pdf", "png", "csv")
)
Trusted = Annotated[Names, option(f"Accept this type {SEVERAL}.", "--trust", metavar="TYPE")]
GroupsColumn = Annotated[Text, column("Groups of dependent rows, such as patients.")]
WeightColumn = Annotated[Text, column("Weights of rows, such as those of a survey.")]
Level = Annotated[float, option("Level of the confidence intervals.")]
Types = Annotated[
    Text,
    option('As {"ward": "category"}, or a file.', metavar="JSON"),
    Input("file of types", or_json=True),
]
Prior = Annotated[
    Names,
    option(
        f"Share of a class in these rows {SEVERAL}.", metavar="LABEL=SHARE", default="as calibrated"
    ),
]
Mean = Annotated[
    Names, option(f"Mean probability of a class in these rows {SEVERAL}.", metavar="LABEL=MEAN")
]
Share = Annotated[float | None, option("Find a threshold with at least this value.")]
Seed = Annotated[int, option("Random seed.", lowest=0)]
EscapeFormulas = Annotated[
    bool, option("In CSV, put ' before text like a formula.", "--escape-formulas")
]
Debug = Annotated[bool, option("Show the traceback of an error.", "--debug")]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every command."""

    as_json: Annotated[bool, option("Print a summary as JSON.", "--json")] = False
    quiet: Annotated[bool, option("Print no notes and warnings.", "--quiet")] = False
    debug: Debug = False
    addresses: dict[Path, str] = field(init=False, default_factory=dict)
    row_counts: dict[Path, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, mark in [*marked(self, Input), *marked(self, Output)]:
            value = getattr(self, name)
            if not (isinstance(mark, Input) and mark.or_json and is_json(value)):
                object.__setattr__(self, name, location(value))

    def input_name(self, path: Path | None) -> str:
        """Return an input as it was given: the address of a local copy, without keys."""
        return self.addresses.get(path, str(path)) if path is not None else ""

    def words(self, names: Iterable[str]) -> list[str]:
        """Return options that are not at their defaults, for another command that takes them."""
        words = []
        for name in names:
            value, option = getattr(self, name), f"--{name.removeprefix('as_').replace('_', '-')}"
            if value is True:
                words.append(option)
            elif value != getattr(type(self), name):
                for entry in value if isinstance(value, list) else [value]:
                    text = self.input_name(entry) if isinstance(entry, Path) else str(entry)
                    words += [option, text]
        return words


FORM = ("decimal", "delimiter", "encoding", "sheet", "no_header")
"""Options on how a table is written."""


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """Options of commands that read tables."""

    decimal: Annotated[
        Text, option("Decimal sign: . or ,", metavar="SIGN", default="as in CSV")
    ] = None
    delimiter: Annotated[
        Text, option("Between cells of CSV.", metavar="SIGN", default="as in CSV")
    ] = None
    encoding: Annotated[Text, option("Encoding of CSV.", metavar="NAME", default="as in CSV")] = (
        None
    )
    no_header: Annotated[bool, option("CSV or Excel has no names of columns.", "--no-header")] = (
        False
    )
    sheet: Annotated[Text, option("Sheet of a workbook.", metavar="NAME", default="first")] = None

    @property
    def form(self) -> "TableFormat":
        """How the tables are written."""
        from vennforest.tables.open import TableFormat

        return TableFormat(**{name: getattr(self, name) for name in FORM})


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of commands that train models."""

    trees: Annotated[int, option("Trees of a forest.", lowest=1)] = 300
    drop: Annotated[Names, column(f"A column to leave out {SEVERAL}.")] = None
    keep: Annotated[Names, column(f"Keep this identifier {SEVERAL}.")] = None
    missing: Annotated[Names, comma_list('Missing cells: "n.d.,-999".')] = None
    seed: Seed = 0
    jobs: Annotated[int, option("Processors to use; -1: all.")] = -1


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """Options of commands that write a page on probabilities."""

    figures: Annotated[
        File | None,
        option("A folder for the figures: SVG, PDF, PNG, CSV.", metavar="FOLDER"),
        Output("figures", FIGURE_FILES),
    ] = None
    figure_width: Annotated[Text, option("Width of the figures: mm, cm or in.", metavar="85mm")] = (
        None
    )
    figure_axes: Annotated[Text, option("Ends of the axes of the figures.", metavar="0,.2")] = None
    text: Annotated[
        File | None, option("Methods and results, for a paper.", metavar="FILE.md"), Output("text")
    ] = None
    by: Annotated[Names, column(f"Report on its values {SEVERAL}.")] = None
    positive: Annotated[
        Text, option("The positive class.", metavar="LABEL", default="the rarer")
    ] = None
    costs: Annotated[
        Text,
        option("Costs of decisions, or a file.", metavar="JSON"),
        Input("file of costs", or_json=True),
    ] = None
    tolerance: Annotated[float | None, option("Acceptable error, in points.", default="2")] = None
    thresholds: Annotated[Names, comma_list("Thresholds of the table.", ".02,.05,…")] = None
    fail_on: Annotated[
        Names,
        comma_list(
            "Exit with code 1 by any of: miscalibrated, classes, sites, groups, grades, segments, "
            "oe, columns."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PredictionOptions:
    """Options of commands that write a table of predictions."""

    prior: Prior = None
    mean: Mean = None
    columns: Annotated[Names, comma_list("Any of p,bounds,confidence.", "KINDS", "all")] = None
    level: Level = 0.95
    file_format: Annotated[
        Text,
        option(
            "csv, parquet or arrow (its stream).",
            "--format",
            metavar="FORMAT",
            default="by the suffix",
        ),
    ] = None
    fail_on: Annotated[
        Names, comma_list("columns: exit with code 1 if one differs from training.")
    ] = None
    escape_formulas: EscapeFormulas = False


OptionsType = TypeVar("OptionsType", bound=Options)


@dataclass_transform(frozen_default=True)
def command(cls: type[OptionsType]) -> type[OptionsType]:
    """Make a class of options a dataclass, and register the command of the same name.

    The command calls ``run_NAME`` of its module with the options. Addresses of input files are
    replaced by the paths of local copies.
    """
    options = dataclass(frozen=True)(cls)
    name = cls.__name__.lower()

    def run(**arguments: Any) -> None:
        parsed = options(**arguments)
        check_files(parsed)
        module = "calibrators" if name in ("apply", "sql", "show") else name
        work: Callable[[Options], None]
        work = getattr(import_module(f"vennforest.commands.{module}"), f"run_{name}")
        outputs = [getattr(parsed, field) for field, _ in marked(parsed, Output)]
        with ExitStack() as stack:
            local_options = _with_local_inputs(parsed, stack)
            stack.enter_context(streams_of(parsed.quiet, any(map(is_standard, outputs))))
            try:
                work(local_options)
            except BrokenPipeError:
                leave_stdout()

    run.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
    run.__doc__ = cls.__doc__
    app.command(name, cls=Command)(run)
    return options


def _with_local_inputs(options: OptionsType, stack: ExitStack) -> OptionsType:
    """Return options with local copies of the input files, which the stack removes."""
    paths, addresses = {}, {}
    for name, _ in marked(options, Input):
        path = getattr(options, name)
        if isinstance(path, Path | Address):
            paths[name] = local = stack.enter_context(local_copy(path))
            addresses[local] = str(path) if is_standard(path) else shown_path(path)
    local_options = replace(options, **paths)  # type: ignore[arg-type]
    local_options.addresses.update(addresses)
    return local_options


@command
class Fit(TableOptions, TrainingOptions):
    """Train a calibrated classifier on a table, and write it to a file."""

    data: Data
    target: Target
    output: Annotated[File, OUTPUT, Output("model")] = Path("model.skops")
    estimator: Annotated[
        Text,
        option(
            f"{', '.join(ESTIMATOR_NAMES)}, blend.",
            metavar="NAME",
            default="blend; mixed-forest with --calibrate-on oob",
        ),
    ] = None
    method: Annotated[str, option(f"{', '.join(METHOD_CHOICES)}.")] = "venn-abers"
    calibrate_on: Annotated[str, option(f"Calibration scores: {', '.join(SOURCES)}.")] = "auto"
    one_model: Annotated[
        bool, option("Folds calibrate, and one model of all rows predicts.", "--one-model")
    ] = False
    by: Annotated[Text, column("Calibrate within the groups of this column.")] = None
    groups: GroupsColumn = None
    weight: WeightColumn = None
    types: Types = None


@command
class Predict(TableOptions, PredictionOptions):
    """Predict the rows of a table, which may be larger than memory.

    The output has the rows in the order of DATA. Its columns are the most probable label with its
    numbers, and for each class c its probability p(c), bounds lower(c) and upper(c), and confidence
    interval low95(c) and high95(c).
    """

    model: Annotated[File, argument("MODEL", "A model written by fit."), Input("model")]
    data: Data
    output: PredictionTable = Path("predictions.csv")
    keep: Annotated[bool, option("Copy all columns of DATA.", "--keep")] = False
    carried: Annotated[Names, column(f"Copy this column {SEVERAL}.", "--id")] = None
    trusted: Trusted = None


@command
class Report(TableOptions, PageOptions, TrainingOptions):
    """Train models on a table, compare ways of calibrating them, and write a report."""

    data: OptionalData = None
    target: OptionalTarget = None
    output: Page = Path("report.html")
    example: Annotated[Text, option("breast-cancer, digits, iris, wine.", metavar="NAME")] = None
    estimator: Annotated[
        Text,
        option(
            f"{', '.join(ESTIMATOR_NAMES)}.", metavar="NAME", default="mixed-forest beside others"
        ),
    ] = None
    methods: Annotated[Names, comma_list(f"{', '.join(METHOD_CHOICES[1:])}.", default="all")] = None
    groups: GroupsColumn = None
    weight: WeightColumn = None
    time: Annotated[Text, column("Predict each row by a model of earlier rows.")] = None
    fail_on: Annotated[
        Names,
        comma_list("Exit with code 1 by any of: miscalibrated, classes, sites, groups, oe."),
    ] = None
    validation: Annotated[
        Text, column("Sites, each predicted by a model of the others; by-group: --groups.")
    ] = None
    types: Types = None
    folds: Annotated[int, option("Folds of validation.", lowest=2)] = 5
    write_predictions: Annotated[
        File | None, option("Write out-of-fold predictions.", metavar="FILE"), Output("predictions")
    ] = None
    escape_formulas: EscapeFormulas = False


@command
class Check(TableOptions, PageOptions):
    """Evaluate probabilities in a column, or a model on new rows, and write a report.

    PREDICTIONS is a table with --probability, or a model or calibrator that is evaluated on DATA.
    Nothing is trained.
    """

    predictions: Annotated[
        File, argument("PREDICTIONS", "A table, model or calibrator."), Input("predictions")
    ]
    target: Target
    data: OptionalData = None
    output: Page = Path("check.html")
    probability: Annotated[Names, column(f"Probabilities: COLUMN, or LABEL=COLUMN {SEVERAL}.")] = (
        None
    )
    scores: ScoreColumns = None
    prior: Prior = None
    groups: GroupsColumn = None
    weight: WeightColumn = None
    horizon: Annotated[
        float | None, option("Days within which events count, with --time and --until.")
    ] = None
    time: Annotated[Text, column("Dates of entry; with --grades, the periods of the table.")] = None
    until: Annotated[Text, column("Dates of the event, or on which a row was last seen.")] = None
    validation: Annotated[Text, column("Sites to compare and to pool over.")] = None
    types: Types = None
    trusted: Trusted = None
    sensitivity: Share = None
    specificity: Share = None
    precision: Share = None
    grades: Annotated[Text, column("Test each rating grade.")] = None
    final_grades: Annotated[Text, column("Final grades, beside those of --grades.")] = None
    reference: Annotated[
        File | None, option("Rows with earlier grades.", metavar="TABLE"), Input("reference")
    ] = None
    updates: Annotated[
        bool, option("Compare updates for another population anyway.", "--updates")
    ] = False
    segments: Annotated[
        Names, option(f"Search these for faults, or auto {SEVERAL}.", metavar="COLUMN")
    ] = None


@command
class Calibrate(TableOptions):
    """Calibrate the scores of any system on labelled rows, and write a calibrator.

    SCORES may be larger than memory. The calibrator is JSON, for apply and for other programs.
    With --update auto, the scores are probabilities, and tests choose how they are updated.
    """

    data: ScoresTable
    scores: Annotated[
        list[str], column("Scores of the second class, or LABEL=COLUMN of each.", "--score", "-s")
    ]
    target: Target
    output: Annotated[File, OUTPUT, Output("calibrator")] = Path("calibrator.json")
    method: Annotated[
        Text, option(f"{', '.join(METHOD_CHOICES)}.", default="venn-abers; with --update spline")
    ] = None
    update: Annotated[Text, option("auto (by tests), keep, intercept, slope or map.")] = None
    groups: Annotated[Text, column("Groups of dependent rows, with --update only.")] = None
    weight: Annotated[Text, column("Sample weights.")] = None
    on: Annotated[
        str, option("What SCORES are: auto, probability, logit, score (each by itself).")
    ] = "auto"
    missing_scores: Annotated[str, option("Rows without a score: refuse, drop.")] = "refuse"
    mean: Mean = None
    increasing: Annotated[
        Text, option("High scores mean the second class: yes, no, auto.", default="yes")
    ] = None


@command
class Apply(TableOptions, PredictionOptions):
    """Turn scores into probabilities with a calibrator; SCORES may be larger than memory.

    The output has the columns of SCORES, the most probable label, and for each class c its
    probability p(c) and, if the method has them, bounds lower(c) and upper(c) and confidence
    interval low95(c) and high95(c).
    """

    calibrator: Annotated[File, argument("CALIBRATOR", "A calibrator."), Input("calibrator")]
    data: ScoresTable
    output: PredictionTable = Path("calibrated.csv")
    scores: ScoreColumns = None
    carried: Annotated[Names, column(f"Copy this column {SEVERAL}.", "--id", default="all")] = None
    missing_scores: Annotated[str, option("Rows without a score: refuse, keep.")] = "refuse"


@command
class Sql(Options):
    """Print a query that adds a calibrator's probabilities to a table of scores."""

    calibrator: Annotated[File, argument("CALIBRATOR", "A calibrator."), Input("calibrator")]
    dialect: Annotated[str, option("duckdb, postgres, sqlite, snowflake, ….")] = "duckdb"
    table: Annotated[str, option("The text after FROM.", metavar="TEXT")] = "scores"
    scores: ScoreColumns = None
    confidence: Annotated[bool, option("Add confidence intervals.", "--confidence")] = False


@command
class Watch(TableOptions):
    """Test whether new rows follow the distribution that a model was calibrated on.

    Prints a verdict and writes a page. Without --target, the page estimates the performance on
    these rows. The probability of a false alarm is at most --alpha, however many rows there are.
    """

    model: Annotated[File, argument("MODEL", "A model, calibrator or monitor."), Input("model")]
    data: Data
    target: OptionalTarget = None
    time: Annotated[
        Text, column("Times at which labels became known.", default="the order of DATA")
    ] = None
    types: Types = None
    ids: Annotated[
        Text, column("Keys of rows: a row with a key that came before is left out.", "--id")
    ] = None
    scores: ScoreColumns = None
    output: Page = Path("watch.html")
    keep: Annotated[
        File | None, option("Save the monitor to continue.", metavar="FILE"), Output("monitor")
    ] = None
    reference: Annotated[
        Path | None,
        option("Training rows, only without --target.", metavar="TABLE"),
        Input("table of reference"),
    ] = None
    alpha: Annotated[float, option("Probability of ever raising a false alarm.")] = 0.05
    fail_on: Annotated[Names, comma_list("Exit with code 1 by any of: alarm, columns.")] = None
    trusted: Trusted = None


Summary = Input("JSON of check or report")


@command
class Compare(Options):
    """Compare two evaluations: two models, or one model on earlier and later rows.

    OLD and NEW are what check or report print with --json.
    """

    old: Annotated[File, argument("OLD", "JSON of check or report."), Summary]
    new: Annotated[File, argument("NEW", "JSON of check or report."), Summary]
    level: Level = 0.95
    fail_on: Annotated[
        Names, comma_list("worse: exit with code 1 if a measure is worse beyond chance.")
    ] = None


@command
class Show(Options):
    """Show the training, columns, classes and calibration of a model or calibrator."""

    model: Annotated[File, argument("MODEL", "A model or calibrator."), Input("model")]
