"""The command ``report``: a table in, a page out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vennforest._files import check_output
from vennforest._validation import InputError
from vennforest.commands.terminal import names_in, print_json, progress_bar, say
from vennforest.decisions.costs import cost_file
from vennforest.report import CostMatrix, Evaluation, evaluate
from vennforest.tables.read import read_table
from vennforest.tables.target import LabelledTable, load_example, split_target


def run(
    data: Path | None,
    target: str | None,
    output: Path,
    *,
    as_json: bool,
    example: str | None,
    drop: Sequence[str],
    costs: str | None,
    **options: Any,
) -> None:
    """Cross-validate, write the page, and say where it is.

    Parameters
    ----------
    data, target, output, example, drop, costs
        See ``vennforest report --help``.
    as_json : bool
        Print a summary.
    **options
        Of `_evaluated`.

    Raises
    ------
    InputError
        If a file or option is not what it should be.
    """
    check_output(
        output, {"table": data, "file of costs": None if costs is None else cost_file(costs)}
    )
    table = _labelled(data, target, example, list(drop))
    matrix = None if costs is None else CostMatrix.read(costs, np.unique(table.y))
    for note in table.notes:
        say(f"Note: {note}")
    evaluation = _evaluated(table, matrix, **options)
    for note in evaluation.notes[len(table.notes) :]:
        say(f"Note: {note}")
    evaluation.to_html(output, command=shlex.join(["vennforest", *sys.argv[1:]]))
    if as_json:
        print_json({**evaluation.summary(), "report": str(output)})
    if sys.stderr.isatty():
        say(f"Wrote {output} ({evaluation.seconds:.0f} s)")


def _labelled(
    data: Path | None, target: str | None, example: str | None, drop: list[str]
) -> LabelledTable:
    """Return the table of a file or an example, split into X and y."""
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


def _evaluated(
    table: LabelledTable,
    costs: CostMatrix | None,
    *,
    positive: str | None,
    methods: str | None,
    folds: int,
    trees: int,
    subforest: Any,
    n_draws: int,
    seed: int,
    jobs: int,
) -> Evaluation:
    with progress_bar("Folds") as progress:
        return evaluate(
            table.X,
            table.y,
            methods=None if methods is None else names_in(methods),
            n_folds=folds,
            n_trees=trees,
            subforest=subforest,
            n_draws=n_draws,
            positive=positive,
            costs=costs,
            random_state=seed,
            n_jobs=jobs,
            name=table.name,
            target=table.target,
            notes=table.notes,
            progress=progress,
        )
