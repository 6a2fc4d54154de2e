"""The application of all commands, its help, and options of every command."""

from __future__ import annotations

from dataclasses import dataclass
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
"""Names that come with the library: what they name takes seconds to import, which help spares."""


def known_names() -> dict[str, list[str]]:
    """Return calibrators, sources and estimators by name."""
    return {
        "SOURCES": list(SOURCES),
        "METHODS": list(METHODS),
        "COMPARED": [name for name in METHODS if name not in ("none", "pooled")],
        "ESTIMATORS": list(ESTIMATORS),
    }


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
