"""The command ``fit``: a table in, a model file out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from vennforest._files import one_line, refused_as, shown_path
from vennforest._messages import CalibrationWarning, as_sentence, counted, listed
from vennforest._validation import FloatArray
from vennforest.batch import table_columns
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.training_rows import predict_training_rows
from vennforest.commands.options import Fit
from vennforest.commands.pages import read_training_table, record_of, weights_in
from vennforest.commands.terminal import print_json, progress_bar, say, say_notes, shares_text
from vennforest.persistence.model_file import write_model
from vennforest.report.estimators import DEFAULT_ESTIMATOR, table_estimator
from vennforest.report.splits import group_codes
from vennforest.report.training import audit_notes
from vennforest.tables.target import LabelledTable

MIN_ROWS_OF_CLASS = 5
"""Rows of a class below which a note says so: as many as there are folds by default."""


def run_fit(options: Fit) -> None:
    """Train and calibrate a classifier on a table, write it to a file, and print a summary."""
    start = time.perf_counter()
    with progress_bar("Training"):
        table, fit_options, decimal = _labelled_table(options)
        notes, y = table.notes, table.y
        model = _fit(options, table, fit_options, decimal)
        columns = table_columns(model)
        assert columns is not None
        labels, counts = np.unique(y, return_counts=True)
        classes = dict(zip(map(str, labels.tolist()), counts.tolist(), strict=True))
        notes += _few_rows(classes)
        measures = _measures(model, y, fit_options["sample_weight"])
        header = {
            "target": table.target,
            "columns": dict(zip(columns.feature_names_in_.tolist(), columns.kinds_, strict=True)),
            "types": columns.as_types(),
            "n_rows": len(y),
            "class_counts": classes,
            "measures": measures,
            **record_of(options, options.data),
        }
        model._fitted = replace(model._state, record=header)
        write_model(model, options.output)
        try:
            notes += audit_notes(model, table.X, y, fit_options["groups"])
        except Exception as error:  # the model is written: the command has not failed
            notes.append(f"The audit failed ({type(error).__name__}: {one_line(error)}).")
    say_notes(notes)
    output, seconds = shown_path(options.output), time.perf_counter() - start
    if options.as_json:
        summary = {"n_rows": len(y), "classes": classes, "notes": notes, "measures": measures}
        print_json({**summary, "seconds": seconds, "model": output})
        return
    say(f"Trained on {counted(len(y))} and {counted(len(columns.kinds_), 'column')}.")
    if hasattr(model, "blend_"):
        say(f"{model.estimator_!r}.")
    say(f"Classes of {table.target!r}: {shares_text(classes, 1)}.")
    if measures:
        say(_sentence(measures))
    say(f"Wrote {output} ({seconds:.0f} s)")


def _labelled_table(options: Fit) -> tuple[LabelledTable, dict[str, Any], str | None]:
    """Return the table, what ``fit`` takes beside it, and the decimal sign of a CSV's text.

    ``fit`` takes codes of groups, and weights.
    """
    file, _, table, values = read_training_table(options, [options.groups])
    codes = group_codes(values.get(options.groups or ""), len(table.y), table.notes)
    weight = None if options.weight is None else weights_in(values, options.weight)
    fit_options = {"groups": codes, "sample_weight": weight}
    return table, fit_options, file.decimal if file and file.has_semicolons else None


def _fit(
    options: Fit, table: LabelledTable, fit_options: dict[str, Any], decimal: str | None
) -> CalibratedClassifier:
    """Return the classifier fitted to a table; warnings become notes of the table."""
    # What calibrates out of bag has to be a forest.
    default = DEFAULT_ESTIMATOR if options.calibrate_on == "oob" else "blend"
    estimator = table_estimator(
        options.estimator or default,
        options.trees,
        options.seed,
        options.jobs,
        types=table.types or None,
        missing=options.missing,
        decimal=decimal,
    )
    model = CalibratedClassifier(
        estimator,
        method=options.method,
        calibrate_on=options.calibrate_on,
        ensemble=not options.one_model,
        by=options.by,
        n_jobs=None if options.calibrate_on == "cv" else options.jobs,
        random_state=options.seed,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", CalibrationWarning)
        warnings.filterwarnings("always", message=".*least populated class.*")
        with refused_as():
            model.fit(table.X, table.y, **fit_options)
    table.notes.extend(dict.fromkeys(as_sentence(str(warning.message)) for warning in caught))
    return model


def _few_rows(classes: Mapping[str, int]) -> list[str]:
    """Return a note on the classes that have too few rows, given the number of each."""
    rare = [name for name, n in classes.items() if n < MIN_ROWS_OF_CLASS]
    if not rare:
        return []
    return [
        f"{len(rare):,} of {len(classes):,} classes have fewer than {MIN_ROWS_OF_CLASS} rows each, "
        f"too few for every fold to have one: {listed(rare, 5)}. Their probabilities are rough."
    ]


def _measures(
    model: CalibratedClassifier, y: NDArray[Any], weight: FloatArray | None
) -> dict[str, float]:
    """Return measures of out-of-sample predictions, {} if the model keeps none."""
    if model.calibrate_on_ == "training":
        return {}
    bounds, p = predict_training_rows(model._state)
    classes = model.classes_
    is_predicted = ~np.isnan(p[:, 0])
    if not is_predicted.any():
        return {}
    p, y = p[is_predicted], y[is_predicted]
    weight = None if weight is None else weight[is_predicted]
    shares = [np.average(y == label, weights=weight) for label in classes]
    baseline, options = np.tile(shares, (len(y), 1)), {"sample_weight": weight}
    measures: dict[str, float] = {"rows": len(y)}
    for prefix, q in (("", p), ("baseline_", baseline)):
        predicted = classes[q.argmax(axis=1)]
        measures[f"{prefix}accuracy"] = float(accuracy_score(y, predicted, **options))
        measures[f"{prefix}brier_score"] = float(brier_score_loss(y, q, labels=classes, **options))
        measures[f"{prefix}log_loss"] = float(log_loss(y, q, labels=classes, **options))
    if bounds is not None:
        width = bounds.width[is_predicted]
        measures["mean_width"] = float(width[np.arange(len(y)), p.argmax(axis=1)].mean())
    return measures


def _sentence(measures: Mapping[str, float]) -> str:
    """Return the measures of a fit as a sentence."""
    text = (
        "Out of sample: accuracy {accuracy:.1%} ({baseline_accuracy:.1%} by always predicting "
        "the largest class), Brier score {brier_score:.4f} ({baseline_brier_score:.4f} by always "
        "predicting the class frequencies)"
    )
    if "mean_width" in measures:
        text += "; bounds are {mean_width:.4f} wide on average"
    return text.format(**measures) + "."
