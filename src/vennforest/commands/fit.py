"""The command ``fit``: a table in, a model file out."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from vennforest._files import refused_as, shown_path
from vennforest._messages import CalibrationWarning
from vennforest._remote import sent_whole
from vennforest._validation import InputError, check_option
from vennforest.calibrators import check_method
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.intervals import forest_spread
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
from vennforest.report.estimators import DEFAULT_ESTIMATOR, errors_named, make_estimator
from vennforest.report.splits import group_codes
from vennforest.report.training import audit_notes
from vennforest.sources import Subforest
from vennforest.sources.registry import check_source
from vennforest.tables import TableColumns, table_pipeline
from vennforest.tables.cells import PLURAL
from vennforest.tables.known_rows import sketch_rows
from vennforest.tables.read import find_column, read_table
from vennforest.tables.target import split_target
from vennforest.tables.types import read_types

PASSED = ("method", "calibrate_on", "subforest", "by")
"""Options that are the classifier's arguments."""


def run(options: Fit) -> None:
    """Train as `fit_file`, and print a summary."""
    notes: list[str] = []
    with busy("Training"):
        done = fit_file(options, notes.append)
    output = shown_path(options.output)
    say_notes(notes)
    if options.as_json:
        print_json({**done, "model": output, "notes": notes})
        return
    kinds = ", ".join(f"{count} of {kind}" for kind, count in done["kinds"].items())
    say(f"Trained on {done['n_rows']:,} rows; columns: {kinds}.")
    say(f"Classes of {options.target!r}: {shares_of(done['classes'], 1)}.")
    for sentence in (measures_sentence(done["measures"]), done["other_forests"]):
        if sentence:
            say(sentence)
    say(f"Wrote {output} ({done['seconds']:.0f} s)")


def fit_file(options: Fit, note: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Train and calibrate a classifier on a table, and write it to a model file, whole or not.

    ``note`` takes sentences for the user. Returned are numbers of rows, of those of each class and
    of columns of each kind, `_measures`, and how far another forest would move a probability.
    """
    start = time.perf_counter()
    data, output, by = options.data, options.output, options.by
    check_method(options.method, "--method")
    check_source(options.calibrate_on, "--calibrate-on")
    check_option(options.subforest, Subforest, "--subforest")
    if options.jobs == 0:
        raise InputError("--jobs must be a number of processors, or -1 for all, got 0")
    check_suffix(output, ".skops", "model file")
    declared = {} if options.types is None else read_types(options.types)
    estimator = make_estimator(options.estimator, options.trees, options.seed, options.jobs)
    missing, drop = names_in(options.missing or ""), options.drop or []
    frame = read_table(data, declared, missing, options.decimal)
    held = [] if options.groups is None else [find_column(frame, options.groups)]
    table = split_target(
        frame,
        options.target,
        [*drop, *(name for name in held if name not in drop)],
        name=data.name,
        keep=[*(options.keep or []), *([] if by is None else [by])],
        types={name: kind for name, kind in declared.items() if name not in held},
    )
    remarks = list(table.notes)
    if by is not None:
        find_column(table.X, by)
    groups = {}
    if held:
        of_rows = frame.loc[table.X.index, options.groups]
        groups["groups"] = group_codes(of_rows, len(table.y), remarks)
    for sentence in remarks:
        note(sentence)
    model = CalibratedClassifier(
        table_pipeline(
            estimator,
            random_state=options.seed,
            types=table.types or None,
            missing=missing or None,
        ),
        **{name: getattr(options, name) for name in PASSED},
        n_jobs=None if options.calibrate_on == "cv" else options.jobs,
        random_state=options.seed,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # remarks of skrub on how columns are read
        warnings.simplefilter("always", CalibrationWarning)
        warnings.filterwarnings("always", message=".*least populated class.*")
        with refused_as(), errors_named(options.estimator):
            model.fit(table.X, table.y, **groups)
    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
        note(f"{sentence[:1].upper()}{sentence[1:]}.")
    for sentence in audit_notes(model, table.X, table.y, **groups):
        note(sentence)
    columns = model.estimators_[0][0]
    assert isinstance(columns, TableColumns)
    labels, counts = np.unique(table.y, return_counts=True)
    classes = {str(label): int(n) for label, n in zip(labels, counts, strict=True)}
    measures = _measures(model, table.y)
    about = {
        "target": table.target,
        "columns": dict(zip(columns.feature_names_in_.tolist(), columns.kinds_, strict=True)),
        "types": columns.as_types(),
        "n_rows": len(table.y),
        "class_counts": classes,
        "data": data.name,
        "options": {
            "estimator": options.estimator or DEFAULT_ESTIMATOR,
            "trees": options.trees,
            "seed": options.seed,
            "drop": drop,
            **({} if options.groups is None else {"groups": options.groups}),
        },
        "measures": measures,
        "seconds": round(time.perf_counter() - start, 1),
        "known_rows": sketch_rows(columns.transform(table.X)),
    }
    with sent_whole(output) as file:
        write_model(model, file, about)
    spread = None
    with suppress(Exception):  # the model is written: no summary makes the command fail
        spread = forest_spread(model._state)
    return {
        "n_rows": len(table.y),
        "classes": classes,
        "kinds": dict(Counter(PLURAL[kind] for kind in columns.kinds_)),
        "measures": measures,
        "seconds": time.perf_counter() - start,
        "other_forests": "" if spread is None else spread.sentence(),
    }


def _measures(model: CalibratedClassifier, y: NDArray[Any]) -> dict[str, float]:
    """Evaluate predictions of training rows by models that did not see them; {}: all saw all."""
    if model.calibrate_on_ == "training":
        return {}
    p = model.oob_probability_
    seen = ~np.isnan(p[:, 0])
    if not seen.any():
        return {}
    p, y = p[seen], y[seen]
    classes = model.classes_
    best = p.argmax(axis=1)
    _, counts = np.unique(np.concatenate([y, classes]), return_counts=True)
    shares = (counts - 1) / len(y)
    always = np.tile(shares, (len(y), 1))
    found = {
        "rows": len(y),
        "accuracy": float(accuracy_score(y, classes[best])),
        "baseline_accuracy": float(shares.max()),
        "brier_score": float(brier_score_loss(y, p, labels=classes)),
        "baseline_brier_score": float(brier_score_loss(y, always, labels=classes)),
        "log_loss": float(log_loss(y, p, labels=classes)),
        "baseline_log_loss": float(log_loss(y, always, labels=classes)),
    }
    if hasattr(model, "predict_multiprobability"):
        width = model.oob_multiprobability_.width[seen]
        found["mean_width"] = float(width[np.arange(len(y)), best].mean())
    return found
