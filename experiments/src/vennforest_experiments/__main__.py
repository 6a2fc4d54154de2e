"""The command line of the experiments: ``vennforest-experiments`` reproduce and datasets."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from vennforest.cli import run_app
from vennforest_experiments.commands.arguments import datasets, reproduce

app = typer.Typer(
    name="vennforest-experiments",
    help="Papers reproduced with vennforest, and the data sets that they use.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(reproduce)
app.command()(datasets)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return run_app(app, list(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    sys.exit(main())
