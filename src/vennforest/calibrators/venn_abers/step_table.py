"""The inductive Venn–Abers predictor of one column of scores: a step function found once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vennforest._blocks import run_in_blocks
from vennforest._state import check_array, check_increasing, require, stored
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.interface import LeftOut
from vennforest.calibrators.core.logistic import SMALLEST
from vennforest.calibrators.venn_abers import kernels, left_out_kernels

Int32Array = NDArray[np.int32]

LARGEST_COUNT = 1 << 26
"""Sums of counts up to here are compared without rounding."""


ROUNDING = 1e-13
"""Part of the whole weight by which sums of weights may differ."""

MOST_WEIGHT = 1e18
"""Sum of weights up to which the new object's weight of 1 is exact to 13 digits."""


def check_total(weight: FloatArray | None, name: str = "sample_weight") -> None:
    """Refuse weights beside which the new object's weight of 1 is lost.

    Raises
    ------
    ValueError
        If they sum to more than 1e18.
    """
    if weight is not None and weight.sum() > MOST_WEIGHT:
        raise ValueError(
            f"{name} must sum to at most {MOST_WEIGHT:g}, since a new object counts as 1, "
            f"got {weight.sum():g}: divide them all by one number"
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
        W, W_low, Y, Y_low = kernels.cumulate(numbers, weight, labels, m)
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
        """Return the sums as arrays of the kind kernels are compiled for.

        Raises
        ------
        ValueError
            If they are no sums at m scores.
        """
        W, Y = (np.require(column, np.float64, ["C", "W", "E"]) for column in (self.W, self.Y))
        if W.shape != (m + 1,) or Y.shape != (m + 1,):
            raise ValueError(f"W and Y must have shape (m + 1,), got {W.shape} and {Y.shape}")
        if not (np.isfinite(W).all() and np.isfinite(Y).all()):
            raise ValueError("W and Y must be finite")
        weight, positive = np.diff(W), np.diff(Y)
        if W[0] != 0 or Y[0] != 0 or not 0 < W[-1] <= 2 * MOST_WEIGHT:
            raise ValueError(
                f"W and Y must begin at 0, and W must rise, to {MOST_WEIGHT:g} at most"
            )
        if (weight < 0).any() or (positive < 0).any():
            raise ValueError("W and Y must not decrease")
        if (positive > weight + ROUNDING * W[-1]).any():
            raise ValueError("Y must not rise more than W")
        if self.W_low is None or self.Y_low is None:
            if (weight <= 0).any() or (positive > weight).any():
                raise ValueError("W must rise at every score, and Y not more than W")
            return type(self)(W, Y)
        low = [np.require(column, np.float64, ["C", "W"]) for column in (self.W_low, self.Y_low)]
        for high, rest in zip((W, Y), low, strict=True):
            if rest.shape != (m + 1,) or not (np.abs(rest) <= np.spacing(high)).all():
                raise ValueError("W_low and Y_low must be what rounding left of W and Y")
        return type(self)(W, Y, *low)


SMALLEST_BLOCK = 20_000
"""Fewer new scores than this are not worth a thread of their own."""

SMALLEST_RADIX_SORT = 2_000
"""From here on the radix sort beats numpy's."""

LARGE_TABLE = 1 << 16
"""Steps that no fast cache holds, and new scores that are worth sorting for them."""

SEARCH_COST = 25
"""A search without a group takes, for each of its examples, as long as a fit of so many."""


class Steps(NamedTuple):
    """The runs of places at which a new observation of one label has the same fit."""

    ends: FloatArray  # (n_steps - 1,) scores between runs
    fits: FloatArray  # (n_steps,) the fit of each run
    a: Int32Array  # (n_steps,) the touching line's point on the left
    b: Int32Array  # (n_steps,) and on the right
    begins: NDArray[np.uint32]  # with origin and scale: a grid over ``ends`` (``kernels.guide``)
    origin: float
    scale: float


class Hulls(NamedTuple):
    """Lower hulls over blocks of cumulative points (``left_out_kernels.hull_tree``)."""

    corners: Int32Array
    begins: Int32Array
    levels: Int32Array


@stored("examples")
@dataclass(eq=False)
class Examples:
    """The calibration examples one by one, for leaving them out.

    Their scores are kept until the first of them is left out; from then on their places will do.
    """

    labels: NDArray[np.int8]  # (n,) 0 or 1
    weight: FloatArray  # (n,), or (0,) where every weight is 1
    scores: FloatArray | None  # (n,)
    numbers: Int32Array | None = None  # (n,) the place of each score among the distinct ones

    def check(self, x: FloatArray, W: FloatArray, Y: FloatArray) -> None:
        """Refuse examples that are not those of a fit.

        Raises
        ------
        ValueError
            If labels are not 0 or 1, weights not above zero, a score is none of the distinct
            ones, or the weights do not add up to the cumulative ones.
        """
        n, m, scores, numbers = len(self.labels), len(x), self.scores, self.numbers
        check_array(self.labels, "labels", (n,), "i", 0, 1)
        check_array(self.weight, "weight", (n if len(self.weight) else 0,), low=SMALLEST)
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

    def to_state(self) -> dict[str, Any]:
        """Return the arguments of ``from_state``."""
        return {name: getattr(self, name) for name in ("labels", "weight", "scores", "numbers")}

    @classmethod
    def from_state(cls, **state: Any) -> Self:
        """Return such examples; the table that holds them checks them, with its own scores."""
        return cls(**state)

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
    """Both isotonic fits of every possible new score.

    Parameters
    ----------
    x : ndarray of shape (m,)
        Distinct calibration scores, increasing.
    W, Y : ndarray of shape (m + 1,)
        Cumulative weight and cumulative weight of the positive class, both from 0.
    examples : Examples, optional
        What ``left_out`` refers to.
    W_low, Y_low : ndarray of shape (m + 1,), optional
        What rounding left of W and Y, where weights are not counts.

    Notes
    -----
    p0 of a score s depends on how many calibration scores are <= s, p1 on how many are < s (see
    ``kernels``), so each is a short table of steps. Vovk & Petej (2014), Algorithm 2's fits.
    """

    def __init__(
        self,
        x: FloatArray,
        W: FloatArray,
        Y: FloatArray,
        examples: Examples | None = None,
        W_low: FloatArray | None = None,
        Y_low: FloatArray | None = None,
    ) -> None:
        self.x, self.W, self.Y, self.examples = x, W, Y, examples
        self.W_low, self.Y_low = W_low, Y_low
        # Large arrays are made by numpy, which asks the system for large pages.
        after, queue = np.empty((2, len(W)), np.int32)
        found = np.empty((3, len(W)), np.int32)
        kernels.suffix_hulls(*self.sums, after)
        self.zeros, self.ones = (self._steps(label, after, queue, found) for label in (0, 1))

    @property
    def sums(self) -> Sums:
        """The cumulative points."""
        return Sums(self.W, self.Y, self.W_low, self.Y_low)

    def _steps(self, label: int, after: Int32Array, queue: Int32Array, found: Int32Array) -> Steps:
        start, a, b = kernels.insert(*self.sums, after, label, queue, found)
        ends, fits = kernels.read_fits(self.x, *self.sums, start, a, b, label)
        return Steps(ends, fits, a, b, *kernels.guide(ends))

    @classmethod
    def from_examples(
        cls, scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None
    ) -> Self:
        """Fit to scores (n,), whether each is of the positive class, and weights above zero.

        The arrays are kept.
        """
        labels = positive.view(np.int8)
        if weight is None:
            n = len(scores)
            parted = np.empty(n)
            cut = kernels.split(scores, labels, parted)
            x, (W, Y) = np.empty(n), np.empty((2, n + 1))
            m = kernels.merge_sorted(_sort(parted[:cut]), _sort(parted[cut:]), x, W, Y)
            x, W, Y = x[:m], W[: m + 1], Y[: m + 1]
            if m < n:
                x, W, Y = x.copy(), W.copy(), Y.copy()
            return cls(x, W, Y, Examples(labels, np.empty(0), scores))
        table = cls.from_counts(scores, weight, labels)
        table.examples = Examples(labels, weight, scores)
        return table

    @classmethod
    def from_counts(cls, scores: FloatArray, weight: FloatArray, labels: NDArray[np.int8]) -> Self:
        """Fit to scores (n,) in any order, with weights above zero of labels 0 and 1."""
        x, numbers = np.unique(scores, return_inverse=True)
        W, Y, *low = Sums.of(numbers, weight, labels, len(x))
        return cls(x, W, Y, None, *low)

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
        W, Y, *low = Sums.of(numbers, weight, examples.labels[kept], len(x))
        return StepTable(x, W, Y, None, *low)

    def _examples(self) -> Examples:
        assert self.examples is not None  # who leaves some out has asked for them before
        return self.examples

    @cached_property
    def hulls(self) -> Hulls:
        """The hulls over blocks of points."""
        return Hulls(*left_out_kernels.hull_tree(*self.sums))

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
            left_out_kernels.reach(*self.sums, *hulls, steps.a, steps.b, label, heaviest)
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
        cls,
        x: FloatArray,
        W: FloatArray,
        Y: FloatArray,
        W_low: FloatArray | None,
        Y_low: FloatArray | None,
        examples: Examples | None,
    ) -> Self:
        """Return the table of these sums, and make what follows from them again.

        So a file cannot bend places that kernels follow.

        Raises
        ------
        ValueError
            If they are not those of a fit.
        """
        x = np.require(x, np.float64, ["C", "W", "E"])
        check_array(x, "x", (None,))
        require(len(x), "x must hold one score or more")
        check_increasing(x, "x")
        sums = Sums(W, Y, W_low, Y_low).check(len(x))
        if examples is not None:
            require(isinstance(examples, Examples), "examples must be Examples")
            examples.check(x, sums.W, sums.Y)
        return cls(x, sums.W, sums.Y, examples, sums.W_low, sums.Y_low)

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
        n_jobs: int | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return p0 and p1, (2, n), of scores (n,), each without what ``left_out`` says.

        They are written to ``out`` where it is given, whose rows must lie close.
        """
        both = np.empty((2, len(scores))) if out is None else out
        p0, p1 = both
        if left_out is None:
            self._look_up(scores, p0, p1, n_jobs)
        elif left_out.groups is None:
            self._look_up_without(scores, left_out.rows, None, p0, p1, n_jobs)
        else:
            self._look_up_without_groups(scores, left_out.rows, left_out.groups, p0, p1, n_jobs)
        if self.W[-1] > LARGEST_COUNT or self.W_low is not None:
            np.minimum(p0, p1, out=p0)  # rounding may be more than what they are apart
        return both

    def _look_up(
        self, scores: FloatArray, p0: FloatArray, p1: FloatArray, n_jobs: int | None
    ) -> None:
        tables = (True, self.zeros, p0), (False, self.ones, p1)
        large = max(len(self.zeros.ends), len(self.ones.ends)) >= LARGE_TABLE

        def work(begin: int, stop: int) -> None:
            read, numbers = scores, None
            if large and stop - begin >= LARGE_TABLE:
                low = self.x[0]
                scale = kernels.scale_of(low, self.x[-1], kernels.PARTS)
                read, numbers = np.empty(stop - begin), np.empty(stop - begin, np.uint32)
                kernels.sort_into_parts(scores, low, scale, begin, stop, read, numbers)
                begin, stop = 0, stop - begin
            for equal, (ends, fits, _, _, *grid), out in tables:
                kernels.read_steps(read, ends, fits, *grid, equal, out, begin, stop, numbers)

        _run(work, len(scores), n_jobs)

    def _look_up_without(
        self,
        scores: FloatArray,
        rows: IntArray,
        groups: tuple[IntArray, IntArray] | None,
        p0: FloatArray,
        p1: FloatArray,
        n_jobs: int | None,
    ) -> None:
        """Look up each score without one example, or a group: members and where each starts."""
        examples = self._examples()
        members, starts = groups or (np.empty(0, np.intp), np.empty(0, np.intp))
        hulls, reach, position = self._removal

        def work(begin: int, stop: int) -> None:
            for label, (steps, out) in enumerate(((self.zeros, p0), (self.ones, p1))):
                left_out_kernels.read_left_out(
                    scores,
                    rows,
                    members,
                    starts,
                    position,
                    examples.labels,
                    examples.weight,
                    self.x,
                    *self.sums,
                    *hulls,
                    label,
                    steps.ends,
                    steps.a,
                    steps.b,
                    *reach[label],
                    out,
                    begin,
                    stop,
                )

        _run(work, len(scores), n_jobs)

    def _look_up_without_groups(
        self,
        scores: FloatArray,
        rows: IntArray,
        groups: IntArray,
        p0: FloatArray,
        p1: FloatArray,
        n_jobs: int | None,
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
            self._look_up_without(scores, code[rows], (members, starts), p0, p1, n_jobs)
        order = np.flatnonzero(apart)
        order = order[np.argsort(rows[order], kind="stable")]
        for these in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1):
            if len(these):
                table = self.without(np.flatnonzero(groups == rows[these[0]]))
                p0[these], p1[these] = table.read(scores[these], None, n_jobs)


def _run(work: Callable[[int, int], None], n: int, n_jobs: int | None) -> None:
    if n < SMALLEST_BLOCK:  # asking joblib would take longer than the look-up of one score
        work(0, n)
    else:
        run_in_blocks(work, n, n_jobs, SMALLEST_BLOCK)


def _sort(scores: FloatArray) -> FloatArray:
    """Sort a fresh array of scores; by radix where that is several times faster."""
    if len(scores) < SMALLEST_RADIX_SORT:
        scores.sort()
        return scores
    bits = scores.view(np.uint64)
    ordered: FloatArray = kernels.radix_sort(bits, np.empty_like(bits)).view(np.float64)
    return ordered
