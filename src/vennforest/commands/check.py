"""The command ``check``: probabilities, a model or a calibrator in, a page out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest._class_columns import CLASS_COLUMN, class_columns, labels_of_column, split_entry
from vennforest._files import refused_as
from vennforest._shown import KINDS, columns_of
from vennforest._validation import FloatArray, InputError, check_inside
from vennforest.commands.models import (
    check_probabilities_in,
    is_calibrator_file,
    labels_of_model,
    numbers_in,
    read_calibrator,
    read_model,
    read_rows,
    rows_for,
    with_shares,
)
from vennforest.commands.options import Check
from vennforest.commands.pages import (
    check_page_options,
    common_arguments,
    dividing_columns,
    fail,
    values_in,
    write_page,
)
from vennforest.commands.terminal import say
from vennforest.multiprobability import Multiprobability
from vennforest.report import Evaluation, check
from vennforest.report.check import UNNAMED_PREDICTIONS
from vennforest.report.section import Section
from vennforest.report.sections import (
    grades_section,
    promised_thresholds,
    segments_section,
    with_updates,
)
from vennforest.tables.files import find_name, read_table
from vennforest.tables.target import LabelledTable, split_target

Outcome = tuple[Evaluation, pd.DataFrame, list[list[str]], dict[str, dict[str, str]]]
"""An evaluation, its rows, the commands that follow it, and columns by method and label."""


def run_check(options: Check) -> None:
    """Evaluate probabilities, write the page, and print its verdict."""
    if (options.data is None) != bool(options.probability):
        raise InputError(
            "give a table with --probability COLUMN, or a model and a table (check MODEL DATA), "
            "not both"
        )
    failures = check_page_options(options)
    path = options.data or options.predictions
    model = _model_of(options)
    frame = read_rows(path, model, options.form, options.target)
    options.row_counts[path] = len(frame)
    table = split_target(frame, options.target, name=path.name, screened=False)
    groups, by = [options.groups, options.grades], options.by or []
    segmented = [*table.X] if options.segments == ["auto"] else options.segments or []
    divided = dividing_columns(options, path, frame, groups, [*segmented, *by])
    divided = divided.loc[table.X.index]
    values = values_in(divided[list(dict.fromkeys(filter(None, [options.groups, *by])))])
    promises = {
        name: getattr(options, name) for name in ("sensitivity", "specificity", "precision")
    }
    targets = {
        n: check_inside(share, f"--{n}") for n, share in promises.items() if share is not None
    }
    if options.reference is not None and options.grades is None:
        raise InputError("--reference must be given with --grades, got no --grades")
    if options.data is None:
        evaluation, rows, commands, columns = _check_columns(options, table, values)
    else:
        cells = frame.loc[table.X.index, options.target]  # as they are written: 01 stays 01
        evaluation, rows, commands, columns = _judge_model(options, model, cells, table, values)
    comparison = evaluation.comparison
    sections = [promised_thresholds(comparison, targets)] if targets else []
    validation = _validation_sections(options, evaluation, divided.loc[rows.index])
    evaluation = evaluation.with_sections([*sections, *validation])
    if not evaluation.source.trained_on_rows:
        evaluation = with_updates(evaluation)
    is_off = evaluation.verdict.action == "recalibrate"
    if options.data is None or not is_calibrator_file(options.predictions):
        commands[-1] = _with_update(commands[-1], options, evaluation)
    write_page(evaluation, options, commands if is_off else [], columns)
    for section in validation:
        say(section.sentences[0])
    fail(evaluation, failures)


def _check_columns(options: Check, table: LabelledTable, values: dict[str, Any]) -> Outcome:
    """Evaluate the probabilities in columns of a table."""
    if options.prior:
        raise InputError("--prior is for a model or a calibrator, whose class shares are known")
    entries, columns = list(options.probability or ()), [*map(str, table.X.columns)]
    classes = _named_classes(entries, np.unique(table.y))
    named, names = zip(*(split_entry(entry, classes, columns) for entry in entries), strict=True)
    p = np.column_stack([numbers_in(table.X, name) for name in names])
    present = np.isfinite(p).all(axis=1)
    if not present.any():
        raise InputError(f"the column {names[0]!r} contains no number in any row with a label")
    values = {name: column[present] for name, column in values.items()}
    X: Any = table.X[present]
    p, y = p[present], table.y[present]
    for name, column in zip(names, p.T, strict=True):
        check_probabilities_in(column, name)
    labels, k = list(map(str, classes)), len(classes)
    if not present.all():
        table.notes.append(f"{int((~present).sum()):,} rows without a probability are left out.")
    predictions: dict[str, Any] = {}
    score_options: dict[str, list[str]] = {}
    columns_of_method: dict[str, dict[str, str]] = {}
    if k > 2 or sorted(named) == [[label] for label in classes]:
        of_classes = class_columns(entries, classes, "--probability", columns)
        order = [names.index(name) for name in of_classes.names]
        predictions[UNNAMED_PREDICTIONS] = _with_bounds(p[:, order], X, classes)
        columns_of_method[UNNAMED_PREDICTIONS] = dict(zip(labels, of_classes.names, strict=True))
        score_options[UNNAMED_PREDICTIONS] = _score_options(
            of_classes.entries[1 if k == 2 else 0 :]
        )
    else:
        for entry, name, label_of_name, column in zip(entries, names, named, p.T, strict=True):
            of_class = class_columns([entry], classes, "--probability", columns)
            hint = "."
            if not label_of_name:  # --positive is for columns that say no class
                of_class = replace(of_class, of_first=options.positive == labels[0])
                hint = "." if options.positive else "; --positive names another."
            both_columns = np.column_stack([1 - column, column][:: -1 if of_class.of_first else 1])
            is_of_bounds = len(entries) == 1 or CLASS_COLUMN.fullmatch(name)
            predictions[name] = (
                both_columns if not is_of_bounds else _with_bounds(both_columns, X, classes)
            )
            score_options[name] = _score_options(of_class.entries)
            label = labels[0 if of_class.of_first else 1]
            columns_of_method[name] = {label: name}
            table.notes.append(f"{name!r} is taken for the probability of {label!r}{hint}")
    arguments = common_arguments(options, table, values)
    evaluation = check(y, predictions, classes=classes, updates=options.updates, **arguments)
    words = ["calibrate", options.input_name(options.predictions), "-t", table.target]
    words += score_options[evaluation.verdict.method]
    words += options.form_words
    return evaluation, X, [words], columns_of_method


def _named_classes(entries: Sequence[str], labels: NDArray[Any]) -> list[Any]:
    """Return the labels, and those without a row that columns such as ``p(c)`` name."""
    classes: list[Any] = labels.tolist()
    forms = [CLASS_COLUMN.fullmatch(entry) for entry in entries]
    if len(entries) <= max(2, len(classes)) or None in forms:
        return classes
    names = [form["label"] for form in forms if form and not labels_of_column(form[0], classes)]
    try:
        return sorted([*classes, *map(type(classes[0]), names)])
    except ValueError:  # no labels of this kind
        return classes


def _with_update(words: list[str], options: Check, evaluation: Evaluation) -> list[str]:
    """Return the words of ``calibrate`` with the update that the page's tests choose, if any."""
    choice = next((section.choice for section in evaluation.sections if section.choice), "keep")
    if choice == "keep":
        return words
    groups = ["--groups", options.groups] if options.groups else []
    return [*words, "--update", choice, *groups]


def _validation_sections(
    options: Check, evaluation: Evaluation, rows: pd.DataFrame
) -> list[Section]:
    """Return the sections that the options ``--grades`` and ``--segments`` ask for."""
    sections, comparison, columns = [], evaluation.comparison, [*map(str, rows)]
    if options.grades is not None:
        grade, reference = rows[options.grades], None
        if options.reference is not None:
            reference_rows = read_table(options.reference, [options.grades], form=options.form)
            options.row_counts[options.reference] = len(reference_rows)
            reference = reference_rows[find_name(reference_rows.columns, options.grades)]
        sections.append(grades_section(comparison, grade, reference))
    if options.segments == ["auto"]:  # all columns but those of predictions, groups and grades
        classes = list(evaluation.classes.index)
        unused = [split_entry(entry, classes, columns)[1] for entry in options.probability or ()]
        unused += [name for name in (options.groups, options.grades) if name]
        unused += [name for label in evaluation.classes.index for name in columns_of(label, KINDS)]
        columns = [name for name in columns if name not in unused]
    elif options.segments:
        columns = options.segments
    if options.segments:
        seed = evaluation.settings["random_state"]
        sections.append(segments_section(comparison, rows[columns], seed))
    return sections


def _with_bounds(p: FloatArray, X: pd.DataFrame, classes: list[Any]) -> Any:
    """Return probabilities (n, k), with bounds if X has columns lower(c) and upper(c)."""
    names = [[f"{end}({label})" for label in classes] for end in ("lower", "upper")]
    if not {*names[0], *names[1]} <= set(X.columns):
        return p
    lower, upper = (np.column_stack([numbers_in(X, name) for name in ends]) for ends in names)
    return p, Multiprobability(lower, upper, np.array(classes))


def _score_options(names: Sequence[str]) -> list[str]:
    return [word for name in names for word in ("-s", name)]


def _model_of(options: Check) -> Any:
    """Return the model in a file; None for columns of probabilities and for a calibrator."""
    if options.data is None or is_calibrator_file(options.predictions):
        return None
    if options.scores:
        raise InputError("--score is for a calibrator: a model reads its own columns")
    return with_shares(read_model(options.predictions, options.trusted), options.prior)


def _judge_model(
    options: Check, model: Any, labels: Any, table: LabelledTable, values: dict[str, Any]
) -> Outcome:
    """Evaluate a model or a calibrator in a file."""
    path, data, target = options.predictions, options.input_name(options.data), ["-t", table.target]
    if model is None:
        file = read_calibrator(path, options.scores, table=[*map(str, table.X.columns)])
        model, X = with_shares(file.calibrator, options.prior), file.scores_in(table.X)
        commands = [["calibrate", data, *target, *_score_options(file.columns.entries)]]
    else:
        X = rows_for(model, table.X)
        classes = model.classes_[0 if len(model.classes_) > 2 else 1 :]
        scores = _score_options([f"p({label})" for label in classes])
        options_of_predict = [w for entry in options.prior or () for w in ("--prior", entry)]
        options_of_predict += [w for name in options.trusted or () for w in ("--trust", name)]
        options_of_predict += options.form_words
        words = ["predict", options.input_name(path), data, "--keep", "-o", "scored.csv"]
        commands = [[*words, *options_of_predict], ["calibrate", "scored.csv", *target, *scores]]
    y = labels_of_model(labels, table.target, model.classes_)
    y = y.astype(model.classes_.dtype)
    with refused_as("the table does not fit the model"):
        arguments = common_arguments(options, table, values)
        evaluation = check(y, model, X=X, updates=options.updates, **arguments)
    method = [*evaluation.comparison.predictions.estimates][-1]
    return evaluation, table.X, commands, {method: {str(c): f"p({c})" for c in model.classes_}}
