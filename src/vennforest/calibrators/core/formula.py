"""What a map computes, as a tree of terms that every export reads.

A calibrator describes itself once, in ``_formula``: sums, products, logarithms, exponentials,
comparisons, and tables that are looked up. SQL, ONNX, JSON and its readers in other languages are
written from that description (``vennforest.export``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Literal, Protocol, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.counts import REACH, ScoreGrid

Operation = Literal[
    "add", "subtract", "multiply", "divide", "min", "max", "log", "exp", "floor", "if <="
]
"""What is computed; the last of four terms: the third where the first is <= the second."""

STEEPEST = 700.0
"""Log-odds beyond which a probability is as good as 0 or 1, and some systems' exp overflows."""

LOWEST = -float(np.finfo(np.float64).max)
"""The smallest score there is."""

TOP = 1 << 63


class Term:
    """A number for every row."""

    def __add__(self, other: Term | float) -> Term:
        return Computed("add", (self, other))

    def __radd__(self, other: float) -> Term:
        return Computed("add", (other, self))

    def __sub__(self, other: Term | float) -> Term:
        return Computed("subtract", (self, other))

    def __rsub__(self, other: float) -> Term:
        return Computed("subtract", (other, self))

    def __mul__(self, other: Term | float) -> Term:
        return Computed("multiply", (self, other))

    def __rmul__(self, other: float) -> Term:
        return Computed("multiply", (other, self))

    def __truediv__(self, other: Term | float) -> Term:
        return Computed("divide", (self, other))

    def __rtruediv__(self, other: float) -> Term:
        return Computed("divide", (other, self))

    def min(self, other: Term | float) -> Term:
        """Return the smaller one."""
        return Computed("min", (self, other))

    def max(self, other: Term | float) -> Term:
        """Return the larger one."""
        return Computed("max", (self, other))

    def log(self) -> Term:
        """Return the natural logarithm."""
        return Computed("log", (self,))

    def exp(self) -> Term:
        """Return the exponential."""
        return Computed("exp", (self,))

    def floor(self) -> Term:
        """Return the largest whole number that is not above."""
        return Computed("floor", (self,))

    def unless_above(self, limit: Term | float, here: Term | float, above: Term | float) -> Term:
        """Return ``here`` where the number is at most the limit, else ``above``."""
        return Computed("if <=", (self, limit, here, above))

    def clip(self, low: Term | float, high: Term | float) -> Term:
        """Return the number, or the nearer of the two ends where it lies beyond."""
        return self.max(low).min(high)

    def logistic(self) -> Term:
        """Return ``1 / (1 + exp(-x))``."""
        return 1.0 / (1.0 + (-1.0 * self.clip(-STEEPEST, STEEPEST)).exp())

    def without_underflow(self, least: float) -> Term:
        """Return the number, and 0 where it is below ``least`` in size.

        Some systems refuse to compute what is too small to be told from 0.
        """
        return self.max(-1.0 * self).unless_above(least, 0.0, self)

    def look_up(self, start: FloatArray, columns: Mapping[str, FloatArray]) -> dict[str, Term]:
        """Return what stands in the interval of the number, for each column (m,) of a table.

        Row i applies from ``start[i - 1]`` on and below ``start[i]``, which increase, (m - 1,).
        """
        return _looked_up(self, start, columns)


@attrs.frozen(eq=False)
class Score(Term):
    """A column of scores."""

    column: int = 0


@attrs.frozen(eq=False)
class Computed(Term):
    """What an operation makes of terms and numbers."""

    operation: Operation
    terms: tuple[Term | float, ...]


@attrs.frozen(eq=False)
class OnGrid(Term):
    """A score replaced by the middle of its cell: see `ScoreGrid`."""

    score: Score
    grid: ScoreGrid
    middle: Term

    def look_up(self, start: FloatArray, columns: Mapping[str, FloatArray]) -> dict[str, Term]:
        """Look the score itself up, in a table that knows the edges of the cells."""
        grid = self.grid
        n = int((start <= grid.score_of([grid.cells - 1])[0]).sum())
        start = first_where(lambda s: grid(s) >= start[:n], grid.low, grid.high, n)
        edges, ends = np.append(LOWEST, start), np.append(start, np.inf)
        there = (ends > edges) & (ends > grid.low)
        rows = {name: column[: n + 1][there] for name, column in columns.items()}
        return _looked_up(self.score, edges[there][1:], rows)


@attrs.frozen(eq=False)
class Steps:
    """A table of intervals: row i applies from ``start[i]`` on and below ``start[i + 1]``."""

    start: FloatArray
    columns: dict[str, FloatArray]


@attrs.frozen(eq=False)
class Column(Term):
    """What stands in the interval of a number."""

    table: Steps
    name: str
    at: Term


def _looked_up(x: Term, start: FloatArray, columns: Mapping[str, FloatArray]) -> dict[str, Term]:
    rows = list(columns.values())
    new = np.append(True, np.any([one[1:] != one[:-1] for one in rows], axis=0))
    table = Steps(
        np.append(LOWEST, start)[new] + 0.0,
        {name: np.ascontiguousarray(column[new]) for name, column in columns.items()},
    )
    return {name: Column(table, name, x) for name in columns}


Terms = tuple[Term, ...]
"""One for two classes, that of the second; else one a class."""


def on_grid(score: Score, grid: ScoreGrid) -> OnGrid:
    """Return the middle of a score's cell."""
    low, high = grid.low, grid.high
    x: Term = score
    if grid.on == "logit":
        # The logarithms of 0 are far beyond where log-odds are cut off.
        s, low, high = x.clip(1e-300, 1.0), -REACH, REACH
        x = (s.log() - (1.0 - s).clip(1e-300, 1.0).log()).clip(low, high)
    place = (x - low) / (high - low) * float(grid.cells)
    cell = place.floor().min(grid.cells - 1.0)
    middle = low + (cell + 0.5) / float(grid.cells) * (high - low)
    return OnGrid(score, grid, middle.logistic() if grid.on == "logit" else middle)


def no_formula(kind: str, value: object) -> ValueError:
    """Return the error of something that has no formula."""
    return ValueError(f"a formula must be of a {kind} that has one, got {value}")


def summed(terms: Iterable[Term]) -> Term:
    """Return the sum."""
    return reduce(Term.__add__, terms)


def softmax(logits: Sequence[Term]) -> Terms:
    """Return the probabilities of logits, one a class."""
    largest = reduce(Term.max, logits)
    powers = [(one - largest).max(-STEEPEST).exp() for one in logits]
    whole = summed(powers)
    return tuple(one / whole for one in powers)


Code = TypeVar("Code")


class Language(Protocol[Code]):
    """What formulas are written in."""

    def score(self, column: int) -> Code:
        """Return a column of scores."""

    def number(self, value: float) -> Code:
        """Return a constant."""

    def apply(self, operation: Operation, *terms: Code) -> Code:
        """Return what an operation makes of terms."""

    def look_up(self, table: Steps, x: Code) -> Mapping[str, Code]:
        """Return what stands in the interval of x, by the names of the columns."""

    def keep(self, term: Code) -> Code:
        """Return the same term, computed once for several uses."""


def parts_of(term: Term) -> tuple[Term | float, ...]:
    """Return what a term is computed from."""
    if isinstance(term, Computed):
        return term.terms
    if isinstance(term, OnGrid):
        return (term.middle,)
    return (term.at,) if isinstance(term, Column) else ()


def in_order(terms: Iterable[Term]) -> list[Term]:
    """Return terms and all that they are computed from, each once, after its parts."""
    found: dict[int, Term] = {}
    todo: list[tuple[Term, bool]] = [(one, False) for one in reversed(list(terms))]
    while todo:
        one, ready = todo.pop()
        if id(one) in found:
            continue
        if ready:
            found[id(one)] = one
            continue
        todo.append((one, True))
        todo.extend((part, False) for part in reversed(parts_of(one)) if isinstance(part, Term))
    return list(found.values())


def written(terms: Sequence[Term], language: Language[Code]) -> list[Code]:
    """Return terms in a language."""
    order = in_order(terms)
    uses = Counter(id(part) for one in order for part in parts_of(one))
    codes: dict[int, Code] = {}
    tables: dict[tuple[int, int], Mapping[str, Code]] = {}
    for one in order:
        parts = [
            codes[id(part)] if isinstance(part, Term) else language.number(float(part))
            for part in parts_of(one)
        ]
        if isinstance(one, Score):
            code = language.score(one.column)
        elif isinstance(one, Computed):
            code = language.apply(one.operation, *parts)
            if uses[id(one)] > 1:
                code = language.keep(code)
        elif isinstance(one, Column):
            key = id(one.table), id(one.at)
            if key not in tables:
                tables[key] = language.look_up(one.table, parts[0])
            code = tables[key][one.name]
        else:
            code = language.keep(parts[0])
        codes[id(one)] = code
    return [codes[id(one)] for one in terms]


def after(scores: FloatArray) -> FloatArray:
    """Return the smallest float above each score."""
    return np.nextafter(scores, np.inf)


def first_where(
    test: Callable[[FloatArray], NDArray[np.bool_]], low: float, high: float, n: int
) -> FloatArray:
    """Return the smallest floats (n,) in [low, high] for which a test of scores (n,) is true.

    It is true at ``high``, and never false above where it is true. Halving over the floats in their
    order leaves not the last bit open.
    """
    left, right = (np.repeat(_order(np.array([end])), n) for end in (low, high))
    while (left < right).any():
        middle = left + (right - left) // 2
        true = test(_float(middle))
        left, right = (
            np.where(true, left, np.minimum(middle + 1, right)),
            np.where(true, middle, right),
        )
    return _float(right)


def _order(scores: FloatArray) -> NDArray[np.uint64]:
    """Return integers in the order of floats."""
    bits = (scores + 0.0).view(np.uint64)
    negative = bits >= np.uint64(TOP)
    return np.where(negative, ~bits, bits | np.uint64(TOP))


def _float(order: NDArray[np.uint64]) -> FloatArray:
    """Return the floats of these places in the order."""
    positive = order >= np.uint64(TOP)
    bits: NDArray[Any] = np.where(positive, order & ~np.uint64(TOP), ~order)
    return bits.view(np.float64)
