"""Report on what is there already: columns of probabilities or scores, a model, a calibrator."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest import persistence
from vennforest._files import refused_as
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.interface import has_bounds
from vennforest.calibrators.core.scores import ranking
from vennforest.commands.calibrator_file import (
    CalibratorFile,
    is_calibrator_file,
    read_calibrator,
    score_options,
    written_label,
)
from vennforest.commands.model_rows import read_model, rows_of
from vennforest.commands.report_table import ReportTable, changed, common_options
from vennforest.commands.signatures import Report
from vennforest.commands.terminal import names_in
from vennforest.counts import ScoreCounts
from vennforest.multiprobability import Multiprobability
from vennforest.report import CostMatrix, Evaluation, report, report_model, report_scores
from vennforest.report.evaluate import UNNAMED, calibration_gain, class_of_name
from vennforest.tables.cells import Column
from vennforest.tables.read import find_column
from vennforest.tables.scores import score_numbers
from vennforest.tables.stream import TableFile

if TYPE_CHECKING:
    import pandas as pd


def report_on_columns(table: ReportTable, costs: CostMatrix | None, options: Report) -> Evaluation:
    """Evaluate columns of probabilities, or of scores."""
    X, y = table.labelled.X, table.labelled.y
    names = [find_column(X, name) for name in options.probability or ()]
    read = {name: _numbers(X[name], name) for name in names}
    there = np.all([np.isfinite(values) for values in read.values()], axis=0)
    common = common_options(table, costs, options)
    notes = list(common.pop("notes"))
    if not there.all():
        notes.append(f"{int((~there).sum()):,} rows without a probability are left out.")
        common["by"] = {name: values[there] for name, values in common["by"].items()}
        if common["groups"] is not None:
            common["groups"] = common["groups"][there]
    if not there.any():
        raise InputError(f"the column {names[0]!r} contains no number in any row with a label")
    X, y = X[there], y[there]
    read = {name: values[there] for name, values in read.items()}
    labels = np.unique(y)
    common["X"] = table.named(X)
    outside = [name for name, v in read.items() if v.min() < -1e-9 or v.max() > 1 + 1e-9]
    of_classes = _by_class(names, labels)
    falling = set() if of_classes else _falling(read, y, labels, options, notes, bool(outside))
    typed = _score_options(names, of_classes, labels, options, falling if outside else set())
    if outside:
        if len(names) > 1 and of_classes is None:
            raise InputError(
                f"the column {outside[0]!r} contains numbers outside [0, 1]: give one column of "
                "scores at a time, or a column per class"
            )
        scores = _matrix(read, of_classes) if of_classes else _of_second(read, labels, options)
        scores = -scores if falling else scores
        notes.append(_no_probabilities(outside[0], read[outside[0]]))
        found = report_scores(
            y,
            scores,
            methods=None if options.methods is None else names_in(options.methods),
            n_folds=options.folds,
            notes=notes,
            **common,
        )
        found.settings["score_options"] = typed
        return found
    for name in ("--methods", "--folds"):
        if changed(name, options):
            raise InputError(
                f"{name} has no meaning for probabilities, which are judged as they are: it is "
                "for columns of scores"
            )
    if of_classes:
        predictions: dict[str, Any] = {UNNAMED: _matrix(read, of_classes)}
        bounds = _bounds(X, of_classes, labels)
        if bounds is not None:
            predictions = {UNNAMED: (predictions[UNNAMED], bounds)}
    else:
        if len(labels) != 2:
            raise InputError(
                f"--probability must name a column for each of {len(labels)} classes, by names "
                f"such as 'p({labels[0]})', got {', '.join(names)}"
            )
        predictions = {}
        for name, values in read.items():
            at = _column_of(name, labels, options)
            p = np.column_stack([1 - values, values] if at == 1 else [values, 1 - values])
            predictions[name] = p
            bounds = _bounds(X, {at: name}, labels)
            if bounds is not None:
                predictions[name] = (p, bounds)
            notes.append(
                f"{name!r} is taken for the probability of {str(labels[at])!r}"
                + ("." if options.positive is not None else "; --positive names another.")
            )
            gain = calibration_gain(y, p, common["groups"], options.seed)
            if gain is not None:
                command = [
                    "vennforest",
                    "calibrate",
                    str(options.data),
                    "-t",
                    table.labelled.target,
                ]
                command += typed[name]
                written = "" if gain.startswith("Calibrating") else f" {shlex.join(command)}"
                notes.append(gain + written)
    found = report(y, predictions, notes=notes, **common)
    found.settings["score_options"] = typed
    return found


def _falling(
    read: dict[str, FloatArray],
    y: Any,
    labels: Any,
    options: Report,
    notes: list[str],
    scores: bool,
) -> set[str]:
    """Return the columns that surely fall where the class they are taken for is frequent."""
    found = set()
    for name, values in read.items():
        if len(labels) != 2:
            continue
        at = _column_of(name, labels, options)
        area, sure = ranking(ScoreCounts.from_scores(values, y == labels[at]))
        if not sure or area > 0.5:
            continue
        found.add(name)
        own, other = str(labels[at]), str(labels[1 - at])
        start = f"{name!r} is lower where {own!r} was observed (AUC {area:.3f})"
        if scores:
            notes.append(f"{start}: high scores are taken to mean that it is less likely.")
        else:
            notes.append(f"{start}: if it is of {other!r}, give --positive {shlex.quote(other)}.")
    return found


def _score_options(
    names: Sequence[str],
    of_classes: dict[int, str] | None,
    labels: Any,
    options: Report,
    falling: set[str],
) -> dict[str, list[str]]:
    """Return how ``calibrate`` is given each lone column, or under "" of all columns."""
    if of_classes:
        ordered = [of_classes[j] for j in range(len(labels))]
        return {"": score_options(ordered if len(labels) > 2 else ordered[1:])}
    typed = {
        name: score_options(
            [name],
            higher_is_safer=(_column_of(name, labels, options) == 0) != (name in falling),
        )
        for name in names
    }
    return {"": typed[names[0]], **typed}


def _numbers(cells: pd.Series[Any], name: str) -> FloatArray:
    """Return a column as numbers, NaN where a cell is empty."""
    values, given = score_numbers(cells, name)
    wrong = np.flatnonzero(np.isnan(values) & Column(cells, name).there)
    if len(wrong):
        raise InputError(
            f"the column {name!r} must contain numbers, got {str(given(int(wrong[0])))!r}: leave "
            "cells without one empty"
        )
    return values


def _by_class(names: Sequence[str], labels: Any) -> dict[int, str] | None:
    """Return the column of each class by its number, None unless each class has one."""
    if len(names) < 2 or len(names) != len(labels):
        return None
    found = {class_of_name(name, labels): name for name in names}
    return found if None not in found and len(found) == len(labels) else None  # type: ignore[return-value]


def _matrix(read: dict[str, FloatArray], of_classes: dict[int, str]) -> FloatArray:
    return np.column_stack([read[of_classes[j]] for j in range(len(of_classes))])


def _column_of(name: str, labels: Any, options: Report) -> int:
    """Return which class a lone column is of: as named, by its name, else the second."""
    positive = options.positive
    if positive is not None and str(positive) in labels.astype(str):
        return int(np.flatnonzero(labels.astype(str) == str(positive))[0])
    found = class_of_name(name, labels)
    return 1 if found is None else found


def _of_second(read: dict[str, FloatArray], labels: Any, options: Report) -> FloatArray:
    """Return one column of scores as those of the class that the report takes it for."""
    (name, values), *_ = read.items()
    if options.positive is not None:
        return values
    return values if _column_of(name, labels, options) == 1 else -values


def _no_probabilities(name: str, values: FloatArray) -> str:
    cent = ""
    if values.min() >= 0 and 1.5 < values.max() <= 100:
        cent = " If they are percentages, divide them by 100."
    return (
        f"{name!r} contains numbers from {values.min():.4g} to {values.max():.4g}, no "
        f"probabilities: they are calibrated here, in cross-validation.{cent}"
    )


def _bounds(X: pd.DataFrame, of_classes: dict[int, str], labels: Any) -> Multiprobability | None:
    """Return bounds where columns lower(c) and upper(c) stand beside those of probabilities."""
    low, high = np.zeros((len(X), len(labels))), np.ones((len(X), len(labels)))
    for j in of_classes:
        names = [f"lower({labels[j]})", f"upper({labels[j]})"]
        if any(name not in X.columns for name in names):
            return None
        low[:, j], high[:, j] = (_numbers(X[name], name) for name in names)
        if len(of_classes) == 1:
            low[:, 1 - j], high[:, 1 - j] = 1 - high[:, j], 1 - low[:, j]
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
        return None
    return Multiprobability(low.clip(0, 1), high.clip(0, 1), labels)


def report_on_model(table: ReportTable, costs: CostMatrix | None, options: Report) -> Evaluation:
    """Evaluate a model in a file."""
    path, data = options.model, options.data
    assert path is not None and data is not None
    common = common_options(table, costs, options)
    if is_calibrator_file(path):
        read = read_calibrator(path, options.scores or ())
        return _report_on_calibrator(read, table, common)
    if options.scores:
        raise InputError("--score is for a calibrator: a model reads its own columns")
    model = read_model(path, options.trusted or ())
    if isinstance(model, Calibrator):
        raise InputError(
            f"{path} contains a {type(model).__name__}, which takes scores and no table: "
            "give the probabilities it makes with --probability"
        )
    header = persistence.read_header(path)
    X = _as_trained(model, table, data, options.sheet)
    with refused_as("the model refuses the table"):
        return report_model(
            model,
            table.named(X),
            table.labelled.y,
            n_trained=header.get("n_rows"),
            **common,
        )


def _report_on_calibrator(
    read: CalibratorFile, table: ReportTable, common: dict[str, Any]
) -> Evaluation:
    """Evaluate what a calibrator makes of columns of scores."""
    calibrator, X = read.calibrator, table.labelled.X
    names = [find_column(X, name) for name in read.scores]
    scores = np.column_stack([_numbers(X[name], name) for name in names])
    if not np.isfinite(scores).all():
        row = int((~np.isfinite(scores).all(axis=1)).argmax())
        raise InputError(
            f"every row with a label must have a score, and row {X.index[row] + 1} has none: "
            "leave such rows out"
        )
    classes = calibrator.classes_
    known = {written_label(label): label for label in classes.tolist()}
    given = [written_label(label) for label in table.labelled.y.tolist()]
    strange = sorted(set(given) - set(known))
    if strange:
        raise InputError(
            f"the table must contain labels of the calibrator ({', '.join(list(known)[:8])}), got "
            f"{strange[0]!r}: leave these rows out"
        )
    with refused_as("the calibrator refuses the table"):
        p = calibrator.predict_proba(scores)
        bounds = calibrator.predict_multiprobability(scores) if has_bounds(calibrator) else None
    found = report(
        np.array([known[label] for label in given], dtype=classes.dtype),
        {"Calibrated": p if bounds is None else (p, bounds.widen(p))},
        classes=classes,
        X=table.named(X),
        **common,
    )
    found.settings["score_options"] = {"": score_options(names, higher_is_safer=read.reversed)}
    return found


def _as_trained(model: Any, table: ReportTable, data: Path, sheet: str | None) -> Any:
    """Return the rows with a label as the model takes them."""
    import pandas as pd

    file, whole = TableFile(data, sheet), table.labelled.X
    rows = rows_of(model, file, [name for name in file.names if name not in whole.columns])
    parts = [batch.rows for batch in file.batches(rows.columns, [], 1_000_000, rows.numbers)]
    return rows.read(pd.concat(parts, ignore_index=True).iloc[whole.index.to_numpy()])
