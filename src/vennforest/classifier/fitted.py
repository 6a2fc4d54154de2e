"""What fitting a classifier makes, and what this predicts of new and of training rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import attrs
import numpy as np
from attrs.validators import instance_of, optional
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    IntArray,
    array,
    check_array,
    columns,
    labels,
    number,
    require,
    same_labels,
)
from vennforest.calibrators import Calibrator
from vennforest.calibrators.base import has_bounds, merged
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.classifier.settings import Settings
from vennforest.groups import (
    CalibratedGroups,
    Grouping,
    SubModel,
    calibrate_groups,
    correction,
    of_rows,
)
from vennforest.multiprobability import Merge, Multiprobability, merge_folds
from vennforest.prior import ShiftedPrior, class_shares, shift_bounds, shift_probabilities
from vennforest.sources import CalibrationExamples, Fold, whole_scores
from vennforest.sources.row_hashes import KnownRows


@stored("fitted-classifier")
@attrs.frozen(eq=False)
class FittedClassifier:
    """Fitted models with their calibration sets, and what turns scores into probabilities.

    ``point_calibrator`` makes the probability of the score by the whole model, for all folds; None:
    the calibrators' own merge of their bounds does. ``n_rows`` were given to ``fit``, in the groups
    ``row_groups`` (n_rows,), and are known again by ``known_rows``. ``by`` has the calibrators of
    groups of objects, ``shift`` class frequencies that were set.
    """

    classes: NDArray[Any] = attrs.field(validator=labels)
    folds: tuple[Fold, ...] = attrs.field(validator=instance_of(tuple))
    calibrators: tuple[Calibrator, ...] = attrs.field(validator=instance_of(tuple))
    point_calibrator: PooledCalibration | None = attrs.field(
        validator=optional(instance_of(PooledCalibration))
    )
    calibrate_on: str = attrs.field(validator=instance_of(str))
    calibrate_on_reason: str = attrs.field(validator=instance_of(str))
    n_rows: int | None = attrs.field(default=None, validator=optional(number(1, integer=True)))
    row_groups: IntArray | None = attrs.field(
        default=None, validator=optional(array(None, kinds="i", low=0))
    )
    by: CalibratedGroups | None = attrs.field(
        default=None, validator=optional(instance_of(CalibratedGroups))
    )
    shift: ShiftedPrior | None = attrs.field(
        default=None, validator=optional(instance_of(ShiftedPrior))
    )
    known_rows: KnownRows | None = attrs.field(
        default=None, validator=optional(instance_of(KnownRows))
    )

    def __attrs_post_init__(self) -> None:
        """Refuse models, calibration examples and calibrators that do not belong together."""
        folds, n_features = self.folds, None
        require(folds, "folds must be one or more")
        require(len(folds) == len(self.calibrators), "calibrators must be as many as folds")
        for number_, (fold, calibrator) in enumerate(zip(folds, self.calibrators, strict=True)):
            require(isinstance(fold, Fold), "folds must be Folds")
            require(isinstance(calibrator, Calibrator), "calibrators must be Calibrators")
            self._check_same(calibrator.classes_)
            fold.check_classes(len(self.classes))
            n = len(fold.codes)
            require(calibrator.n_examples_ == n, f"a calibrator must be of {n} examples")
            drawn = getattr(fold.scorer, "n_examples", n)
            require(drawn == n, f"a scorer must leave out one of {n} examples")
            self._check_same(getattr(fold.scorer, "classes", self.classes))
            own = getattr(fold.estimator, "n_features_in_", None)
            n_features = own if number_ == 0 else n_features
            require(own == n_features, f"n_features_in_ must be {n_features} in every fold")
            if fold.rows is not None:
                require(self.n_rows is not None, "n_rows must be known where folds have rows")
                check_array(fold.rows, "rows", (n,), "i", 0, (self.n_rows or 1) - 1)
        if self.point_calibrator is not None:
            self._check_same(self.point_calibrator.classes_)
        if self.row_groups is not None:
            require(len(self.row_groups) == self.n_rows, "row_groups must be of every row")
        if self.by is not None:
            self.by.check_folds(folds, self.classes)
        if self.shift is not None:
            require(len(self.shift.shares) == len(self.classes), "shares must be of every class")

    def _check_same(self, classes: Any) -> None:
        require(same_labels(classes, self.classes), "classes must be the same everywhere")

    @classmethod
    def calibrate(
        cls,
        settings: Settings,
        classes: NDArray[Any],
        folds: Sequence[Fold],
        calibrate_on: str,
        reason: str,
        *,
        grouping: Grouping | None = None,
        **known: Any,
    ) -> Self:
        """Fit a calibrator to each fold, and to each group of objects in it.

        With a grouping every fold has the group of each example; ``known`` are further fields.
        """

        def calibrator_of(fold: Fold) -> Calibrator:
            calibrator = settings.calibrator_for(fold.estimator).fit(
                fold.scores, classes[fold.codes], sample_weight=fold.weight, classes=classes
            )
            calibrator.score_range_ = None  # new scores are by the same model
            return calibrator

        calibrators = [calibrator_of(fold) for fold in folds]
        examples = CalibrationExamples.of(folds)
        # What scores are is known here, and not guessed from those at hand.
        proba = all(hasattr(fold.estimator, "predict_proba") for fold in folds)
        point = None
        if settings.pooled:
            # One pool for the scores of all folds is better than one per fold (docs/measured.md).
            point = PooledCalibration()
            point.on = "probabilities" if proba else "logits"
            point.fit(
                examples.scores,
                classes[examples.codes],
                sample_weight=examples.weight,
                classes=classes,
            )
            point.score_range_ = None
        groups = None
        if grouping is not None:
            groups = calibrate_groups(grouping, folds, classes, calibrator_of, point)
        return cls(
            classes,
            tuple(folds),
            tuple(calibrators),
            point,
            calibrate_on,
            reason,
            by=groups,
            **known,
        )

    @property
    def prior(self) -> FloatArray:
        """The class frequencies (k,) that probabilities are for."""
        if self.shift is not None:
            return self.shift.shares
        examples = CalibrationExamples.of(self.folds)
        return class_shares(examples.codes, examples.weight, len(self.classes))

    def sub_models(self, X: Any) -> Iterable[SubModel]:
        """Return what calibrates the rows of X, for each set of rows with the same calibrators."""
        points = (self.point_calibrator,) * len(self.folds)
        everything = SubModel(None, self.folds, self.calibrators, points)
        if self.by is None or not _num_samples(X):
            return (everything,)
        return self.by.sub_models(everything, X, _num_samples(X))


SMALLEST = float(np.finfo(np.float64).tiny)

Prediction = tuple[Multiprobability | None, FloatArray]
"""Bounds, where the method has them, and probabilities (n, k)."""


def rows_of(sub: SubModel, X: Any) -> Any:
    """Return the rows of X that a sub-model is for."""
    return X if sub.rows is None else _safe_indexing(X, sub.rows)


def predict(fitted: FittedClassifier, X: Any, bounds: bool = True) -> Prediction:
    """Return what a fitted classifier predicts of the rows of X.

    Of several folds the means; bounds are widened where needed to contain the probability. Without
    ``bounds`` less may have to be done.
    """
    factors = None if fitted.shift is None else fitted.shift.factors
    return put_together(
        [
            (sub.rows, predict_sub_model(sub, fitted.classes, rows_of(sub, X), bounds, factors))
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
        if points[0] is not None:
            p = log_mean(each)
        else:
            how: Merge = getattr(calibrators[0], "merge", "midpoint")
            p = merge_folds(every, how, each) if every else np.mean(each, axis=0)
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
    few = getattr(fold.scorer, "small_ensemble", False)
    if point is not None and not bounds and (sampled or few):
        return None, None, _point(fold, point, X, None)
    total = 0
    sums: list[FloatArray] = []
    scores: FloatArray = np.empty(0)
    for scores, left_out, samples in fold.scorer.sampled_scores(X):
        if point is not None and not bounds:
            break
        if has_bounds(calibrator):
            found = _bounds(calibrator, scores, left_out)
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


def _point(fold: Fold, point: Any, X: Any, of_all: FloatArray | None) -> FloatArray:
    """Return what the point calibrator makes of rows, whose scores by all members may be known.

    With few trees: the geometric mean over scores by subforests of out-of-bag size, normalised.
    """
    if not getattr(fold.scorer, "small_ensemble", False):
        p: FloatArray = point.predict_proba(whole_scores(fold, X) if of_all is None else of_all)
        return p
    scorer: Any = fold.scorer
    return log_mean([point.predict_proba(scores) for scores in scorer.point_scores(X)])


def log_mean(every: Sequence[FloatArray]) -> FloatArray:
    """Return the normalised geometric mean of several models' probabilities (n, k).

    Where models differ it lies less towards the middle than their mean, which is too cautious if
    each is calibrated. Models that are certain of different classes leave something to each.
    """
    means = np.exp(np.mean([np.log(np.maximum(each, SMALLEST)) for each in every], axis=0))
    normalised: FloatArray = means / means.sum(axis=1, keepdims=True)
    return normalised


def _bounds(
    calibrator: Any,
    scores: FloatArray,
    left_out: IntArray | None,
) -> Multiprobability:
    """Return the bounds of one draw."""
    # A calibrator of a user's own need not know how to leave out examples.
    given = {} if left_out is None else {"left_out": left_out}
    bounds: Multiprobability = calibrator.predict_multiprobability(scores, **given)
    return bounds


class Once:
    """A scorer that is asked for the same rows several times, and scores them once.

    Of the draws of a partial scorer, which may be many, all are kept if ``draws``.
    """

    def __init__(self, scorer: Any, draws: bool = True) -> None:
        self._scorer = scorer
        self._draws = draws or not getattr(scorer, "partial", False)
        self._known: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._scorer, name)
        return partial(self._answer, name, found) if callable(found) else found

    def _answer(self, name: str, score: Any, X: Any) -> Any:
        if name not in self._known:
            answer = score(X)
            if isinstance(answer, Iterator):
                if not self._draws:
                    return answer
                answer = list(answer)
            self._known[name] = answer
        return self._known[name]


def predict_once(model: Any, X: Any) -> Prediction:
    """Return the bounds and probabilities of a fitted classifier, with every row scored once."""
    prediction: Prediction = model._predict(X)
    return prediction


def predict_together(models: Sequence[Any], X: Any) -> list[Prediction]:
    """Return the same of one classifier and what its ``recalibrate`` returned, scored together."""
    every = [model._state for model in models]
    if any(fitted.folds is not every[0].folds for fitted in every):
        raise ValueError("models must share their estimators, got models that were fitted apart")
    pieces: list[list[Piece]] = [[] for _ in models]
    for subs in zip(*(fitted.sub_models(X) for fitted in every), strict=True):
        rows = rows_of(subs[0], X)
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
    rows = [rows for rows, _ in pieces if rows is not None]
    p = in_place(rows, [made[1] for _, made in pieces])
    every = [made[0] for _, made in pieces]
    known = [one for one in every if one is not None]
    if len(known) < len(every):
        return None, p
    widened = [np.zeros(len(one), bool) if one.widened is None else one.widened for one in known]
    ends = [one.lower for one in known], [one.upper for one in known], widened
    lower, upper, wide = (in_place(rows, each) for each in ends)
    return Multiprobability(lower, upper, known[0].classes, wide), p


def in_place(rows: Sequence[IntArray], answers: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return answers for sets of rows, which are all rows together, in the order of the rows."""
    return np.concatenate(answers)[np.argsort(np.concatenate(rows))]


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
                    own = cell.point or cell.calibrator
                    p[rows] = own.predict_proba(fold.scores[rows])
    return np.concatenate(every)


FOLDS = 5
"""A calibrator that cannot leave out a single example is fitted again without each of so many."""


def predict_training_rows(fitted: FittedClassifier) -> Prediction:
    """Return bounds and probabilities of the n rows given to ``fit``, each without its own label.

    A row has its calibration score, which the source has given it by a model that did not see it.
    Venn and Venn–Abers leave the example, and its group, out of the calibration set; other
    calibrators are fitted again without the fifth of the examples that it is in. Several scores of
    one row are averaged after calibration. NaN for rows that calibrate nothing.
    """
    if fitted.calibrate_on == "training":
        raise AttributeError(
            'a model with calibrate_on="training" has seen every row: it predicts no training '
            'row honestly; use calibrate_on="oob" or "cv"'
        )
    n = fitted.n_rows
    if n is None or any(fold.rows is None for fold in fitted.folds):
        raise AttributeError(
            "this model does not know which of the rows given to fit its calibration examples "
            "are: its source does not say (Fold.rows)"
        )
    folds, points = fitted.folds, [fitted.point_calibrator] * len(fitted.folds)
    groups, classes = fitted.row_groups, fitted.classes
    bounds, p = _predict_examples(folds, fitted.calibrators, points, classes, n, groups)
    if fitted.by is not None:
        bounds, p = _within_groups(fitted, fitted.by, n, bounds, p)
    if fitted.shift is None:
        return bounds, p
    p = shift_probabilities(p, fitted.shift.factors)
    return None if bounds is None else shift_bounds(bounds, fitted.shift.factors).widen(p), p


def _within_groups(
    fitted: FittedClassifier,
    by: CalibratedGroups,
    n: int,
    bounds: Multiprobability | None,
    of_all: FloatArray,
) -> Prediction:
    """Return what the calibrators of groups make of the rows; those of all groups made the rest."""
    classes, pooled = fitted.classes, fitted.point_calibrator is not None
    p = of_all.copy()
    lower, upper = np.full((2, *p.shape), np.nan)
    for group in range(len(by.grouping)):
        cells = [
            (fold, own.cells[own.of_group[group]])
            for fold, own in zip(fitted.folds, by.folds, strict=True)
            if own.of_group[group] >= 0
        ]
        if not cells:
            continue
        folds = [of_rows(fold, cell.rows) for fold, cell in cells]
        mine = np.concatenate([f.rows[f.by == group] for f in folds if f.rows is not None])
        none: list[Any] = [None] * len(folds)
        calibrators = [cell.calibrator for _, cell in cells]
        found, own_p = _predict_examples(folds, calibrators, none, classes, n, fitted.row_groups)
        if found is not None:
            lower[mine], upper[mine] = found.lower[mine], found.upper[mine]
        if by.ridge is not None:
            # The correction learns from the probability of each row without it, as it is asked.
            given = [
                attrs.evolve(fold, scores=columns(of_all[fold.rows], len(classes)))
                for fold in folds
            ]
            one = [correction(by.ridge)] * len(given)
            own_p = _predict_examples(given, one, one, classes, n, fitted.row_groups)[1]
        known = mine[~np.isnan(own_p[mine, 0])]
        p[known] = own_p[known]
    if bounds is None:
        return None, p
    made = Multiprobability(lower, upper, classes)
    return (made.widen(p) if pooled or len(fitted.folds) > 1 else made), p


def _predict_examples(
    folds: Sequence[Fold],
    calibrators: Sequence[Any],
    points: Sequence[Any],
    classes: NDArray[Any],
    n: int,
    groups: IntArray | None,
) -> Prediction:
    """Return the mean predictions of n rows over the calibration examples that they are."""
    own = [_Examples.of([fold], classes, groups) for fold in folds]
    rows = np.concatenate([one.rows for one in own])
    bounds = [one.bounds(calibrator) for one, calibrator in zip(own, calibrators, strict=True)]
    if points[0] is not None:
        p = _Examples.of(folds, classes, groups).proba(points[0], None)
    else:
        each = zip(own, calibrators, bounds, strict=True)
        p = np.concatenate([one.proba(calibrator, found) for one, calibrator, found in each])
    counts = np.bincount(rows, minlength=n)[:, None]

    def mean(values: FloatArray) -> FloatArray:
        total = np.zeros((n, len(classes)))
        np.add.at(total, rows, values)
        with np.errstate(invalid="ignore"):
            means: FloatArray = total / counts
        return means

    p = mean(p)
    known = [found for found in bounds if found is not None]
    if not known:
        return None, p
    lower = mean(np.concatenate([found.lower for found in known]))
    upper = mean(np.concatenate([found.upper for found in known]))
    found = Multiprobability(lower, upper, classes)
    return (found if len(known) == 1 and points[0] is None else found.widen(p)), p


@dataclass(frozen=True)
class _Examples:
    """Calibration examples, and what calibrators make of each without it."""

    scores: FloatArray
    codes: IntArray
    weight: FloatArray | None
    rows: IntArray
    groups: IntArray | None
    classes: NDArray[Any]

    @classmethod
    def of(cls, folds: Sequence[Fold], classes: NDArray[Any], groups: IntArray | None) -> Self:
        """Return the examples of some folds, one after another."""
        known = CalibrationExamples.of(folds)
        rows = np.concatenate([p.rows for p in folds if p.rows is not None]).astype(np.intp)
        # A splitter of a user's own may score a row twice: no copy of it stays behind.
        own = rows if len(np.unique(rows)) < len(rows) else None
        groups = own if groups is None else groups[rows]
        return cls(known.scores, known.codes, known.weight, rows, groups, classes)

    def bounds(self, calibrator: Any) -> Multiprobability | None:
        """Return the bounds that leave each example out, None where there are none."""
        if not has_bounds(calibrator):
            return None
        if self.groups is None:
            numbers = np.arange(len(self.scores))
            bounds: Multiprobability = calibrator.predict_multiprobability(self.scores, numbers)
            return bounds
        lower, upper = np.full((2, len(self.codes), len(self.classes)), np.nan)
        for fitted, held in self._refits(calibrator):
            part = fitted.predict_multiprobability(self.scores[held])
            lower[held], upper[held] = part.lower, part.upper
        return Multiprobability(lower, upper, self.classes)

    def proba(self, calibrator: Any, bounds: Multiprobability | None) -> FloatArray:
        """Return the probabilities (n, k) without each example."""
        if bounds is not None:
            return merged(calibrator, bounds, self.scores)
        p = np.full((len(self.codes), len(self.classes)), np.nan)
        for fitted, held in self._refits(calibrator):
            if bounds is None:
                p[held] = fitted.predict_proba(self.scores[held])
            else:
                p[held] = merged(fitted, bounds[held], self.scores[held])
        return p

    def _refits(self, calibrator: Any) -> Iterator[tuple[Any, IntArray]]:
        """Yield calibrators that lack some examples, and these; rows and groups stay whole."""
        units = self.rows if self.groups is None else self.groups
        numbers = np.unique(units, return_inverse=True)[1]
        size = int(numbers.max()) + 1
        if size == 1:  # without it there is nothing to fit to
            return
        # The fold that a row is in depends on no label.
        fold = np.random.RandomState(0).permutation(size)[numbers] % min(FOLDS, size)
        for held_fold in range(min(FOLDS, size)):
            held, rest = np.flatnonzero(fold == held_fold), np.flatnonzero(fold != held_fold)
            fitted = clone(calibrator).fit(
                self.scores[rest],
                self.classes[self.codes[rest]],
                sample_weight=None if self.weight is None else self.weight[rest],
                classes=self.classes,
            )
            yield fitted, held
