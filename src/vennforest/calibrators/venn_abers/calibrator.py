"""Venn–Abers predictors: two isotonic fits, one for each label the new object might have."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    IntArray,
    check_array,
    check_increasing,
    check_option,
    require,
)
from vennforest.calibrators.base import (
    BoundedCalibrator,
    LeftOut,
    normalised_bounds,
    normalised_bounds_formulas,
)
from vennforest.calibrators.formula import LOWEST, Terms, after
from vennforest.calibrators.intervals import (
    ConfidenceIntervals,
    IntervalCurve,
    Method,
    check_level,
    interval_curve,
    read_intervals,
)
from vennforest.calibrators.venn_abers import left_out_kernels, step_kernels
from vennforest.counts import ScoreCounts, tabulate
from vennforest.multiprobability import Merge, Multiprobability
from vennforest.prior import shift_intervals, shift_probabilities

Int32Array = NDArray[np.int32]

LARGEST_COUNT = 1 << 26
"""Sums of counts up to here are compared without rounding."""


ROUNDING = 1e-13
"""Part of the whole weight by which sums of weights may differ."""

MOST_WEIGHT = 1e18
"""Sum of weights up to which the new object's weight of 1 is exact to 13 digits."""


def check_total(total: float, name: str = "sample_weight") -> None:
    """Refuse a sum of weights beside which the new object's weight of 1 is lost."""
    if total > MOST_WEIGHT:
        raise ValueError(
            f"{name} must sum to at most {MOST_WEIGHT:g}, since a new object counts as 1, "
            f"got {total:g}: divide them all by one number"
        )


class Sums(NamedTuple):
    """The cumulative points P_0, ..., P_m (``kernels``), each sum perhaps a pair of numbers."""

    W: FloatArray  # (m + 1,) cumulative weight
    Y: FloatArray  # (m + 1,) cumulative weight of the positive class
    W_low: FloatArray | None = None  # (m + 1,) what rounding left of W, and of Y; None where all
    Y_low: FloatArray | None = None  # weights are counts, whose sums are exact

    @classmethod
    def of(
        cls,
        numbers: Int32Array | IntArray,
        weight: FloatArray,
        labels: NDArray[np.int8],
        m: int,
    ) -> Self:
        """Add up examples (n,) of these weights and labels 0 or 1 at m scores."""
        W, W_low, Y, Y_low = step_kernels.cumulate(numbers, weight, labels, m)
        if W[-1] <= LARGEST_COUNT and (weight == np.rint(weight)).all():
            return cls(W, Y)
        return cls(W, Y, W_low, Y_low)

    def counts(self) -> tuple[FloatArray, FloatArray]:
        """Return weight and positive weight at each score, (m,), not below zero."""
        weight, positive = np.diff(self.W), np.diff(self.Y)
        if self.W_low is not None and self.Y_low is not None:
            # the last digits may make a part larger than the whole
            weight = np.maximum(weight + np.diff(self.W_low), 0)
            positive = np.clip(positive + np.diff(self.Y_low), 0, weight)
        return weight, positive

    def check(self, m: int) -> Self:
        """Return the sums as arrays of the kind kernels are compiled for."""
        W, Y = (np.require(column, np.float64, ["C", "W", "E"]) for column in (self.W, self.Y))
        for name, column in (("W", W), ("Y", Y)):
            check_array(column, name, (m + 1,), low=0, high=2 * MOST_WEIGHT)
        require(W[0] == 0 and Y[0] == 0 < W[-1], "W and Y must begin at 0, and W must rise")
        weight, positive = np.diff(W), np.diff(Y)
        require(weight.min() >= 0 and positive.min() >= 0, "W and Y must not decrease")
        exact = self.W_low is None or self.Y_low is None
        slack = 0 if exact else ROUNDING * W[-1]
        require((positive <= weight + slack).all(), "Y must not rise more than W")
        if self.W_low is None or self.Y_low is None:
            require(weight.min() > 0, "W must rise at every score")
            return type(self)(W, Y)
        low = [np.require(column, np.float64, ["C", "W"]) for column in (self.W_low, self.Y_low)]
        for high, rest in zip((W, Y), low, strict=True):
            sound = rest.shape == (m + 1,) and (np.abs(rest) <= np.spacing(high)).all()
            require(sound, "W_low and Y_low must be what rounding left of W and Y")
        return type(self)(W, Y, *low)


LARGE_TABLE = 1 << 16
"""Steps that no fast cache contains, and new scores that are worth sorting for them."""

SEARCH_COST = 25
"""A search without a group takes, for each of its examples, as long as a fit of so many."""


class Steps(NamedTuple):
    """The runs of places at which a new observation of one label has the same fit."""

    ends: FloatArray  # (n_steps - 1,) scores between runs
    fits: FloatArray  # (n_steps,) the fit of each run
    a: Int32Array  # (n_steps,) the touching line's point on the left
    b: Int32Array  # (n_steps,) and on the right
    begins: NDArray[np.uint32]  # with origin and scale: a grid over ``ends`` (``guide``)
    origin: float
    scale: float


Hulls = tuple[Int32Array, Int32Array, Int32Array]
"""Lower hulls over blocks of cumulative points: what ``left_out_kernels.hull_tree`` returns."""


@stored("examples")
@attrs.define(eq=False)
class Examples:
    """The calibration examples one by one, for leaving them out; the table checks them.

    Their scores are kept until the first of them is left out; from then on their places will do.
    """

    labels: NDArray[np.int8]  # (n,) 0 or 1
    weight: FloatArray  # (n,), or (0,) where every weight is 1
    scores: FloatArray | None  # (n,)
    numbers: Int32Array | None = None  # (n,) the place of each score among the distinct ones

    def check(self, x: FloatArray, W: FloatArray, Y: FloatArray) -> None:
        """Refuse examples that are not those of a fit."""
        n, m, scores, numbers = len(self.labels), len(x), self.scores, self.numbers
        check_array(self.labels, "labels", (n,), "i", 0, 1)
        check_array(self.weight, "weight", (n if len(self.weight) else 0,), low=0)
        if numbers is None:
            check_array(scores, "scores", (n,))
            assert scores is not None
            numbers = np.searchsorted(x, scores).astype(np.int32).clip(max=m - 1)
            require((x[numbers] == scores).all(), "scores must be among the distinct ones")
        else:
            require(scores is None, "scores must be None where their places are known")
            check_array(numbers, "numbers", (n,), "i", 0, m - 1)
        require(numbers.dtype == np.int32 and self.labels.dtype == np.int8, "types must be small")
        weight = self.weight if len(self.weight) else np.ones(n)
        for name, total, part in (("W", W, weight), ("Y", Y, weight * self.labels)):
            own = np.append(0.0, np.cumsum(np.bincount(numbers, part, m)))
            require(
                (np.abs(own - total) <= ROUNDING * W[-1]).all(),
                f"{name} must be the cumulative weight of the examples",
            )

    def numbers_in(self, x: FloatArray) -> Int32Array:
        """Return the place of each example's score among the distinct scores x."""
        scores = self.scores
        if scores is not None:
            self.numbers = np.searchsorted(x, scores).astype(np.int32)
            self.scores = None
        assert self.numbers is not None
        return self.numbers


@stored("step-table")
class StepTable:
    """Both isotonic fits of every possible new score, from sums at distinct scores x (m,).

    p0 of a score s depends on how many calibration scores are <= s, p1 on how many are < s (see
    ``kernels``), so each is a short table of steps. Vovk & Petej (2014), Algorithm 2's fits.
    """

    def __init__(self, x: FloatArray, sums: Sums, examples: Examples | None = None) -> None:
        self.x, self.sums, self.examples = x, sums, examples
        # Large arrays are made by numpy, which asks the system for large pages.
        after, queue = np.empty((2, len(sums.W)), np.int32)
        found = np.empty((3, len(sums.W)), np.int32)
        step_kernels.suffix_hulls(*sums, after)
        self.zeros, self.ones = (self._steps(label, after, queue, found) for label in (0, 1))

    def _steps(self, label: int, after: Int32Array, queue: Int32Array, found: Int32Array) -> Steps:
        start, a, b = step_kernels.insert(*self.sums, after, label, queue, found)
        ends, fits = step_kernels.read_fits(self.x, *self.sums, start, a, b, label)
        return Steps(ends, fits, a, b, *step_kernels.guide(ends))

    @classmethod
    def from_examples(
        cls, scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None
    ) -> StepTable:
        """Fit to scores (n,), whether each is of the positive class, and weights above zero."""
        table = _table_of(*tabulate(scores, positive.astype(np.intp), weight, 2))
        labels = positive.view(np.int8)
        table.examples = Examples(labels, np.empty(0) if weight is None else weight, scores)
        return table

    @classmethod
    def from_counts(cls, scores: FloatArray, weight: FloatArray, labels: NDArray[np.int8]) -> Self:
        """Fit to scores (n,) in any order, with weights above zero of labels 0 and 1."""
        x, numbers = np.unique(scores, return_inverse=True)
        return cls(x, Sums.of(numbers, weight, labels, len(x)))

    def without(self, rows: IntArray) -> StepTable:
        """Return the table as if fitted without these calibration examples; it has none itself."""
        examples = self._examples()
        kept = np.ones(len(examples.labels), np.bool_)
        kept[rows] = False
        numbers = examples.numbers_in(self.x)[kept]
        there = np.bincount(numbers, minlength=len(self.x)) > 0
        numbers = (np.cumsum(there) - 1)[numbers]
        weight = examples.weight[kept] if len(examples.weight) else np.ones(len(numbers))
        x = self.x[there]
        return StepTable(x, Sums.of(numbers, weight, examples.labels[kept], len(x)))

    def _examples(self) -> Examples:
        assert self.examples is not None  # who leaves some out has asked for them before
        return self.examples

    @cached_property
    def hulls(self) -> Hulls:
        """The hulls over blocks of points."""
        hulls: Hulls = left_out_kernels.hull_tree(self.sums)
        return hulls

    @cached_property
    def _removal(self) -> tuple[Hulls, list[tuple[Int32Array, Int32Array]], Int32Array]:
        """What leaving out needs: hulls, each step's reach, each example's place.

        It follows from the fit alone and is made at the first use, since most fits never need it.
        """
        examples = self._examples()
        weight = examples.weight
        heaviest = float(weight.max()) if len(weight) else 1.0
        hulls = self.hulls
        reach = [
            left_out_kernels.reach(self.sums, hulls, steps.a, steps.b, label, heaviest)
            for label, steps in enumerate((self.zeros, self.ones))
        ]
        return hulls, reach, examples.numbers_in(self.x)

    @cached_property
    def members(self) -> tuple[IntArray, IntArray]:
        """The examples by the place of their score, and where each place's begin."""
        numbers = self._examples().numbers_in(self.x)
        counts = np.bincount(numbers, minlength=len(self.x))
        return np.argsort(numbers, kind="stable"), np.append(0, np.cumsum(counts))

    def to_state(self) -> dict[str, Any]:
        """Return the arguments of ``from_state``."""
        return {"x": self.x, "examples": self.examples, **self.sums._asdict()}

    @classmethod
    def from_state(
        cls, x: FloatArray, examples: Examples | None, **sums: FloatArray | None
    ) -> Self:
        """Return the table of these sums, and make what follows from them again.

        So a file cannot bend places that kernels follow.
        """
        x = np.require(x, np.float64, ["C", "W", "E"])
        check_array(x, "x", (None,))
        require(len(x), "x must contain one score or more")
        check_increasing(x, "x")
        checked = Sums(**sums).check(len(x))  # type: ignore[arg-type]
        if examples is not None:
            require(isinstance(examples, Examples), "examples must be Examples")
            examples.check(x, checked.W, checked.Y)
        return cls(x, checked, examples)

    def without_examples(self) -> StepTable:
        """Return the same table, which knows no single examples."""
        bare = object.__new__(type(self))
        vars(bare).update(vars(self), examples=None)
        return bare

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return self.to_state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the rest again, as ``from_state`` does."""
        vars(self).update(vars(self.from_state(**state)))

    def read(
        self,
        scores: FloatArray,
        left_out: LeftOut | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return p0 and p1, (2, n), of scores (n,), each without what ``left_out`` says.

        They are written to ``out`` where it is given, whose rows must lie close.
        """
        both = np.empty((2, len(scores))) if out is None else out
        p0, p1 = both
        if left_out is None:
            self._look_up(scores, p0, p1)
        elif left_out.groups is None:
            self._look_up_without(scores, left_out.rows, None, p0, p1)
        else:
            self._look_up_without_groups(scores, left_out.rows, left_out.groups, p0, p1)
        if self.sums.W[-1] > LARGEST_COUNT or self.sums.W_low is not None:
            np.minimum(p0, p1, out=p0)  # rounding may be more than what they are apart
        return both

    def _look_up(self, scores: FloatArray, p0: FloatArray, p1: FloatArray) -> None:
        tables = (True, self.zeros, p0), (False, self.ones, p1)
        numbers, n = None, len(scores)
        if n >= LARGE_TABLE and max(len(self.zeros.ends), len(self.ones.ends)) >= LARGE_TABLE:
            low = self.x[0]
            scale = step_kernels.scale_of(low, self.x[-1], step_kernels.PARTS)
            read, numbers = np.empty(n), np.empty(n, np.uint32)
            step_kernels.sort_into_parts(scores, low, scale, read, numbers)
            scores = read
        for equal, (ends, fits, _, _, *grid), out in tables:
            step_kernels.read_steps(scores, ends, fits, *grid, equal, out, numbers)

    def _look_up_without(
        self,
        scores: FloatArray,
        rows: IntArray,
        groups: tuple[IntArray, IntArray] | None,
        p0: FloatArray,
        p1: FloatArray,
    ) -> None:
        """Look up each score without one example, or a group: members and where each starts."""
        examples = self._examples()
        groups = groups or (np.empty(0, np.intp), np.empty(0, np.intp))
        hulls, reach, position = self._removal
        known = position, examples.labels, examples.weight
        for label, (steps, out) in enumerate(((self.zeros, p0), (self.ones, p1))):
            fits = steps.ends, steps.a, steps.b, *reach[label]
            left_out_kernels.read_left_out(
                scores, rows, groups, known, self.x, self.sums, hulls, label, fits, out
            )

    def _look_up_without_groups(
        self,
        scores: FloatArray,
        rows: IntArray,
        groups: IntArray,
        p0: FloatArray,
        p1: FloatArray,
    ) -> None:
        """Look up each score without a group of examples: by a search, or in a table without it.

        A search takes longer the larger the group, a table as long as a fit does; a table serves
        all scores without that group.
        """
        numbers = self._examples().numbers_in(self.x)
        asked = np.bincount(rows[rows >= 0], minlength=int(groups.max(initial=0)) + 1)
        size = np.bincount(groups, minlength=len(asked))
        anew = asked * (size + 1) * SEARCH_COST > len(self.x) + len(groups)
        searched = np.flatnonzero((asked > 0) & ~anew)
        code = np.full(len(asked) + 1, -1, np.intp)  # the last one is for none, number -1
        code[searched] = np.arange(len(searched))
        members = np.flatnonzero(code[groups] >= 0)
        members = members[np.lexsort((numbers[members], code[groups[members]]))]
        starts = np.append(0, np.cumsum(size[searched])).astype(np.intp)
        apart = anew[rows] & (rows >= 0)
        if not apart.all():
            self._look_up_without(scores, code[rows], (members, starts), p0, p1)
        order = np.flatnonzero(apart)
        order = order[np.argsort(rows[order], kind="stable")]
        for these in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1):
            if len(these):
                table = self.without(np.flatnonzero(groups == rows[these[0]]))
                p0[these], p1[these] = table.read(scores[these])


@stored("venn-abers-predictor")
class VennAbers(BoundedCalibrator):
    """Inductive Venn–Abers predictor: probabilities with bounds that carry a validity guarantee.

    For a new score s, p0 is the isotonic fit to the calibration pairs plus (s, 0), read at s, and
    p1 the same with (s, 1); always p0 < p1 (Vovk & Petej 2014, section 3; Johansson et al. 2018,
    eqs. 7-9). Both are found for every possible s at ``fit``, so a new score is a look-up.

    Parameters
    ----------
    merge : {"log", "brier", "midpoint"}, default="log"
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.

    Notes
    -----
    *More than two classes*: one class against the rest. The probabilities are normalised, and so
    are the bounds, in a way that keeps both what the guarantee speaks of and what normalisation
    gives: see `normalised_bounds`.

    *Validity*: where calibration and new examples are exchangeable, one of p0 and p1 (that of the
    true label) is perfectly calibrated (Vovk & Petej 2014, Theorem 1). The single probability
    lies between the two and has no guarantee of its own.

    *Weights* count as so many observations, the new object as one. They may be of any size beside
    each other; a sum above 1e18, in which the new object is lost, is refused.

    Examples
    --------
    >>> import numpy as np
    >>> scores, y = np.array([0.1, 0.3, 0.4, 0.8, 0.9]), np.array([0, 0, 1, 0, 1])
    >>> m = VennAbers().fit(scores, y).predict_multiprobability([0.2, 0.85])
    >>> m.p0.round(3), m.p1.round(3)
    (array([0.   , 0.333]), array([0.5, 1. ]))
    """

    title = "Venn–Abers"
    tables_: list[StepTable]
    """The step functions of the second class's score (two classes), else one a class."""

    def __init__(self, merge: Merge = "log") -> None:
        self.merge = merge

    def _fit(self, counts: ScoreCounts) -> None:
        check_option(self.merge, Merge, "merge")
        check_total(counts.total, "sample_weight")
        self.tables_ = [_table_of(part.scores, part.weights) for part in counts.columns()]

    def _remember(
        self,
        scores: FloatArray,
        codes: IntArray,
        weight: FloatArray | None,
        positive: NDArray[np.bool_] | None,
    ) -> None:
        super()._remember(scores, codes, weight, positive)
        columns = [scores.copy()] if scores.ndim == 1 else list(scores.T.copy())
        for j, (table, column) in enumerate(zip(self.tables_, columns, strict=True)):
            labels = (codes == (1 if scores.ndim == 1 else j)).view(np.int8)
            table.examples = Examples(labels, np.empty(0) if weight is None else weight, column)

    def _without_examples(self) -> Self:
        calibrator = super()._without_examples()
        calibrator.tables_ = [table.without_examples() for table in self.tables_]
        return calibrator

    def _check_state(self) -> None:
        super()._check_state()
        columns = 1 if len(self.classes_) == 2 else len(self.classes_)
        require(len(self.tables_) == columns, f"tables_ must be {columns}")
        require(all(isinstance(table, StepTable) for table in self.tables_), "must be StepTables")

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

    def predict_confidence(
        self,
        scores: ArrayLike,
        level: float = 0.95,
        method: Method = "likelihood-ratio",
    ) -> ConfidenceIntervals:
        """Return confidence intervals for the share of every class among objects with new scores.

        They assume independent examples and a share that does not decrease with the score. They
        are widened where needed to contain what ``predict_proba`` returns.

        Returns
        -------
        ConfidenceIntervals
            Ends of shape (m, k), in [0, 1].

        Raises
        ------
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
        check_level(level)
        check_option(method, Method, "method")
        curves = self._interval_curves(level, method)
        found = read_intervals(curves, new, self.classes_, level)
        p, shift = self._predict_proba(new), self.shift_
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

    def _interval_curves(
        self, level: float, method: Method = "likelihood-ratio"
    ) -> list[IntervalCurve]:
        """Return what ``predict_confidence`` looks up, one a class or for the second of two."""
        return [
            interval_curve(table.x, *table.sums.counts(), level, method) for table in self.tables_
        ]

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


def _starts_of(table: StepTable) -> FloatArray:
    """Return where p0 or p1 may change, increasing."""
    # p0 depends on how many calibration scores are <= s, p1 on how many are < s.
    return np.unique(np.concatenate([table.zeros.ends, after(table.ones.ends)]))


def _table_of(x: FloatArray, weights: FloatArray) -> StepTable:
    """Return the step table of weights (m, 2) at increasing scores."""
    if weights.sum() <= LARGEST_COUNT and (weights == np.rint(weights)).all():
        W, Y = np.zeros((2, len(x) + 1))
        np.cumsum(weights.sum(axis=1), out=W[1:])
        np.cumsum(weights[:, 1], out=Y[1:])
        return StepTable(x, Sums(W, Y))
    row, column = np.nonzero(weights)
    return StepTable.from_counts(x[row], weights[row, column], column.astype(np.int8))
