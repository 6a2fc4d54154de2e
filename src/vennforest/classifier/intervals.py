"""Confidence intervals of a fitted classifier: how well the frequency among such cases is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from vennforest._validation import FloatArray, InputError, IntArray
from vennforest.calibrators.intervals import (
    ConfidenceIntervals,
    IntervalCurve,
    Method,
    interval_curves,
    mean_intervals,
    read_intervals,
    seed_deviation,
)
from vennforest.classifier.fitted import (
    FittedClassifier,
    Once,
    Prediction,
    in_place,
    predict_once,
    predict_sub_model,
    put_together,
    rows_of,
)
from vennforest.groups import SubModel
from vennforest.prior import shift_intervals
from vennforest.sources import CalibrationExamples, Fold, whole_scores

SMALL_DEVIATION = 0.005
"""A standard deviation between seeds that more trees need not reduce."""

_CURVES: WeakKeyDictionary[Any, dict[tuple[float, str], list[IntervalCurve]]] = WeakKeyDictionary()
"""Curves of models in use, by their first calibrator, level and method."""

Known = tuple[Prediction, ConfidenceIntervals | None]
"""Bounds and probabilities, and confidence intervals where the model gives them."""


def predict_confidence(
    fitted: FittedClassifier, X: Any, level: float, method: Method = "likelihood-ratio"
) -> ConfidenceIntervals:
    """Return confidence intervals for the frequency of every class among cases with such scores.

    Over folds they are the means of those at the scores by each model, all read from the examples
    of all folds, as the probability is the mean of what one map makes of those scores.
    """
    return predict_all(fitted, X, level, method, bounds=False)[1]


def predict_all(
    fitted: FittedClassifier,
    X: Any,
    level: float = 0.95,
    method: Method = "likelihood-ratio",
    bounds: bool = True,
) -> tuple[Prediction, ConfidenceIntervals]:
    """Return what `predict` and `predict_confidence` return, with every row scored once."""
    parts = [
        (sub.rows, *_of_sub_model(fitted, sub, X, level, method, bounds))
        for sub in fitted.sub_models(X)
    ]
    prediction = put_together([(rows, answer) for rows, answer, _ in parts])
    intervals = parts[0][2]
    rows = [rows for rows, *_ in parts if rows is not None]
    if rows:
        lower = in_place(rows, [part.lower for *_, part in parts])
        upper = in_place(rows, [part.upper for *_, part in parts])
        intervals = replace(intervals, lower=lower, upper=upper)
    return prediction, intervals.widen(prediction[1])


def predict_known(model: Any, X: Any, level: float = 0.95) -> Known:
    """Return what any fitted classifier predicts, and its confidence intervals if it gives any."""
    if hasattr(model, "_predict_all"):
        prediction: Known = model._predict_all(X, level)
        return prediction
    return predict_once(model, X), None


def _of_sub_model(
    fitted: FittedClassifier, sub: SubModel, X: Any, level: float, method: Method, bounds: bool
) -> tuple[Prediction, ConfidenceIntervals]:
    """Return the predictions and the intervals of rows that have the same calibrators."""
    factors = None if fitted.shift is None else fitted.shift.factors
    classes, rows = fitted.classes, rows_of(sub, X)
    if method == "exact" and len(sub.folds) != 1:
        raise InputError(
            "ensemble must be False for exact confidence intervals, which need one model for all "
            f"scores, got {len(sub.folds)} models: use method='likelihood-ratio'"
        )
    # The draws are used once; what is used twice are the scores by the whole model.
    folds = [attrs.evolve(fold, scorer=Once(fold.scorer, draws=False)) for fold in sub.folds]
    prediction = predict_sub_model(sub._replace(folds=folds), classes, rows, bounds, factors)
    cache = _CURVES.setdefault(sub.calibrators[0], {})
    if (level, method) not in cache:
        cache[level, method] = _curves(fitted, sub.folds, level, method)
    curves = cache[level, method]
    intervals = mean_intervals(
        [read_intervals(curves, whole_scores(fold, rows), classes, level) for fold in folds]
    )
    if factors is not None:
        lower, upper = shift_intervals(intervals.lower, intervals.upper, factors)
        intervals = replace(intervals, lower=lower, upper=upper)
    return prediction, intervals


def interval_tables(fitted: FittedClassifier, level: float) -> list[IntervalCurve]:
    """Return the curves of a model with one fold, not yet widened to contain the probability."""
    return _curves(fitted, fitted.folds, level, "likelihood-ratio")


def _curves(
    fitted: FittedClassifier, folds: Sequence[Fold], level: float, method: Method
) -> list[IntervalCurve]:
    """Return the curves of the calibration examples of all folds."""
    examples = CalibrationExamples.of(folds)
    return interval_curves(
        examples.scores,
        examples.codes,
        len(fitted.classes),
        level,
        method,
        weight=examples.weight,
        groups=_groups(fitted, folds),
        noise=folds[0].noise if len(folds) == 1 else None,
    )


def _groups(fitted: FittedClassifier, folds: Sequence[Fold]) -> IntArray | None:
    """Return the group of every calibration example, None where examples are independent."""
    if fitted.row_groups is not None and all(fold.rows is not None for fold in folds):
        return np.concatenate([fitted.row_groups[fold.rows] for fold in folds])
    return folds[0].groups if len(folds) == 1 else None


@dataclass(frozen=True)
class ForestSpread:
    """How far another forest of the same size would move a probability: a standard deviation."""

    deviation: float
    n_trees: int

    @classmethod
    def mean(cls, spreads: Sequence[ForestSpread | None]) -> ForestSpread | None:
        """Return the root mean square of several; None where one is unknown."""
        deviations = [spread.deviation for spread in spreads if spread is not None]
        if not deviations or len(deviations) < len(spreads) or spreads[0] is None:
            return None
        return cls(float(np.sqrt(np.mean(np.square(deviations)))), spreads[0].n_trees)

    def sentence(self) -> str:
        """Return what it means for a reader, and what more trees would change."""
        now = f"Another forest of {self.n_trees:,} trees would move a probability by about"
        if self.deviation < SMALL_DEVIATION:
            return f"{now} ±{self.deviation:.4f}."
        half = self.deviation / 2
        return (
            f"{now} ±{self.deviation:.3f}; {4 * self.n_trees:,} trees would make that ±{half:.3f}."
        )


def forest_spread(fitted: FittedClassifier, X: Any = None) -> ForestSpread | None:
    """Return how far another forest would move probabilities; None if that is unknown.

    It is known out of bag, with a pooled map from scores to probabilities; at the rows of X, or at
    the calibration scores.
    """
    fold, point = fitted.folds[0], fitted.point_calibrator
    if len(fitted.folds) > 1 or fold.member_noise is None or point is None:
        return None
    scores: FloatArray = fold.scores if X is None else whole_scores(fold, X)
    if not len(scores):
        return None
    n_trees = len(fold.scorer.membership)  # type: ignore[attr-defined]
    return ForestSpread(seed_deviation(point.predict_proba, scores, fold.member_noise), n_trees)
