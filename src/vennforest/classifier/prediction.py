"""From what fitting made, and rows, to predictions: samples are averaged, folds are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.bounded import has_bounds, merged
from vennforest.classifier.fitted import FittedClassifier
from vennforest.groups.cells import SubModel
from vennforest.joined import Joined, predict_joined, takes_joined
from vennforest.multiprobability import Merge, Multiprobability, merge_folds
from vennforest.prior import shift_bounds, shift_probabilities
from vennforest.sources import Fold, whole_scores

SMALLEST = float(np.finfo(np.float64).tiny)

Prediction = tuple[Multiprobability | None, FloatArray]
"""Bounds, where the method has them, and probabilities (n, k)."""


def predict(fitted: FittedClassifier, X: Any, bounds: bool = True) -> Prediction:
    """Return what a fitted classifier predicts of the rows of X.

    Parameters
    ----------
    fitted : FittedClassifier
    X : array-like of shape (n, d)
    bounds : bool
        Whether bounds are wanted; without them less may have to be done.

    Returns
    -------
    (Multiprobability or None, ndarray of shape (n, k))
        Of several folds the means; bounds widened where needed to hold the probability.
    """
    factors = None if fitted.shift is None else fitted.shift.factors
    return put_together(
        [
            (sub.rows, predict_sub_model(sub, fitted.classes, sub.of(X), bounds, factors))
            for sub in fitted.sub_models(X)
        ]
    )


def predict_sub_model(
    sub: SubModel, classes: NDArray[Any], X: Any, bounds: bool, factors: FloatArray | None
) -> Prediction:
    """Return the mean prediction over folds of rows that have the same calibrators."""
    calibrators, points = sub.calibrators, sub.points
    results = [
        _predict_fold(fold, calibrator, point, classes, X, bounds, factors)
        for fold, calibrator, point in zip(sub.folds, calibrators, points, strict=True)
    ]
    every = [found for found, *_ in results if found is not None]
    p = results[0][2]
    if len(results) > 1:
        each = [one for *_, one in results]
        how: Merge = "midpoint"  # the plain mean over folds
        if points[0] is None:
            how = getattr(calibrators[0], "merge", how)
        p = merge_folds(every, how, each) if every else cast("FloatArray", np.mean(each, axis=0))
    shown = [found for _, found, _ in results if found is not None]
    if factors is not None:
        p = shift_probabilities(p, factors)
    if not shown:
        return None, p
    if len(shown) == 1 and points[0] is None:
        if factors is None:
            return shown[0], p
        p = shown[0].hold(p)
        wide = shown[0].widen(p)  # over several draws only
        return wide if wide.widened is not None and wide.widened.any() else shown[0], p
    lower = np.mean([found.lower for found in shown], axis=0)
    upper = np.mean([found.upper for found in shown], axis=0)
    return Multiprobability(lower, upper, classes).widen(p), p


def _predict_fold(
    fold: Fold,
    calibrator: Any,
    point: Any,
    classes: NDArray[Any],
    X: Any,
    bounds: bool,
    factors: FloatArray | None,
) -> tuple[Multiprobability | None, Multiprobability | None, FloatArray]:
    """Return the means of bounds, of shifted bounds and of probabilities over a fold's samples."""
    sampled = getattr(fold.scorer, "partial", False)
    if point is not None and not bounds and (sampled or _few(fold)):
        return None, None, _point(fold, point, X, None)
    total = 0
    sums: list[FloatArray] = []
    scores: FloatArray = np.empty(0)
    for scores, left_out, samples, joined in fold.scorer.sampled_scores(X):
        if point is not None and not bounds:
            break
        if has_bounds(calibrator):
            found = _bounds(calibrator, scores, left_out, joined, fold.groups, classes)
            answer = [found.lower, found.upper]
            if factors is not None:
                # One by one: a mean of shifted bounds is unbiased, a shifted mean is not.
                moved = shift_bounds(found, factors)
                answer += [moved.lower, moved.upper]
            if point is None:
                answer.append(merged(calibrator, found, scores))
        else:
            answer = [calibrator.predict_proba(scores)]
        if samples > 1:
            answer = [a.reshape(samples, -1, a.shape[1]).sum(axis=0) for a in answer]
        sums = answer if not sums else [s + a for s, a in zip(sums, answer, strict=True)]
        total += samples
    means = sums if total == 1 else [s / total for s in sums]
    p = means.pop() if point is None else _point(fold, point, X, None if sampled else scores)
    if not means:
        return None, None, p
    found = Multiprobability(means[0], means[1], classes)
    return found, found if factors is None else Multiprobability(means[2], means[3], classes), p


def _few(fold: Fold) -> bool:
    return bool(getattr(fold.scorer, "small_ensemble", False))


def _point(fold: Fold, point: Any, X: Any, of_all: FloatArray | None) -> FloatArray:
    """Return what the point calibrator makes of rows, whose scores by all members may be known.

    With few trees: the geometric mean over scores by subforests of out-of-bag size, normalised.
    Subforests that are certain of different classes leave something to each.
    """
    if not _few(fold):
        p: FloatArray = point.predict_proba(whole_scores(fold, X) if of_all is None else of_all)
        return p
    scorer: Any = fold.scorer
    every = [point.predict_proba(scores) for scores in scorer.point_scores(X)]
    logs = [np.log(np.maximum(each, SMALLEST)) for each in every]
    means = np.exp(np.mean(logs, axis=0))
    normalised: FloatArray = means / means.sum(axis=1, keepdims=True)
    return normalised


def _bounds(
    calibrator: Any,
    scores: FloatArray,
    left_out: IntArray | None,
    joined: Joined | None,
    groups: IntArray | None,
    classes: NDArray[Any],
) -> Multiprobability:
    """Return the bounds of one draw."""
    if joined is None or not takes_joined(calibrator):
        # A calibrator of a user's own need not know how to leave out examples or groups.
        given = {} if left_out is None else {"left_out": left_out}
        if given and groups is not None:
            given["groups"] = groups
        bounds: Multiprobability = calibrator.predict_multiprobability(scores, **given)
        return bounds
    blocks = joined.map(lambda block: predict_joined(calibrator, *block))
    lower = np.concatenate([block.lower for block in blocks])
    upper = np.concatenate([block.upper for block in blocks])
    return Multiprobability(lower, upper, classes)


class Once:
    """A scorer that is asked for the same rows several times, and scores them once."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer
        self._known: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._scorer, name)
        return partial(self._answer, name, found) if callable(found) else found

    def _answer(self, name: str, score: Any, X: Any) -> Any:
        if name not in self._known:
            answer = score(X)
            self._known[name] = list(answer) if isinstance(answer, Iterator) else answer
        return self._known[name]


def predict_once(model: Any, X: Any) -> Prediction:
    """Return what a model predicts, with every row scored once for bounds and probabilities.

    Parameters
    ----------
    model : CalibratedClassifier or TransductiveClassifier
        Fitted.
    X : array-like, sparse matrix or data frame of shape (n, d)
        Rows as the estimator takes them.

    Returns
    -------
    (Multiprobability or None, ndarray of shape (n, k))
        What ``predict_multiprobability`` (None: it has no bounds) and ``predict_proba`` return.
    """
    prediction: Prediction = model._predict(X)
    return prediction


def predict_together(models: Sequence[Any], X: Any) -> list[Prediction]:
    """Return what models that share their estimators predict, with every row scored once.

    Parameters
    ----------
    models : sequence of CalibratedClassifier
        One fitted model and what its ``recalibrate`` returned.
    X : array-like, sparse matrix or data frame of shape (n, d)
        Rows as the estimator takes them.

    Returns
    -------
    list of (Multiprobability or None, ndarray of shape (n, k))
        For each model what ``predict_multiprobability`` (None: it has no bounds) and
        ``predict_proba`` return.

    Raises
    ------
    ValueError
        If the models do not share their estimators.
    """
    every = [model._state for model in models]
    if any(fitted.folds is not every[0].folds for fitted in every):
        raise ValueError("models must share their estimators, got models that were fitted apart")
    pieces: list[list[Piece]] = [[] for _ in models]
    for subs in zip(*(fitted.sub_models(X) for fitted in every), strict=True):
        rows = subs[0].of(X)
        folds = [attrs.evolve(fold, scorer=Once(fold.scorer)) for fold in subs[0].folds]
        for fitted, sub, own in zip(every, subs, pieces, strict=True):
            factors = None if fitted.shift is None else fitted.shift.factors
            recorded = sub._replace(folds=folds)
            made = predict_sub_model(recorded, fitted.classes, rows, True, factors)
            own.append((sub.rows, made))
    return [put_together(own) for own in pieces]


Piece = tuple[IntArray | None, Prediction]
"""What is predicted of some rows, and of which (None: of all)."""


def put_together(pieces: Sequence[Piece]) -> Prediction:
    """Return what is predicted of all rows from what is predicted of some and the others."""
    if pieces[0][0] is None:
        return pieces[0][1]
    rows = np.concatenate([rows for rows, _ in pieces if rows is not None])
    back = np.argsort(rows)
    p = np.concatenate([made[1] for _, made in pieces])[back]
    every = [made[0] for _, made in pieces]
    known = [one for one in every if one is not None]
    if len(known) < len(every):
        return None, p
    widened = [np.zeros(len(one), bool) if one.widened is None else one.widened for one in known]
    return (
        Multiprobability(
            np.concatenate([one.lower for one in known])[back],
            np.concatenate([one.upper for one in known])[back],
            known[0].classes,
            np.concatenate(widened)[back],
        ),
        p,
    )


def calibration_probabilities(fitted: FittedClassifier) -> FloatArray:
    """Return what the maps make of their own calibration examples, (n, k), fold after fold."""
    every = [
        (calibrator if fitted.point_calibrator is None else fitted.point_calibrator).predict_proba(
            fold.scores
        )
        for fold, calibrator in zip(fitted.folds, fitted.calibrators, strict=True)
    ]
    if fitted.by is not None:
        for fold, grouped, p in zip(fitted.folds, fitted.by.folds, every, strict=True):
            mine = grouped.of_group[np.asarray(fold.by)]
            for number, cell in enumerate(grouped.cells):
                rows = np.flatnonzero(mine == number)
                if len(rows):
                    p[rows] = cell.map.predict_proba(fold.scores[rows])
    return np.concatenate(every)
