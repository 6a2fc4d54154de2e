"""The inductive Venn–Abers predictor of one column of scores: a step function found once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vennforest._jit import run_in_blocks
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.venn_abers import kernels, left_out_kernels

Int32Array = NDArray[np.int32]

SMALLEST_BLOCK = 20_000
"""Fewer new scores than this are not worth a thread of their own."""

SMALLEST_RADIX_SORT = 2_000
"""From here on the radix sort beats numpy's."""


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


@dataclass(eq=False)
class Examples:
    """The calibration examples one by one, for leaving them out.

    Their scores are kept until the first of them is left out; from then on their places will do.
    """

    labels: NDArray[np.int8]  # (n,) 0 or 1
    weight: FloatArray  # (n,), or (0,) where every weight is 1
    scores: FloatArray | None  # (n,)
    numbers: Int32Array | None = None  # (n,) the place of each score among the distinct ones

    def check(self, m: int) -> None:
        """Refuse examples that do not belong to a fit of m distinct scores.

        Raises
        ------
        ValueError
            If lengths differ, or a place is none of the m.
        """
        n, numbers = len(self.labels), self.numbers
        known = self.scores if numbers is None else numbers
        if known is None or known.shape != (n,) or self.weight.shape not in ((0,), (n,)):
            raise ValueError(f"labels, scores and weight must be of the same examples, got {n}")
        if numbers is not None and ((numbers < 0) | (numbers >= m)).any():
            raise ValueError(f"numbers must be in [0, {m})")

    def numbers_in(self, x: FloatArray) -> Int32Array:
        """Return the place of each example's score among the distinct scores x."""
        scores = self.scores
        if scores is not None:
            self.numbers = np.searchsorted(x, scores).astype(np.int32)
            self.scores = None
        assert self.numbers is not None
        return self.numbers


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

    Notes
    -----
    p0 of a score s depends on how many calibration scores are <= s, p1 on how many are < s (see
    ``kernels``), so each is a short table of steps. Vovk & Petej (2014), Algorithm 2's fits.
    """

    def __init__(
        self, x: FloatArray, W: FloatArray, Y: FloatArray, examples: Examples | None = None
    ) -> None:
        self.x, self.W, self.Y, self.examples = x, W, Y, examples
        m = len(x)
        start, a, b = kernels.insert_ones(W, Y)
        self.ones = self._steps(start, a, b, 1)
        # A label 0 is a label 1 seen in the mirror: scores turned round, classes exchanged.
        start, a, b = kernels.insert_ones(*kernels.mirror(W, Y))
        first = np.append(start[1:], m + 1)[::-1]  # seen from there, where each run's left end is
        self.zeros = self._steps(m + 1 - first, m - b[::-1], m - a[::-1], 0)

    def _steps(self, start: Int32Array, a: Int32Array, b: Int32Array, label: int) -> Steps:
        start, a, b = (np.ascontiguousarray(part, np.int32) for part in (start, a, b))
        ends, fits = kernels.read_fits(self.x, self.W, self.Y, start, a, b, label)
        return Steps(ends, fits, a, b, *kernels.guide(ends, max(1, len(ends))))

    @classmethod
    def from_examples(
        cls, scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None
    ) -> Self:
        """Fit to scores (n,), whether each is of the positive class, and weights above zero."""
        examples = Examples(
            positive.view(np.int8),
            np.empty(0) if weight is None else weight,
            scores.copy(),  # the caller may change what is his
        )
        if weight is None:
            x, W, Y, m = kernels.merge_sorted(_sort(scores[~positive]), _sort(scores[positive]))
            if m < len(x):
                x, W, Y = x[:m].copy(), W[: m + 1].copy(), Y[: m + 1].copy()
            return cls(x, W, Y, examples)
        x, group = np.unique(scores, return_inverse=True)
        return cls(
            x,
            np.append(0.0, np.cumsum(np.bincount(group, weight, len(x)))),
            np.append(0.0, np.cumsum(np.bincount(group, weight * positive, len(x)))),
            examples,
        )

    @cached_property
    def _removal(self) -> tuple[Hulls, list[tuple[Int32Array, Int32Array]], Int32Array]:
        """What leaving out needs: hulls, each step's reach, each example's place.

        It follows from the fit alone and is made at the first use, since most fits never need it.
        """
        if self.examples is None:
            raise ValueError(
                "left_out must be None after fit_counts, which knows no single examples"
            )
        weight = self.examples.weight
        heaviest = float(weight.max()) if len(weight) else 1.0
        hulls = Hulls(*left_out_kernels.hull_tree(self.W, self.Y))
        reach = [
            left_out_kernels.reach(self.W, self.Y, *hulls, steps.a, steps.b, label, heaviest)
            for label, steps in enumerate((self.zeros, self.ones))
        ]
        return hulls, reach, self.examples.numbers_in(self.x)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        derived = ("_removal", "ones", "zeros")
        return {name: value for name, value in self.__dict__.items() if name not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make what follows from the rest again: a file cannot bend places that kernels follow.

        Raises
        ------
        ValueError
            If the rest is no fit.
        """
        x, W, Y, examples = (state[name] for name in ("x", "W", "Y", "examples"))
        columns = [np.require(column, np.float64, ["C", "W"]) for column in (x, W, Y)]
        m = len(x)
        if not m or [column.shape for column in columns] != [(m,), (m + 1,), (m + 1,)]:
            raise ValueError(f"x, W and Y must have shapes (m,), (m + 1,), (m + 1,), got m = {m}")
        if not all(np.isfinite(column).all() for column in columns):
            raise ValueError("x, W and Y must be finite")
        if (np.diff(x) <= 0).any() or (np.diff(W) < 0).any() or (np.diff(Y) < 0).any():
            raise ValueError("x must increase, and W and Y must not decrease")
        if examples is not None:
            examples.check(m)
        self.__init__(*columns, examples)  # type: ignore[misc]

    def read(
        self, scores: FloatArray, left_out: IntArray | None = None, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return p0 and p1, each (n,), of scores (n,), each without example ``left_out[i]``."""
        p0, p1 = np.empty(len(scores)), np.empty(len(scores))
        zeros, ones = self.zeros, self.ones
        if left_out is None:

            def look_up(begin: int, stop: int) -> None:
                for equal, steps, out in ((True, zeros, p0), (False, ones, p1)):
                    kernels.read_steps(
                        scores,
                        steps.ends,
                        steps.fits,
                        steps.begins,
                        steps.origin,
                        steps.scale,
                        equal,
                        out,
                        begin,
                        stop,
                    )

        else:
            examples = self.examples
            hulls, reach, position = self._removal
            assert examples is not None

            def look_up(begin: int, stop: int) -> None:
                for label, (steps, out) in enumerate(((zeros, p0), (ones, p1))):
                    left_out_kernels.read_left_out(
                        scores,
                        left_out,
                        position,
                        examples.labels,
                        examples.weight,
                        self.x,
                        self.W,
                        self.Y,
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

        if len(scores) < SMALLEST_BLOCK:
            look_up(0, len(scores))
        else:
            run_in_blocks(look_up, len(scores), n_jobs, SMALLEST_BLOCK)
        return p0, p1


def _sort(scores: FloatArray) -> FloatArray:
    """Sort a fresh array of scores; by radix where that is several times faster."""
    if len(scores) < SMALLEST_RADIX_SORT:
        scores.sort()
        return scores
    bits = scores.view(np.uint64)
    ordered: FloatArray = kernels.radix_sort(bits, np.empty_like(bits)).view(np.float64)
    return ordered
