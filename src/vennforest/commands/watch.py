"""The command ``watch``: a model and new rows in, a verdict and a page out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest import persistence
from vennforest._files import refused_as, shown_path, write_text
from vennforest._remote import sent_whole
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.commands.calibrator_file import (
    CalibratorFile,
    is_calibrator_file,
    read_calibrator,
    written_label,
)
from vennforest.commands.model_rows import inner_model, read_model, rows_for
from vennforest.commands.options import Watch
from vennforest.commands.terminal import busy, print_json, say_notes
from vennforest.monitoring import Monitor
from vennforest.monitoring.scoring import MAX_TRAINING_SHARE, training_share
from vennforest.monitoring.stream import as_numbers
from vennforest.performance.estimate import OTHER_ORDER, are_of_fit
from vennforest.persistence.model_file import write_model
from vennforest.report.splits import moments
from vennforest.report.watched import watched
from vennforest.sources.row_hashes import hash_rows
from vennforest.tables.cells import Column
from vennforest.tables.files import TableFile
from vennforest.tables.read import find_column

HEADER_OF_MONITOR = ("target", "columns", "n_rows")
"""What a monitor's file says as the model's does."""

MAX_LABELS_IN_ERROR = 8


def run(options: Watch) -> None:
    """Watch, print the verdict, and write the page and the monitor."""
    _check(options)
    notes: list[str] = []
    about: dict[str, Any] = {}
    with busy("Watching"):
        file: CalibratorFile | None = None
        if is_calibrator_file(options.model):
            file = read_calibrator(options.model, options.scores or ())
            monitor = _monitor_of_scores(file, options)
        else:
            monitor, about = _monitor_of_model(options)
        table, times = _read(options, notes)
        target = options.target
        y = None if target is None else _labels(table, find_column(table, target), monitor)
        carried = [name for name in (options.time, target) if name is not None]
        what = "model" if file is None else "calibrator"
        with refused_as(f"the {what} refuses the table"):
            if file is None:
                observed = _watched_rows(monitor, about, table, carried, options.reference)
            else:
                observed = _watched_scores(file, table, carried, str(options.data))
            summary, page = watched(
                monitor,
                **observed,
                y=y,
                times=times,
                name=options.data.name,
                target=target or "",
                notes=notes,
                command=shlex.join(["vennforest", *sys.argv[1:]]),
            )
        with sent_whole(options.output) as path:
            write_text(path, page)
        if options.keep is not None:
            with sent_whole(options.keep) as monitor_file:
                write_model(monitor, monitor_file, about)
    say_notes(notes)
    if options.as_json:
        print_json({**summary, "report": shown_path(options.output)})
        return
    for sentence in summary["verdict"]:
        print(sentence)  # noqa: T201


def _check(options: Watch) -> None:
    """Refuse options that do not go together."""
    if options.reference is not None and options.target is not None:
        raise InputError(
            "--reference is for rows without labels, whose performance it helps to estimate: leave "
            "it or --target out"
        )
    if not is_calibrator_file(options.model):
        if options.scores:
            raise InputError("--score is for a calibrator: a model reads its own columns")
        return
    if options.keep is not None:
        raise InputError("--keep is for models: a calibrator is watched over a whole table")
    if options.reference is not None:
        raise InputError("--reference is for models: a calibrator keeps its own scores")


def _read(options: Watch, notes: list[str]) -> tuple[pd.DataFrame, NDArray[Any] | None]:
    """Return the rows in the order of their times, and these, None without."""
    table = TableFile(options.data, options.decimal).read()
    if table.empty:
        raise InputError(
            f"{options.data} has no rows, only the names of {len(table.columns)} columns"
        )
    if options.time is None:
        return table, None
    name = find_column(table, options.time)
    times = moments(table[name], name)
    unknown = np.isnan(as_numbers(times))
    if unknown.any():
        row = int(unknown.argmax()) + 1
        raise InputError(f"the time {name!r} must be known in every row, and row {row} has none")
    if (np.diff(as_numbers(times)) < 0).any():
        notes.append(f"The rows were put in the order of {name!r}.")
        order = np.argsort(as_numbers(times), kind="stable")
        table, times = table.iloc[order].reset_index(drop=True), times[order]
    return table, times


def _new_monitor(options: Watch, model: Any = None) -> Monitor:
    watch: Any = "objects" if options.target is None else "labels"
    alpha = 0.05 if options.alpha is None else options.alpha
    return Monitor(model, watch=watch, alpha=alpha, random_state=options.seed)


def _monitor_of_model(options: Watch) -> tuple[Monitor, dict[str, Any]]:
    """Return the monitor of a file, or a new one of its model, and what its header says."""
    path = options.model
    model = read_model(path, options.trusted or ())
    header = persistence.read_header(path)
    about: dict[str, Any] = {key: header[key] for key in HEADER_OF_MONITOR if key in header}
    if isinstance(model, Calibrator):
        raise InputError(
            f"{path} contains a {type(model).__name__}, which takes scores and no table"
        )
    if not isinstance(model, Monitor):
        return _new_monitor(options, inner_model(model)).fit(), about
    if model.model is None:
        raise InputError(f"{path} contains a monitor of scores: use vennforest.load in Python")
    if options.alpha not in (None, model.alpha):
        raise InputError(
            f"alpha must be that with which the monitor began, {model.alpha!r}, got "
            f"{options.alpha!r}: begin again from the model"
        )
    if (model.watch == "labels") != (options.target is not None):
        raise InputError(
            "the monitor watches labels: name their column with --target"
            if model.watch == "labels"
            else "the monitor watches objects alone: leave out --target"
        )
    return model, about


def _monitor_of_scores(file: CalibratorFile, options: Watch) -> Monitor:
    """Return a monitor that compares scores with those that a calibrator was fitted to."""
    examples = file.examples()
    if examples is None:
        raise InputError(
            f"{options.model} keeps no scores to compare with: calibrate again with this version, "
            "without --weight, or watch them in Python (vennforest.Monitor)"
        )
    if file.calibrator.shift_ is not None:
        raise InputError(
            f"{options.model} is for other shares of the classes than its examples have "
            "(with_prior): watch the calibrator that it was made from"
        )
    classes = file.calibrator.classes_
    scores = file.oriented(examples[0])
    scores = scores[:, 0] if len(classes) == 2 else scores
    return _new_monitor(options).fit(scores, examples[1], classes=classes)


def _watched_scores(
    file: CalibratorFile, table: pd.DataFrame, carried: Sequence[str], name: str
) -> dict[str, Any]:
    """Return the arguments of `watched` for scores of another system."""
    scores = file.scores_in(table, name)
    return {
        "X": file.oriented(scores),
        "columns": _columns(table, carried),
        "probabilities": file.calibrator.predict_proba(scores),
        "judged": (file.calibrator, scores, {"reference": file.examples()}),
    }


def _watched_rows(
    monitor: Monitor,
    about: Mapping[str, Any],
    table: pd.DataFrame,
    carried: Sequence[str],
    reference: Path | None,
) -> dict[str, Any]:
    """Return the arguments of `watched` for rows of a model."""
    model = monitor.model
    X = rows_for(model, table, carried)
    features = table[list(X.columns)] if isinstance(X, pd.DataFrame) else table
    observed = {
        "X": X,
        "columns": _columns(features, carried),
        "probabilities": model.predict_proba(X),
        "judged": (model, X, {}),
    }
    if reference is not None:
        examples, columns = _reference(monitor, about, reference)
        observed["judged"] = model, X, {"shift": "covariate", "reference": examples}
        observed["reference"] = reference.name, columns
    return observed


def _reference(
    monitor: Monitor, about: Mapping[str, Any], path: Path
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the rows a model was fitted to, with their labels if known, and their columns."""
    table, target = TableFile(path).read(), str(about.get("target", ""))
    if target not in table.columns:
        X = rows_for(monitor.model, table)
        return X, _columns(table if not isinstance(X, pd.DataFrame) else X, ())
    labels = _labels(table, target, monitor)
    is_known = np.array([label is not None for label in labels.tolist()])
    table = table[is_known].reset_index(drop=True)
    labels = labels[is_known].astype(monitor.classes_.dtype)
    X = rows_for(monitor.model, table, [target])
    codes = np.searchsorted(monitor.classes_, labels)
    is_training = training_share(monitor.model, hash_rows(X)) >= MAX_TRAINING_SHARE
    if is_training and not are_of_fit(monitor.model, codes):
        raise InputError(OTHER_ORDER)
    return (X, labels), _columns(table if not isinstance(X, pd.DataFrame) else X, [target])


def _labels(table: pd.DataFrame, target: str, monitor: Monitor) -> NDArray[Any]:
    """Return labels as the model has them, None where missing."""
    column = Column(table[target], target)
    label_of = {written_label(label): label for label in monitor.classes_.tolist()}
    labels: NDArray[Any] = np.full(len(table), None, dtype=object)
    cells = column.array.drop_null().to_pylist()
    if not cells:
        raise InputError(f"the target {target!r} is missing in every row")
    for row, cell in zip(np.flatnonzero(column.is_present), cells, strict=True):
        if written_label(cell) not in label_of:
            shown = ", ".join(map(repr, list(label_of)[:MAX_LABELS_IN_ERROR]))
            raise InputError(
                f"the target {target!r} contains {str(cell)!r}, a label that the model has never "
                f"seen (it was fitted to {shown}): that alone is a change; leave out such rows, or "
                "fit the model again"
            )
        labels[row] = label_of[written_label(cell)]
    return labels


def _columns(table: pd.DataFrame, carried: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns to compare as arrays: without labels and times, which always move."""
    columns: dict[str, NDArray[Any]] = {}
    for name in table.columns:
        if name in carried:
            continue
        cells = table[name]
        if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "fiub":
            columns[name] = cells.to_numpy()
        else:
            columns[name] = cells.astype(object).where(cells.notna(), None).to_numpy()
    return columns
