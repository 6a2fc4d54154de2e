"""Bounds and probabilities of the training rows, each without its own label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vennforest._validation import FloatArray
from vennforest.calibrators.bounded import has_bounds
from vennforest.classifier.blend import BlendedModel
from vennforest.classifier.prediction import (
    FittedClassifier,
    Prediction,
    RowScores,
    fit_calibrators,
    parts_of,
    predict_scores,
)
from vennforest.multiprobability import Multiprobability
from vennforest.sources import CalibrationExamples, Fold


def predict_training_rows(fitted: FittedClassifier) -> Prediction:
    """Return bounds and probabilities of the n rows given to ``fit``, each without its own label.

    They are those of `predict_examples`, the means where a splitter scores a row several times. NaN
    for rows that calibrate nothing.
    """
    if fitted.calibrate_on == "training":
        raise AttributeError(
            'calibrate_on must be "oob" or "cv" for probabilities of training rows, got "training"'
        )
    rows = CalibrationExamples.of(fitted.folds).rows
    if fitted.n_rows is None or rows is None:
        raise AttributeError(
            "calibrate_on must be a source that says which rows calibrate (Fold.rows), got another"
        )
    values = predict_examples(fitted)
    is_predicted = ~np.isnan(values[:, 0, 0])
    total = np.zeros((fitted.n_rows, *values.shape[1:]))
    np.add.at(total, rows[is_predicted], values[is_predicted])
    count = np.bincount(rows[is_predicted], minlength=fitted.n_rows)
    with np.errstate(invalid="ignore"):
        p, lower, upper = np.moveaxis(total / count[:, None, None], 1, 0)
    if not has_bounds(fitted.overall.calibrators[0]):
        return Prediction(None, p)
    return Prediction(Multiprobability(lower, upper, fitted.classes), p)


def predict_examples(fitted: FittedClassifier, scored: Sequence[Fold] | None = None) -> FloatArray:
    """Return predictions of the calibration examples, (n, 3, k), each without its own label.

    These are the probability and both bounds (the probability where the method has none), fold
    after fold. Calibrators, and the maps and weights of a blend, are fitted again without each of
    five parts of the rows, and calibrate the rows of that part at their calibration scores, or at
    those of the folds ``scored``. NaN where nothing is left of a fold.
    """
    examples = [CalibrationExamples.of([fold]) for fold in fitted.folds]
    rows = CalibrationExamples.of(examples).rows
    ends = np.cumsum([len(fold.codes) for fold in examples])
    units = np.arange(ends[-1]) if rows is None else rows  # without row numbers each is a row
    if rows is not None and fitted.row_groups is not None:
        units = fitted.row_groups[rows]
    part_of_example = parts_of(units)
    parts = np.split(part_of_example, ends[:-1])
    values = np.full((ends[-1], 3, len(fitted.classes)), np.nan)
    of_fold = np.split(values, ends[:-1])
    for part in range(part_of_example.max() + 1):
        remaining = [fold.select(of != part) for fold, of in zip(examples, parts, strict=True)]
        if not all(len(fold.codes) for fold in remaining):
            continue
        if isinstance(blend := fitted.folds[0].model, BlendedModel):
            # Scores of other parts are by blends that have seen this one.
            scores = blend.held_out_scores(part_of_example, part)
            remaining = [replace(remaining[0], scores=scores)]
        overall = fitted.overall
        refitted = fit_calibrators(fitted, remaining, overall.calibrators[0], overall.point)
        if fitted.shift is not None and fitted.shift.is_counted:
            counted = CalibrationExamples.of(remaining).class_shares(len(fitted.classes))
            refitted = replace(refitted, shift=fitted.shift.from_shares(counted))
        folds = zip(scored or fitted.folds, parts, of_fold, strict=True)
        for i, (fold, of, out) in enumerate(folds):
            some = CalibrationExamples.of([fold]).select(of == part)
            codes = None if fitted.by_codes is None else fitted.by_codes[some.rows]
            row_scores = [RowScores(some.scores, None, some.scores)]
            bounds, p = predict_scores(refitted.of_fold(i), row_scores, codes)
            ends_of_p = [p, p] if bounds is None else [bounds.lower, bounds.upper]
            out[of == part] = np.stack([p, *ends_of_p], axis=1)
    return values
