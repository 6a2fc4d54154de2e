"""The command ``fit``: a table in, a model file out."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from vennforest._files import one_line, refused_as, shown_path
from vennforest._messages import CalibrationWarning
from vennforest._remote import sent_whole
from vennforest._validation import InputError, check_option
from vennforest.calibrators import check_method
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.fitting import check_source
from vennforest.classifier.prediction import seed_sentence
from vennforest.commands.files import check_suffix
from vennforest.commands.options import Fit
from vennforest.commands.terminal import (
    busy,
    measures_sentence,
    names_in,
    print_json,
    say,
    say_notes,
    shares_of,
)
from vennforest.persistence.model_file import write_model
from vennforest.report.estimators import DEFAULT_ESTIMATOR, make_estimator, named_estimator
from vennforest.report.splits import group_codes
from vennforest.report.training import audit_notes
from vennforest.sources import Subforest
from vennforest.tables import TableColumns, table_pipeline
from vennforest.tables.cells import PLURAL
from vennforest.tables.read import find_column, read_table
from vennforest.tables.target import split_target
from vennforest.tables.types import read_types


def run(options: Fit) -> None:
    """Train and calibrate a classifier on a table, write it to a file, and print a summary."""
    start, notes = time.perf_counter(), list[str]()
    _check(options)
    with busy("Training"):
        X, y, target, types, groups = _read(options, notes)
        model = _fit(options, X, y, types, groups, notes)
        columns: TableColumns = model.estimators_[0][0]
        labels, counts = np.unique(y, return_counts=True)
        classes = dict(zip(map(str, labels.tolist()), counts.tolist(), strict=True))
        measures = _measures(model, y)
        about = {
            "target": target,
            "columns": dict(zip(columns.feature_names_in_.tolist(), columns.kinds_, strict=True)),
            "types": columns.as_types(),
            "n_rows": len(y),
            "class_counts": classes,
            "data": options.data.name,
            "options": _reported(options),
            "measures": measures,
            "seconds": round(time.perf_counter() - start, 1),
        }
        with sent_whole(options.output) as file:
            write_model(model, file, about)
        with _noted("audit", notes):
            notes += audit_notes(model, X, y, groups=groups)
        other_forests = ""
        with _noted("comparison with another forest", notes):
            other_forests = seed_sentence(model._state)
    say_notes(notes)
    output, seconds = shown_path(options.output), time.perf_counter() - start
    kinds = Counter(PLURAL[kind] for kind in columns.kinds_)
    if options.as_json:
        summary = {"n_rows": len(y), "classes": classes, "kinds": dict(kinds), "notes": notes}
        summary |= {"measures": measures, "other_forests": other_forests}
        print_json({**summary, "seconds": seconds, "model": output})
        return
    of_kinds = ", ".join(f"{count} of {kind}" for kind, count in kinds.items())
    say(f"Trained on {len(y):,} rows; columns: {of_kinds}.")
    say(f"Classes of {options.target!r}: {shares_of(classes, 1)}.")
    for sentence in (measures_sentence(measures), other_forests):
        if sentence:
            say(sentence)
    say(f"Wrote {output} ({seconds:.0f} s)")


def _check(options: Fit) -> None:
    check_method(options.method, "--method")
    check_source(options.calibrate_on, "--calibrate-on")
    check_option(options.subforest, Subforest, "--subforest")
    if options.jobs == 0:
        raise InputError("--jobs must be a number of processors, or -1 for all, got 0")
    check_suffix(options.output, ".skops", "model file")
    named_estimator(options.estimator)


def _read(options: Fit, notes: list[str]) -> tuple[Any, NDArray[Any], str, dict[str, str], Any]:
    """Return the features, labels, target, declared types and groups of a table."""
    types = {} if options.types is None else read_types(options.types)
    frame = read_table(options.data, types, names_in(options.missing or ""), options.decimal)
    drop, keep = list(options.drop or ()), list(options.keep or ())
    if options.groups is not None:
        drop.append(find_column(frame, options.groups))
        types.pop(options.groups, None)
    if options.by is not None:
        keep.append(options.by)
    table = split_target(
        frame,
        options.target,
        list(dict.fromkeys(drop)),
        name=options.data.name,
        keep=keep,
        types=types,
    )
    notes += table.notes
    if options.by is not None:
        find_column(table.X, options.by)
    groups = None
    if options.groups is not None:
        groups = group_codes(frame.loc[table.X.index, options.groups], len(table.y), notes)
    return table.X, table.y, table.target, table.types, groups


def _fit(
    options: Fit, X: Any, y: NDArray[Any], types: dict[str, str], groups: Any, notes: list[str]
) -> CalibratedClassifier:
    model = CalibratedClassifier(
        table_pipeline(
            make_estimator(options.estimator, options.trees, options.seed, options.jobs),
            random_state=options.seed,
            types=types or None,
            missing=names_in(options.missing or "") or None,
        ),
        method=options.method,
        calibrate_on=options.calibrate_on,
        subforest=cast("Subforest", options.subforest),
        by=options.by,
        n_jobs=None if options.calibrate_on == "cv" else options.jobs,
        random_state=options.seed,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # of skrub, on how columns are read
        warnings.simplefilter("always", CalibrationWarning)
        warnings.filterwarnings("always", message=".*least populated class.*")
        with refused_as():
            model.fit(X, y, **({} if groups is None else {"groups": groups}))
    messages = dict.fromkeys(str(warning.message) for warning in caught)
    notes += [f"{message[:1].upper()}{message[1:]}." for message in messages]
    return model


def _reported(options: Fit) -> dict[str, Any]:
    """Return the options that a model file names."""
    groups = {} if options.groups is None else {"groups": options.groups}
    return {
        "estimator": options.estimator or DEFAULT_ESTIMATOR,
        "trees": options.trees,
        "seed": options.seed,
        "drop": options.drop or [],
        **groups,
    }


@contextmanager
def _noted(what: str, notes: list[str]) -> Iterator[None]:
    """Note a failure of a summary: the model is written, and the command has not failed."""
    try:
        yield
    except Exception as error:
        notes.append(f"The {what} failed ({type(error).__name__}: {one_line(error)}).")


def _measures(model: CalibratedClassifier, y: NDArray[Any]) -> dict[str, float]:
    """Return measures of predictions by models that were not trained on the row, {} without."""
    if model.calibrate_on_ == "training":
        return {}
    p = model.oob_probability_
    is_predicted = ~np.isnan(p[:, 0])
    if not is_predicted.any():
        return {}
    p, y, classes = p[is_predicted], y[is_predicted], model.classes_
    best = p.argmax(axis=1)
    shares = np.array([np.mean(y == label) for label in classes])
    baseline = np.tile(shares, (len(y), 1))
    measures = {
        "rows": len(y),
        "accuracy": float(accuracy_score(y, classes[best])),
        "baseline_accuracy": float(shares.max()),
        "brier_score": float(brier_score_loss(y, p, labels=classes)),
        "baseline_brier_score": float(brier_score_loss(y, baseline, labels=classes)),
        "log_loss": float(log_loss(y, p, labels=classes)),
        "baseline_log_loss": float(log_loss(y, baseline, labels=classes)),
    }
    if hasattr(model, "predict_multiprobability"):
        width = model.oob_multiprobability_.width[is_predicted]
        measures["mean_width"] = float(width[np.arange(len(y)), best].mean())
    return measures
