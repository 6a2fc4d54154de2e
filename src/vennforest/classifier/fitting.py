"""Calibrators fitted to the scores that a model gave to examples."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from vennforest._validation import IntArray
from vennforest.calibrators import Calibrator
from vennforest.scores import ScoreKind
from vennforest.sources import CalibrationExamples

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
    y = classes[examples.codes]
    fitted.fit(examples.scores, y, sample_weight=examples.weight, classes=classes)
    fitted.score_range_ = None  # new scores are by the same model
    return fitted


def draw_parts(units: IntArray, n_parts: int) -> IntArray:
    """Return a part in [0, n_parts) for each row (n,); rows of one unit are in one part."""
    used, number = np.unique(units, return_inverse=True)
    parts: IntArray = np.random.RandomState(0).permutation(len(used))[number] % n_parts
    return parts
