"""The commands ``fit`` and ``predict``, as they are typed."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vennforest.commands.terminal import busy, progress_bar, say

Json = Annotated[bool, typer.Option("--json", help="Print a summary for machines, as JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where in the code an error came up.")]


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", show_default=False, help="A table: CSV or TSV, Parquet, or Arrow."
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="COLUMN", show_default=False, help="The column to predict."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The model file to write.")
    ] = Path("model.skops"),
    method: Annotated[
        str,
        typer.Option(help="venn-abers, venn, platt, isotonic, bostrom, beta, temperature or none."),
    ] = "venn-abers",
    trees: Annotated[int, typer.Option(min=1, help="Trees of the forest.")] = 300,
    calibrate_on: Annotated[
        str, typer.Option(help="oob, holdout, cv or training; auto: oob.")
    ] = "auto",
    merge: Annotated[
        str,
        typer.Option(help="How bounds become one probability: log, brier, midpoint or smooth."),
    ] = "auto",
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out; may be given several times."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processors to use; -1: all.")] = -1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a calibrated random forest on your data, and write it to a file.

    Text, dates and missing cells are handled, in the same way when the model is used.
    """
    from vennforest.commands.fit import fit_file

    notes: list[str] = []
    with busy(f"Training {trees} trees"):
        done = fit_file(
            data,
            target,
            output,
            method=method,
            trees=trees,
            calibrate_on=calibrate_on,
            merge=merge,
            drop=drop or [],
            seed=seed,
            jobs=jobs,
            note=notes.append,
        )
    for note in notes:
        say(f"Note: {note}")
    if as_json:
        _print_json({**asdict(done), "model": str(output), "notes": notes})
        return
    kinds = ", ".join(f"{count} of {kind}" for kind, count in done.kinds.items())
    say(f"Learnt from {done.n_rows:,} rows; columns: {kinds}.")
    classes = sorted(done.classes.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{label!r} {count / done.n_rows:.1%}" for label, count in classes[:8])
    more = f" and {len(classes) - 8} more" if len(classes) > 8 else ""
    say(f"Classes of {target!r}: {shown}{more}.")
    if done.measures:
        say(
            "Out of training: accuracy {accuracy:.1%}, Brier score {brier_score:.4f}; bounds are "
            "{mean_width:.4f} wide on average.".format(**done.measures)
        )
    say(f"Wrote {output} ({done.seconds:.0f} s)")


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A file that fit wrote.")
    ],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", show_default=False, help="A table: CSV or TSV, Parquet, or Arrow."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="What to write: .csv, .parquet or .arrow."
        ),
    ] = Path("predictions.csv"),
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
            help="Let the model hold objects of this type, such as xgboost.sklearn.XGBClassifier; "
            "only from a file you know. May be given several times.",
        ),
    ] = None,
    rows_at_once: Annotated[
        int,
        typer.Option(
            min=1, help="Rows held in memory at once; makes no difference to the predictions."
        ),
    ] = 20_000,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the rows of a table with a model that fit wrote.

    The output has, in the order of DATA, the most probable label, its probability with lower and
    upper bound, and the probability p(c) of each class c. DATA may be larger than memory.
    """
    from vennforest.commands.predict import predict_file

    notes: list[str] = []
    with progress_bar("Rows") as progress:
        done = predict_file(
            model,
            data,
            output,
            carried=carried or [],
            trusted=trusted or [],
            rows_at_once=rows_at_once,
            note=notes.append,
            progress=progress,
        )
    for note in notes:
        say(f"Note: {note}")
    if as_json:
        _print_json({**asdict(done), "output": str(output), "notes": notes})
    elif sys.stderr.isatty():
        say(f"Wrote {output}: {done.n_rows:,} rows ({done.seconds:.0f} s)")


def _print_json(summary: dict[str, object]) -> None:
    print(json.dumps(summary, indent=2, ensure_ascii=False))  # noqa: T201
