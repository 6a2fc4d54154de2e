"""Confidence intervals of a fitted classifier: how well the frequency among such cases is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from vennforest._validation import FloatArray, InputError, IntArray, columns
from vennforest.calibrators.confidence import (
    ClassExamples,
    ConfidenceIntervals,
    Method,
    intervals_of,
    tables_of,
)
from vennforest.calibrators.likelihood_ratio import IntervalTable, expected_scores
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

SMALL = 0.005
"""A standard deviation between seeds that more trees need not reduce."""


_COUNTED: WeakKeyDictionary[Fold, dict[bool, list[ClassExamples]]] = WeakKeyDictionary()
"""Counted examples of models in use, by their first fold and whether the method is not exact."""


class Asked(NamedTuple):
    """Which intervals are asked for: see ``CalibratedClassifier.predict_confidence``."""

    level: float = 0.95
    method: Method = "likelihood-ratio"
    simultaneous: bool = False
    other_forests: bool = False


def predict_confidence(fitted: FittedClassifier, X: Any, asked: Asked) -> ConfidenceIntervals:
    """Return confidence intervals for the frequency of every class among cases with such scores.

    Over folds they are the means of those at the scores by each model, all read from the examples
    of all folds, as the probability is the mean of what one map makes of those scores.
    """
    return predict_all(fitted, X, asked, bounds=False)[1]


def predict_all(
    fitted: FittedClassifier, X: Any, asked: Asked, bounds: bool = True
) -> tuple[Prediction, ConfidenceIntervals]:
    """Return what `predict` and `predict_confidence` return, with every row scored once."""
    made = [
        (sub.rows, *_of_sub_model(fitted, sub, X, asked, bounds)) for sub in fitted.sub_models(X)
    ]
    prediction = put_together([(rows, answer) for rows, answer, _ in made])
    found = made[0][2]
    rows = [rows for rows, *_ in made if rows is not None]
    if rows:
        lower = in_place(rows, [one.lower for *_, one in made])
        found = replace(found, lower=lower, upper=in_place(rows, [one.upper for *_, one in made]))
    return prediction, found.widen(prediction[1])


Known = tuple[Prediction, ConfidenceIntervals | None]
"""Bounds and probabilities, and confidence intervals where they are wanted and known."""


def predict_known(model: Any, X: Any, level: float = 0.95) -> Known:
    """Return what any fitted classifier predicts, and its confidence intervals if it gives any."""
    if hasattr(model, "_predict_all"):
        answer: Known = model._predict_all(X, level)
        return answer
    return predict_once(model, X), None


def _of_sub_model(
    fitted: FittedClassifier, sub: SubModel, X: Any, asked: Asked, bounds: bool
) -> tuple[Prediction, ConfidenceIntervals]:
    """Return the predictions and the intervals of rows that have the same calibrators."""
    factors = None if fitted.shift is None else fitted.shift.factors
    classes, rows = fitted.classes, rows_of(sub, X)
    if asked.method == "exact":
        _check_exact(sub.folds)
    # The draws are asked for once; what is asked for twice are the scores by the whole model.
    folds = [attrs.evolve(fold, scorer=Once(fold.scorer, draws=False)) for fold in sub.folds]
    once = sub._replace(folds=folds)
    answer = predict_sub_model(once, classes, rows, bounds, factors)
    kept = _COUNTED.setdefault(sub.folds[0], {})
    sharp = asked.method != "exact"
    if sharp not in kept:
        kept[sharp] = _examples(fitted, sub.folds, sharp)
    per_class = kept[sharp]
    ends = [_of_scores(per_class, fold, rows, classes, asked) for fold in once.folds]
    found = ends[0]
    if len(ends) > 1:
        lower = np.mean([one.lower for one in ends], axis=0)
        found = replace(found, lower=lower, upper=np.mean([one.upper for one in ends], axis=0))
    if factors is not None:
        lower, upper = shift_intervals(found.lower, found.upper, factors)
        found = replace(found, lower=lower, upper=upper)
    return answer, found


def interval_tables(fitted: FittedClassifier, level: float) -> list[IntervalTable]:
    """Return the intervals of a model with one fold as tables of its scores.

    One a class, or that of the second of two classes; not yet widened to contain the probability.
    """
    return tables_of(_examples(fitted, fitted.folds, sharp=True), level)


def _check_exact(folds: Sequence[Fold]) -> None:
    """Refuse what exact intervals are not proved for: a model per fold, weighted examples."""
    way_out = "use method='likelihood-ratio'"
    if len(folds) != 1:
        raise InputError(
            "ensemble must be False for exact confidence intervals, which need one model for all "
            f"scores, got {len(folds)} models: {way_out}"
        )
    if folds[0].weight is not None:
        raise InputError(
            "sample_weight must be left out for exact confidence intervals, which count examples: "
            f"{way_out}"
        )


def _examples(fitted: FittedClassifier, folds: Sequence[Fold], sharp: bool) -> list[ClassExamples]:
    """Return the calibration examples of all folds, one class against the rest."""
    k = len(fitted.classes)
    known = CalibrationExamples.of(folds)
    groups = _groups(fitted, folds) if sharp else None
    scores = [_columns(fold.scores, k) for fold in folds]
    if sharp:
        for fold, table in zip(folds, scores, strict=True):
            if fold.noise is not None:
                for s in table.T:
                    s[:] = expected_scores(s.copy(), fold.noise * s * (1 - s))
    both = np.concatenate(scores)
    return [
        ClassExamples.of(both[:, j], known.codes == (j if k > 2 else 1), known.weight, groups)
        for j in range(both.shape[1])
    ]


def _groups(fitted: FittedClassifier, folds: Sequence[Fold]) -> IntArray | None:
    """Return the group of every calibration example, None where examples are independent."""
    if fitted.row_groups is not None and all(fold.rows is not None for fold in folds):
        return np.concatenate([fitted.row_groups[fold.rows] for fold in folds])
    return folds[0].groups if len(folds) == 1 else None


def _columns(scores: FloatArray, k: int) -> FloatArray:
    """Return scores as (n, 1), of the second of two classes, or (n, k); a fresh array."""
    made = columns(scores, k).copy()
    return made[:, None] if made.ndim == 1 else made


def _of_scores(
    per_class: Sequence[ClassExamples],
    fold: Fold,
    rows: Any,
    classes: NDArray[Any],
    asked: Asked,
) -> ConfidenceIntervals:
    """Return the intervals at the scores by one fold's model."""
    new = _columns(whole_scores(fold, rows), len(classes))
    wanted = classes, asked.level, asked.method, asked.simultaneous
    found = intervals_of(per_class, new, *wanted)
    if not asked.other_forests or fold.member_noise is None:
        return found
    # Where the score might have been with another seed; the two sources of error are independent.
    away = ndtri((1 + asked.level) / 2) * np.sqrt(fold.member_noise * new * (1 - new))
    below = intervals_of(per_class, np.maximum(new - away, 0), *wanted)
    above = intervals_of(per_class, np.minimum(new + away, 1), *wanted)
    lower = np.minimum(below.lower, above.lower)
    upper = np.maximum(below.upper, above.upper)
    middle = (found.lower + found.upper) / 2
    return replace(
        found,
        lower=np.maximum(middle - np.hypot(middle - found.lower, found.lower - lower), 0),
        upper=np.minimum(middle + np.hypot(found.upper - middle, upper - found.upper), 1),
    )


def seed_deviation(fitted: FittedClassifier, X: Any = None) -> FloatArray:
    """Return how far probabilities (n, k) would move with another seed: standard deviations.

    Given the data, trees are independent draws. So the scores s of the classes, means over T trees,
    have the covariance v (diag(s) - s s') between seeds, v that of single trees divided by T, which
    ``fit`` measures. The point calibrator carries it on to the probability (the delta method); that
    it would be fitted to other scores as well is left out, since these differences average out over
    the examples. X None: at the calibration scores.
    """
    found = _seed_moves(fitted, X)
    if found is None:
        raise InputError(
            "calibrate_on must be 'oob' (and merge 'pooled') to know how far another seed would "
            f"move probabilities, got {fitted.calibrate_on!r}"
        )
    return found[1]


def _seed_moves(fitted: FittedClassifier, X: Any) -> tuple[FloatArray, FloatArray] | None:
    """Return probabilities by the map (n, k), and their standard deviations between seeds.

    None where those are not known.
    """
    fold = fitted.folds[0]
    if len(fitted.folds) > 1 or fold.member_noise is None or fitted.point_calibrator is None:
        return None
    if X is None:
        return _moves(fold, fitted.point_calibrator, fold.scores)
    subs = list(fitted.sub_models(X))
    made = [_moves(fold, sub.points[0], whole_scores(fold, rows_of(sub, X))) for sub in subs]
    rows = [sub.rows for sub in subs if sub.rows is not None]
    if not rows:
        return made[0]
    return in_place(rows, [p for p, _ in made]), in_place(rows, [moved for _, moved in made])


def _moves(fold: Fold, point: Any, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what a map makes of scores, and its standard deviations between seeds.

    With w_i(s) = s + h_i (e_i - s), where h_i moves the score of class i by its own standard
    deviation, the variance v g' (diag(s) - s s') g of a function with gradient g is the sum over
    classes i of (1 - s_i) (g' (w_i(s) - s))^2.
    """
    p: FloatArray = point.predict_proba(scores)
    variance = np.zeros_like(p)
    for i in range(1, 2) if scores.ndim == 1 else range(scores.shape[1]):
        s = scores if scores.ndim == 1 else scores[:, i]
        away = np.sqrt((fold.member_noise or 0.0) * s * (1 - s))
        up, down = (point.predict_proba(_moved(scores, i, s + one)) for one in (away, -away))
        # Of one column, the other class's term is the same: its share and 1 - s add up to 1.
        share = np.ones_like(s) if scores.ndim == 1 else 1 - s
        variance += share[:, None] * ((up - down) / 2) ** 2
    return p, np.sqrt(variance)


@dataclass(frozen=True)
class ForestSpread:
    """How far another forest of the same size would move probabilities.

    ``deviation`` is the standard deviation between seeds of the predicted label's probability: root
    mean square over rows.
    """

    deviation: float
    n_trees: int

    @classmethod
    def mean(cls, spreads: Sequence[ForestSpread | None]) -> ForestSpread | None:
        """Return the root mean square of several; None where one is not known."""
        known = [one for one in spreads if one is not None]
        if not known or len(known) < len(spreads):
            return None
        squares = [one.deviation**2 for one in known]
        return cls(float(np.sqrt(np.mean(squares))), known[0].n_trees)

    def sentence(self) -> str:
        """Return what it means for a reader, and what more trees would change."""
        now = f"Another forest of {self.n_trees:,} trees would move a probability by about"
        if self.deviation < SMALL:
            return f"{now} ±{self.deviation:.4f}."
        half = self.deviation / 2
        return (
            f"{now} ±{self.deviation:.3f}; {4 * self.n_trees:,} trees would make that ±{half:.3f}."
        )


def forest_spread(fitted: FittedClassifier, X: Any = None) -> ForestSpread | None:
    """Return how far another forest would move the probabilities of the rows of X.

    X None: at the calibration scores. The answer is None where `seed_deviation` is refused.
    """
    found = _seed_moves(fitted, X)
    if found is None or not len(found[0]):
        return None
    p, moved = found
    own = moved[np.arange(len(p)), p.argmax(axis=1)]
    n_trees = len(fitted.folds[0].scorer.membership)  # type: ignore[attr-defined]
    return ForestSpread(float(np.sqrt(np.mean(own**2))), n_trees)


def _moved(scores: FloatArray, j: int, to: FloatArray) -> FloatArray:
    """Return scores with another score of class j; those of the other classes share the rest."""
    to = np.clip(to, 0, 1)
    if scores.ndim == 1:
        return to
    rest = 1 - scores[:, j]
    others = np.divide(1 - to, rest, out=np.ones_like(rest), where=rest > 0)
    moved = np.minimum(scores * others[:, None], 1)  # rounding
    moved[:, j] = to
    return moved
