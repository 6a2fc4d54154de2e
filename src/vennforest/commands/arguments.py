"""What the signatures of all commands share: the application, and options of several commands."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from vennforest._program import __version__

app = typer.Typer(
    name="vennforest",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


METHODS = (
    "none",
    "platt",
    "isotonic",
    "beta",
    "temperature",
    "bostrom",
    "matrix",
    "quadratic",
    "spline",
    "pooled",
    "venn",
    "venn-abers",
)
SOURCES = ("oob", "holdout", "cv", "cv-forest", "training")
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
"""Names that come with the library: what they name takes seconds to import, which help spares."""


def known_names() -> dict[str, list[str]]:
    """Return calibrators and sources by name, those of other packages where they are imported."""
    methods, sources = list(METHODS), list(SOURCES)
    if "vennforest.calibrators" in sys.modules:
        from vennforest.calibrators import METHODS as REGISTERED

        methods = list(REGISTERED)
    if "vennforest.sources.registry" in sys.modules:
        from vennforest.sources.registry import source_names

        sources = source_names()[1:]
    return {
        "SOURCES": sources,
        "METHODS": methods,
        "COMPARED": [name for name in methods if name not in ("none", "pooled")],
        "ESTIMATORS": list(ESTIMATORS),
    }


TABLE = "A table: CSV or TSV, Parquet, Arrow, or Excel (.xlsx)."
TARGET = "The column of labels."


class HelpWithNames(TyperCommand):
    """A command whose help lists named sources, calibrators and estimators."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with names in the places of SOURCES, METHODS, COMPARED, ESTIMATORS."""
        names = known_names()
        for option in self.params:
            for place, listed in names.items():
                text = getattr(option, "help", None)
                if text and place in text:
                    vars(option)["help"] = text.replace(place, ", ".join(listed))
        super().format_help(ctx, formatter)


@dataclass
class Run:
    """Options of every command."""

    debug: bool = False


def _note_debug(context: typer.Context, value: bool) -> bool:
    if value:
        context.ensure_object(Run).debug = True
    return value


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"vennforest {__version__}")  # noqa: T201
        raise typer.Exit


Data = Annotated[Path, typer.Argument(metavar="DATA", show_default=False, help=TABLE)]
NewRows = Annotated[
    Path,
    typer.Argument(metavar="DATA", show_default=False, help=f"{TABLE} -: standard input."),
]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", show_default=False, help=TARGET)
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The table to write: .csv, .tsv, .csv.gz, .parquet or .arrow. -: CSV on standard "
        "output.",
    ),
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
Sheet = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The sheet of an Excel workbook.", show_default="the only one"
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
Method = Annotated[
    str,
    typer.Option(help="How scores become probabilities: METHODS."),
]
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
        '{"price": "number 1.234,5 €", "seen": "date %d.%m.%Y", "ward": "category", "note": '
        '"drop"}.',
    ),
]
WriteTypes = Annotated[
    Path | None,
    typer.Option(
        "--write-types",
        metavar="FILE",
        help="Write what columns are taken to contain here, to be corrected for --types.",
    ),
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
NoFormulas = Annotated[
    bool,
    typer.Option(
        "--no-formulas",
        help="Put an apostrophe before text in a .csv output that a spreadsheet program would "
        "take for a formula.",
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
