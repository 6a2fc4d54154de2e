"""Venn–Abers predictors: two isotonic fits, one for each label the new object might have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike

from vennforest._blocks import blocks
from vennforest._state import require, stored
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.confidence import (
    ClassExamples,
    ConfidenceIntervals,
    Method,
    intervals_of,
)
from vennforest.calibrators.core.bounded import BoundedCalibrator, LeftOut
from vennforest.calibrators.core.formula import LOWEST, Terms, after
from vennforest.calibrators.core.interface import Learnt, as_tuple
from vennforest.calibrators.core.one_vs_rest import normalised_bounds, normalised_bounds_formulas
from vennforest.calibrators.venn_abers.smooth import SmoothEstimate
from vennforest.calibrators.venn_abers.step_table import MOST_WEIGHT, StepTable, check_total
from vennforest.counts import ScoreCounts
from vennforest.counts.score_counts import CountArray
from vennforest.multiprobability import Merge, Multiprobability
from vennforest.prior import shift_intervals, shift_probabilities

EXACT = 53
"""Bits that an integer may have to be a float, whatever they are."""


@stored("venn-abers")
@attrs.frozen(eq=False, slots=False)
class StepTables(Learnt):
    """The step functions of each column of scores, and the smooth estimates beside them.

    Attributes
    ----------
    tables : tuple of StepTable
        One for two classes, else one a class.
    smoothed : bool
        Whether there are smooth estimates.
    known : SmoothEstimate or None
        These, where they have been found before; else they are found at the first use, since
        bounds do not need them.
    """

    tables: tuple[StepTable, ...] = attrs.field(converter=as_tuple)
    smoothed: bool = attrs.field(validator=attrs.validators.instance_of(bool))
    known: SmoothEstimate | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(attrs.validators.instance_of(SmoothEstimate)),
    )

    def __attrs_post_init__(self) -> None:
        """Refuse tables of different examples, and estimates of other columns."""
        require(all(isinstance(one, StepTable) for one in self.tables), "tables must be StepTables")
        known = {None if one.examples is None else len(one.examples.labels) for one in self.tables}
        require(len(known) == 1, "tables must all hold the same examples, or none")
        require(
            self.known is None or len(self.known.maps) == len(self.tables),
            "known must be of as many columns",
        )

    def check_classes(self, k: int) -> None:
        """Refuse another number of tables than there are columns of scores."""
        columns = 1 if k == 2 else k
        require(len(self.tables) == columns, f"tables must be {columns} StepTables")

    @property
    def n_examples(self) -> int:
        """How many calibration examples the tables know."""
        examples = self.tables[0].examples
        return 0 if examples is None else len(examples.labels)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {name: value for name, value in vars(self).items() if name != "smooth"}

    @cached_property
    def smooth(self) -> SmoothEstimate | None:
        """The smooth estimates; that threads may both fit them changes nothing."""
        if not self.smoothed or self.known is not None:
            return self.known
        return SmoothEstimate.fit([(table.x, table.sums) for table in self.tables])

    def written(self) -> Self:
        """Return the same without examples, with the smooth estimates."""
        tables = tuple(table.without_examples() for table in self.tables)
        return type(self)(tables, self.smoothed, self.smooth)


@stored("venn-abers-predictor")
class VennAbers(BoundedCalibrator):
    """Inductive Venn–Abers predictor: probabilities with bounds that carry a validity guarantee.

    For a new score s, p0 is the isotonic fit to the calibration pairs plus (s, 0), read at s, and
    p1 the same with (s, 1); always p0 < p1 (Vovk & Petej 2014, section 3; Johansson et al. 2018,
    eqs. 7-9). Both are found for every possible s at ``fit``, so that a new score is a look-up.

    Parameters
    ----------
    merge : {"smooth", "log", "brier", "midpoint"}, default="smooth"
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.
        ``"smooth"`` clips into the bounds what Platt scaling gives on the log-odds of the
        calibration scores, or on the scores themselves where these are not probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    tables_ : tuple of StepTable
        The fitted step function of the second class's score (two classes), or one a class.
    smooth_ : SmoothEstimate or None
        The smooth estimates that belong to them; None unless ``merge="smooth"``.

    Notes
    -----
    *More than two classes*: one class against the rest. The probabilities are normalised, and so
    are the bounds, in a way that keeps both what the guarantee speaks of and what normalisation
    gives: see `normalised_bounds`.

    *Validity*: where calibration and new examples are exchangeable, one of p0 and p1 (that of the
    true label) is perfectly calibrated (Vovk & Petej 2014, Theorem 1). The single probability
    lies between the two and has no guarantee of its own.

    *Weights* count as so many observations, the new object as one. They may be of any size beside
    each other as long as they sum to at most 1e18; beyond that the new object is lost in rounding,
    which is refused.

    *The smooth estimate* is fitted to counts at distinct scores; from 16,384 of them on to groups
    of near-equal ones, which moves it by less than 1e-5.

    Examples
    --------
    >>> import numpy as np
    >>> scores, y = np.array([0.1, 0.3, 0.4, 0.8, 0.9]), np.array([0, 0, 1, 0, 1])
    >>> m = VennAbers().fit(scores, y).predict_multiprobability([0.2, 0.85])
    >>> m.p0.round(3), m.p1.round(3)
    (array([0.   , 0.333]), array([0.5, 1. ]))
    """

    _learns = StepTables

    def __init__(self, merge: Merge = "smooth") -> None:
        self.merge = merge

    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> StepTables:
        self._check_merge()
        check_total(weight)
        # Copies, since the caller may change what is his.
        columns = (
            [(scores.copy(), codes == 1)]
            if scores.ndim == 1
            else [(column, codes == j) for j, column in enumerate(scores.T.copy())]
        )
        return self._learnt_from(StepTable.from_examples(s, ones, weight) for s, ones in columns)

    def _learnt_from(self, tables: Iterable[StepTable]) -> StepTables:
        return StepTables(tables, self.merge == "smooth")

    def _fit_counts(self, counts: ScoreCounts) -> StepTables:
        if counts.vectors:
            weighted: StepTables = self._fit(*counts.examples(), len(counts.classes))
            return self._learnt_from(table.without_examples() for table in weighted.tables)
        self._check_merge()
        if (total := counts.total) > MOST_WEIGHT:
            raise ValueError(
                f"counts must sum to at most {MOST_WEIGHT:g}, since a new object counts as 1, "
                f"got {total:g}"
            )
        return self._learnt_from(_table_of(*table) for table in counts.tables)

    @property
    def tables_(self) -> tuple[StepTable, ...]:
        """The fitted step functions."""
        tables: tuple[StepTable, ...] = self._learnt.tables
        return tables

    @property
    def smooth_(self) -> SmoothEstimate | None:
        """The smooth estimates; None unless fitted with ``merge="smooth"``."""
        found: StepTables = self._learnt
        return found.smooth

    def _check_parameters(self) -> None:
        self._check_merge()
        require(self.merge != "smooth" or self._learnt.smoothed, "smoothed must be true")

    def predict_multiprobability(
        self,
        scores: ArrayLike,
        left_out: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Multiprobability:
        """Return lower and upper probabilities of every class.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.
        left_out : array-like of int of shape (m,), optional
            For each new score the calibration example, numbered as given to ``fit``, that leaves
            the calibration set for it (exactly, as if fitted without it); -1: none.
        groups : array-like of shape (n,), optional
            The group of every calibration example, as given to ``fit``, in labels of one kind:
            with the left-out example its whole group is left out, as exactly.

        Returns
        -------
        Multiprobability
            Bounds of shape (m, k), in [0, 1]. For two classes ``p0`` and ``p1``.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If scores are NaN or infinite or have another number of columns than in ``fit``, or
            ``left_out`` does not hold m numbers from -1 to n - 1, or ``groups`` n labels.
        """
        new = self._check_new(scores)
        absent = self._left_out(left_out, groups, len(new))
        return self._shifted(self._multiprobability(new, absent))

    def _multiprobability(self, new: FloatArray, absent: LeftOut | None = None) -> Multiprobability:
        sides = np.empty((2, len(self.classes_), len(new)))
        if new.ndim == 1:
            self.tables_[0].read(new, absent, out=sides[:, 1])
            np.subtract(1, sides[::-1, 1], out=sides[:, 0])
            lower, upper = sides[0].T, sides[1].T
            return Multiprobability(lower, upper, self.classes_)
        for j, (table, column) in enumerate(zip(self.tables_, new.T.copy(), strict=True)):
            table.read(column, absent, out=sides[:, j])
        lower, upper = normalised_bounds(*sides.transpose(0, 2, 1))
        return Multiprobability(lower, upper, self.classes_)

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        smooth = self.smooth_ if self.merge == "smooth" else None
        if scores.ndim > 1 or smooth is None:
            return super()._predict_proba(scores)
        # The same without the bounds of the first class.
        p0, p1 = self.tables_[0].read(scores)
        p = np.empty((len(scores), 2))
        for block in blocks(len(scores)):
            clipped = np.clip(smooth.read(scores[block]), p0[block], p1[block])
            p[block, 0], p[block, 1] = 1 - clipped, clipped
        return p

    def predict_confidence(
        self,
        scores: ArrayLike,
        level: float = 0.95,
        method: Method = "likelihood-ratio",
        *,
        simultaneous: bool = False,
    ) -> ConfidenceIntervals:
        """Return confidence intervals for the share of every class among objects with new scores.

        The bounds of ``predict_multiprobability`` say how far one more label would move the fit;
        these intervals contain the share itself with the given probability, if calibration
        examples are independent and the share does not decrease with the score.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.
        level : float, default=0.95
            Probability, in (0, 1), with which each interval contains the share. More than two
            classes: one against the rest, each class at the level.
        method, simultaneous
            See `confidence_intervals`.

        Returns
        -------
        ConfidenceIntervals
            Ends of shape (m, k), in [0, 1], widened where needed to contain what ``predict_proba``
            returns.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If scores are NaN or infinite, the level does not lie between 0 and 1, or the fit was
            weighted and the method is ``"exact"`` (which counts independent examples).
        """
        new = self._check_new(scores)
        weighted = (one.examples is not None and len(one.examples.weight) for one in self.tables_)
        if method == "exact" and any(weighted):
            raise ValueError(
                "sample_weight must be None at fit for exact confidence intervals, which count "
                "examples: use method='likelihood-ratio'"
            )
        per_class = [ClassExamples(table.x, *table.sums.counts()) for table in self.tables_]
        columns = new[:, None] if new.ndim == 1 else new
        found = intervals_of(per_class, columns, self.classes_, level, method, simultaneous)
        p, shift = self._predict_proba(new), self._fitted.shift
        if shift is not None:
            lower, upper = shift_intervals(found.lower, found.upper, shift.factors)
            found = replace(found, lower=lower, upper=upper)
            p = shift_probabilities(p, shift.factors)
        return found.widen(p)

    def _class_shares(self) -> FloatArray:
        counts = [table.sums.counts() for table in self.tables_]
        if len(counts) == 1:
            total, positive = (float(one.sum()) for one in counts[0])
            return np.array([total - positive, positive]) / total
        totals = np.array([positive.sum() for _, positive in counts])
        shares: FloatArray = totals / totals.sum()
        return shares

    def predict_smooth(self, scores: ArrayLike) -> FloatArray:
        """Return the smooth estimates that ``merge="smooth"`` clips into the bounds.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.

        Returns
        -------
        ndarray of shape (m, k)
            Platt estimates in [0, 1]; rows sum to 1.

        Raises
        ------
        ValueError
            If ``merge`` was not ``"smooth"`` at ``fit``.
        """
        return self._smooth(self._check_new(scores))

    def _smooth(self, scores: FloatArray) -> FloatArray:
        if self.smooth_ is None:
            raise ValueError(f'merge must be "smooth" for smooth estimates, got {self.merge!r}')
        return self.smooth_.predict(scores)

    def _starts(self) -> FloatArray:
        return _starts_of(self.tables_[0])

    def _formulas_of_many(self, scores: Terms) -> dict[str, Terms]:
        p0, p1 = [], []
        for score, table in zip(scores, self.tables_, strict=True):
            start = _starts_of(table)
            low, high = table.read(np.append(LOWEST, start))
            found = score.look_up(start, {"p0": low, "p1": high})
            p0.append(found["p0"])
            p1.append(found["p1"])
        lower, upper = normalised_bounds_formulas(tuple(p0), tuple(p1))
        return {"p0": lower, "p1": upper}

    def _smooth_formulas(self, scores: Terms) -> Terms:
        assert self.smooth_ is not None
        return self.smooth_.formulas(scores)


def _starts_of(table: StepTable) -> FloatArray:
    """Return where p0 or p1 may change, increasing."""
    # p0 depends on how many calibration scores are <= s, p1 on how many are < s.
    return np.unique(np.concatenate([table.zeros.ends, after(table.ones.ends)]))


def _table_of(x: FloatArray, counts: CountArray) -> StepTable:
    """Return the step table of counts (m, 2); large integers go in as two floats each."""
    row, column = np.nonzero(counts)
    x, count, label = x[row], counts[row, column], column.astype(np.int8)
    if count.dtype.kind == "f" or count.max() < 1 << EXACT:
        return StepTable.from_counts(x, count.astype(np.float64), label)
    whole = count.astype(np.int64)
    high = whole >> EXACT << EXACT
    both = np.concatenate([high, whole - high]).astype(np.float64)
    there = both > 0
    return StepTable.from_counts(np.tile(x, 2)[there], both[there], np.tile(label, 2)[there])
