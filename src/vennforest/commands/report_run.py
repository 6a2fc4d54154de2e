"""The command ``report``: a table in, a page out."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vennforest._files import check_output
from vennforest._validation import InputError
from vennforest.commands.report_given import report_on_columns, report_on_model
from vennforest.commands.report_table import (
    Columns,
    Judged,
    ReportTable,
    changed,
    common_options,
    read_report_table,
)
from vennforest.commands.terminal import names_in, print_json, progress_bar, say
from vennforest.decisions.costs import cost_file
from vennforest.report import CostMatrix, Evaluation, evaluate
from vennforest.report.folds import times
from vennforest.report.learners import learner_of


def run(
    output: Path,
    *,
    as_json: bool,
    rows: bool,
    data: Path | None = None,
    target: str | None = None,
    example: str | None = None,
    test: Path | None = None,
    costs: str | None = None,
    guessed: Path | None = None,
    calibrator: Path | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluate, write the page, and say what it says.

    Parameters are options of ``vennforest report``.
    """
    columns, judged = _taken(Columns, options), _taken(Judged, options)
    options = {**dict.fromkeys(("estimator", "positive", "methods", "tolerance")), **options}
    if options["tolerance"] is not None:
        options["tolerance"] /= 100
    check_output(
        output,
        {
            "table": data,
            "file of costs": None if costs is None else cost_file(costs),
            "table to test on": test,
            "model": judged.model,
            "file of types": columns.types,
        },
    )
    if guessed is not None:
        check_output(guessed, {"table": data, "page": output})
    if calibrator is not None:
        if not judged.probability:
            raise InputError("--write-calibrator is for given predictions: name --probability")
        check_output(calibrator, {"table": data, "page": output})
    _check(test, columns, judged, guessed, options)
    over_time = None
    if columns.time is not None and (judged.probability or judged.model is not None):
        over_time = columns.time  # nothing is trained: rows are looked at over time
        columns = replace(columns, by=list(dict.fromkeys([*columns.by, over_time])), time=None)
    table = read_report_table(data, target, example, test, columns, judged)
    matrix = None if costs is None else CostMatrix.read(costs, np.unique(table.labelled.y))
    for note in table.labelled.notes:
        say(f"Note: {note}")
    if guessed is not None:
        table.labelled.write_types(guessed)
    if judged.probability:
        evaluation = report_on_columns(table, data, columns, judged, matrix, options)
    elif judged.model is not None:
        evaluation = report_on_model(table, data, columns, judged, matrix, options)
    else:
        evaluation = _trained(table, columns, matrix, options)
    if over_time is not None:
        evaluation.settings["time"] = over_time
    files = {"target": table.labelled.target, "groups": columns.groups or ""}
    read = {"--sheet": columns.sheet, "--missing": ",".join(columns.missing)}
    read["--types"] = str(columns.types or "")
    typed = [part for name, value in read.items() if value for part in (name, value)]
    typed += [part for name in columns.drop for part in ("--drop", name)]
    typed += [part for name in columns.keep for part in ("--keep", name)]
    files["read"] = shlex.join(typed)
    files["sheet"] = shlex.join(typed[:2]) if columns.sheet else ""
    if data is not None:
        files["data"] = str(data)
    if judged.model is not None:
        files["model"] = str(judged.model)
    evaluation.settings["files"] = files
    evaluation.suspects.update(table.labelled.suspects)
    for name in columns.keep:  # known to be no leak
        evaluation.suspects.pop(name, None)
    for note in evaluation.notes:
        if note not in table.labelled.notes:
            say(f"Note: {note}")
    evaluation.to_html(output, rows=rows, command=shlex.join(["vennforest", *sys.argv[1:]]))
    if as_json:
        print_json({**evaluation.summary(), "report": str(output)})
    advice = evaluation.advice()
    say(advice.sentence)
    for line in advice.command.splitlines():
        say(f"  {line}")
    if sys.stderr.isatty():
        say(f"Wrote {output} ({evaluation.seconds:.0f} s)")
    return evaluation


def _taken(kind: Any, options: dict[str, Any]) -> Any:
    """Return options as a value of a dataclass, out of the others."""
    taken = {name: options.pop(name) for name in kind.__annotations__ if name in options}
    if "missing" in taken:
        taken["missing"] = names_in(taken["missing"])
    return kind(**taken)


def _check(
    test: Path | None,
    columns: Columns,
    judged: Judged,
    guessed: Path | None,
    options: dict[str, Any],
) -> None:
    """Refuse options that do not go together."""
    given = {
        "--probability": bool(judged.probability),
        "--model": judged.model is not None,
        "--estimator": options["estimator"] is not None,
    }
    named = [name for name, there in given.items() if there]
    if len(named) > 1:
        raise InputError(f"give one of {' and '.join(named)}, not both")
    ready = next((name for name in ("--probability", "--model") if given[name]), None)
    if ready and test is not None:
        raise InputError(f"with {ready} nothing is trained: give the table to test on as DATA")
    if ready and guessed is not None:
        raise InputError(f"with {ready} no types are guessed, and --write-types has no meaning")
    if judged.scores and judged.model is None:
        raise InputError("--score is for a calibrator, which --model names")
    unused = [] if ready is None else ["--trees"]
    if judged.model is not None:
        unused += ["--folds", "--methods"]
    meaningless = next((name for name in unused if changed(name, options)), None)
    if meaningless:
        raise InputError(f"with {ready} nothing is trained, and {meaningless} has no meaning")
    learner = learner_of(options["estimator"])
    if not learner.trees and changed("--trees", options):
        raise InputError(f"--trees has no meaning for --estimator {options['estimator']}")
    if test is not None and changed("--folds", options):
        raise InputError("with --test there are no folds, and --folds has no meaning")
    if judged.model is not None and columns.types is not None:
        raise InputError("with --model columns are read as in its training: leave out --types")
    if test is not None and columns.time is not None:
        raise InputError("give --test or --time, not both")


def _trained(
    table: ReportTable, columns: Columns, costs: CostMatrix | None, options: dict[str, Any]
) -> Evaluation:
    methods = options["methods"]
    if methods is not None and not names_in(methods):
        raise InputError(f"--methods must name one method at least, got {methods!r}")
    with progress_bar("Folds") as progress:
        return evaluate(
            table.named(table.labelled.X),
            table.labelled.y,
            estimator=options["estimator"],
            methods=None if methods is None else names_in(methods),
            n_folds=options["folds"],
            n_trees=options["trees"],
            positive=options["positive"],
            random_state=options["seed"],
            n_jobs=options["jobs"],
            time=None if columns.time is None else times(table.values[columns.time], columns.time),
            test=table.test,
            types=table.labelled.types or None,
            missing=list(columns.missing) or None,
            progress=progress,
            **common_options(table, columns, costs, options),
        )
