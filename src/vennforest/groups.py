"""Groups of objects that are calibrated each by itself: their labels, cells and predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import attrs
import numpy as np
from attrs.validators import deep_iterable, instance_of, optional
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from vennforest._messages import warn
from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    array,
    check_array,
    check_count,
    check_increasing,
    is_frame,
    number,
    require,
    same_labels,
)
from vennforest.calibrators import Calibrator
from vennforest.calibrators.base import has_bounds
from vennforest.calibrators.formula import Terms
from vennforest.calibrators.matrix import SoftmaxMap
from vennforest.counts import ScoreCounts
from vennforest.multiprobability import Multiprobability
from vennforest.sources import CalibrationExamples, Fold, SampledScores

Key = str | int | Callable[[Any], Any]
"""A column by name or position, or a function of rows that gives a label for each."""

LARGEST_EXACT = 2.0**53
"""Integers from here on are not told apart as float64."""


@stored("groups")
@attrs.frozen
class Groups:
    """How objects are put into groups that are calibrated each by itself.

    Parameters
    ----------
    by : str, int or callable
        A column by name (data frames) or position, or a function that takes rows as ``fit`` and
        ``predict`` get them and returns a label for each, whatever the other rows are.
    smallest : int, default=0
        Groups of fewer calibration examples than this are calibrated together, and so are groups
        that were not seen. That gives up the statement about each of them by itself; it is valid
        for all of them together. 0: each by itself, however few.

    Examples
    --------
    >>> from vennforest import CalibratedClassifier
    >>> from vennforest.groups import Groups
    >>> model = CalibratedClassifier(by=Groups("ward", smallest=50))
    """

    by: Key
    smallest: int = 0

    @classmethod
    def of(cls, by: Any) -> Groups:
        """Return what the parameter ``by`` stands for: a column or a function, and a count."""
        groups = by if isinstance(by, Groups) else cls(by)
        column = isinstance(groups.by, str | Integral) and not isinstance(groups.by, bool)
        if not column and not callable(groups.by):
            raise InputError(
                "by must be the name or position of a column, a function of the rows, or Groups, "
                f"got {groups.by!r}"
            )
        check_count(groups.smallest, "smallest", 0)
        return groups

    @classmethod
    def from_state(cls, by: Any, smallest: Any) -> Groups:
        """Return what a file contains, in which there are no functions."""
        require(not callable(by), "by must be a column")
        return cls.of(cls(by, smallest))


@stored("grouping")
@attrs.frozen(eq=False)
class Grouping:
    """The groups that were seen at ``fit``.

    ``values`` (g,) are their labels, sorted: numbers as float64, or text. ``missing`` is whether
    rows without a label were seen: they are a group of their own, the last one.
    """

    groups: Groups = attrs.field(validator=instance_of(Groups))
    values: NDArray[Any]
    missing: bool = attrs.field(validator=instance_of(bool))

    def __attrs_post_init__(self) -> None:
        """Refuse labels that are not sorted, or of another kind."""
        require(
            type(self.values) is np.ndarray
            and self.values.ndim == 1
            and (self.values.dtype == np.float64 or self.values.dtype.kind == "U"),
            "values must be numbers or text",
        )
        check_increasing(self.values, "values")
        require(len(self), "values must name a group")

    @classmethod
    def fit(cls, by: Any, X: Any, n: int) -> tuple[Self, IntArray]:
        """Return the groups of n rows, and the number of each row's group (n,)."""
        groups = Groups.of(by)
        labels, absent = _labels(groups.by, X, n)
        values = np.unique(labels[~absent])
        many = len(values) + absent.any()
        if 2 * many > n > 2:
            raise InputError(
                f"by must put rows into few groups, got {many} groups of {n} rows: round or bin "
                "the values first, or in Python give a function that does"
            )
        grouping = cls(groups, values, bool(absent.any()))
        codes = grouping._codes(labels, absent)
        if callable(groups.by) and n > 1:
            half = np.arange((n + 1) // 2)
            if not np.array_equal(grouping.codes(_safe_indexing(X, half), len(half)), codes[half]):
                raise InputError(
                    "by must give a row its group whatever the other rows are, got a function that "
                    "gives other groups for the first half of the rows alone: fix its edges"
                )
        return grouping, codes

    def __len__(self) -> int:
        return len(self.values) + self.missing

    def codes(self, X: Any, n: int) -> IntArray:
        """Return the number of each row's group (n,), -1 for groups that were not seen."""
        return self._codes(*_labels(self.groups.by, X, n))

    def _codes(self, labels: NDArray[Any], absent: NDArray[np.bool_]) -> IntArray:
        codes = np.full(len(labels), len(self.values) if self.missing else -1, np.intp)
        there = labels[~absent]
        if there.dtype.kind == "U" and self.values.dtype.kind == "f":
            there = _numbers(there)  # files of text contain numbers as they are written
        if len(there) and len(self.values) and (there.dtype.kind != self.values.dtype.kind):
            now, then = ("text" if a.dtype.kind == "U" else "numbers" for a in (there, self.values))
            raise InputError(f"by must give {then}, as at fit, got {now}")
        at = np.searchsorted(self.values, there)
        known = at < len(self.values)
        known[known] = self.values[at[known]] == there[known]
        codes[~absent] = np.where(known, at, -1)
        return codes


def _labels(by: Key, X: Any, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the label of each row (n,), as float64 or text, and where there is none."""
    given = by(X) if callable(by) else _column(by, X)
    if hasattr(given, "to_numpy"):
        given = given.to_numpy()
    found = np.asarray(given)
    if found.shape == (n, 1):
        found = found[:, 0]
    if found.shape != (n,):
        raise InputError(f"by must give a label for each of {n} rows, got shape {found.shape}")
    if found.dtype.kind in "biuf":
        numbers = found.astype(np.float64)
        if found.dtype.kind in "iu" and len(numbers) and np.abs(numbers).max() >= LARGEST_EXACT:
            raise InputError(
                "by must give numbers below 2**53 or text, got larger numbers: turn them into text"
            )
        return numbers, np.isnan(numbers)
    every = found.tolist() if found.dtype.kind == "O" else [str(one) for one in found]
    absent = np.array([_is_missing(one) for one in every], bool)
    there = [one for one in every if not _is_missing(one)]
    kinds = {isinstance(one, int | float | np.number | np.bool_) for one in there}
    if len(kinds) > 1:
        raise InputError("by must give numbers or text, got both: turn all labels into text")
    if kinds == {True}:
        labels = np.full(n, np.nan)
        labels[~absent] = [float(one) for one in there]
        return labels, absent
    text = np.zeros(n, f"U{max([1, *(len(str(one)) for one in there)])}")
    text[~absent] = [str(one) for one in there]
    return text, absent


def _numbers(text: NDArray[Any]) -> FloatArray:
    """Return the numbers that texts stand for, NaN where they stand for none."""

    def one(cell: str) -> float:
        try:
            return float({"true": "1", "false": "0"}.get(cell.strip().lower(), cell))
        except ValueError:
            return np.nan

    return np.array([one(cell) for cell in text.tolist()], np.float64)


def _is_missing(value: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, or what pandas puts there."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return value == "NaT" if isinstance(value, str) else isinstance(value, float) and value != value


def _column(by: str | int, X: Any) -> Any:
    sparse: bool = issparse(X)
    if isinstance(by, str):
        if not is_frame(X):
            raise InputError(
                f"X must be a data frame for by={by!r}, got {type(X).__name__}: give the position "
                "of the column, or a function"
            )
        if by not in list(X.columns):
            raise InputError(f"by must name a column of X, got {by!r}")
        return X[by]
    shape = X.shape if sparse else np.shape(X)
    if len(shape) != 2 or not -shape[1] <= by < shape[1]:
        raise InputError(f"by must be the position of a column of X, got {by} for shape {shape}")
    if sparse:
        return X.tocsc()[:, [by]].toarray()
    if is_frame(X):
        return _safe_indexing(X, int(by) % shape[1], axis=1)
    return np.asarray(X)[:, by]


@stored("group-cell")
@attrs.frozen(eq=False)
class Cell:
    """Calibration examples of one group, or of several that are calibrated together.

    ``rows`` (n_cell,) are their numbers in the fold, increasing; ``calibrator`` is fitted to them;
    ``point`` makes the probability of the score, where that is not the calibrator.
    """

    rows: IntArray = attrs.field(validator=array(None, kinds="i", low=0))
    calibrator: Calibrator
    point: Calibrator | None

    def __attrs_post_init__(self) -> None:
        """Refuse a calibrator of other examples."""
        for one in (self.calibrator, self.point or self.calibrator):
            require(isinstance(one, Calibrator), "calibrators must be Calibrators")
        require(len(self.rows) and (np.diff(self.rows) > 0).all(), "rows must increase")
        require(
            self.calibrator.n_examples_ == len(self.rows),
            "calibrator must be of the cell's examples",
        )


@stored("grouped-fold")
@attrs.frozen(eq=False)
class GroupedFold:
    """The cells of one fold.

    ``of_group`` (g + 1,): which cell calibrates each group, and last those that were not seen; -1:
    none.
    """

    cells: tuple[Cell, ...] = attrs.field(
        validator=deep_iterable(instance_of(Cell), instance_of(tuple))
    )
    of_group: IntArray = attrs.field()

    def __attrs_post_init__(self) -> None:
        """Refuse cells that there are none of."""
        require(self.cells, "cells must be one or more")
        check_array(self.of_group, "of_group", (None,), "i", -1, len(self.cells) - 1)


@stored("calibrated-groups")
@attrs.frozen(eq=False)
class CalibratedGroups:
    """Groups of objects that are calibrated each by itself, in every fold.

    ``ridge`` is how strongly the point calibrators of groups are shrunk towards that of all, in
    examples; None: there are none.
    """

    grouping: Grouping = attrs.field(validator=instance_of(Grouping))
    folds: tuple[GroupedFold, ...] = attrs.field(
        validator=deep_iterable(instance_of(GroupedFold), instance_of(tuple))
    )
    ridge: float | None = attrs.field(validator=optional(number(0)))

    def check_folds(self, folds: Sequence[Fold], classes: NDArray[Any]) -> None:
        """Refuse groups of other folds."""
        require(len(self.folds) == len(folds), "groups must be of every fold")
        n_groups, smallest = len(self.grouping), self.grouping.groups.smallest
        for fold, own in zip(folds, self.folds, strict=True):
            require(len(own.of_group) == n_groups + 1, f"of_group must be of {n_groups} groups")
            check_array(fold.by, "by", (len(fold.codes),), "i", 0, n_groups - 1)
            assert fold.by is not None
            cells, of_group = assign(fold.by, fold.weight, n_groups, smallest)
            require(np.array_equal(of_group, own.of_group), "of_group must be that of the groups")
            require(len(cells) == len(own.cells), "cells must be those of the groups")
            for cell, rows in zip(own.cells, cells, strict=True):
                require(np.array_equal(cell.rows, rows), "rows must be the examples of the groups")
                for calibrator in (cell.calibrator, cell.point or cell.calibrator):
                    same = same_labels(calibrator.classes_, classes)
                    require(same, "calibrators must be of the same classes")

    def sub_models(self, everything: SubModel, X: Any, n: int) -> Iterator[SubModel]:
        """Yield what calibrates the rows of X, for each set of rows with the same calibrators."""
        codes = self.grouping.codes(X, n)
        cells = np.array([fold.of_group[codes] for fold in self.folds])
        if (cells < 0).all(axis=0).any():
            warn(
                f"{int((cells < 0).all(axis=0).sum())} of {n} rows are of groups without "
                "calibration examples: their bounds are 0 and 1, and their probabilities those of "
                "the map of all groups together, of which nothing is promised here"
            )
        kinds, kind_of = np.unique(cells, axis=1, return_inverse=True)
        for number_, kind in enumerate(kinds.T):
            folds, calibrators, points = [], [], []
            for f, cell in enumerate(kind):
                fold, found = everything.folds[f], everything.calibrators[f]
                if cell < 0:
                    folds.append(of_rows(fold, np.empty(0, np.intp)))
                    calibrators.append(Vacuous(found) if has_bounds(found) else found)
                    points.append(everything.points[f])
                else:
                    own = self.folds[f].cells[cell]
                    folds.append(of_rows(fold, own.rows))
                    calibrators.append(own.calibrator)
                    points.append(own.point)
            yield SubModel(np.flatnonzero(kind_of.ravel() == number_), folds, calibrators, points)


def assign(by: IntArray, weight: FloatArray | None, n_groups: int, smallest: int) -> Any:
    """Return the examples of each cell, and which cell calibrates each group and unseen ones.

    Groups (n,) and weights (n,) are of the calibration examples. A list of the numbers of each
    cell's examples, and the cell of each group (n_groups + 1,), -1: none.

    Whether a group is small is told from all n + 1 examples: its own count goes up by one where
    the new object is of it. So the partition is the same whichever of them is the new one, which
    the guarantee needs, and a group one example short has a cell of its own while its examples
    also calibrate small groups.
    """
    counts = np.bincount(by, weight, minlength=n_groups)
    together = (counts > 0) & (counts < smallest)
    cells = [np.flatnonzero(by == g) for g in range(n_groups) if counts[g] > 0]
    of_group = np.append(np.where(counts > 0, np.cumsum(counts > 0) - 1, -1), -1).astype(np.intp)
    if together.any():
        small = np.append(counts, 0) + 1 < smallest
        of_group[small] = len(cells)
        cells.append(np.flatnonzero(together[by]))
        # A group without a cell of its own need not be fitted.
        used = np.unique(of_group[of_group >= 0])
        cells = [cells[c] for c in used]
        of_group = np.where(of_group >= 0, np.searchsorted(used, of_group), -1)
    return cells, of_group


def calibrate_groups(
    grouping: Grouping,
    folds: Sequence[Fold],
    classes: NDArray[Any],
    calibrator_of: Callable[[Fold], Calibrator],
    point: Calibrator | None,
) -> CalibratedGroups:
    """Fit a calibrator to every cell of every fold, and correct the point calibrator for it.

    ``calibrator_of`` takes a fold of a cell's examples alone; ``point`` is the point calibrator
    of all groups together.
    """
    if any(fold.by is None for fold in folds):
        raise TypeError(
            "calibrate_on must be a source that hands on the group of each calibration example "
            "(Fold.by, from TrainingData.by) for by, got one that does not"
        )
    examples = CalibrationExamples.of(folds)
    by = np.concatenate([fold.by for fold in folds if fold.by is not None])
    weight = np.ones(len(by)) if examples.weight is None else examples.weight
    ridge = None
    if point is not None:
        rows_of = [np.flatnonzero(by == group) for group in range(len(grouping))]
        ridge = choose_ridge(point.predict_proba(examples.scores), examples.codes, weight, rows_of)
    corrected: dict[tuple[int, ...], Calibrator] = {}

    def correct(fold: Fold) -> Calibrator | None:
        """Return the point calibrator of the groups in a cell, one for all folds."""
        if point is None or ridge is None:
            return None
        groups = np.unique(np.asarray(fold.by))
        key = tuple(groups.tolist())
        if key not in corrected:
            rows = np.flatnonzero(np.isin(by, groups))
            corrected[key] = GroupCorrection(point, ridge).fit(
                examples.scores[rows],
                classes[examples.codes[rows]],
                sample_weight=weight[rows],
                classes=classes,
            )
        return corrected[key]

    def calibrate(fold: Fold) -> GroupedFold:
        assert fold.by is not None
        cells, of_group = assign(fold.by, fold.weight, len(grouping), grouping.groups.smallest)
        own = [(rows, of_rows(fold, rows)) for rows in cells]
        made = [Cell(rows, calibrator_of(one), correct(one)) for rows, one in own]
        return GroupedFold(tuple(made), of_group)

    return CalibratedGroups(grouping, tuple(map(calibrate, folds)), ridge)


class SubModel(NamedTuple):
    """Rows that have the same calibrators: which of X, and what those are in each fold."""

    rows: IntArray | None  # None: all
    folds: Sequence[Fold]
    calibrators: Sequence[Any]
    points: Sequence[Any]


class Vacuous:
    """Calibrates a group without examples: bounds 0 and 1, and the overall map's probability."""

    def __init__(self, base: Any) -> None:
        self.classes = base.classes_
        self.predict_proba = base.predict_proba
        self.merge = getattr(base, "merge", "midpoint")

    def predict_multiprobability(self, scores: FloatArray, **left_out: Any) -> Multiprobability:
        """Return bounds 0 and 1."""
        shape = (len(scores), len(self.classes))
        return Multiprobability(np.zeros(shape), np.ones(shape), self.classes)


def of_rows(fold: Fold, rows: IntArray) -> Fold:
    """Return a fold that knows some of its calibration examples alone."""
    place = np.full(len(fold.codes), -1, np.intp)
    place[rows] = np.arange(len(rows))
    columns: dict[str, Any] = {
        name: None if (column := getattr(fold, name)) is None else column[rows]
        for name in ("scores", "codes", "weight", "groups", "rows", "by", "noise")
    }
    return attrs.evolve(fold, scorer=_Within(fold.scorer, place), **columns)


class _Within:
    """A fold's scorer where only some of the examples calibrate."""

    def __init__(self, scorer: Any, place: IntArray) -> None:
        self._scorer, self._place = scorer, place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the draws, with examples numbered among those that calibrate."""
        for draw in self._scorer.sampled_scores(X):
            left_out = draw.left_out
            if left_out is not None:
                left_out = np.where(left_out < 0, -1, self._place[left_out])
            yield SampledScores(draw.scores, left_out, draw.samples)


RIDGES = (3.0, 10.0, 30.0, 100.0, 1000.0)
"""How strongly a group's map may be shrunk towards the overall one, in examples."""

FOLDS = 4
"""A ridge is judged on so many folds; from `MANY` examples on, on the first alone."""

MANY = 10_000


def correction(ridge: float) -> SoftmaxMap:
    """Return the unfitted map from the overall map's probabilities to a group's."""
    return SoftmaxMap("shared", ridge=ridge, shrinkage=1e-12)


def choose_ridge(
    p: FloatArray, codes: IntArray, weight: FloatArray, groups: Sequence[IntArray]
) -> float:
    """Return the ridge under which corrections of held-out examples have the least log loss.

    The order of each group's examples makes the folds.
    """
    k = p.shape[1]
    losses = np.zeros(len(RIDGES))
    folds = 1 if len(p) >= MANY else FOLDS
    for rows in groups:
        fold = np.arange(len(rows)) % FOLDS
        for held in range(folds):
            own, rest = rows[fold == held], rows[fold != held]
            if not len(own) or not len(rest):
                continue
            for r, ridge in enumerate(RIDGES):
                model = correction(ridge).fit(
                    p[rest], codes[rest], sample_weight=weight[rest], classes=range(k)
                )
                likelihood = model.predict_proba(p[own])[np.arange(len(own)), codes[own]]
                losses[r] -= weight[own] @ np.log(np.maximum(likelihood, np.finfo(float).tiny))
    best = np.flatnonzero(losses <= losses.min() + 1e-9)
    return RIDGES[int(best[-1])]


@stored("group-correction")
class GroupCorrection(Calibrator):
    """The overall map ``base``, corrected by a slope and intercepts that a group's labels ask for.

    The correction is `MatrixScaling` with a shared slope on the logarithms of what the overall map
    says, with a ridge that keeps it near 1 and 0: a group of few examples has the map of all, one
    of many has its own.
    """

    correction_: SoftmaxMap

    def __init__(self, base: Calibrator, ridge: float = 10.0) -> None:
        self.base = base
        self.ridge = ridge

    def _fit(self, counts: ScoreCounts) -> None:
        p = self.base.predict_proba(counts.scores)
        p = p[:, 1] if p.shape[1] == 2 else p
        corrected = ScoreCounts(np.arange(len(counts.classes)), p, counts.weights)
        self.correction_ = correction(self.ridge)._fit_checked(corrected)

    def _formula(self, scores: Terms) -> Terms:
        return self.correction_._formula(self.base._formula(scores))

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        return self.correction_.predict_proba(self.base.predict_proba(scores))

    def _check_state(self) -> None:
        super()._check_state()
        require(isinstance(self.base, Calibrator), "base must be a calibrator")
        for calibrator in (self.base, self.correction_):
            require(len(calibrator.classes_) == len(self.classes_), "must be of the same classes")
