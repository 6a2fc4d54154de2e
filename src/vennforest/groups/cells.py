"""What each group is calibrated on, and predictions group by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from vennforest._loaded import expect, expect_array, same_labels
from vennforest._validation import FloatArray, IntArray
from vennforest._warn import warn
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.bounded import has_bounds
from vennforest.groups.labels import Grouping
from vennforest.multiprobability import Multiprobability
from vennforest.sources import Fold, Joined, SampledScores, whole_scores
from vennforest.sources.base import JoinedBlock


@dataclass(frozen=True, eq=False)
class Cell:
    """Calibration examples of one group, or of several that are calibrated together.

    Attributes
    ----------
    rows : ndarray of shape (n_cell,)
        Their numbers among the calibration examples of the part, increasing.
    calibrator : Calibrator
        Fitted to them.
    point : Calibrator or None
        What makes the probability of the score, where that is not the calibrator.
    """

    rows: IntArray
    calibrator: Calibrator
    point: Calibrator | None

    def check_loaded(self) -> None:
        """Refuse a calibrator of other examples.

        Raises
        ------
        ValueError
            If it is.
        """
        expect_array(self.rows, "rows", (None,), "i", 0)
        expect(len(self.rows) and (np.diff(self.rows) > 0).all(), "rows must increase")
        expect(isinstance(self.calibrator, Calibrator), "calibrator must be a Calibrator")
        expect(
            self.calibrator._n_given == len(self.rows), "calibrator must be of the cell's examples"
        )
        expect(self.point is None or isinstance(self.point, Calibrator), "point must calibrate")


@dataclass(frozen=True, eq=False)
class GroupedFold:
    """The cells of one part.

    Attributes
    ----------
    cells : list of Cell
    of_group : ndarray of shape (g + 1,)
        Which cell calibrates each group, and last those that were not seen; -1: none.
    """

    cells: list[Cell]
    of_group: IntArray

    def check_loaded(self) -> None:
        """Refuse cells that there are none of.

        Raises
        ------
        ValueError
            If a group is calibrated by such.
        """
        expect(isinstance(self.cells, list) and self.cells, "cells must be a list of one or more")
        expect(all(isinstance(cell, Cell) for cell in self.cells), "cells must be Cells")
        expect_array(self.of_group, "of_group", (None,), "i", -1, len(self.cells) - 1)

    def check_part(self, part: Fold, classes: NDArray[Any], grouping: Grouping) -> None:
        """Refuse cells of another part, other classes or other groups.

        Raises
        ------
        ValueError
            If they are.
        """
        n_groups = len(grouping)
        expect(len(self.of_group) == n_groups + 1, f"of_group must be of {n_groups} groups")
        expect_array(part.by, "by", (len(part.codes),), "i", 0, n_groups - 1)
        assert part.by is not None
        cells, of_group = assign(part.by, part.weight, n_groups, grouping.groups.smallest)
        expect(np.array_equal(of_group, self.of_group), "of_group must be that of the groups")
        for cell, rows in zip(self.cells, cells, strict=True):
            expect_array(cell.rows, "rows", (len(rows),), "i")
            expect(np.array_equal(cell.rows, rows), "rows must be the examples of the groups")
            for calibrator in (cell.calibrator, cell.point):
                known = classes if calibrator is None else calibrator.classes_
                expect(same_labels(known, classes), "calibrators must be of the same classes")


def assign(by: IntArray, weight: FloatArray | None, n_groups: int, smallest: int) -> Any:
    """Return the examples of each cell, and which cell calibrates each group and unseen ones.

    Parameters
    ----------
    by : ndarray of shape (n,)
        Group of each calibration example.
    weight : ndarray of shape (n,) or None
        Counts of repeated observations.
    n_groups : int
    smallest : int
        Fewer examples than this, the new object counted in, are calibrated with other such groups.

    Returns
    -------
    list of ndarray, ndarray of shape (n_groups + 1,)
        Numbers of the examples of each cell; the cell of each group, -1: none.

    Notes
    -----
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


def grouped_part(
    part: Fold,
    grouping: Grouping,
    fit: Callable[[Fold], tuple[Calibrator, Calibrator | None]],
) -> GroupedFold:
    """Return a part with a calibrator for every group.

    Parameters
    ----------
    part : Fold
    grouping : Grouping
    fit : callable
        Takes the part of a cell; returns its calibrator and what makes its probability.

    Raises
    ------
    TypeError
        If the source of the part does not tell which example is of which group.
    """
    if part.by is None:
        raise TypeError(
            "calibrate_on must be a source that hands on the group of each calibration example "
            "(Fold.by, from TrainingData.by) for by, got one that does not"
        )
    cells, of_group = assign(part.by, part.weight, len(grouping), grouping.groups.smallest)
    return GroupedFold([Cell(rows, *fit(_of_rows(part, rows))) for rows in cells], of_group)


class SubModel(NamedTuple):
    """Rows that are calibrated alike: which of X, and by what."""

    rows: IntArray | None  # None: all
    parts: Sequence[Fold]
    calibrators: Sequence[Any]
    points: Sequence[Any]

    def of(self, X: Any) -> Any:
        """Return these rows of X."""
        return X if self.rows is None else _safe_indexing(X, self.rows)


def sub_models(
    grouping: Grouping,
    grouped: Sequence[GroupedFold],
    everybody: SubModel,
    X: Any,
    n: int,
) -> Iterator[SubModel]:
    """Yield what calibrates the rows of X, for each set of rows that is calibrated alike.

    Warns
    -----
    UserWarning
        If a row is of a group without calibration examples.
    """
    codes = grouping.codes(X, n)
    cells = np.array([part.of_group[codes] for part in grouped])
    if (cells < 0).all(axis=0).any():
        warn(
            f"{int((cells < 0).all(axis=0).sum())} of {n} rows are of groups without calibration "
            "examples: their bounds are 0 and 1, and their probabilities those of the map of all "
            "groups together, of which nothing is promised here"
        )
    kinds, kind_of = np.unique(cells, axis=1, return_inverse=True)
    for number, kind in enumerate(kinds.T):
        parts, calibrators, points = [], [], []
        for p, cell in enumerate(kind):
            part, found = everybody.parts[p], everybody.calibrators[p]
            if cell < 0:
                parts.append(_of_rows(part, np.empty(0, np.intp)))
                calibrators.append(Vacuous(found) if has_bounds(found) else found)
                points.append(everybody.points[p])
            else:
                own = grouped[p].cells[cell]
                parts.append(_of_rows(part, own.rows))
                calibrators.append(own.calibrator)
                points.append(own.point)
        yield SubModel(np.flatnonzero(kind_of.ravel() == number), parts, calibrators, points)


class Vacuous:
    """Calibrates a group without examples: bounds 0 and 1, and the overall map's probability."""

    def __init__(self, base: Any) -> None:
        self.base = base
        self.merge = getattr(base, "merge", "midpoint")

    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return the overall map's probabilities."""
        p: FloatArray = self.base.predict_proba(scores)
        return p

    def predict_multiprobability(
        self,
        scores: ArrayLike,
        left_out: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Multiprobability:
        """Return bounds 0 and 1."""
        shape = (len(np.asarray(scores)), len(self.base.classes_))
        return Multiprobability(np.zeros(shape), np.ones(shape), self.base.classes_)


def cells_part(part: Fold, grouped: GroupedFold, group: int) -> Fold:
    """Return a part that knows the calibration examples of one group's cell alone."""
    return _of_rows(part, grouped.cells[grouped.of_group[group]].rows)


def _of_rows(part: Fold, rows: IntArray) -> Fold:
    """Return a part that knows some of its calibration examples alone."""
    place = np.full(len(part.codes), -1, np.intp)
    place[rows] = np.arange(len(rows))
    if part.groups is not None and len(rows):
        # Who is left out takes everybody of its group along, in whatever cell they are.
        first = np.full(int(part.groups.max()) + 1, -1, np.intp)
        first[part.groups[rows][::-1]] = np.arange(len(rows))[::-1]
        place = np.where(place < 0, first[part.groups], place)
    return replace(
        part,
        scores=part.scores[rows],
        codes=part.codes[rows],
        weight=None if part.weight is None else part.weight[rows],
        scorer=_Within(part, place),
        groups=None if part.groups is None else part.groups[rows],
        rows=None if part.rows is None else part.rows[rows],
        by=None if part.by is None else part.by[rows],
    )


@dataclass(frozen=True, eq=False)
class _Within:
    """Scores for new objects where only some of the examples calibrate."""

    part: Fold
    place: IntArray

    @property
    def partial(self) -> bool:
        """Whether scores are by some of the members."""
        return bool(getattr(self.part.scorer, "partial", False))

    @property
    def small_ensemble(self) -> bool:
        """Whether a point takes scores by subforests."""
        return bool(getattr(self.part.scorer, "small_ensemble", False))

    def point_scores(self, X: Any) -> list[FloatArray]:
        """Return the scores of the rows of X by subforests."""
        scores: list[FloatArray] = self.part.scorer.point_scores(X)  # type: ignore[attr-defined]
        return scores

    def whole(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X by the whole model."""
        return whole_scores(self.part, X)

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the draws, with examples numbered among those that calibrate."""
        for draw in self.part.scorer.sampled_scores(X):
            left_out = draw.left_out
            if left_out is not None:
                left_out = np.where(left_out < 0, -1, self.place[left_out])
            joined = None if draw.joined is None else _JoinedWithin(draw.joined, self.place)
            yield SampledScores(draw.scores, left_out, draw.samples, joined)


@dataclass(frozen=True, eq=False)
class _JoinedWithin:
    """New objects in the bags, and the changes of those examples alone that calibrate."""

    joined: Joined
    place: IntArray

    def map(self, function: Callable[[JoinedBlock], Any]) -> list[Any]:
        """Return what a function says of each block."""
        return self.joined.map(lambda block: function(self._of(block)))

    def _of(self, block: JoinedBlock) -> JoinedBlock:
        place = self.place[block.rows]
        kept = place >= 0
        offsets = np.append(0, np.cumsum(kept))[block.offsets].astype(np.int64)
        return JoinedBlock(block.scores, offsets, place[kept].astype(np.int32), block.changed[kept])
