"""Confidence intervals of a fitted classifier: how well the frequency among such cases is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from vennforest._validation import FloatArray, InputError, IntArray
from vennforest.calibrators.confidence import (
    ClassExamples,
    ConfidenceIntervals,
    Method,
    intervals_of,
    one_against_rest,
)
from vennforest.calibrators.likelihood_ratio import expected_scores
from vennforest.classifier.fitted import FittedClassifier
from vennforest.classifier.prediction import predict_sub_model
from vennforest.groups.cells import SubModel
from vennforest.prior import shift_intervals
from vennforest.sources import Fold, SampledScores, whole_scores


def predict_confidence(
    fitted: FittedClassifier,
    X: Any,
    level: float,
    method: Method,
    simultaneous: bool,
    other_forests: bool,
) -> ConfidenceIntervals:
    """Return confidence intervals for the frequency of every class among cases with such scores.

    Over folds they are the means of those at the scores by each model, all read from the examples
    of all folds, as the probability is the mean of what one map makes of those scores.

    Raises
    ------
    ValueError
        If the method is ``"exact"`` and there is a model per fold, or examples have weights.
    """
    made = [
        (sub.rows, _of_sub_model(fitted, sub, X, level, method, simultaneous, other_forests))
        for sub in fitted.sub_models(X)
    ]
    found = made[0][1]
    if made[0][0] is None:
        return found
    back = np.argsort(np.concatenate([rows for rows, _ in made if rows is not None]))
    lower, upper, widened = (
        np.concatenate([getattr(one, name) for _, one in made])[back]
        for name in ("lower", "upper", "widened")
    )
    return replace(found, lower=lower, upper=upper, widened=widened)


def _of_sub_model(
    fitted: FittedClassifier,
    sub: SubModel,
    X: Any,
    level: float,
    method: Method,
    simultaneous: bool,
    other_forests: bool,
) -> ConfidenceIntervals:
    """Return the intervals of rows that have the same calibrators."""
    factors = None if fitted.shift is None else fitted.shift.factors
    classes, rows = fitted.classes, sub.of(X)
    scored = [
        attrs.evolve(fold, scorer=_Scored(fold.scorer, whole_scores(fold, rows)))
        for fold in sub.folds
    ]
    _, p = predict_sub_model(sub._replace(folds=scored), classes, rows, False, factors)
    if method == "exact":
        _check_exact(sub.folds)
    per_class = _examples(fitted, sub.folds, method)
    ends = [
        _of_scores(per_class, fold, classes, level, method, simultaneous, other_forests)
        for fold in scored
    ]
    found = ends[0]
    if len(ends) > 1:
        lower = np.mean([one.lower for one in ends], axis=0)
        found = replace(found, lower=lower, upper=np.mean([one.upper for one in ends], axis=0))
    if factors is not None:
        lower, upper = shift_intervals(found.lower, found.upper, factors)
        found = replace(found, lower=lower, upper=upper)
    return found.widen(p)


def _check_exact(folds: Sequence[Fold]) -> None:
    """Refuse what exact intervals are not proved for.

    Raises
    ------
    InputError
        If there is a model per fold, or examples have weights.
    """
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


def _examples(
    fitted: FittedClassifier, folds: Sequence[Fold], method: Method
) -> list[ClassExamples]:
    """Return the calibration examples of all folds, one class against the rest."""
    k = len(fitted.classes)
    codes = np.concatenate([fold.codes for fold in folds])
    weight = None
    if any(fold.weight is not None for fold in folds):
        every = [np.ones(len(f.codes)) if f.weight is None else f.weight for f in folds]
        weight = np.concatenate(every)
    sharp = method != "exact"
    groups = _groups(fitted, folds) if sharp else None
    scores = [_columns(fold.scores, k) for fold in folds]
    if sharp:
        for fold, columns in zip(folds, scores, strict=True):
            if fold.noise is not None:
                for j in range(columns.shape[1]):
                    s = columns[:, j]
                    columns[:, j] = expected_scores(s, fold.noise * s * (1 - s))
    both = np.concatenate(scores)
    return [
        one_against_rest(both[:, j], codes == (j if k > 2 else 1), weight, groups)
        for j in range(both.shape[1])
    ]


def _groups(fitted: FittedClassifier, folds: Sequence[Fold]) -> IntArray | None:
    """Return the group of every calibration example, None where examples are independent."""
    if fitted.row_groups is not None and all(fold.rows is not None for fold in folds):
        return np.concatenate([fitted.row_groups[fold.rows] for fold in folds])
    return folds[0].groups if len(folds) == 1 else None


def _columns(scores: FloatArray, k: int) -> FloatArray:
    """Return scores as (n, 1), of the second of two classes, or (n, k); a fresh array."""
    if scores.ndim == 1:
        return scores[:, None].copy()
    return scores[:, 1:].copy() if k == 2 else scores.copy()


def _of_scores(
    per_class: Sequence[ClassExamples],
    fold: Fold,
    classes: NDArray[Any],
    level: float,
    method: Method,
    simultaneous: bool,
    other_forests: bool,
) -> ConfidenceIntervals:
    """Return the intervals at the scores by one fold's model."""
    new = _columns(fold.scorer.scores, len(classes))  # type: ignore[attr-defined]
    found = intervals_of(per_class, new, classes, level, method, simultaneous)
    if not other_forests or fold.member_noise is None:
        return found
    # Where the score might have been with another seed; the two sources of error are independent.
    away = ndtri((1 + level) / 2) * np.sqrt(fold.member_noise * new * (1 - new))
    below = intervals_of(per_class, np.maximum(new - away, 0), classes, level, method, simultaneous)
    above = intervals_of(per_class, np.minimum(new + away, 1), classes, level, method, simultaneous)
    lower = np.minimum(below.lower, above.lower)
    upper = np.maximum(below.upper, above.upper)
    middle = (found.lower + found.upper) / 2
    return replace(
        found,
        lower=np.maximum(middle - np.hypot(middle - found.lower, found.lower - lower), 0),
        upper=np.minimum(middle + np.hypot(found.upper - middle, upper - found.upper), 1),
    )


def seed_deviation(fitted: FittedClassifier, X: Any) -> FloatArray:
    """Return how far probabilities (n, k) would move with another seed: standard deviations.

    Given the data, trees are independent draws. So the score s of a class, the mean over T trees,
    has the variance v(s) / T between seeds, v that between trees, measured at ``fit`` as a share of
    s (1 - s). The point calibrator carries it on to the probability; that it would be fitted to
    other scores as well is left out, since these differences average out over the examples.

    Raises
    ------
    InputError
        If the members are not trees of one bagged ensemble, or there is no point calibrator.
    """
    if fitted.point_calibrator is None or any(f.member_noise is None for f in fitted.folds):
        raise InputError(
            "calibrate_on must be 'oob' (and merge 'pooled') to know how far another seed would "
            f"move probabilities, got {fitted.calibrate_on!r}"
        )
    k = len(fitted.classes)
    found = []
    for sub in fitted.sub_models(X):
        rows = sub.of(X)
        for fold, point in zip(sub.folds, sub.points, strict=True):
            scores = whole_scores(fold, rows)
            moved = np.empty((len(scores), k))
            for j in range(1, k) if k == 2 else range(k):
                s = scores if k == 2 else scores[:, j]
                away = np.sqrt((fold.member_noise or 0.0) * s * (1 - s))
                ends = [point.predict_proba(_moved(scores, j, s + one)) for one in (away, -away)]
                moved[:, j] = np.abs(ends[0][:, j] - ends[1][:, j]) / 2
            if k == 2:
                moved[:, 0] = moved[:, 1]
            found.append((sub.rows, moved))
    if found[0][0] is None:
        return found[0][1]
    back = np.argsort(np.concatenate([rows for rows, _ in found if rows is not None]))
    every: FloatArray = np.concatenate([moved for _, moved in found])[back]
    return every


def _moved(scores: FloatArray, j: int, to: FloatArray) -> FloatArray:
    """Return scores with another score of class j; those of the other classes share the rest."""
    to = np.clip(to, 0, 1)
    if scores.ndim == 1:
        return to
    rest = 1 - scores[:, j]
    others = np.divide(1 - to, rest, out=np.ones_like(rest), where=rest > 0)
    moved = scores * others[:, None]
    moved[:, j] = to
    return moved


class _Scored:
    """Scores by the whole model that were taken before, in the place of a scorer."""

    partial = True

    def __init__(self, scorer: Any, scores: FloatArray) -> None:
        self.scorer = scorer
        self.scores = scores

    @property
    def small_ensemble(self) -> bool:
        """Whether a point takes scores by subforests."""
        return bool(getattr(self.scorer, "small_ensemble", False))

    def whole(self, X: Any) -> FloatArray:
        """Return the scores by the whole model; the rows do not count."""
        return self.scores

    def point_scores(self, X: Any) -> list[FloatArray]:
        """Return the scores of the rows of X by subforests."""
        scores: list[FloatArray] = self.scorer.point_scores(X)
        return scores

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the sampled scores of the rows of X."""
        scores: Iterator[SampledScores] = self.scorer.sampled_scores(X)
        return scores
