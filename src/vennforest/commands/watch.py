"""The command ``watch``: a model and new rows in, a verdict and a page out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from vennforest import persistence
from vennforest._files import refused_as, shown_path, write_text
from vennforest._program import __version__
from vennforest._validation import InputError, check_option, group_names, is_missing
from vennforest.classifier import CalibratedClassifier
from vennforest.commands.models import (
    column_differences,
    is_calibrator_file,
    labels_of_model,
    noted,
    read_calibrator,
    read_model,
    read_rows,
    refuse_scores,
    rows_for,
)
from vennforest.commands.options import Watch
from vennforest.commands.pages import dividing_columns, inputs_of, typed_command
from vennforest.commands.terminal import print_json, progress_bar, say_notes, show
from vennforest.monitoring import Monitor
from vennforest.monitoring.stream import (
    MAX_TRAINING_SHARE,
    hash_for_model,
    times_as_numbers,
    training_share,
)
from vennforest.performance.estimate import OTHER_ORDER, are_of_fit
from vennforest.persistence.model_file import write_model
from vennforest.report.findings import for_json
from vennforest.report.splits import read_times
from vennforest.report.watched import NewRows, render_findings, watch_rows
from vennforest.report.words import sentences_on
from vennforest.tables.schema import find_name


def run_watch(options: Watch) -> None:
    """Monitor new rows, print the verdict, and write the page and the monitor."""
    failures = options.fail_on or []
    for failure in failures:
        check_option(failure, ("alarm", "columns"), "--fail-on")
    model, header = _read_model(options)
    is_calibrator = model is None or (isinstance(model, Monitor) and model.model is None)
    _check_options_of_model(options, model, is_calibrator)
    notes: list[str] = []
    with progress_bar("Watching"):
        table, times = _ordered_rows(options, getattr(model, "model", model), notes)
        with refused_as("the table cannot be watched"):
            watch = _watch_scores if is_calibrator else _watch_rows
            monitor, new = watch(options, table, model, header, notes)
            if options.target is not None:
                new = replace(new, y=labels_of_model(table, options.target, monitor.classes_))
            ids = None if options.ids is None else _keys_in(table, options.ids)
            new = replace(new, times=times, ids=ids)
            findings = watch_rows(monitor, new, notes, header.get("series", ()))
        sentences = sentences_on("watch", findings, template="watch.txt.j2")
        command = typed_command()
        inputs, names = inputs_of(options), (options.data.name, options.target or "")
        page = render_findings(findings, sentences, command, *names, inputs)
        write_text(options.output, page)
        if options.keep is not None:
            write_model(monitor, options.keep, {**header, "series": for_json(findings.series)})
    say_notes(notes)
    if options.as_json:
        origin = {"version": __version__, "command": command, "inputs": inputs}
        print_json({**origin, **findings.summary(sentences), "report": shown_path(options.output)})
    else:
        for sentence in sentences:
            show(sentence)
    if ("alarm" in failures and findings.alarm) or ("columns" in failures and new.differences):
        raise typer.Exit(1)


def _read_model(options: Watch) -> tuple[Any, dict[str, Any]]:
    """Return the model or monitor in the file, None for a calibrator, and what a monitor keeps."""
    path = options.model
    if not is_calibrator_file(path):
        model = read_model(path, options.trusted, (CalibratedClassifier, Monitor))
        saved = persistence.read_header(path)
        entries = ("target", "calibrator_json", "series")
        return model, {name: saved[name] for name in entries if name in saved}
    if options.keep is None:
        return None, {}
    # The monitor's file contains the calibrator.
    return None, {"calibrator_json": path.read_text(encoding="utf-8", errors="replace")}


def _check_options_of_model(options: Watch, model: Any, is_calibrator: bool) -> None:
    """Raise an error for options that a calibrator, a model or a monitor that began cannot have."""
    if options.reference is not None and (is_calibrator or options.target is not None):
        raise InputError("--reference is for a model without --target: leave one of them out")
    if not is_calibrator:
        refuse_scores(options)
    if isinstance(model, Monitor) and options.alpha != model.alpha:
        raise InputError(
            f"--alpha must be that with which the monitor began, {model.alpha}, got {options.alpha}"
        )
    if isinstance(model, Monitor) and (model.watch == "labels") != (options.target is not None):
        verb = "named" if model.watch == "labels" else "left out"
        raise InputError(f"--target must be {verb}, since the monitor watches {model.watch}")


def _ordered_rows(
    options: Watch, model: Any, notes: list[str]
) -> tuple[pd.DataFrame, NDArray[Any] | None]:
    """Return the rows sorted by time, and their times; None without ``--time``."""
    file, table, types = read_rows(options.data, model, options, [options.target, options.ids])
    if options.time is None:
        return table, None
    name = options.time
    times = read_times(dividing_columns(file, table, [], [name], types, notes)[name], name)
    numbers = times_as_numbers(times)
    _refuse_missing(np.isnan(numbers), f"the time {name!r}")
    if (np.diff(numbers) < 0).any():
        notes.append(f"The rows were put in the order of {name!r}.")
        order = np.argsort(numbers, kind="stable")
        table, times = table.iloc[order].reset_index(drop=True), times[order]
    return table, times


def _keys_in(table: pd.DataFrame, name: str) -> NDArray[Any]:
    """Return the keys (n,) of rows as text; raise an error for rows without one."""
    keys = group_names(table[find_name(table.columns, name)], f"the key {name!r}")
    _refuse_missing(is_missing(keys), f"the key {name!r}")
    return keys


def _refuse_missing(is_missing: NDArray[np.bool_], name: str) -> None:
    """Raise an error for the first row that is missing."""
    if is_missing.any():
        row = int(is_missing.argmax()) + 1
        raise InputError(f"{name} must be known in every row, and row {row} has none")


def _watched_columns(options: Watch, table: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """Return the columns to compare with the reference: all but labels, times and keys."""
    columns: dict[str, NDArray[Any]] = {}
    for name, cells in table.items():
        if name not in (options.time, options.target, options.ids):
            is_number = isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "fiub"
            objects = cells.astype(object).where(cells.notna(), None)
            columns[str(name)] = (cells if is_number else objects).to_numpy()
    return columns


def _new_monitor(options: Watch, model: Any = None) -> Monitor:
    watch: Any = "objects" if options.target is None else "labels"
    return Monitor(model, watch=watch, alpha=options.alpha, random_state=0)


def _watch_scores(
    options: Watch,
    table: pd.DataFrame,
    monitor: Monitor | None,
    header: dict[str, Any],
    notes: list[str],
) -> tuple[Monitor, NewRows]:
    """Return a monitor of another system's scores, and the new scores."""
    if monitor is not None and "calibrator_json" not in header:
        raise InputError(f"{options.model} contains a monitor of scores: use it in Python")
    file = read_calibrator(
        options.model, options.scores, header.get("calibrator_json"), [*map(str, table.columns)]
    )
    calibrator, examples = file.calibrator, file.examples()
    if examples is None:
        raise InputError(
            f"{options.model} keeps no scores to compare with: calibrate again with this version, "
            "or watch them in Python (vennforest.Monitor)"
        )
    if calibrator.shift_ is not None:
        raise InputError(
            f"{options.model} is for other shares of the classes than its examples have "
            "(--mean, with_prior): calibrate without them, and watch that calibrator"
        )
    if monitor is None:
        monitor = _new_monitor(options)
        monitor.fit(calibrator._check_new(examples[0]), examples[1], classes=calibrator.classes_)
    scores = file.scores_in(table)
    differences = file.differences(scores)
    with noted(differences, notes):
        p = calibrator.predict_proba(scores)
    return monitor, NewRows(
        calibrator._check_new(scores),
        _watched_columns(options, table),
        p,
        judged=(calibrator, scores, {"reference": examples}),
        calibration=calibrator.predict_proba(examples[0]),
        differences=differences,
    )


def _watch_rows(
    options: Watch, table: pd.DataFrame, model: Any, header: dict[str, Any], notes: list[str]
) -> tuple[Monitor, NewRows]:
    """Return the monitor, a new one if ``model`` is a classifier, and the new rows."""
    monitor = model if isinstance(model, Monitor) else _new_monitor(options, model).fit()
    model = monitor.model
    X = rows_for(
        model, table, [name for name in (options.time, options.target, options.ids) if name]
    )
    columns = _watched_columns(options, X if isinstance(X, pd.DataFrame) else table)
    differences = column_differences(model, X)
    with noted(differences, notes):
        p = model.predict_proba(X)
    training_p = getattr(model, "oob_probability_", None)
    calibration = None if training_p is None else training_p[np.isfinite(training_p).all(axis=1)]
    new = NewRows(
        X, columns, p, judged=(model, X, {}), calibration=calibration, differences=differences
    )
    if options.reference is not None:
        examples, earlier = _reference(options, options.reference, monitor, header)
        judged = model, X, {"shift": "covariate", "reference": examples}
        new = replace(new, judged=judged, reference=(options.reference.name, earlier))
    return monitor, new


def _reference(
    options: Watch, path: Path, monitor: Monitor, header: dict[str, Any]
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return reference rows with their labels, and the columns to compare."""
    model, target = monitor.model, header.get("target", "")
    _, table, _ = read_rows(path, model, options, [target])
    find_name(table.columns, target, "target")
    labels = labels_of_model(table, target, monitor.classes_)
    has_label = np.array([label is not None for label in labels.tolist()])
    table, labels = table[has_label], labels[has_label].astype(monitor.classes_.dtype)
    X = rows_for(model, table, [target])
    codes = np.searchsorted(monitor.classes_, labels)
    is_training = training_share(model, hash_for_model(model, X)) >= MAX_TRAINING_SHARE
    if is_training and not are_of_fit(model, codes):
        raise InputError(OTHER_ORDER)
    return (X, labels), _watched_columns(options, X if isinstance(X, pd.DataFrame) else table)
