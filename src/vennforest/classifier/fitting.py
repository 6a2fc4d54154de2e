"""Calibrators fitted to the scores that a model gave to examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from vennforest._validation import IntArray, check_weights
from vennforest.calibrators import METHODS, Calibrator
from vennforest.calibrators.bounded import has_bounds
from vennforest.classifier.prediction import Calibration, FittedClassifier
from vennforest.scores import ScoreKind
from vennforest.sources import CalibrationExamples, Fold

N_PARTS = 5
"""Parts of the calibration examples, each of which is scored by what was fitted without it."""

MIN_EXAMPLES_OF_GROUP = 50
"""Examples, the new object included, that a group needs for a calibrator of its own."""

AnyCalibrator = TypeVar("AnyCalibrator", bound=Calibrator)


def fit_to_examples(
    unfitted: AnyCalibrator, examples: CalibrationExamples, kind: ScoreKind, classes: NDArray[Any]
) -> AnyCalibrator:
    """Return a clone of a calibrator that is fitted to a model's scores of examples.

    ``kind`` says what the scores are where the calibrator does not, and ``classes`` are all labels.
    """
    fitted: AnyCalibrator = clone(unfitted)
    if fitted.on == "auto":
        fitted.on = kind
    weight = check_weights(examples.weight, len(examples.codes), warns=False)
    fitted._fit_examples(examples.scores, examples.codes, classes, weight)
    fitted.score_range_ = None  # new scores are by the same model
    return fitted


def parts_of(units: NDArray[Any]) -> IntArray:
    """Return the part, below `N_PARTS`, of examples (n,), by the ``units`` to which they belong.

    Parts depend on no label. A unit is a row by its number or its hash, with which copies are of
    one part, or a group. Where there is one unit, there is one part.
    """
    number = np.unique(units, return_inverse=True)[1]
    return np.random.RandomState(0).permutation(number.max() + 1)[number] % N_PARTS


def method_has_bounds(method: Any) -> bool:
    """Tell whether a method, by name or as a calibrator, gives bounds."""
    return has_bounds(METHODS.get(method) if isinstance(method, str) else method)


def fit_calibrators(
    fitted: FittedClassifier,
    folds: Sequence[Fold | CalibrationExamples],
    calibrator: Calibrator,
    point_calibrator: Calibrator | None,
) -> FittedClassifier:
    """Fit clones of a calibrator to each fold's examples, and of a point calibrator to all.

    They are fitted again within large groups; where a fold has few examples of such a group, the
    group has the fold's calibrator of all. The new object counts when the size of a group is
    compared with the minimum. So the partition of all n + 1 objects does not depend on which of
    them is the new one, as the guarantee within large groups requires.
    """
    fit = partial(fit_to_examples, kind=fitted.folds[0].kind, classes=fitted.classes)
    # One pool for the scores of all folds is better than one per fold (docs/measured.md).
    examples, of_folds = CalibrationExamples.of(folds), [CalibrationExamples.of([f]) for f in folds]

    point = None if point_calibrator is None else fit(point_calibrator, examples)
    overall = Calibration([fit(calibrator, of_fold) for of_fold in of_folds], point)
    of_group = {}
    if fitted.by_codes is not None:
        n_of_group = np.bincount(fitted.by_codes[examples.rows])
        for code in np.flatnonzero(n_of_group + 1 >= MIN_EXAMPLES_OF_GROUP).tolist():
            calibrators = []
            for of_fold, of_all in zip(of_folds, overall.calibrators, strict=True):
                some = of_fold.select(fitted.by_codes[of_fold.rows] == code)
                is_large = len(some.codes) + 1 >= MIN_EXAMPLES_OF_GROUP
                calibrators.append(fit(calibrator, some) if is_large else of_all)
            if point_calibrator is not None:
                of_code = examples.select(fitted.by_codes[examples.rows] == code)
                point = fit(point_calibrator, of_code)
            of_group[code] = Calibration(calibrators, point)
    return replace(fitted, overall=overall, of_group=of_group)
