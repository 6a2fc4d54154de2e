"""The command ``report``: a table in, a page out."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace

import numpy as np

from vennforest._validation import InputError
from vennforest.commands.report_given import report_on_columns, report_on_model
from vennforest.commands.report_options import Report
from vennforest.commands.report_table import (
    ReportTable,
    changed,
    common_options,
    read_report_table,
)
from vennforest.commands.terminal import names_in, print_json, progress_bar, say
from vennforest.report import CostMatrix, Evaluation, evaluate
from vennforest.report.folds import times
from vennforest.report.learners import learner_of


def run(options: Report) -> None:
    """Evaluate, write the page, and say what it says."""
    output, model = options.output, options.model
    _check(options)
    over_time = None
    if options.time is not None and (options.probability or model is not None):
        over_time = options.time  # nothing is trained: rows are looked at over time
        by = list(dict.fromkeys([*(options.by or ()), over_time]))
        options = replace(options, by=by, time=None)
    table = read_report_table(options)
    labelled = table.labelled
    costs = None if options.costs is None else CostMatrix.read(options.costs, np.unique(labelled.y))
    for note in labelled.notes:
        say(f"Note: {note}")
    if options.probability:
        evaluation = report_on_columns(table, costs, options)
    elif model is not None:
        evaluation = report_on_model(table, costs, options)
    else:
        evaluation = _trained(table, costs, options)
    if over_time is not None:
        evaluation.settings["time"] = over_time
    evaluation.settings["files"] = _files(labelled.target, options)
    evaluation.suspects.update(labelled.suspects)
    for name in options.keep or ():  # known to be no leak
        evaluation.suspects.pop(name, None)
    for note in evaluation.notes:
        if note not in labelled.notes:
            say(f"Note: {note}")
    command = shlex.join(["vennforest", *sys.argv[1:]])
    evaluation.to_html(output, rows=options.rows, command=command)
    if options.as_json:
        print_json({**evaluation.summary(), "report": str(output)})
    advice = evaluation.advice()
    say(advice.sentence)
    for line in advice.command.splitlines():
        say(f"  {line}")
    if sys.stderr.isatty():
        say(f"Wrote {output} ({evaluation.seconds:.0f} s)")


def _files(target: str, options: Report) -> dict[str, str]:
    """Return what commands that the page advises name: files, and options of how they are read."""
    decimal = ["--decimal", options.decimal] if options.decimal else []
    missing = ",".join(names_in(options.missing or ""))
    read = [*decimal, *(["--missing", missing] if missing else [])]
    read += ["--types", options.types] if options.types else []
    read += [part for name in options.drop or () for part in ("--drop", name)]
    read += [part for name in options.keep or () for part in ("--keep", name)]
    files = {"target": target, "groups": options.groups or ""}
    split = {"groups": options.groups, "time": options.time, "test": options.test}
    again = {**split, "estimator": options.estimator}
    typed = [part for name, value in again.items() if value for part in (f"--{name}", str(value))]
    files |= {"again": shlex.join(typed), "read": shlex.join(read), "decimal": shlex.join(decimal)}
    named = {"data": options.data, "model": options.model}
    return files | {name: str(path) for name, path in named.items() if path is not None}


def _check(options: Report) -> None:
    """Refuse options that do not go together."""
    model, test = options.model, options.test
    given = {
        "--probability": bool(options.probability),
        "--model": model is not None,
        "--estimator": options.estimator is not None,
    }
    named = [name for name, there in given.items() if there]
    if len(named) > 1:
        raise InputError(f"give one of {' and '.join(named)}, not both")
    ready = next((name for name in ("--probability", "--model") if given[name]), None)
    if ready and test is not None:
        raise InputError(f"with {ready} nothing is trained: give the table to test on as DATA")
    if options.scores and model is None:
        raise InputError("--score is for a calibrator, which --model names")
    unused = [] if ready is None else ["--trees"]
    if model is not None:
        unused += ["--folds", "--methods"]
    meaningless = next((name for name in unused if changed(name, options)), None)
    if meaningless:
        raise InputError(f"with {ready} nothing is trained, and {meaningless} has no meaning")
    learner = learner_of(options.estimator)
    if not learner.trees and changed("--trees", options):
        raise InputError(f"--trees has no meaning for --estimator {options.estimator}")
    if test is not None and changed("--folds", options):
        raise InputError("with --test there are no folds, and --folds has no meaning")
    if model is not None and options.types is not None:
        raise InputError("with --model columns are read as in its training: leave out --types")
    if test is not None and options.time is not None:
        raise InputError("give --test or --time, not both")


def _trained(table: ReportTable, costs: CostMatrix | None, options: Report) -> Evaluation:
    methods = None if options.methods is None else names_in(options.methods)
    if methods == []:
        raise InputError(f"--methods must name one method at least, got {options.methods!r}")
    time = options.time
    with progress_bar("Folds") as progress:
        return evaluate(
            table.named(table.labelled.X),
            table.labelled.y,
            estimator=options.estimator,
            methods=methods,
            n_folds=options.folds,
            n_trees=options.trees,
            n_jobs=options.jobs,
            time=None if time is None else times(table.values[time], time),
            test=table.test,
            types=table.labelled.types or None,
            missing=names_in(options.missing or "") or None,
            progress=progress,
            **common_options(table, costs, options),
        )
