"""What is typed: the options of every command, each in one place.

A command imports its work, which takes seconds, when it runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from vennforest._files import Input, Output, check_files
from vennforest.commands.arguments import Debug, HelpWithNames, Json, Seed, app

TABLE = "A table: CSV or TSV, Parquet, Arrow, or Excel (.xlsx)."
TARGET = "The column of labels."

Data = Annotated[
    Path, typer.Argument(metavar="DATA", show_default=False, help=TABLE), Input("table")
]
NewRows = Annotated[
    Path,
    typer.Argument(metavar="DATA", show_default=False, help=f"{TABLE} -: standard input."),
    Input("table"),
]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", show_default=False, help=TARGET)
]
AnswerTable = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The table to write: .csv, .tsv, .csv.gz, .parquet or .arrow. -: CSV on standard "
        "output.",
    ),
    Output("output"),
]
Scores = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        "-s",
        metavar="COLUMN",
        help="The scores that a calibrator takes; several times for more than two classes.",
        show_default="the columns that it was calibrated on",
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="TYPE",
        help="Accept objects of this type in the model, such as xgboost.sklearn.XGBClassifier; "
        "only in files you trust. May be given several times.",
    ),
]
Jobs = Annotated[int, typer.Option(help="Processors to use; -1: all.")]
Estimator = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The classifier: ESTIMATORS.", show_default="mixed-forest"),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Keep rows of one value together, such as those of a patient; it is not a feature.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="SIGN",
        help="The decimal sign of numbers in CSV: . or ,",
        show_default="a comma where cells are separated by semicolons and written so",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="KINDS",
        show_default="all that the model gives",
        help="What to write of each class, separated by commas: p, bounds (lower and upper) "
        "and confidence (the ends of the confidence interval).",
    ),
]
Level = Annotated[
    float,
    typer.Option(help="Level of the confidence intervals; 0.9 names their columns low90, high90."),
]
Method = Annotated[str, typer.Option(help="How scores become probabilities: METHODS.")]
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
Types = Annotated[
    str | None,
    typer.Option(
        metavar="TYPES",
        help="What columns contain where a guess would be wrong, as JSON or a file of it: "
        '{"seen": "date %d.%m.%Y", "ward": "category", "note": "drop"}.',
    ),
    Input("file of types"),
]
Subforest = Annotated[
    str,
    typer.Option(
        help="Which trees score a new row for its bounds: all (no draw) or exchangeable (those "
        "that did not see a calibration row drawn at random)."
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="MARKERS",
        show_default=False,
        help='Cells that stand for missing values, in all columns: "n.d.,-,-999".',
    ),
]
Rows = Annotated[
    int,
    typer.Option(
        "--rows-at-once", min=1, help="Rows held in memory at once; makes no other difference."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every command."""

    as_json: Json = False
    debug: Debug = False


Kind = TypeVar("Kind", bound=type[Options])


def command(module: str) -> Callable[[Kind], Kind]:
    """Register a dataclass of options as the command of its name; ``run`` of a module does it."""

    def register(options: Kind) -> Kind:
        def run(**arguments: Any) -> None:
            chosen = options(**arguments)
            check_files(chosen)
            import_module(f"vennforest.commands.{module}").run(chosen)

        run.__doc__ = options.__doc__
        run.__signature__ = inspect.signature(options, eval_str=True)  # type: ignore[attr-defined]
        app.command(options.__name__.lower(), cls=HelpWithNames)(run)
        return options

    return register


@command("fit")
@dataclass(frozen=True)
class Fit(Options):
    """Train a calibrated classifier on your data, and write it to a file.

    Text, dates and missing cells are handled, in the same way when the model is used.
    """

    data: Data
    target: Target
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The model file to write."),
        Output("model file"),
    ] = Path("model.skops")
    estimator: Estimator = None
    method: Method = "venn-abers"
    trees: Trees = 300
    calibrate_on: Annotated[
        str,
        typer.Option(
            help="Where calibration scores come from: SOURCES; auto: oob where that is valid."
        ),
    ] = "auto"
    subforest: Subforest = "all"
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            show_default=False,
            help="Calibrate within the groups of this column: bounds are then valid in each.",
        ),
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
    """Predict the rows of a table with a model written by fit.

    The output has, in the order of DATA, the most probable label, and for each class c its
    probability p(c), the Venn–Abers bounds lower(c) and upper(c), and the ends low95(c) and
    high95(c) of the confidence interval. The same numbers of the label come first. DATA may be
    larger than memory.
    """

    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", show_default=False, help="A model file written by fit."),
        Input("model"),
    ]
    data: NewRows
    output: AnswerTable = Path("predictions.csv")
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            show_default=False,
            help="Write the probability and the bounds of this class alone.",
        ),
    ] = None
    columns: Columns = None
    level: Level = 0.95
    keep: Annotated[
        bool, typer.Option("--keep", help="Copy all columns of DATA to the output.")
    ] = False
    carried: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Copy this column of DATA to the output; may be given several times.",
        ),
    ] = None
    decimal: Decimal = None
    trusted: Trust = None
    rows_at_once: Rows = 20_000


@command("show")
@dataclass(frozen=True)
class Show(Options):
    """Show what a model file contains: what was trained, when, on what, and its calibration.

    This is the file's own description; predict and vennforest.load verify it. A calibrator is read
    and checked whole.
    """

    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="A model file written by fit or vennforest.save, or a calibrator by calibrate.",
        ),
        Input("model"),
    ]


@command("report_run")
@dataclass(frozen=True)
class Report(Options):
    """Evaluate probabilities and ways of calibrating them, and write a report.

    It trains random forests (or others) on a table and compares all methods by cross-validation.
    Text, dates and missing cells are handled. With --probability or --model nothing is trained.
    """

    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", show_default=False, help=TABLE),
        Input("table"),
    ] = None
    target: Annotated[str | None, typer.Option("--target", "-t", metavar="COLUMN", help=TARGET)] = (
        None
    )
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The page to write."),
        Output("page"),
    ] = Path("report.html")
    example: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A data set shipped with scikit-learn, instead of DATA: breast-cancer, digits, "
            "iris or wine.",
        ),
    ] = None
    probability: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Judge this column of probabilities (or scores) and train nothing; several: a "
            "column per class, or one per model.",
        ),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Evaluate this model file, or calibrator, on DATA; train nothing.",
        ),
        Input("model"),
    ] = None
    scores: Scores = None
    trusted: Trust = None
    estimator: Estimator = None
    test: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Train on DATA, and evaluate on this table."),
        Input("table to test on"),
    ] = None
    groups: Groups = None
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Predict each row by a model of earlier rows. With --probability or --model: show "
            "calibration over time.",
        ),
    ] = None
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Report on the rows of each value separately, of dates by week, month or quarter; "
            "may be given several times.",
        ),
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The positive class of two.", show_default="the rarer"),
    ] = None
    decimal: Decimal = None
    drop: Drop = None
    keep: Keep = None
    types: Types = None
    missing: Missing = None
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Compare only these with the raw forest: COMPARED.",
            show_default="all",
        ),
    ] = None
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|JSON",
            help="What decisions cost: "
            '\'{"observed class": {"decision": cost, …}, …}\', or a file of it.',
        ),
        Input("file of costs"),
    ] = None
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Percentage points by which reliable probabilities may be off.",
            show_default="2, or a fifth of the share of a rare class",
        ),
    ] = None
    rows: Annotated[
        bool,
        typer.Option(
            "--rows",
            help="List single rows with their values: the most uncertain, and the most confident "
            "mistakes.",
        ),
    ] = False
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10
    trees: Trees = 300
    seed: Seed = 0
    jobs: Jobs = -1


@command("calibrate")
@dataclass(frozen=True)
class Calibrate(Options):
    """Calibrate the scores of any system on labelled rows, and write a calibrator.

    SCORES may be larger than memory. The calibrator is JSON, for apply and for other programs.
    """

    data: Annotated[
        Path,
        typer.Argument(metavar="SCORES", show_default=False, help=TABLE),
        Input("table of scores"),
    ]
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
    ]
    target: Target
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The calibrator to write."),
        Output("calibrator"),
    ] = Path("calibrator.json")
    method: Method = "venn-abers"
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of weights: how often each row counts."),
    ] = None
    increasing: Annotated[
        str | None,
        typer.Option(
            "--increasing",
            show_default="yes, and refused where the rows show the opposite",
            help="Whether the second class becomes more likely as the score rises: yes, no (credit "
            "scores), or auto: as the rows show.",
        ),
    ] = None
    decimal: Decimal = None
    rows_at_once: Rows = 200_000


@command("apply")
@dataclass(frozen=True)
class Apply(Options):
    """Turn scores into probabilities with a calibrator.

    The output has the columns of SCORES, then the most probable label, and for each class c its
    probability p(c), the Venn–Abers bounds lower(c) and upper(c), and the ends low95(c) and
    high95(c) of the confidence interval, where the method has them. SCORES may be larger than
    memory.
    """

    calibrator: Annotated[
        Path,
        typer.Argument(
            metavar="CALIBRATOR", show_default=False, help="A file written by calibrate."
        ),
        Input("calibrator"),
    ]
    data: Annotated[
        Path,
        typer.Argument(metavar="SCORES", show_default=False, help=f"{TABLE} -: standard input."),
        Input("table of scores"),
    ]
    output: AnswerTable = Path("calibrated.csv")
    scores: Scores = None
    carried: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Copy this column of SCORES to the output; may be given several times.",
            show_default="all",
        ),
    ] = None
    prior: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=SHARE",
            help="The share of a class where SCORES is from, such as fraud=0.01; may be given "
            "several times.",
            show_default="as calibrated",
        ),
    ] = None
    columns: Columns = None
    level: Level = 0.95
    decimal: Decimal = None
    rows_at_once: Rows = 100_000


@command("watch")
@dataclass(frozen=True)
class Watch(Options):
    """Test whether rows still look like those the model was calibrated on.

    Prints a verdict, and writes a page: when a change began, what moved and what it costs. Without
    --target the page has the performance that is expected of the rows, by week or month with
    --time. The chance of a false alarm, however many rows there are, is at most --alpha.
    """

    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="A model file written by fit, a calibrator written by calibrate, or a monitor "
            "saved with --keep.",
        ),
        Input("model"),
    ]
    data: Data
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column of labels that have become known.",
            show_default="watch objects alone, and estimate the performance",
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="When each label became known: numbers or dates.",
            show_default="the order of DATA",
        ),
    ] = None
    scores: Scores = None
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The page to write."),
        Output("page"),
    ] = Path("watch.html")
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the monitor here, to continue with later rows."),
        Output("monitor"),
    ] = None
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Without --target: the rows the model was fitted to. Says which columns differ, "
            "and corrects the expected performance for how frequent each kind of row has become.",
        ),
        Input("table of reference"),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(help="Probability of ever raising a false alarm.", show_default="0.05"),
    ] = None
    trusted: Trust = None
    decimal: Decimal = None
    seed: Seed = 0
