"""The command ``check``: probabilities, a model or a calibrator in, a page out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest._class_columns import (
    CLASS_COLUMN,
    ClassColumns,
    class_columns,
    labels_of_column,
    split_entry,
)
from vennforest._files import refused_as
from vennforest._messages import counted, warn
from vennforest._shown import OUTPUT_KINDS, columns_of
from vennforest._validation import FloatArray, InputError, check_inside
from vennforest.commands.models import (
    check_probabilities_in,
    column_differences,
    is_calibrator_file,
    labels_of_model,
    noted,
    numbers_in,
    read_calibrator,
    read_model,
    read_rows,
    refuse_scores,
    rows_for,
    with_shares,
)
from vennforest.commands.options import FORM, Check
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
from vennforest.report.sections import GRADES_OF_GROUPS, PROMISES
from vennforest.report.splits import note_on_recent_labels, read_times
from vennforest.report.words import MAX_LISTED, sentences_on
from vennforest.sources.training_columns import ColumnDifference
from vennforest.tables.read import refuse_cell, row_name
from vennforest.tables.schema import find_name
from vennforest.tables.target import LabelledTable, split_target


@dataclass(frozen=True, eq=False)
class Outcome:
    """An evaluation, columns of probabilities by method and label, and commands.

    The last one of ``commands`` updates the probabilities; ``anew`` calibrates the scores of a
    calibrator again. ``differences`` are columns that differ from training.
    """

    evaluation: Evaluation
    columns: dict[str, dict[str, str]]
    commands: list[list[str]]
    anew: list[str] | None = None
    differences: Sequence[ColumnDifference] = ()


def run_check(options: Check) -> None:
    """Evaluate probabilities, write the page, and print its verdict."""
    failures = _check_options(options)
    path = options.data or options.predictions
    model = _model_of(options)
    file, frame, types = read_rows(path, model, options, [options.target])
    if options.horizon is not None:  # a row without a label was last seen without the event
        frame = _without_event(frame, options)
    table = split_target(frame, options.target, name=path.name, screened=False)
    groups = [options.groups, options.grades, options.validation, options.final_grades]
    of_values = [*(options.by or []), options.weight, options.time, options.until]
    of_values += [*table.X] if options.segments == ["auto"] else options.segments or []
    divided = dividing_columns(file, frame, groups, of_values, types, table.notes)
    if options.time is not None:
        has_label = frame.index.isin(table.X.index)
        table.notes.extend(note_on_recent_labels(divided[options.time], options.time, has_label))
    divided = divided.loc[table.X.index]
    if options.data is None:
        outcome = _check_columns(options, table, divided)
    else:
        labels = frame[[options.target]].loc[table.X.index]  # as they are written: 01 stays 01
        outcome = _judge_model(options, model, labels, table, divided)
    evaluation = outcome.evaluation
    is_off = evaluation.verdict.action == "recalibrate"
    commands = _next_commands(options, evaluation, outcome) if is_off else []
    write_page(evaluation, options, commands, outcome.columns, outcome.differences)
    for name in ("grades", "segments", "sites"):
        if name in evaluation.sections:
            section = evaluation.sections[name]
            say(sentences_on(name, evaluation.findings, section, MAX_LISTED)[0])
    fail(evaluation, failures, outcome.differences)


def _check_options(options: Check) -> list[str]:
    """Raise an error for options that do not go together; return the names in ``--fail-on``."""
    if (options.data is None) != bool(options.probability):
        raise InputError(
            "give a table with --probability COLUMN, or a model and a table (check MODEL DATA), "
            "not both"
        )
    if options.prior and options.data is None:
        raise InputError("--prior is for a model or a calibrator, whose class shares are known")
    if options.reference is not None and options.grades is None:
        raise InputError("--reference must be given with --grades, got no --grades")
    if options.final_grades is not None and options.grades is None:
        raise InputError("--final-grades must be given with --grades, got no --grades")
    if options.grades is not None and options.groups is not None:
        raise InputError(f"--{GRADES_OF_GROUPS}")
    if options.horizon is not None and None in (options.time, options.until):
        raise InputError("--horizon must be used with --time and --until, the dates of each row")
    if options.until is not None and options.horizon is None:
        raise InputError("--until must be used with --horizon, got no --horizon")
    if options.time is not None and options.grades is None and options.horizon is None:
        raise InputError("--time must be used with --grades or --horizon, got neither")
    return check_page_options(options)


def _without_event(frame: pd.DataFrame, options: Check) -> pd.DataFrame:
    """Return the table with the other label where the label of the event is missing."""
    labels = frame[options.target]
    present = labels.dropna().unique().tolist()
    negative = [label for label in present if str(label) != options.positive]
    if options.positive is None and len(present) == 2:
        negative = sorted(present)[:1]
    if labels.notna().all() or len(negative) != 1:
        return frame
    return frame.assign(**{options.target: labels.fillna(negative[0])})


def _check_columns(options: Check, table: LabelledTable, divided: pd.DataFrame) -> Outcome:
    """Evaluate the probabilities in columns of a table."""
    entries, names = list(options.probability or ()), [*map(str, table.X.columns)]
    classes = _named_classes(entries, np.unique(table.y), options.positive)
    columns = [split_entry(entry, classes, names)[1] for entry in entries]
    p = np.column_stack([numbers_in(table.X, name) for name in columns])
    present = np.isfinite(p).all(axis=1)
    if not present.any():
        raise InputError(f"the column {columns[0]!r} contains no number in any row with a label")
    if not present.all():
        table.notes.append(f"Left out: {counted(int((~present).sum()))} without a probability.")
    X: Any = table.X[present]
    by_column = dict(zip(columns, p[present].T, strict=True))
    for name, column in by_column.items():
        check_probabilities_in(column, name)
    models = _models_of_columns(options, names, classes, table.notes)
    predictions = {
        model: _with_bounds(_in_class_order(of_model, by_column), X, of_model, len(models))
        for model, of_model in models.items()
    }
    arguments = _arguments(options, table, divided.loc[X.index], classes)
    evaluation = check(table.y[present], predictions, classes=classes, **arguments)
    best = models[evaluation.verdict.method].entries
    words = ["calibrate", options.input_name(options.predictions), "-t", table.target]
    words += _repeated("-s", best[-1:] if len(classes) == 2 else best) + options.words(FORM)
    of_labels = {model: _names_by_label(of_model) for model, of_model in models.items()}
    return Outcome(evaluation, of_labels, [words])


def _models_of_columns(
    options: Check, names: list[str], classes: list[Any], notes: list[str]
) -> dict[str, ClassColumns]:
    """Return columns by name of the model: one model of all of them, or of two classes one each.

    ``names`` are the columns of the table. Appends to ``notes`` which class a column is of.
    """
    entries, option = list(options.probability or ()), "--probability"
    labels = [split_entry(entry, classes, names)[0] for entry in entries]
    if len(classes) > 2 or sorted(labels) == [[label] for label in classes]:
        return {UNNAMED_PREDICTIONS: class_columns(entries, classes, option, names)}
    models = {}
    for entry, label in zip(entries, labels, strict=True):
        model = class_columns([entry], classes, option, names)
        if not label:  # --positive is for columns that say no class
            model = replace(model, of_first=options.positive == str(classes[0]))
        hint = "." if label or options.positive else "; --positive names another."
        (label_of_column, name), *_ = _names_by_label(model).items()
        notes.append(f"{name!r} is taken for the probability of {label_of_column!r}{hint}")
        models[name] = model
    return models


def _names_by_label(columns: ClassColumns) -> dict[str, str]:
    """Return the names of columns by the text of their label."""
    return {str(label): name for label, name in columns.by_label.items()}


def _in_class_order(columns: ClassColumns, by_name: dict[str, FloatArray]) -> FloatArray:
    """Return the probabilities (n, k) of a model, given those of its columns."""
    p = np.column_stack([by_name[name] for name in columns.names])
    if p.shape[1] > 1:
        return p
    return np.hstack([p, 1 - p] if columns.of_first else [1 - p, p])


def _named_classes(entries: Sequence[str], labels: NDArray[Any], positive: str | None) -> list[Any]:
    """Return the labels, and those without a row that columns such as ``p(c)`` name.

    Of one label the other is that of ``positive`` or ``LABEL=COLUMN``, or of 0 and 1 the other.
    """
    classes: list[Any] = labels.tolist()
    forms = [CLASS_COLUMN.fullmatch(entry) for entry in entries]
    if len(entries) > len(classes) and None not in forms:
        names = [form["label"] for form in forms if form and not labels_of_column(form[0], classes)]
        with suppress(ValueError):  # no labels of this kind
            classes = sorted({*classes, *map(type(classes[0]), names)})
    if len(classes) > 1:
        return classes
    label = classes[0]
    texts = [positive, *(entry.partition("=")[0] for entry in entries if "=" in entry)]
    other_labels = [text for text in texts if text not in (None, str(label))]
    if label in (0, 1):  # True and False too
        other_labels.append(1 - label)
    if not other_labels:
        raise InputError(
            f"the target must have two classes, got {str(label)!r} alone: name the other one "
            "with --positive"
        )
    return sorted([label, type(label)(other_labels[0])])


def _next_commands(
    options: Check, evaluation: Evaluation, outcome: Outcome
) -> list[tuple[str, list[str]]]:
    """Return the commands that recalibrate, and what each is for.

    The last one makes the update that the page's tests choose, if they choose one.
    """
    choice, purpose = evaluation.findings.choice, "Calibrate with these rows:"
    *earlier, last = outcome.commands
    if choice not in ("", "keep"):
        last = [*last, "--update", choice, *options.words(["groups"])]
        purpose = "Fit the update that tests choose to these rows:"
    elif outcome.anew is not None:
        return [("Calibrate the scores again, with these rows:", outcome.anew)]
    return [
        *(("Write the probabilities of these rows first:", w) for w in earlier),
        (purpose, last),
    ]


def _arguments(
    options: Check, table: LabelledTable, divided: pd.DataFrame, classes: Sequence[Any]
) -> dict[str, Any]:
    """Return the arguments of ``check`` beside labels and probabilities."""
    roles = [options.groups, options.validation, options.weight, options.time, options.until]
    names = [name for name in [*roles, *(options.by or [])] if name is not None]
    values = values_in(divided[list(dict.fromkeys(names))])
    arguments = common_arguments(options, table, values) | {"updates": options.updates}
    promised = [name for name in PROMISES if getattr(options, name) is not None]
    arguments["promises"] = {
        name: check_inside(getattr(options, name), f"--{name}") for name in promised
    }
    arguments["site"] = values.get(options.validation or "")
    if options.grades is not None:
        arguments["grades"] = divided[options.grades]
        arguments["final_grades"] = divided.get(options.final_grades)
        arguments["time"] = values.get(options.time or "")
    if options.horizon is not None:
        start, until = str(options.time), str(options.until)
        entry, end = (read_times(values[name], name) for name in (start, until))
        if entry.dtype != end.dtype:
            raise InputError("--time and --until must be dates or numbers both, got one of each")
        days = (end - entry) / np.timedelta64(1, "D") if entry.dtype.kind == "M" else end - entry
        for i in np.flatnonzero(~(days >= 0))[:1]:
            rule = f"times that are not before those in {start!r}"
            refuse_cell(until, rule, values[until][i], row_name(divided.index[i], "the table"))
        arguments["follow_up"] = np.asarray(days, dtype=np.float64), options.horizon
    if options.reference is not None:
        grades = str(options.grades)
        reference = read_rows(options.reference, None, options, [grades])[1]
        arguments["reference"] = reference[find_name(reference.columns, grades)]
        _warn_of_zeros(grades, divided[grades], arguments["reference"])
    if options.segments == ["auto"]:  # all columns but those of predictions, groups and grades
        columns = [*map(str, divided)]
        entries = options.probability or ()
        unused: list[str | None] = [split_entry(e, classes, columns)[1] for e in entries]
        unused += [name for label in classes for name in columns_of(label, OUTPUT_KINDS)]
        unused += [*roles, options.grades, options.final_grades]
        arguments["segments"] = divided[[name for name in columns if name not in unused]]
    elif options.segments:
        arguments["segments"] = divided[options.segments]
    return arguments


def _warn_of_zeros(name: str, grades: Any, reference: Any) -> None:
    """Warn of grades that differ from those of the reference by leading zeros alone."""
    rows, earlier = ({str(grade) for grade in column.dropna()} for column in (grades, reference))
    without_zeros = {grade.lstrip("0"): grade for grade in earlier - rows}
    for grade in sorted(rows - earlier):
        if (earlier_grade := without_zeros.get(grade.lstrip("0"))) is not None:
            warn(
                f"{name!r} is {grade!r} in the rows and {earlier_grade!r} in the reference, which "
                "are different grades: write them alike in both"
            )
            return


def _with_bounds(p: FloatArray, X: pd.DataFrame, columns: ClassColumns, n_models: int) -> Any:
    """Return probabilities (n, k), with bounds if X has columns lower(c) and upper(c) of them.

    Among several models, they are of the one whose columns have names such as ``p(c)``.
    """
    names = [[f"{end}({label})" for label in columns.classes] for end in ("lower", "upper")]
    is_of_bounds = n_models == 1 or CLASS_COLUMN.fullmatch(columns.names[0])
    if not is_of_bounds or not {*names[0], *names[1]} <= set(X.columns):
        return p
    lower, upper = (np.column_stack([numbers_in(X, name) for name in ends]) for ends in names)
    return p, Multiprobability(lower, upper, np.array(columns.classes))


def _repeated(option: str, values: Sequence[str] | None) -> list[str]:
    """Return an option with each of its values as words of a command."""
    return [word for value in values or () for word in (option, value)]


def _model_of(options: Check) -> Any:
    """Return the model in a file; None for columns of probabilities and for a calibrator."""
    if options.data is None or is_calibrator_file(options.predictions):
        return None
    refuse_scores(options)
    return with_shares(read_model(options.predictions, options.trusted), options.prior)


def _judge_model(
    options: Check, model: Any, labels: pd.DataFrame, table: LabelledTable, divided: pd.DataFrame
) -> Outcome:
    """Evaluate a model or a calibrator in a file; ``labels`` are as in the table."""
    inputs = [options.input_name(options.predictions), options.input_name(options.data)]
    words, target, anew = ["-o", "scored.csv"], ["-t", table.target], None
    if model is None:
        file = read_calibrator(options.predictions, options.scores, table=table.X.columns)
        model, X = with_shares(file.calibrator, options.prior), file.scores_in(table.X)
        differences = file.differences(X)
        words = ["apply", *inputs, *words, *_repeated("-s", options.scores)]
        anew = ["calibrate", inputs[1], *target, *_repeated("-s", file.columns.entries)]
        anew += options.words(FORM)
    else:
        X = rows_for(model, table.X)
        differences = column_differences(model, X)
        words = ["predict", *inputs, "--keep", *words, *_repeated("--trust", options.trusted)]
    words += options.words(["prior", *FORM])
    classes = model.classes_[0 if len(model.classes_) > 2 else 1 :]
    columns = _repeated("-s", [f"p({label})" for label in classes])
    commands = [words, ["calibrate", "scored.csv", *target, *columns]]
    y = labels_of_model(labels, table.target, model.classes_).astype(model.classes_.dtype)
    with refused_as("the table does not fit the model"), noted(differences, table.notes):
        arguments = _arguments(options, table, divided, [*model.classes_])
        evaluation = check(y, model, X=X, **arguments)
    of_labels = {evaluation.verdict.method: {str(c): f"p({c})" for c in model.classes_}}
    return Outcome(evaluation, of_labels, commands, anew, differences)
