"""From rows to bounds, probabilities and confidence intervals.

`predict_rows` scores the rows with the model of every fold (`score_rows`). Then `predict_scores`
calibrates the scores of each fold within groups (`calibrate_fold`), applies other shares of the
classes and combines the folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from vennforest._messages import warn
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_labels,
    count_rows,
    require,
)
from vennforest.calibrators import Calibrator
from vennforest.calibrators.bounded import has_bounds, merged
from vennforest.calibrators.intervals import (
    ConfidenceIntervals,
    IntervalMethod,
    ScoreIntervals,
    interval_curves,
    read_intervals,
)
from vennforest.groups import Groups, PerGroup, codes_of
from vennforest.multiprobability import Multiprobability, merge_folds
from vennforest.prior import (
    ShiftedPrior,
    shift_bounds,
    shift_intervals,
    shift_probabilities,
)
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

Curves = PerGroup[list[ScoreIntervals]]
_CURVES: WeakKeyDictionary[Any, dict[tuple[float, str], Curves]] = WeakKeyDictionary()
"""Interval curves of models in use, by their first calibrator, level and method."""


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """The state of a classifier: models, their calibration examples, and calibrators.

    ``columns`` summarise the data frame that was fitted to, None for arrays. Rows that belong
    together have one number in ``row_groups``; objects are calibrated separately in each of
    ``groups``. A table of new rows must have the columns ``column_names``. Without
    ``point_calibrators``, which map the scores of all folds to probabilities, calibrators merge
    their bounds. ``record`` is how the model came to be.
    """

    classes: NDArray[Any]
    folds: list[Fold]
    calibrate_on: str
    calibrate_on_reason: str
    n_rows: int | None = None
    n_equal_pairs: float = 0.0
    row_sketch: HashArray | None = None
    row_groups: IntArray | None = None
    groups: Groups | None = None
    group_codes: IntArray | None = None
    columns: TrainingColumns | None = None
    column_names: list[str] | None = None
    shift: ShiftedPrior | None = None
    record: dict[str, Any] = field(default_factory=dict)
    fold_calibrators: list[PerGroup[Calibrator]] = field(default_factory=list)
    point_calibrators: PerGroup[Calibrator] | None = None

    @property
    def calibrators(self) -> list[Calibrator]:
        """The calibrator of all groups together, one per fold."""
        return [per_group.overall for per_group in self.fold_calibrators]

    @property
    def point_calibrator(self) -> Calibrator | None:
        """The map of all groups together."""
        return None if self.point_calibrators is None else self.point_calibrators.overall

    @property
    def prior(self) -> FloatArray:
        """The class frequencies (k,) that probabilities are for."""
        if self.shift is not None:
            return self.shift.shares
        return CalibrationExamples.of(self.folds).class_shares(len(self.classes))

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
        require(0 < len(self.folds) == len(self.fold_calibrators), "folds must have calibrators")
        points = [] if self.point_calibrators is None else [self.point_calibrators]
        for per_group in [*self.fold_calibrators, *points]:
            for calibrator in (per_group.overall, *per_group.of_group):
                has_classes = np.array_equal(calibrator.classes_, self.classes)
                is_calibrator = isinstance(calibrator, Calibrator)
                require(is_calibrator and has_classes, "calibrators must be of the classes")
        n_rows = self.n_rows or 0
        for fold, per_group in zip(self.folds, self.fold_calibrators, strict=True):
            fold.check_classes(len(self.classes))
            for index in per_group.examples:
                check_array(index, "examples", (None,), "i", 0, len(fold.codes) - 1)
            if fold.rows is not None:
                check_array(fold.rows, "rows", (len(fold.codes),), "i", 0, n_rows - 1)
        for codes in (self.row_groups, self.group_codes):
            if codes is not None:
                check_array(codes, "group_codes", (n_rows,), "i", 0)
        if self.column_names is not None:
            are_names = all(type(name) is str for name in self.column_names)
            require(are_names, "column_names must be names")
        if self.row_sketch is not None:
            check_array(self.row_sketch, "row_sketch", (None,), "u")
        require(isinstance(self.columns, TrainingColumns | None), "columns must be of training")
        has_codes = (self.groups is None) == (self.group_codes is None)
        require(has_codes, "group_codes must be of groups")
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
    codes = None if fitted.groups is None else fitted.groups.codes(X, n)
    if codes is not None and (n_unseen := int((codes < 0).sum())):
        warn(
            f"{n_unseen} of {n} rows are of groups without calibration examples: the calibrator of "
            "all groups together predicts them, and nothing is guaranteed within these groups"
        )
    has_point = fitted.point_calibrators is not None
    scored = []
    folds, rows = fitted.folds, X
    if len(folds) > 1:
        folds, rows = skip_shared_steps(folds, X)
    for fold in folds:
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
    """Return the bounds and probabilities of scored rows in groups ``codes`` (m,).

    The probability is the mean over folds, whose mean over rows is that of the folds: a normalised
    geometric mean has a log loss that is .0005 lower, but is too low for rare classes. Only
    ``merge="log"`` takes that. Bounds are means too, widened where needed to contain it.
    """
    predictions = [
        calibrate_fold(per_group, fitted.point_calibrators, scores, codes, len(fold.codes))
        for fold, per_group, scores in zip(
            fitted.folds, fitted.fold_calibrators, scored, strict=True
        )
    ]
    bounds = [part.bounds for part in predictions if part.bounds is not None]
    probabilities, merges = [part.p for part in predictions], fitted.point_calibrators is None
    if bounds and merges and len(bounds) > 1:
        p = merge_folds(bounds, fitted.calibrators[0].merge, probabilities)
    else:
        p = probabilities[0] if len(predictions) == 1 else np.mean(probabilities, axis=0)
    if fitted.shift is not None:
        # A mean of shifted bounds is unbiased, a shifted mean is not.
        bounds = [shift_bounds(part, fitted.shift.factors) for part in bounds]
        p = shift_probabilities(p, fitted.shift.factors)
    if not bounds:
        return Prediction(None, p)
    if len(bounds) == 1 and merges:
        # Bounds contain the probability that they are merged to; shifted, up to rounding.
        return Prediction(bounds[0], p if fitted.shift is None else bounds[0].clip_rounding(p))
    mean = bounds[0]
    if len(bounds) > 1:
        lower = np.mean([part.lower for part in bounds], axis=0)
        upper = np.mean([part.upper for part in bounds], axis=0)
        mean = Multiprobability(lower, upper, mean.classes)
    return Prediction(mean.widen(p), p)


def calibrate_fold(
    per_group: PerGroup[Calibrator],
    point_calibrators: PerGroup[Calibrator] | None,
    scores: RowScores,
    codes: IntArray | None,
    n_examples: int,
) -> Prediction:
    """Return the prediction of a fold for rows in groups ``codes`` (m,), None: without groups.

    ``n_examples`` is the number of calibration examples of the fold.
    """
    bounds = None
    if scores.for_calibrators is not None and has_bounds(per_group.overall):
        bounds, p = _bounds(per_group, scores.for_calibrators, scores.left_out, codes, n_examples)
    elif scores.for_calibrators is not None:
        p = _probabilities(per_group, scores.for_calibrators, codes)
    if point_calibrators is not None:
        assert scores.by_all is not None
        p = _probabilities(point_calibrators, scores.by_all, codes)
    return Prediction(bounds, p)


def _probabilities(
    per_group: PerGroup[Calibrator], scores: FloatArray, codes: IntArray | None
) -> FloatArray:
    """Return the probabilities (m, k) of scores (m,) or (m, k) of rows in groups (m,)."""
    p = np.empty((len(scores), len(per_group.overall.classes_)))
    for rows, calibrator, _ in per_group.parts(codes, len(scores)):
        p[rows] = calibrator.predict_proba(scores[rows])
    return p


def _bounds(
    per_group: PerGroup[Calibrator],
    scores: FloatArray,
    left_out: IntArray | None,
    codes: IntArray | None,
    n_examples: int,
) -> tuple[Multiprobability, FloatArray]:
    """Return the bounds of scores (m,) or (m, k) of rows in groups (m,), and their merged p (m, k).

    ``left_out`` (m,) is the index, among ``n_examples`` of the fold, of the example that is left
    out for a row.
    """
    classes = per_group.overall.classes_
    lower, upper, p = np.empty((3, len(scores), len(classes)))
    distributions = False
    for rows, calibrator, examples in per_group.parts(codes, len(scores)):
        # A calibrator of the user's may not know of left-out examples.
        options: dict[str, IntArray] = {}
        if left_out is not None:
            options["left_out"] = left_out[rows]
            if examples is not None:
                index = np.full(n_examples, -1, np.intp)
                index[examples] = np.arange(len(examples))
                options["left_out"] = index[left_out[rows]]
        bounds = calibrator.predict_multiprobability(scores[rows], **options)
        lower[rows], upper[rows] = bounds.lower, bounds.upper
        p[rows] = merged(calibrator, bounds, scores[rows])
        distributions = bounds.distributions
    return Multiprobability(lower, upper, classes, distributions=distributions), p


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
    cache = _CURVES.setdefault(fitted.calibrators[0], {})
    if (level, method) not in cache:
        cache[level, method] = interval_curves_of(fitted, level, method)
    curves = cache[level, method]
    of_fold = []
    for scores in scored:
        assert scores.by_all is not None
        n = len(scores.by_all)
        ends = np.empty((2, n, len(fitted.classes)))
        for rows, some_curves, _ in curves.parts(codes, n):
            part = read_intervals(some_curves, scores.by_all[rows], fitted.classes, level)
            ends[:, rows] = part.lower, part.upper
        of_fold.append(ends)
    lower, upper = np.mean(of_fold, axis=0)
    if fitted.shift is not None:
        lower, upper = shift_intervals(lower, upper, fitted.shift.factors)
    return ConfidenceIntervals(lower, upper, fitted.classes, float(level))


def interval_curves_of(
    fitted: FittedClassifier, level: float, method: IntervalMethod = "likelihood-ratio"
) -> Curves:
    """Return the curves of the calibration examples of all folds, and of each large group."""
    examples = CalibrationExamples.of(fitted.folds)
    noise = fitted.folds[0].noise if len(fitted.folds) == 1 else None

    def curves(index: IntArray | None) -> list[ScoreIntervals]:
        selected = examples if index is None else examples.select(index)
        return interval_curves(
            selected.scores,
            selected.codes,
            len(fitted.classes),
            level,
            method,
            weight=selected.weight,
            groups=codes_of(selected.rows, fitted.row_groups),
            noise=noise if noise is None or index is None else noise[index],
        )

    return PerGroup.fit(curves, codes_of(examples.rows, fitted.group_codes))
