"""Fitted calibrators, and from rows to bounds, probabilities and confidence intervals.

`fit_calibrators` fits the calibrators of a classifier to the scores that models gave to examples.
`predict_rows` scores the rows with the model of every fold (`score_rows`). Then `predict_scores`
calibrates the scores of each fold, applies other shares of the classes and combines the folds. With
``by`` the rows are parted first, and each part has the `Calibration` of its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from vennforest._messages import warn
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_labels,
    check_weights,
    count_rows,
    require,
)
from vennforest.calibrators import METHODS, Calibrator
from vennforest.calibrators.bounded import has_bounds, merged
from vennforest.calibrators.intervals import (
    ConfidenceIntervals,
    IntervalMethod,
    ScoreIntervals,
    interval_curves,
    read_intervals,
)
from vennforest.classifier.by_groups import ByGroups
from vennforest.multiprobability import Multiprobability, concatenated, merge_folds
from vennforest.prior import ShiftedPrior, shift_bounds, shift_intervals, shift_probabilities
from vennforest.scores import ScoreKind
from vennforest.sources import CalibrationExamples, Fold
from vennforest.sources.data import skip_shared_steps
from vennforest.sources.estimators import as_read, refuse_other_columns
from vennforest.sources.row_hashes import HashArray, hash_rows
from vennforest.sources.training_columns import (
    MIN_COMPARED_ROWS,
    ColumnDifference,
    TrainingColumns,
    differences_of,
)

N_PARTS = 5
"""Parts of the calibration examples, each of which is scored by what was fitted without it."""

MIN_EXAMPLES_OF_GROUP = 50
"""Examples, the new object included, that a group needs for a calibrator of its own."""

AnyCalibrator = TypeVar("AnyCalibrator", bound=Calibrator)


@dataclass(frozen=True, eq=False)
class Calibration:
    """The calibrators of one of the groups of ``by``, or of all objects.

    ``calibrators`` has one for each fold. ``point``, which maps the scores of all folds to
    probabilities, is None where calibrators merge their bounds.
    """

    calibrators: list[Calibrator]
    point: Calibrator | None

    def of_fold(self, i: int) -> Calibration:
        """Return the calibration with the calibrator of one fold alone."""
        return Calibration([self.calibrators[i]], self.point)

    def _check_state(self) -> None:
        calibrators = [*self.calibrators, *([] if self.point is None else [self.point])]
        for calibrator in calibrators:
            has_classes = np.array_equal(calibrator.classes_, calibrators[0].classes_)
            require(isinstance(calibrator, Calibrator) and has_classes, "calibrators must agree")


_CURVES: WeakKeyDictionary[Calibration, dict[tuple[float, str], list[ScoreIntervals]]] = (
    WeakKeyDictionary()
)
"""Interval curves of the groups of models in use, by level and method."""


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """The state of a classifier: models, their calibration examples, and calibrators.

    ``columns`` summarise the data frame that was fitted to, None for arrays. Rows that belong
    together have one number in ``row_groups``. Objects are calibrated separately in each of
    ``by_groups``, to which the rows belong by their ``by_codes``: ``of_group`` has the calibration
    of large groups by number, and ``overall`` is that of all others. A table of new rows must have
    the columns ``column_names``. ``record`` is how the model came to be.
    """

    classes: NDArray[Any]
    folds: list[Fold]
    calibrate_on: str
    calibrate_on_reason: str
    n_rows: int | None = None
    n_equal_pairs: float = 0.0
    row_sketch: HashArray | None = None
    row_groups: IntArray | None = None
    by_groups: ByGroups | None = None
    by_codes: IntArray | None = None
    columns: TrainingColumns | None = None
    column_names: list[str] | None = None
    shift: ShiftedPrior | None = None
    record: dict[str, Any] = field(default_factory=dict)
    overall: Calibration = field(default_factory=lambda: Calibration([], None))
    of_group: dict[int, Calibration] = field(default_factory=dict)

    @property
    def prior(self) -> FloatArray:
        """The class frequencies (k,) that probabilities are for."""
        if self.shift is not None:
            return self.shift.shares
        return CalibrationExamples.of(self.folds).class_shares(len(self.classes))

    def calibration(self, code: int | None) -> Calibration:
        """Return the calibration of a group, or of all objects."""
        return self.overall if code is None else self.of_group[code]

    def of_fold(self, i: int) -> FittedClassifier:
        """Return the state with one of its folds alone."""
        of_group = {code: calibration.of_fold(i) for code, calibration in self.of_group.items()}
        overall = self.overall.of_fold(i)
        return replace(self, folds=[self.folds[i]], overall=overall, of_group=of_group)

    def groups_of(self, examples: CalibrationExamples) -> IntArray | None:
        """Return the number of the rows (n,) that each example belongs to, None without any."""
        if examples.rows is None or self.row_groups is None:
            return None
        return self.row_groups[examples.rows]

    def column_differences(self, X: Any) -> list[ColumnDifference]:
        """Return the columns of a data frame, as the models read it, that differ from training."""
        if self.columns is None or count_rows(X) < MIN_COMPARED_ROWS:
            return []
        return differences_of(self.columns, as_read(X, self.folds[0].model))

    def hash_as_read(self, X: Any) -> HashArray:
        """Return hashes (n,) of rows as the models read them, by which rows are recognised.

        A date or a decimal is the same row from CSV and from Parquet.
        """
        return hash_rows(as_read(X, self.folds[0].model))

    def _check_state(self) -> None:
        check_labels(self.classes, "classes")
        require(len(self.folds) > 0, "folds must be one or more")
        for calibration in [self.overall, *self.of_group.values()]:
            calibrators, has_point = calibration.calibrators, calibration.point is not None
            require(len(calibrators) == len(self.folds), "folds must have calibrators")
            require(has_point == (self.overall.point is not None), "points must be of all groups")
            has_classes = np.array_equal(calibrators[0].classes_, self.classes)
            require(has_classes, "calibrators must be of the classes")
        n_rows, n_groups = self.n_rows or 0, 0 if self.by_groups is None else len(self.by_groups)
        require(set(self.of_group) <= set(range(n_groups)), "calibrators must be of groups")
        for fold in self.folds:
            fold.check_classes(len(self.classes))
            if fold.rows is not None:
                check_array(fold.rows, "rows", (len(fold.codes),), "i", 0, n_rows - 1)
        for codes in (self.row_groups, self.by_codes):
            if codes is not None:
                check_array(codes, "codes of groups", (n_rows,), "i", 0)
        if self.column_names is not None:
            are_names = all(type(name) is str for name in self.column_names)
            require(are_names, "column_names must be names")
        if self.row_sketch is not None:
            check_array(self.row_sketch, "row_sketch", (None,), "u")
        require(isinstance(self.columns, TrainingColumns | None), "columns must be of training")
        has_codes = (self.by_groups is None) == (self.by_codes is None)
        require(has_codes, "by_codes must be of by_groups")
        has_shares = self.shift is None or len(self.shift.shares) == len(self.classes)
        require(has_shares, "shares must be of every class")


class Prediction(NamedTuple):
    """Bounds of m rows, None where the method has none, and probabilities (m, k)."""

    bounds: Multiprobability | None
    p: FloatArray


class RowScores(NamedTuple):
    """Scores of m rows by the model of a fold, (m,) or (m, k); None where they are not needed.

    ``for_calibrators``, which the calibrator of the fold takes, are by the members that did not see
    the examples ``left_out`` (m,), or by the whole model where that is None. ``by_all``, which the
    point calibrator takes, are by the whole model.
    """

    for_calibrators: FloatArray | None
    left_out: IntArray | None
    by_all: FloatArray | None

    def of_rows(self, rows: IntArray | slice) -> RowScores:
        """Return the scores of some of the rows."""
        arrays: list[Any] = [None if array is None else array[rows] for array in self]
        return RowScores(*arrays)


# --- calibrators ---------------------------------------------------------------------------------


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
            parts = [fold.select(fitted.by_codes[fold.rows] == code) for fold in of_folds]
            calibrators = [
                fit(calibrator, part) if len(part.codes) + 1 >= MIN_EXAMPLES_OF_GROUP else of_all
                for part, of_all in zip(parts, overall.calibrators, strict=True)
            ]
            if point_calibrator is not None:
                point = fit(point_calibrator, CalibrationExamples.of(parts))
            of_group[code] = Calibration(calibrators, point)
    return replace(fitted, overall=overall, of_group=of_group)


# --- predictions ---------------------------------------------------------------------------------


def predict_rows(fitted: FittedClassifier, X: Any, bounds: bool = True) -> Prediction:
    """Return the bounds and probabilities of the rows of X; without ``bounds`` less is computed.

    Point calibrators, as ``merge="pooled"`` has them, give the probabilities alone: then the
    calibrators of folds, such as Venn–Abers, are read for bounds only.
    """
    return predict_scores(fitted, *score_rows(fitted, X, bounds=bounds))


def score_rows(
    fitted: FittedClassifier, X: Any, *, bounds: bool = True, score_all: bool = False
) -> tuple[list[RowScores], IntArray | None]:
    """Return the scores of the rows of X by each fold, and their groups (m,), None without any.

    The scores are those that predictions need; with ``score_all`` they include those by the whole
    model, which confidence intervals take.
    """
    n = count_rows(X, low=1)
    if fitted.column_names is not None:
        refuse_other_columns(X, fitted.column_names)
    codes = None if fitted.by_groups is None else fitted.by_groups.codes(X, n)
    if codes is not None and (n_unseen := int((codes < 0).sum())):
        warn(
            f"{n_unseen} of {n} rows are of groups without calibration examples: the calibrator of "
            "all groups together predicts them, and nothing is guaranteed within these groups"
        )
    has_point = fitted.overall.point is not None
    scored = []
    folds = fitted.folds
    for fold, rows in skip_shared_steps(folds, X) if len(folds) > 1 else [(folds[0], X)]:
        # A fold's calibrator gives the bounds and, without a point calibrator, the probabilities.
        for_bounds = fold.score_for_bounds(rows) if bounds or not has_point else (None, None)
        for_calibrators, left_out = for_bounds
        # Where no example is left out, these scores are by the whole model.
        by_all = for_calibrators if left_out is None else None
        # Elsewhere the whole model scores the rows too, if anything takes its scores.
        if by_all is None and (score_all or has_point):
            by_all = fold.score(rows)
        scored.append(RowScores(for_calibrators, left_out, by_all))
    return scored, codes


def predict_scores(
    fitted: FittedClassifier, scored: Sequence[RowScores], codes: IntArray | None
) -> Prediction:
    """Return the bounds and probabilities of scored rows in groups ``codes`` (m,)."""
    parts = split_by_group(fitted, codes)
    predictions = [
        _predict_group(fitted, code, [scores.of_rows(rows) for scores in scored])
        for rows, code in parts
    ]
    if len(parts) == 1:
        return predictions[0]
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    p = np.concatenate([part.p for part in predictions])[order]
    bounds = [part.bounds for part in predictions if part.bounds is not None]
    return Prediction(concatenated(bounds)[order] if bounds else None, p)


def split_by_group(
    fitted: FittedClassifier, codes: IntArray | None
) -> list[tuple[IntArray | slice, int | None]]:
    """Return sets of the rows in groups ``codes`` (m,), each with its group, None for others."""
    if codes is None or not fitted.of_group:
        return [(slice(None), None)]
    parts: list[Any] = [(np.flatnonzero(codes == code), code) for code in fitted.of_group]
    parts.append((np.flatnonzero(~np.isin(codes, list(fitted.of_group))), None))
    return [part for part in parts if len(part[0])] or [(slice(None), None)]


def _predict_group(
    fitted: FittedClassifier, code: int | None, scored: Sequence[RowScores]
) -> Prediction:
    """Return the bounds and probabilities of scored rows of one group, or of all others.

    The probability is the mean over folds, whose mean over rows is that of the folds: a normalised
    geometric mean has a log loss that is .0005 lower, but is too low for rare classes. Only
    ``merge="log"`` takes that. Bounds are means too, widened where needed to contain it.
    """
    calibration = fitted.calibration(code)
    bounds: list[Multiprobability] = []
    probabilities = []
    for i, (calibrator, scores) in enumerate(zip(calibration.calibrators, scored, strict=True)):
        x, left_out, by_all = scores
        if x is not None and has_bounds(calibrator):
            # A calibrator of the user's may not know of left-out examples.
            options = {} if left_out is None else {"left_out": left_out}
            if left_out is not None and calibrator is not fitted.overall.calibrators[i]:
                assert fitted.by_codes is not None
                is_of_group = fitted.by_codes[fitted.folds[i].rows] == code
                number = np.where(is_of_group, np.cumsum(is_of_group) - 1, -1)
                options = {"left_out": number[left_out]}
            bounds.append(calibrator.predict_multiprobability(x, **options))
        if calibration.point is not None:
            probabilities.append(calibration.point.predict_proba(cast(FloatArray, by_all)))
        elif bounds:
            probabilities.append(merged(calibrator, bounds[-1], cast(FloatArray, x)))
        else:
            probabilities.append(calibrator.predict_proba(cast(FloatArray, x)))
    merges = calibration.point is None
    if bounds and merges and len(bounds) > 1:
        p = merge_folds(bounds, calibration.calibrators[0].merge, probabilities)
    else:
        p = probabilities[0] if len(probabilities) == 1 else np.mean(probabilities, axis=0)
    if fitted.shift is not None:
        # A mean of shifted bounds is unbiased, a shifted mean is not.
        bounds = [shift_bounds(part, fitted.shift.factors) for part in bounds]
        p = shift_probabilities(p, fitted.shift.factors)
    if not bounds:
        return Prediction(None, p)
    if len(bounds) == 1 and merges:
        if fitted.shift is not None:
            # Bounds contain the probability that they are merged to; shifted, up to rounding.
            clipped = np.clip(p, bounds[0].lower, bounds[0].upper)
            p = np.where(np.abs(p - clipped) < 1e-12, clipped, p)
        return Prediction(bounds[0], p)
    mean = bounds[0]
    if len(bounds) > 1:
        lower = np.mean([part.lower for part in bounds], axis=0)
        upper = np.mean([part.upper for part in bounds], axis=0)
        mean = Multiprobability(lower, upper, mean.classes)
    return Prediction(mean.widen(p), p)


# --- confidence intervals ------------------------------------------------------------------------


def predict_confidence(
    fitted: FittedClassifier,
    X: Any,
    level: float = 0.95,
    method: IntervalMethod = "likelihood-ratio",
    bounds: bool = True,
) -> tuple[Prediction, ConfidenceIntervals]:
    """Return bounds, probabilities and confidence intervals, every row scored once.

    Over folds, intervals are means of those at the scores by each model.
    """
    if method == "exact" and len(fitted.folds) != 1:
        raise InputError(
            "ensemble must be False for exact confidence intervals, which need one model for all "
            f"scores, got {len(fitted.folds)} models: use method='likelihood-ratio'"
        )
    scored, codes = score_rows(fitted, X, bounds=bounds, score_all=True)
    prediction = predict_scores(fitted, scored, codes)
    return prediction, intervals_at(fitted, scored, codes, level, method).widen(prediction.p)


def intervals_at(
    fitted: FittedClassifier,
    scored: Sequence[RowScores],
    codes: IntArray | None,
    level: float,
    method: IntervalMethod = "likelihood-ratio",
) -> ConfidenceIntervals:
    """Return the intervals of scored rows, not yet widened to contain the probability."""
    scores = [cast(FloatArray, of_fold.by_all) for of_fold in scored]
    ends = np.empty((len(scores), 2, len(scores[0]), len(fitted.classes)))
    for rows, code in split_by_group(fitted, codes):
        curves = interval_curves_of(fitted, level, method, code)
        for of_fold, of_rows in zip(scores, ends, strict=True):
            part = read_intervals(curves, of_fold[rows], fitted.classes, level)
            of_rows[:, rows] = part.lower, part.upper
    lower, upper = ends.mean(axis=0)
    if fitted.shift is not None:
        lower, upper = shift_intervals(lower, upper, fitted.shift.factors)
    return ConfidenceIntervals(lower, upper, fitted.classes, float(level))


def interval_curves_of(
    fitted: FittedClassifier,
    level: float,
    method: IntervalMethod = "likelihood-ratio",
    code: int | None = None,
) -> list[ScoreIntervals]:
    """Return the curves of the calibration examples of all folds, or of those of one group."""
    cache = _CURVES.setdefault(fitted.calibration(code), {})
    if (level, method) not in cache:
        examples = CalibrationExamples.of(fitted.folds)
        noise = fitted.folds[0].noise if len(fitted.folds) == 1 else None
        if code is not None:
            assert fitted.by_codes is not None
            is_of_group = fitted.by_codes[examples.rows] == code
            examples = examples.select(is_of_group)
            noise = None if noise is None else noise[is_of_group]
        cache[level, method] = interval_curves(
            examples.scores,
            examples.codes,
            len(fitted.classes),
            level,
            method,
            weight=examples.weight,
            groups=fitted.groups_of(examples),
            noise=noise,
        )
    return cache[level, method]
