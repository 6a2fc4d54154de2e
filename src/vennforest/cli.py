"""The command line: reads arguments, shows progress, and says in one sentence what went wrong."""

from __future__ import annotations

import json
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from vennforest._validation import InputError
from vennforest._version import __version__
from vennforest.commands import files
from vennforest.commands.datasets import datasets
from vennforest.commands.terminal import folds_bar, progress_bar, say

USERS_ERROR, OUR_ERROR, STOPPED = 2, 1, 130
EXAMPLES = ("breast-cancer", "digits", "iris", "wine")

app = typer.Typer(
    name="vennforest",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Stopped(Exception):  # noqa: N818
    """The user stopped a command that has kept something; the message says what and where."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 for the user's errors, 1 for ours.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=arguments, standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except Stopped as kept:
        say(str(kept))
        return STOPPED
    except (InputError, ImportError) as error:
        return _failed(str(error), USERS_ERROR, arguments)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone
        return OUR_ERROR
    except Exception as error:
        if hasattr(error, "format_message"):  # an argument that is none
            return _failed(error.format_message(), USERS_ERROR, arguments)
        return _unexpected(error, arguments)
    if code == STOPPED:  # what typer makes of an interrupt
        say("Stopped: nothing was written.")
    return int(code or 0)


def _failed(message: str, code: int, arguments: list[str]) -> int:
    if "--debug" in arguments:
        traceback.print_exc()
    say(f"Error: {' '.join(message.split())}")
    return code


def _unexpected(error: Exception, arguments: list[str]) -> int:
    hint = "" if "--debug" in arguments else " (with --debug it shows where)"
    what = " ".join(str(error).split())[:300]
    message = (
        f"vennforest failed in a way it should not, with {type(error).__name__}: {what}; "
        f"please report this to its developers{hint}"
    )
    return _failed(message, OUR_ERROR, arguments)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"vennforest {__version__}")  # noqa: T201
        raise typer.Exit


app.command()(files.fit)
app.command()(files.predict)
app.command()(datasets)


@app.callback()
def vennforest_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Calibrated class probabilities with valid bounds, from random forests and others."""


@app.command()
def report(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA", show_default=False, help="A table: CSV or TSV, Parquet, or Arrow."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    example: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Instead of DATA, a data set of scikit-learn: {', '.join(EXAMPLES)}.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Of two classes the one to speak of.  [default: the second, sorted]",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out; may be given several times."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Compare these with the raw forest only: platt, isotonic, beta, temperature, "
            "bostrom, venn, venn-abers.  [default: all]",
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
    trees: Annotated[int, typer.Option(min=1, help="Trees of each forest.")] = 300,
    subforest: Annotated[
        str,
        typer.Option(
            help="Which trees score a new object: exchangeable or joined (valid bounds), random "
            "or all."
        ),
    ] = "exchangeable",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processors to use; -1: all.")] = -1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary for machines, as JSON.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error came up.")
    ] = False,
) -> None:
    """Compare ways of calibrating a random forest on your data, and write a page about it.

    Text, dates and missing cells are handled. All methods are compared by cross-validation, with
    one forest a fold.
    """
    from vennforest._files import check_output
    from vennforest.report import CostMatrix, evaluate

    check_output(output)
    table = _table(data, target, example, drop or [])
    matrix = None
    if costs is not None:
        import numpy as np

        matrix = CostMatrix.read(costs, np.unique(table.y))
    for note in table.notes:
        say(f"Note: {note}")
    with progress_bar("Folds") as progress:
        evaluation = evaluate(
            table.X,
            table.y,
            methods=None if methods is None else _split(methods),
            n_folds=folds,
            n_trees=trees,
            subforest=subforest,  # type: ignore[arg-type]
            positive=positive,
            costs=matrix,
            random_state=seed,
            n_jobs=jobs,
            name=table.name,
            target=table.target,
            notes=table.notes,
            progress=progress,
        )
    for note in evaluation.notes[len(table.notes) :]:
        say(f"Note: {note}")
    evaluation.to_html(output, command=_command())
    if as_json:
        summary = {**evaluation.summary(), "report": str(output)}
        print(json.dumps(summary, indent=2, ensure_ascii=False))  # noqa: T201
    if sys.stderr.isatty():
        say(f"Wrote {output} ({evaluation.seconds:.0f} s)")


@app.command()
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER", help="johansson2018, bostrom2008, vovk2014 or niculescu2005."
        ),
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of data sets.  [default: $VENNFOREST_DATA]"),
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="These data sets only, named as in the paper."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the results; a stopped run that has one goes on where it was.",
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
            help="Another setting of the experiment, such as trees=100; several times if need be.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes to use; -1: one a processor.")] = -1,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error came up.")
    ] = False,
) -> None:
    """Run a paper's experiment and print its tables, with the printed numbers beside ours."""
    from vennforest.papers import reproduce as run

    try:
        with folds_bar() as progress:
            found = run(
                paper,
                data_dir,
                None if datasets is None else _split(datasets),
                repeats=repeats,
                folds=folds,
                n_jobs=jobs,
                seed=seed,
                output=output,
                progress=progress,
                **_settings(settings or []),
            )
    except FileNotFoundError as error:
        raise InputError(str(error)) from error
    except KeyboardInterrupt:
        if output is None:
            raise
        raise Stopped(
            f"Stopped: what is finished is kept in {output}; the same command goes on from there."
        ) from None
    print(found.to_markdown())  # noqa: T201
    if output is not None:
        say(f"Wrote {output / 'index.html'}")


def _settings(pairs: list[str]) -> dict[str, Any]:
    """Return settings as given on the command line: numbers, true and false, else text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--set must be followed by NAME=VALUE, got {pair!r}")
        try:
            found[name] = json.loads(text.lower())
        except json.JSONDecodeError:
            found[name] = text
    return found


def _table(data: Path | None, target: str | None, example: str | None, drop: list[str]) -> Any:
    """Return what is to be predicted from what, from a file or an example."""
    from vennforest.tables.read import read_table
    from vennforest.tables.target import load_example, split_target

    if (data is None) == (example is None):
        raise InputError(
            "name a file, or an example with --example"
            if data is None
            else "name a file or an example with --example, not both"
        )
    if example is not None:
        return load_example(example, target, drop)
    assert data is not None
    if target is None:
        raise InputError("name the column to predict with --target")
    return split_target(read_table(data), target, drop, name=data.name)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _command() -> str:
    return shlex.join(["vennforest", *sys.argv[1:]])
