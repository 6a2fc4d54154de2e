"""What a fitted classifier predicts of its training rows, each without its own label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.bounded import (
    BoundedCalibrator,
    has_bounds,
    leaves_out,
    leaves_out_groups,
    merged,
)
from vennforest.calibrators.group_correction import correction
from vennforest.classifier.fitted import FittedClassifier
from vennforest.classifier.prediction import Prediction
from vennforest.groups.cells import CalibratedGroups, fold_of_cell
from vennforest.multiprobability import Multiprobability
from vennforest.prior import shift_bounds, shift_probabilities
from vennforest.sources import Fold

FOLDS = 5
"""A calibrator that cannot leave out a single example is fitted again without each of so many."""


def predict_training_rows(fitted: FittedClassifier) -> Prediction:
    """Return bounds and probabilities of the n rows given to ``fit``, each without its own label.

    A row has its calibration score, which the source has given it by a model that did not see it.
    Venn and Venn–Abers leave the example, and its group, out of the calibration set; other
    calibrators are fitted again without the fifth of the examples that it is in. Several scores of
    one row are averaged after calibration.

    Returns
    -------
    (Multiprobability or None, ndarray of shape (n, k))
        NaN for rows that calibrate nothing; None without bounds.

    Raises
    ------
    AttributeError
        If the models saw all rows, or it is not known which rows the examples are.
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
        folds = [fold_of_cell(fold, cell) for fold, cell in cells]
        mine = np.concatenate([f.rows[f.by == group] for f in folds if f.rows is not None])
        none: list[Any] = [None] * len(folds)
        calibrators = [cell.calibrator for _, cell in cells]
        found, own_p = _predict_examples(folds, calibrators, none, classes, n, fitted.row_groups)
        if found is not None:
            lower[mine], upper[mine] = found.lower[mine], found.upper[mine]
        if by.ridge is not None:
            # The correction learns from the probability of each row without it, as it is asked.
            given = [attrs.evolve(fold, scores=_columns(of_all[fold.rows])) for fold in folds]
            one = [correction(by.ridge)] * len(given)
            own_p = _predict_examples(given, one, one, classes, n, fitted.row_groups)[1]
        known = mine[~np.isnan(own_p[mine, 0])]
        p[known] = own_p[known]
    if bounds is None:
        return None, p
    made = Multiprobability(lower, upper, classes)
    return (made.widen(p) if pooled or len(fitted.folds) > 1 else made), p


def _columns(p: FloatArray) -> FloatArray:
    return p[:, 1] if p.shape[1] == 2 else p


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
        weights = [np.ones(len(p.codes)) if p.weight is None else p.weight for p in folds]
        rows = np.concatenate([p.rows for p in folds if p.rows is not None]).astype(np.intp)
        return cls(
            np.concatenate([fold.scores for fold in folds]),
            np.concatenate([fold.codes for fold in folds]).astype(np.intp),
            np.concatenate(weights) if any(p.weight is not None for p in folds) else None,
            rows,
            # A splitter of a user's own may score a row twice: no copy of it stays behind.
            groups[rows] if groups is not None else rows if _repeats(rows) else None,
            classes,
        )

    def bounds(self, calibrator: Any) -> Multiprobability | None:
        """Return the bounds that leave each example out, None where there are none."""
        if not has_bounds(calibrator):
            return None
        if leaves_out(calibrator) and (self.groups is None or leaves_out_groups(calibrator)):
            given = {} if self.groups is None else {"groups": self.groups}
            found: Multiprobability = calibrator.predict_multiprobability(
                self.scores, np.arange(len(self.scores)), **given
            )
            return found
        lower, upper = np.full((2, len(self.codes), len(self.classes)), np.nan)
        for fitted, held in self._refits(calibrator):
            found = fitted.predict_multiprobability(self.scores[held])
            lower[held], upper[held] = found.lower, found.upper
        return Multiprobability(lower, upper, self.classes)

    def proba(self, calibrator: Any, bounds: Multiprobability | None) -> FloatArray:
        """Return the probabilities (n, k) without each example."""
        ready = isinstance(calibrator, BoundedCalibrator) and calibrator.merge != "smooth"
        if bounds is not None and ready:
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
        for number in range(min(FOLDS, size)):
            held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            fitted = clone(calibrator).fit(
                self.scores[rest],
                self.classes[self.codes[rest]],
                sample_weight=None if self.weight is None else self.weight[rest],
                classes=self.classes,
            )
            yield fitted, held


def _repeats(rows: IntArray) -> bool:
    return len(np.unique(rows)) < len(rows)
