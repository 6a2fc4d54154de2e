"""The command ``watch``: a model and labelled rows in, a verdict and a page out."""

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
from vennforest.commands.model_rows import inner_model, read_model, rows_of, table_columns
from vennforest.commands.options import Watch
from vennforest.commands.terminal import busy, print_json, say_notes
from vennforest.monitoring import Monitor
from vennforest.monitoring.stream import as_numbers
from vennforest.performance.estimate import OTHER_ORDER, are_of_fit
from vennforest.persistence.model_file import write_model
from vennforest.report.splits import moments
from vennforest.report.watched import render, watched
from vennforest.tables.cells import Column
from vennforest.tables.known_rows import share_known
from vennforest.tables.read import find_column
from vennforest.tables.scores import read_scores
from vennforest.tables.stream import TableFile

ABOUT = ("target", "columns", "n_rows", "known_rows")
"""What a monitor's file says as the model's does."""

KNOWN = 0.5
"""Share of rows of training from which on a table is refused."""

WORTH_SAYING = 0.1


def run(options: Watch) -> None:
    """Watch, print the verdict, and write the page and the monitor."""
    model, data, output, target = options.model, options.data, options.output, options.target
    keep, reference = options.keep, options.reference
    if reference is not None and target is not None:
        raise InputError(
            "--reference is for rows without labels, whose performance it helps to estimate: leave "
            "it or --target out"
        )
    notes: list[str] = []
    about: dict[str, Any] = {}
    with busy("Watching"):
        file = TableFile(data, options.decimal)
        read = None
        if is_calibrator_file(model):
            if keep is not None:
                raise InputError(
                    "--keep is for models: a calibrator is watched over a whole table of scores"
                )
            if reference is not None:
                raise InputError(
                    "--reference is for models: a calibrator sees scores, and how frequent each "
                    "score is counts already"
                )
            read = read_calibrator(model, options.scores or ())
            monitor = _monitor_of_scores(read, options)
        else:
            if options.scores:
                raise InputError("--score is for a calibrator: a model reads its own columns")
            monitor, about = _monitor(options)
        table = file.read()
        if table.empty:
            raise InputError(f"{data} has no rows, only the names of {len(table.columns)} columns")
        times: NDArray[Any] | None = None
        if options.time is not None:
            table, times = _in_order(table, find_column(table, options.time), notes)
        y = None if target is None else _labels(table, find_column(table, target), monitor)
        carried = (options.time, target)
        # what its own checks say of the rows
        with refused_as(f"the {'calibrator' if read else 'model'} refuses the table"):
            if read is not None:
                given = _of_scores(read, file, table, carried)
            else:
                given = _of_rows(monitor, about, file, table, carried, reference, notes)
            found = watched(
                monitor, **given, y=y, times=times, name=data.name, target=target or "", notes=notes
            )
        with sent_whole(output) as page:
            write_text(page, render(found, shlex.join(["vennforest", *sys.argv[1:]])))
    if keep is not None:
        with sent_whole(keep) as monitor_file:
            write_model(monitor, monitor_file, about)
    say_notes(found.notes)
    if options.as_json:
        print_json({**found.summary(), "verdict": found.verdict(), "report": shown_path(output)})
        return
    for sentence in found.verdict():
        print(sentence)  # noqa: T201


def _new_monitor(options: Watch, model: Any = None) -> Monitor:
    watch: Any = "objects" if options.target is None else "labels"
    alpha = 0.05 if options.alpha is None else options.alpha
    return Monitor(model, watch=watch, alpha=alpha, random_state=options.seed)


def _monitor(options: Watch) -> tuple[Monitor, dict[str, Any]]:
    """Return the monitor of a file, or a new one of its model, and what the file says of itself."""
    path = options.model
    model = read_model(path, options.trusted or ())
    header = persistence.read_header(path)
    about: dict[str, Any] = {key: header[key] for key in ABOUT if key in header}
    if isinstance(model, Calibrator):
        raise InputError(
            f"{path} contains a {type(model).__name__}, which takes scores and no table"
        )
    if isinstance(model, Monitor):
        if model.model is None:
            raise InputError(f"{path} contains a monitor of scores: use vennforest.load in Python")
        if options.alpha not in (None, model.alpha):
            raise InputError(
                f"alpha must be what the monitor began with, {model.alpha!r}, got "
                f"{options.alpha!r}: begin again from the model"
            )
        if (model.watch == "labels") != (options.target is not None):
            raise InputError(
                "the monitor watches labels: name their column with --target"
                if model.watch == "labels"
                else "the monitor watches objects alone: leave out --target"
            )
        return model, about
    return _new_monitor(options, inner_model(model)).fit(), about


def _monitor_of_scores(read: CalibratorFile, options: Watch) -> Monitor:
    """Return a monitor that compares scores with those that a calibrator was fitted to."""
    examples = read.examples()
    if examples is None:
        raise InputError(
            f"{options.model} keeps no scores to compare with: calibrate again with this version, "
            "without --weight, or watch them in Python (vennforest.Monitor.fit_scores)"
        )
    if read.calibrator.shift_ is not None:
        raise InputError(
            f"{options.model} is for other shares of the classes than its examples have "
            "(with_prior): watch the calibrator that it was made from"
        )
    classes = read.calibrator.classes_
    scores = read.oriented(examples[0])
    scores = scores[:, 0] if len(classes) == 2 else scores
    return _new_monitor(options).fit_scores(scores, examples[1], classes=classes)


def _of_scores(
    read: CalibratorFile, file: TableFile, table: pd.DataFrame, carried: Sequence[str | None]
) -> dict[str, Any]:
    """Return what there is to watch in scores of another system, as `watched` takes it."""
    names = [find_column(table, name) for name in read.scores]
    columns = [read_scores(table[name], name, file.place) for name in names]
    scores = columns[0] if len(columns) == 1 else np.column_stack(columns)
    return {
        "X": read.oriented(scores),
        "columns": {name: _plain(table[name]) for name in table.columns if name not in carried},
        "probabilities": read.calibrator.predict_proba(scores),
        "judged": (read.calibrator, scores, {"reference": read.examples()}),
    }


def _of_rows(
    monitor: Monitor,
    about: Mapping[str, Any],
    file: TableFile,
    table: pd.DataFrame,
    carried: Sequence[str | None],
    reference: Path | None,
    notes: list[str],
) -> dict[str, Any]:
    """Return what there is to watch in rows of a table, as `watched` takes it."""
    model = monitor.model
    rows = rows_of(model, file, [name for name in carried if name])
    X = rows.read(table[rows.columns])
    _refuse_known(_share_of_training(model, X, about), notes)
    found = {
        "X": X,
        "columns": {name: _plain(table[name]) for name in rows.columns},
        "probabilities": model.predict_proba(X),
        "judged": (model, X, {}),
    }
    if reference is not None:
        examples, earlier = _reference(monitor, about, reference)
        found["judged"] = model, X, {"shift": "covariate", "reference": examples}
        found["reference"] = reference.name, earlier
    return found


def _reference(
    monitor: Monitor, about: Mapping[str, Any], path: Path
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the rows that a model was fitted to, with their labels if there, and their columns."""
    model, file = monitor.model, TableFile(path)
    table, target = file.read(), str(about.get("target", ""))
    labels = None
    if target in table.columns:
        labels = _labels(table, target, monitor)
        known = np.array([label is not None for label in labels.tolist()])
        table, labels = (
            table[known].reset_index(drop=True),
            labels[known].astype(monitor.classes_.dtype),
        )
    rows = rows_of(model, file, [target] if target else [])
    X = rows.read(table[rows.columns])
    columns = {name: _plain(table[name]) for name in rows.columns}
    if labels is None:
        return X, columns
    codes = np.searchsorted(monitor.classes_, labels)
    if not are_of_fit(model, codes) and _share_of_training(model, X, about) >= KNOWN:
        raise InputError(OTHER_ORDER)
    return (X, labels), columns


def _in_order(
    table: pd.DataFrame, name: str, notes: list[str]
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return the rows in the order of a column of times, and these."""
    values = moments(table[name], name)
    unknown = np.isnan(as_numbers(values))
    if unknown.any():
        row = int(unknown.argmax()) + 1
        raise InputError(f"the time {name!r} must be known in every row, and row {row} has none")
    if (np.diff(as_numbers(values)) < 0).any():
        notes.append(f"The rows were put in the order of {name!r}.")
        order = np.argsort(as_numbers(values), kind="stable")
        table, values = table.iloc[order].reset_index(drop=True), values[order]
    return table, values


def _labels(table: pd.DataFrame, target: str, monitor: Monitor) -> NDArray[Any]:
    """Return labels as the model knows them, None where there is none."""
    column = Column(table[target], target)
    classes = monitor.classes_
    known = {written_label(label): label for label in classes.tolist()}
    labels: NDArray[Any] = np.full(len(table), None, dtype=object)
    found = []
    for cell in column.present.tolist():
        if written_label(cell) not in known:
            shown = ", ".join(repr(str(label)) for label in classes.tolist()[:8])
            raise InputError(
                f"the target {target!r} contains {str(cell)!r}, a label that the model has never "
                f"seen (it knows {shown}): that alone is a change; leave out such rows, or fit the "
                "model again"
            )
        found.append(known[written_label(cell)])
    labels[np.asarray(column.there)] = found
    if not len(found):
        raise InputError(f"the target {target!r} is missing in every row")
    return labels


def _plain(column: pd.Series[Any]) -> NDArray[Any]:
    kind = getattr(column.dtype, "kind", "O")
    if kind in "fiub" and isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    values: NDArray[Any] = column.astype(object).to_numpy(copy=True)
    values[column.isna().to_numpy()] = None
    return values


def _share_of_training(model: Any, X: Any, about: Mapping[str, Any]) -> float:
    """Return which share of rows the model was fitted to, about; 0 where that is not known."""
    columns, sketch = table_columns(model), about.get("known_rows")
    if columns is None or not isinstance(sketch, list) or not sketch:
        return 0.0
    return share_known(columns.transform(X), sketch)


def _refuse_known(share: float, notes: list[str]) -> None:
    """Refuse rows that the model was fitted to."""
    if share >= KNOWN:
        raise InputError(
            f"the table must be of new rows, got about {share:.0%} used for training, on which "
            "drift cannot be assessed: leave them out"
        )
    if share >= WORTH_SAYING:
        notes.append(f"About {share:.0%} of the rows are rows that the model was fitted to.")
