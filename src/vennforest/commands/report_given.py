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
from vennforest.commands.report_options import Report
from vennforest.commands.report_table import ReportTable, changed, common_options
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
    notes = common["notes"] = list(common["notes"])
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
    if of_classes is None and outside and len(names) > 1:
        raise InputError(
            f"the column {outside[0]!r} contains numbers outside [0, 1]: give one column of "
            "scores at a time, or a column per class"
        )
    class_of = {} if of_classes else {name: _class_of(name, labels, options) for name in names}
    falling = set()
    for name, at in class_of.items() if len(labels) == 2 else ():
        area, sure = ranking(ScoreCounts.from_scores(read[name], y == labels[at]))
        if sure and area <= 0.5:
            falling.add(name)
            own, other = str(labels[at]), str(labels[1 - at])
            start = f"{name!r} is lower where {own!r} was observed (AUC {area:.3f})"
            notes.append(
                f"{start}: high scores are taken to mean that it is less likely."
                if outside
                else f"{start}: if it is of {other!r}, give --positive {shlex.quote(other)}."
            )
    if of_classes:
        ordered = [of_classes[j] for j in range(len(labels))]
        typed = {"": score_options(ordered if len(labels) > 2 else ordered[1:])}
    else:
        reverse = falling if outside else set()
        typed = {
            name: score_options([name], increasing=(at == 0) == (name in reverse))
            for name, at in class_of.items()
        }
        typed[""] = typed[names[0]]
    if outside:
        notes.append(_no_probabilities(outside[0], read[outside[0]]))
        if of_classes:
            scores = np.column_stack([read[name] for name in ordered])
        else:  # `report_scores` takes them for those of the class that is named, or the second
            up = options.positive is not None or class_of[names[0]] == 1
            scores = read[names[0]] if up != bool(falling) else -read[names[0]]
        methods = None if options.methods is None else names_in(options.methods)
        found = report_scores(y, scores, methods=methods, n_folds=options.folds, **common)
        found.settings["score_options"] = typed
        return found
    for name in ("--methods", "--folds"):
        if changed(name, options):
            raise InputError(
                f"{name} has no meaning for probabilities, which are judged as they are: it is "
                "for columns of scores"
            )
    if of_classes is None and len(labels) != 2:
        raise InputError(
            f"--probability must name a column for each of {len(labels)} classes, by names "
            f"such as 'p({labels[0]})', got {', '.join(names)}"
        )
    predictions: dict[str, Any] = {}
    if of_classes:
        bounds = _bounds(X, of_classes, labels)
        p = np.column_stack([read[name] for name in ordered])
        predictions[UNNAMED] = p if bounds is None else (p, bounds)
    for name, at in class_of.items():
        values, bounds = read[name], _bounds(X, {at: name}, labels)
        p = np.column_stack([1 - values, values] if at == 1 else [values, 1 - values])
        predictions[name] = p if bounds is None else (p, bounds)
        notes.append(
            f"{name!r} is taken for the probability of {str(labels[at])!r}"
            + ("." if options.positive is not None else "; --positive names another.")
        )
        gain = calibration_gain(y, p, common["groups"], options.seed)
        if gain is not None:
            named = [str(options.data), "-t", table.labelled.target, *typed[name]]
            command = shlex.join(["vennforest", "calibrate", *named])
            notes.append(gain if gain.startswith("Calibrating") else f"{gain} {command}")
    found = report(y, predictions, **common)
    found.settings["score_options"] = typed
    return found


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


def _class_of(name: str, labels: Any, options: Report) -> int:
    """Return which class a lone column is of: as named, by its name, else the second."""
    positive = options.positive
    if positive is not None and positive in labels.astype(str):
        return int(np.flatnonzero(labels.astype(str) == positive)[0])
    found = class_of_name(name, labels)
    return 1 if found is None else found


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
    X = _as_trained(model, table, data, options.decimal)
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
    found.settings["score_options"] = {"": score_options(names, increasing=not read.reversed)}
    return found


def _as_trained(model: Any, table: ReportTable, data: Path, decimal: str | None) -> Any:
    """Return the rows with a label as the model takes them."""
    import pandas as pd

    file, whole = TableFile(data, decimal), table.labelled.X
    rows = rows_of(model, file, [name for name in file.names if name not in whole.columns])
    parts = [batch.rows for batch in file.batches(rows.columns, [], 1_000_000, rows.numbers)]
    return rows.read(pd.concat(parts, ignore_index=True).iloc[whole.index.to_numpy()])
