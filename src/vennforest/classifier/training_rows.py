"""Bounds and probabilities of the training rows, each without its own label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vennforest.calibrators.bounded import has_bounds
from vennforest.classifier.blend import BlendedModel
from vennforest.classifier.fitting import fit_calibrators, parts_of_rows
from vennforest.classifier.prediction import FittedClassifier, Prediction, RowScores, predict_scores
from vennforest.groups import codes_of
from vennforest.multiprobability import Multiprobability
from vennforest.sources import CalibrationExamples


def predict_training_rows(fitted: FittedClassifier) -> Prediction:
    """Return bounds and probabilities of the n rows given to ``fit``, each without its own label.

    Calibrators, and the maps and weights of a blend, are fitted again without each of five parts of
    the rows, and calibrate the rows of that part at their calibration scores. NaN for rows that
    calibrate nothing.
    """
    if fitted.calibrate_on == "training":
        raise AttributeError(
            'calibrate_on must be "oob" or "cv" for probabilities of training rows, got "training"'
        )
    examples = [CalibrationExamples.of([fold]) for fold in fitted.folds]
    all_rows = CalibrationExamples.of(examples).rows
    if fitted.n_rows is None or all_rows is None:
        raise AttributeError(
            "calibrate_on must be a source that says which rows calibrate (Fold.rows), got another"
        )
    part_of_example = parts_of_rows(all_rows, fitted.row_groups)
    parts = np.split(part_of_example, np.cumsum([len(fold.codes) for fold in examples])[:-1])
    total = np.zeros((fitted.n_rows, 3, len(fitted.classes)))
    count = np.zeros(fitted.n_rows)
    for part in range(part_of_example.max() + 1):
        remaining = [fold.select(of != part) for fold, of in zip(examples, parts, strict=True)]
        if not all(len(fold.codes) for fold in remaining):
            continue
        if isinstance(blend := fitted.folds[0].model, BlendedModel):
            # Scores of other parts are by blends that have seen this one.
            scores = blend.held_out_scores(part_of_example, part)
            remaining = [replace(remaining[0], scores=scores)]
        refitted = fit_calibrators(
            fitted, remaining, fitted.calibrators[0], fitted.point_calibrator
        )
        if fitted.shift is not None and fitted.shift.is_counted:
            counted = CalibrationExamples.of(remaining).class_shares(len(fitted.classes))
            refitted = replace(refitted, shift=fitted.shift.from_shares(counted))
        for fold, of, per_group in zip(examples, parts, refitted.fold_calibrators, strict=True):
            some = fold.select(of == part)
            bounds, p = predict_scores(
                replace(refitted, folds=fitted.folds[:1], fold_calibrators=[per_group]),
                [RowScores(some.scores, None, some.scores)],
                codes_of(some.rows, fitted.group_codes),
            )
            values = [p, p, p] if bounds is None else [p, bounds.lower, bounds.upper]
            rows = np.asarray(some.rows)  # a splitter may score a row several times
            np.add.at(total, rows, np.stack(values, axis=1))
            np.add.at(count, rows, 1)
    with np.errstate(invalid="ignore"):
        p, lower, upper = np.moveaxis(total / count[:, None, None], 1, 0)
    if not has_bounds(fitted.calibrators[0]):
        return Prediction(None, p)
    return Prediction(Multiprobability(lower, upper, fitted.classes), p)
