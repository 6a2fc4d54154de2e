"""The command ``report``: a table in, a page on trained models out."""

from __future__ import annotations

import shlex

from vennforest._validation import InputError
from vennforest.commands.report_options import Report
from vennforest.commands.report_table import common_options, finish, values_of_columns
from vennforest.commands.terminal import names_in, progress_bar
from vennforest.report import Evaluation, evaluate
from vennforest.report.estimators import DEFAULT_ESTIMATOR, named_estimator
from vennforest.report.splits import times
from vennforest.tables.read import find_column, read_table
from vennforest.tables.target import load_example, split_target
from vennforest.tables.types import DROP, read_declared, read_types


def run(options: Report) -> None:
    """Evaluate, write the page, and say what it says."""
    if not named_estimator(options.estimator).has_trees and options.trees != Report.trees:
        raise InputError(f"--trees has no meaning for --estimator {options.estimator}")
    methods = None if options.methods is None else names_in(options.methods)
    if methods == []:
        raise InputError(f"--methods must name one method at least, got {options.methods!r}")
    if (options.data is None) == (options.example is None):
        raise InputError("name a file or an example with --example, and not both")
    missing = names_in(options.missing or "")
    drop, split_by = options.drop or [], [options.groups, options.time]
    if options.example is not None:
        if any([*split_by, options.types, options.decimal, missing, options.keep]):
            raise InputError("an example has no such options: name a file")
        table = load_example(options.example, options.target, drop)
        values = {name: table.X[find_column(table.X, name)] for name in options.by or ()}
    else:
        assert options.data is not None
        if options.target is None:
            raise InputError("name the column to predict with --target")
        types = {} if options.types is None else read_types(options.types)
        frame = read_table(options.data, types, missing, options.decimal)
        features = [find_column(frame, name) for name in split_by if name is not None]
        table = split_target(
            frame,
            options.target,
            list(dict.fromkeys([*drop, *(name for name in features if name != options.target)])),
            name=options.data.name,
            keep=options.keep or [],
            types=types,
        )
        wanted = [*split_by, *(options.by or ())]
        declared = {name: kind for name, kind in types.items() if name in wanted and kind != DROP}
        values = values_of_columns(read_declared(frame, declared), table, wanted)
    kept = options.keep or ()
    with progress_bar("Folds") as progress:
        evaluation = evaluate(
            table.X,
            table.y,
            estimator=options.estimator,
            methods=methods,
            n_folds=options.folds,
            n_trees=options.trees,
            n_jobs=options.jobs,
            time=None if options.time is None else times(values[options.time], options.time),
            types=table.types or None,
            missing=missing or None,
            suspects={name: why for name, why in table.suspects.items() if name not in kept},
            progress=progress,
            **common_options(table, values, options),
        )
    finish(evaluation, options, advised_command(evaluation, options))


def advised_command(evaluation: Evaluation, options: Report) -> list[str]:
    """Return the command that follows the verdict: another report, or a fit."""
    verdict, model = evaluation.verdict, evaluation.model
    if options.data is None or verdict.action in ("collect", "stop") or model is None:
        return []
    words = ["vennforest", "report" if verdict.action == "check" else "fit"]
    words += [str(options.data), "-t", evaluation.source.target]
    typed: list[tuple[str, str | None]] = [
        ("--estimator", options.estimator),
        ("--groups", options.groups),
        ("--decimal", options.decimal),
        ("--missing", options.missing),
        ("--types", options.types),
    ]
    typed += [("--drop", name) for name in options.drop or ()]
    typed += [("--keep", name) for name in options.keep or ()]
    if verdict.action == "check" and not verdict.column:
        return []
    if verdict.action == "check":
        is_leak = evaluation.source.suspects[verdict.column] == "leak"
        words += ["--drop" if is_leak else "--groups", verdict.column]
        typed.append(("--time", options.time))
    else:
        if verdict.method == "none":
            return []
        typed += [
            ("--method", verdict.method if verdict.method != "venn-abers" else None),
            ("--calibrate-on", "cv" if verdict.on_folds else None),
            ("--trees", str(options.trees) if options.trees != Report.trees else None),
        ]
    usual = ("--estimator", DEFAULT_ESTIMATOR)
    words += [part for pair in typed if pair[1] and pair != usual for part in pair if part]
    return [shlex.join(words)]
