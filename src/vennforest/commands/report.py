"""The command ``report``: a table in, a page on trained models out."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import numpy as np
import pyarrow as pa

from vennforest._files import refused_as, shown_path
from vennforest._messages import counted
from vennforest._shown import OUTPUT_KINDS
from vennforest._validation import InputError
from vennforest.batch import output_columns, output_schema
from vennforest.classifier.prediction import Prediction
from vennforest.commands.options import FORM, Report
from vennforest.commands.pages import (
    check_page_options,
    common_arguments,
    fail,
    read_training_table,
    write_page,
)
from vennforest.commands.predict import output_table
from vennforest.commands.terminal import progress_bar, say
from vennforest.report import Evaluation, evaluate
from vennforest.report.estimators import BLENDED
from vennforest.report.splits import times
from vennforest.tables.write import output_format

REPORT_OPTIONS = [name for name in signature(Report).parameters if name not in ("data", "target")]
FIT_OPTIONS = [
    "estimator", "trees", "groups", "weight", "drop", "keep", "types", "missing", *FORM, "seed",
]  # fmt: skip
"""Options that are kept in the commands that are advised."""

OTHER_ESTIMATORS = BLENDED[1:]
"""Estimators beside the default one, where ``--estimator`` names none."""


def run_report(options: Report) -> None:
    """Compare calibration methods, write the page, and print its verdict."""
    if (options.data is None) == (options.example is None):
        raise InputError("name a file or an example with --example, and not both")
    failures = check_page_options(options)
    site = options.groups if options.validation == "by-group" else options.validation
    if options.validation == "by-group" and site is None:
        raise InputError("--validation by-group must be used with --groups, got none")
    file, frame, table, values = read_training_table(options, [options.groups, site], options.time)
    if options.write_predictions is not None:  # refused before the work
        output_format(options.write_predictions)
        names = [(str(name), pa.string()) for name in frame]
        output_schema(names, np.unique(table.y), OUTPUT_KINDS, of_label=True)
    keep = options.keep or []
    with progress_bar("Folds") as progress, refused_as():
        evaluation = evaluate(
            table.X,
            table.y,
            estimator=options.estimator,
            methods=options.methods,
            compare=OTHER_ESTIMATORS if options.estimator is None else (),
            n_folds=options.folds,
            n_trees=options.trees,
            n_jobs=options.jobs,
            random_state=options.seed,
            time=None if options.time is None else times(values[options.time], options.time),
            site=None if site is None else values[site],
            types=table.types or None,
            missing=options.missing,
            suspects={name: table.suspects[name] for name in table.suspects if name not in keep},
            progress=progress,
            **common_arguments(options, table, values),
        )
    labels = evaluation.classes.index  # of the columns that --write-predictions writes
    columns = {evaluation.verdict.method: {label: f"p({label})" for label in labels}}
    write_page(evaluation, options, next_commands(evaluation, options), columns)
    if options.write_predictions is not None:
        rows = pa.array(table.X.index[evaluation.rows].to_numpy())
        cells = pa.Table.from_pandas(frame, preserve_index=False) if file is None else file.cells
        _write_predictions(options.write_predictions, evaluation, options, cells, rows)
    fail(evaluation, failures)


def _write_predictions(
    path: Path, evaluation: Evaluation, options: Report, table: pa.Table, rows: pa.Array
) -> None:
    """Write rows of the table, as they are written, with the recommended method's predictions.

    The predictions are out of fold.
    """
    predictions = evaluation.predictions
    estimates, classes = predictions.estimates[evaluation.verdict.method], predictions.classes
    parts = zip(OUTPUT_KINDS, (estimates.p, estimates.bounds, estimates.confidence), strict=True)
    kinds = [kind for kind, part in parts if part is not None]
    carried = [(field.name, field.type) for field in table.schema]
    columns = [table[name].take(rows) for name, _ in carried]
    answers = Prediction(estimates.bounds, estimates.p), estimates.confidence
    columns += output_columns(classes, kinds, answers, of_label=True)
    schema = output_schema(carried, classes, kinds, of_label=True)
    with output_table(path, schema, output_format(path), options.escape_formulas) as write:
        write(pa.Table.from_arrays(columns, schema=schema))
    say(f"Wrote {shown_path(path)}: {counted(len(rows))}")


def next_commands(evaluation: Evaluation, options: Report) -> list[tuple[str, list[str]]]:
    """Return the next commands for the verdict, ``report`` or ``fit``, and what each is for.

    There may be none. The first one trains a blend, where one is better.
    """
    verdict = evaluation.verdict
    is_check = verdict.action == "check"
    if (
        options.data is None
        or evaluation.model is None
        or verdict.action in ("collect", "stop")
        or (is_check and not verdict.column)
    ):
        return []
    command, is_kept = ("report", REPORT_OPTIONS) if is_check else ("fit", FIT_OPTIONS)
    words = [command, options.input_name(options.data), "-t", evaluation.findings.target]
    words += options.words(is_kept)
    if is_check:
        is_leak = evaluation.findings.origin.suspects[verdict.column] == "leak"
        purpose = "without this column" if is_leak else "with rows of one value kept together"
        words += ["--drop" if is_leak else "--groups", verdict.column]
        return [(f"Compare again {purpose}:", words)]
    for column in (options.time, options.validation):  # no feature here either
        if column not in (None, "by-group", options.groups, *(options.drop or [])):
            words += ["--drop", str(column)]
    models = evaluation.sections.get("models")
    has_better_blend = models is not None and "blend_gain" in models.numbers
    blends, purpose = [], "Train the recommended model on all rows:"
    if has_better_blend:
        blends = [("Train the blend, if its time is no matter:", [*words, "--estimator", "blend"])]
        purpose = f"Or train the {evaluation.findings.origin.noun} alone, which is faster:"
    if verdict.method == "none":
        return blends
    if verdict.method != "venn-abers":
        words += ["--method", verdict.method]
    return [*blends, (purpose, [*words, *(["--calibrate-on", "cv"] if verdict.on_folds else [])])]
