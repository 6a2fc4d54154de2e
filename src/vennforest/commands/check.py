"""The command ``check``: probabilities, a model or a calibrator in, a page out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._files import refused_as
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator
from vennforest.commands.calibrator_file import (
    is_calibrator_file,
    read_calibrator,
    score_options,
    written_label,
)
from vennforest.commands.model_rows import read_model, rows_for
from vennforest.commands.report_options import Check
from vennforest.commands.report_table import common_options, finish, values_of_columns
from vennforest.multiprobability import Multiprobability
from vennforest.report import Evaluation, check
from vennforest.report.check import UNNAMED
from vennforest.tables.cells import Column, as_floats
from vennforest.tables.read import find_column, read_table
from vennforest.tables.target import LabelledTable, split_target

if TYPE_CHECKING:
    import pandas as pd

PROBABILITY_PREFIXES = ("p", "prob", "proba", "probability", "predict_proba")
"""Words before a label that make a column's name that of the label's probability."""


def run(options: Check) -> None:
    """Evaluate, write the page, and say what it says."""
    if (options.data is None) != bool(options.probability):
        raise InputError(
            "give a table with --probability COLUMN, or a model and a table (check MODEL DATA), "
            "not both"
        )
    if options.probability:
        finish(*_check_columns(options, options.probability))
    else:
        assert options.data is not None
        finish(*_check_model(options, options.data))


def _read(path: Path, options: Check) -> tuple[LabelledTable, dict[str, Any]]:
    """Return the rows with a label, and the values of columns of groups and subgroups."""
    frame = read_table(path, {}, [], options.decimal)
    table = split_target(frame, options.target, name=path.name, screened=False)
    return table, values_of_columns(frame, table, [options.groups, *(options.by or ())])


def _check_columns(options: Check, names: Sequence[str]) -> tuple[Evaluation, Check, list[str]]:
    """Evaluate columns of probabilities."""
    table, values = _read(options.predictions, options)
    names = [find_column(table.X, name) for name in names]
    columns = {name: _numbers(table.X[name], name) for name in names}
    present = np.all([np.isfinite(column) for column in columns.values()], axis=0)
    if not present.any():
        raise InputError(f"the column {names[0]!r} contains no number in any row with a label")
    values = {name: column[present] for name, column in values.items()}
    columns = {name: column[present] for name, column in columns.items()}
    X, y = table.X[present], table.y[present]
    for name, column in columns.items():
        if column.min() < -1e-9 or column.max() > 1 + 1e-9:
            raise InputError(
                f"the column {name!r} must contain probabilities in [0, 1], got numbers from "
                f"{column.min():.4g} to {column.max():.4g}: divide percentages by 100, and turn "
                "scores into probabilities with vennforest calibrate and apply"
            )
    labels = np.unique(y)
    notes = []
    if not present.all():
        notes.append(f"{int((~present).sum()):,} rows without a probability are left out.")
    class_of_column = {name: class_of_name(name, labels) for name in names}
    ordered = [n for j in range(len(labels)) for n in names if class_of_column[n] == j]
    predictions: dict[str, Any] = {}
    if len(names) > 1 and len(ordered) == len(labels) == len(names):
        p = np.column_stack([columns[name] for name in ordered])
        predictions[UNNAMED] = _with_bounds(p, X, range(len(labels)), labels)
        typed = {UNNAMED: score_options(ordered if len(labels) > 2 else ordered[1:])}
    elif len(labels) == 2:
        typed = {}
        for name in names:
            j = _positive_class(class_of_column[name], labels, options.positive)
            p = columns[name]
            p = np.column_stack([1 - p, p] if j else [p, 1 - p])
            predictions[name] = _with_bounds(p, X, [j], labels)
            typed[name] = score_options([name], increasing=j == 1)
            other = "." if options.positive else "; --positive names another."
            notes.append(f"{name!r} is taken for the probability of {str(labels[j])!r}{other}")
    else:
        raise InputError(
            f"--probability must name a column for each of {len(labels)} classes, by names such as "
            f"'p({labels[0]})', got {', '.join(names)}"
        )
    common = common_options(table, values, options)
    common["notes"] = [*common["notes"], *notes]
    evaluation = check(y, predictions, **common)
    words = ["vennforest", "calibrate", str(options.predictions), "-t", table.target]
    words += typed[evaluation.verdict.method]
    if options.decimal:
        words += ["--decimal", options.decimal]
    is_off = evaluation.verdict.action == "recalibrate"
    return evaluation, options, [shlex.join(words)] if is_off else []


def _numbers(cells: pd.Series[Any], name: str) -> FloatArray:
    """Return a column as numbers, NaN where a cell is empty."""
    return as_floats(Column(cells, name).array, name, "the table").astype(np.float64)


def class_of_name(name: str, labels: NDArray[Any]) -> int | None:
    """Return the index of the class that a column of probabilities is named after, or None.

    Such names are ``yes``, ``p(yes)`` and ``prob_yes``. ``model_0`` is not: it may be the first of
    several models.
    """
    names: list[str] = labels.astype(str).tolist()
    if name in names:
        return names.index(name)
    pattern = rf"(?:{'|'.join(PROBABILITY_PREFIXES)})[\s_.-]*(?:\((.+)\)|(?<=[\s_.-])(.+))"
    match = re.fullmatch(pattern, name, re.IGNORECASE)
    label = None if match is None else match[1] or match[2]
    same_name = [j for j, other in enumerate(names) if other == label]
    same_letters = [j for j, other in enumerate(names) if other.lower() == str(label).lower()]
    return next((matches[0] for matches in (same_name, same_letters) if len(matches) == 1), None)


def _positive_class(by_name: int | None, labels: NDArray[Any], positive: str | None) -> int:
    """Return which class a lone column is of: as named, by its name, else the second."""
    if positive is not None and positive in labels.astype(str):
        return int(np.flatnonzero(labels.astype(str) == positive)[0])
    return 1 if by_name is None else by_name


def _with_bounds(
    p: FloatArray, X: pd.DataFrame, classes: Sequence[int], labels: NDArray[Any]
) -> Any:
    """Return probabilities (n, k), with bounds where columns lower(c) and upper(c) are there."""
    lower, upper = np.zeros_like(p), np.ones_like(p)
    for j in classes:
        names = [f"lower({labels[j]})", f"upper({labels[j]})"]
        if any(name not in X.columns for name in names):
            return p
        lower[:, j], upper[:, j] = (_numbers(X[name], name) for name in names)
        if len(classes) == 1:
            lower[:, 1 - j], upper[:, 1 - j] = 1 - upper[:, j], 1 - lower[:, j]
    if not (np.isfinite(lower) & np.isfinite(upper) & (lower <= upper)).all():
        return p
    return p, Multiprobability(lower.clip(0, 1), upper.clip(0, 1), labels)


def _check_model(options: Check, data: Path) -> tuple[Evaluation, Check, list[str]]:
    """Evaluate a model or a calibrator in a file."""
    path = options.predictions
    table, values = _read(data, options)
    common = common_options(table, values, options)
    target, files = table.target, [str(path), str(data)]
    if is_calibrator_file(path):
        file = read_calibrator(path, options.scores or ())
        model, y = file.calibrator, _labels_of(file.calibrator, table.y)
        columns = [_numbers(table.X[find_column(table.X, name)], name) for name in file.scores]
        X: Any = columns[0] if len(columns) == 1 else np.column_stack(columns)
        scored, kept = ["vennforest", "apply", *files], score_options(file.scores)
    else:
        if options.scores:
            raise InputError("--score is for a calibrator: a model reads its own columns")
        model, y = read_model(path, options.trusted or ()), table.y
        if isinstance(model, Calibrator):
            raise InputError(
                f"{path} contains a {type(model).__name__}, which takes scores and no table: "
                "give the probabilities it makes with --probability"
            )
        X = rows_for(model, table.X)
        scored, kept = ["vennforest", "predict", *files, "--keep", "-o", "scored.csv"], []
    with refused_as("the table does not fit the model"):
        evaluation = check(y, model, X=X, **common)
    advised = []
    if evaluation.verdict.action == "recalibrate":
        labels = evaluation.classes.index[int(evaluation.thresholds is not None) :]
        options_of_scores = kept or score_options([f"p({label})" for label in labels])
        if kept:
            advised = [["vennforest", "calibrate", str(data), "-t", target, *options_of_scores]]
        else:
            again = ["vennforest", "calibrate", "scored.csv", "-t", target, *options_of_scores]
            advised = [scored, again]
    return evaluation, options, [shlex.join(words) for words in advised]


def _labels_of(calibrator: Calibrator, y: NDArray[Any]) -> NDArray[Any]:
    """Return labels of a table as those of a calibrator, whose file may write them as 1 or 1.0."""
    label_of = {written_label(label): label for label in calibrator.classes_.tolist()}
    texts = [written_label(label) for label in y.tolist()]
    return np.array([label_of.get(text, text) for text in texts], dtype=object)
