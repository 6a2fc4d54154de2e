"""Formulas: the arithmetic of a calibrator as a tree of terms.

`FormulaSteps` computes the tree with numpy; ``vennforest.export`` writes SQL, ONNX and JSON of it.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from vennforest._validation import FloatArray

Operation = Literal[
    "add", "subtract", "multiply", "divide", "min", "max", "log", "exp", "floor", "if <="
]
"""The operations; ``"if <="`` has four terms: the third where the first is <= the second."""

# Log-odds beyond which a probability is as good as 0 or 1, and some systems' exp overflows.
MAX_LOG_ODDS = 700.0
LOWEST = -float(np.finfo(np.float64).max)  # the smallest score
# Rows that are evaluated together: a few columns of so many fit into the cache of one core.
FORMULA_BLOCK_ROWS = 1 << 13
ROUNDING_OF_SUM = 1e-12  # distance from 1 up to which a sum of probabilities is 1 but for rounding


class Term:
    """A number for every row."""

    def __add__(self, value: Term | float) -> Term:
        return Computed("add", (self, value))

    def __radd__(self, value: float) -> Term:
        return Computed("add", (value, self))

    def __sub__(self, value: Term | float) -> Term:
        return Computed("subtract", (self, value))

    def __rsub__(self, value: float) -> Term:
        return Computed("subtract", (value, self))

    def __mul__(self, value: Term | float) -> Term:
        return Computed("multiply", (self, value))

    def __rmul__(self, value: float) -> Term:
        return Computed("multiply", (value, self))

    def __truediv__(self, value: Term | float) -> Term:
        return Computed("divide", (self, value))

    def __rtruediv__(self, value: float) -> Term:
        return Computed("divide", (value, self))

    def min(self, value: Term | float) -> Term:
        """Return the smaller of two numbers."""
        return Computed("min", (self, value))

    def max(self, value: Term | float) -> Term:
        """Return the larger of two numbers."""
        return Computed("max", (self, value))

    def log(self) -> Term:
        """Return the natural logarithm."""
        return Computed("log", (self,))

    def exp(self) -> Term:
        """Return the exponential."""
        return Computed("exp", (self,))

    def floor(self) -> Term:
        """Return the largest integer that is not above the number."""
        return Computed("floor", (self,))

    def unless_above(self, limit: Term | float, value: Term | float, above: Term | float) -> Term:
        """Return ``value`` where the number is at most the limit, else ``above``."""
        return Computed("if <=", (self, limit, value, above))

    def clip(self, low: Term | float, high: Term | float) -> Term:
        """Return the number, limited to [low, high]."""
        return self.max(low).min(high)

    def logistic(self) -> Term:
        """Return ``1 / (1 + exp(-x))``."""
        return 1.0 / (1.0 + (-1.0 * self.clip(-MAX_LOG_ODDS, MAX_LOG_ODDS)).exp())

    def without_underflow(self, smallest: float) -> Term:
        """Return 0 below ``smallest``, since some systems do not compute with denormals."""
        return self.max(-1.0 * self).unless_above(smallest, 0.0, self)

    def look_up(self, start: FloatArray, columns: Mapping[str, FloatArray]) -> dict[str, Term]:
        """Return the entry of each column (m,) for the interval that contains the number.

        Row i applies from ``start[i - 1]`` on and below ``start[i]``; ``start`` (m - 1,) increases.
        """
        rows = list(columns.values())
        changes = np.append(True, np.any([row[1:] != row[:-1] for row in rows], axis=0))
        table = Steps(
            np.append(LOWEST, start)[changes] + 0.0,
            {name: np.ascontiguousarray(column[changes]) for name, column in columns.items()},
        )
        return {name: Column(table, name, self) for name in columns}


@dataclass(frozen=True, eq=False, slots=True)
class Score(Term):
    """A column of scores."""

    column: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Computed(Term):
    """The result of an operation on terms and numbers."""

    operation: Operation
    terms: tuple[Term | float, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    """A table of intervals: row i applies from ``start[i]`` on and below ``start[i + 1]``."""

    start: FloatArray
    columns: dict[str, FloatArray]


@dataclass(frozen=True, eq=False, slots=True)
class Column(Term):
    """The entry of a table's column for the interval that contains a number."""

    table: Steps
    name: str
    at: Term


Terms = tuple[Term, ...]
"""One term for two classes, that of the second; else one per class."""


def no_formula(kind: str, value: object) -> ValueError:
    """Return the error for a calibrator or a taxonomy without a formula."""
    return ValueError(f"the {kind} must have a formula, got {value}")


def summed(terms: Iterable[Term]) -> Term:
    """Return the sum."""
    return reduce(Term.__add__, terms)


def divided_by_sum(scores: Terms) -> Terms:
    """Divide scores by their sum, unless it is 1 up to rounding."""
    # Division by sums that differ in the last digit would break ties between rows.
    total = summed(scores)
    is_near = (total - 1.0).max(1.0 - total)
    divisor = is_near.unless_above(ROUNDING_OF_SUM, 1.0, total)
    return tuple(score / divisor for score in scores)


def softmax(logits: Sequence[Term]) -> Terms:
    """Return the probabilities of logits, one per class."""
    largest = reduce(Term.max, logits)
    powers = [(logit - largest).max(-MAX_LOG_ODDS).exp() for logit in logits]
    total = summed(powers)
    return tuple(power / total for power in powers)


def log_logistic(z: Term) -> Term:
    """Return ``log(1 / (1 + exp(-z)))``, exact for large numbers too."""
    low = z.min(0.0)
    size = (low - z.max(0.0)).max(-MAX_LOG_ODDS)
    return low - (1.0 + size.exp()).log()


def log_odds_of_classes(logits: Sequence[Term]) -> Terms:
    """Return the log-odds of each class against the rest, from logits up to a shift."""
    k = len(logits)
    first, last = list(accumulate(logits, Term.max)), list(accumulate(logits[::-1], Term.max))[::-1]
    ends = [first[:j][-1:] + last[j + 1 :][:1] for j in range(k)]
    of_others = [reduce(Term.max, parts) for parts in ends]  # the largest of the other logits
    largest, second = first[-1], reduce(Term.min, of_others)

    def sums(top: Term) -> list[Term]:
        powers = [(z - top).clip(-MAX_LOG_ODDS, 0.0).exp() for z in logits]
        before, after = list(accumulate(powers)), list(accumulate(powers[::-1]))[::-1]
        return [summed(before[:j][-1:] + after[j + 1 :][:1]) for j in range(k)]

    below_largest, below_second = sums(largest), sums(second)
    return tuple(
        (z - of_others[j]).clip(LOWEST, -LOWEST)
        - z.unless_above(second, below_largest[j], below_second[j]).log()
        for j, z in enumerate(logits)
    )


Code = TypeVar("Code")


class Language(Protocol[Code]):
    """A language in which formulas are written."""

    def score(self, column: int) -> Code:
        """Return a column of scores."""

    def number(self, value: float) -> Code:
        """Return a constant."""

    def apply(self, operation: Operation, *terms: Code) -> Code:
        """Return the result of an operation."""

    def look_up(self, table: Steps, x: Code) -> Mapping[str, Code]:
        """Return the columns' entries for the interval that contains x."""

    def keep(self, term: Code) -> Code:
        """Return the same term, computed once for several uses."""


def terms_of(term: Term) -> tuple[Term | float, ...]:
    """Return what a term is computed from."""
    if isinstance(term, Computed):
        return term.terms
    return (term.at,) if isinstance(term, Column) else ()


def in_order(terms: Iterable[Term]) -> list[Term]:
    """Return terms and all that they are computed from, once each, parts first."""
    ordered: dict[int, Term] = {}
    stack = list(terms)[::-1]
    while stack:
        missing = [p for p in terms_of(stack[-1]) if isinstance(p, Term) and id(p) not in ordered]
        if missing:
            stack.extend(missing[::-1])
        else:
            term = stack.pop()
            ordered.setdefault(id(term), term)
    return list(ordered.values())


def write_terms(terms: Sequence[Term], language: Language[Code]) -> list[Code]:
    """Return terms in a language."""
    order = in_order(terms)
    uses = Counter(id(part) for term in order for part in terms_of(term))
    codes: dict[int, Code] = {}
    tables: dict[tuple[int, int], Mapping[str, Code]] = {}
    for term in order:
        parts = [
            codes[id(part)] if isinstance(part, Term) else language.number(float(part))
            for part in terms_of(term)
        ]
        if isinstance(term, Score):
            code = language.score(term.column)
        elif isinstance(term, Computed):
            code = language.apply(term.operation, *parts)
            if uses[id(term)] > 1:
                code = language.keep(code)
        else:
            assert isinstance(term, Column)
            key = id(term.table), id(term.at)
            if key not in tables:
                tables[key] = language.look_up(term.table, parts[0])
            code = tables[key][term.name]
        codes[id(term)] = code
    return [codes[id(term)] for term in terms]


NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "log": np.log,
    "exp": np.exp,
    "floor": np.floor,
    "if <=": lambda x, limit, value, above: np.where(np.less_equal(x, limit), value, above),
}
# The same of single numbers, bit for bit, in an eighth of the time.
OF_NUMBERS: dict[str, Callable[..., Any]] = {
    **NUMPY,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "min": lambda x, y: x if x < y or x != x else y,  # NaN if either is
    "max": lambda x, y: x if x > y or x != x else y,
    "if <=": lambda x, limit, value, above: value if x <= limit else above,
}


class FormulaSteps:
    """Terms computed with numpy: the steps are listed once, by `write_terms`, for all calls."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.values: list[Any] = []  # constants, and None for what the steps compute
        self.scores: list[tuple[int, int]] = []
        self.steps: list[tuple[list[Callable[..., Any]], itemgetter[Any], int]] = []
        self.results = write_terms(terms, self)

    def score(self, column: int) -> int:
        """Return the position of a column of scores."""
        self.values.append(None)
        self.scores.append((len(self.values) - 1, column))
        return len(self.values) - 1

    def number(self, value: float) -> int:
        """Return the position of a constant."""
        self.values.append(np.float64(value))  # which may be divided by zero
        return len(self.values) - 1

    def apply(self, operation: Operation, *terms: int) -> int:
        """Return the position of the result of an operation."""
        return self._add_step([NUMPY[operation], OF_NUMBERS[operation]], *terms)

    def look_up(self, table: Steps, x: int) -> dict[str, int]:
        """Return the positions of the columns' entries."""
        row = self._add_step([lambda x: table.start.searchsorted(x, side="right") - 1] * 2, x)
        columns = table.columns.items()
        return {name: self._add_step([column.take] * 2, row) for name, column in columns}

    def keep(self, term: int) -> int:
        """Return the same position: every result is kept."""
        return term

    def _add_step(self, functions: list[Callable[..., Any]], *arguments: int) -> int:
        self.values.append(None)
        # Arguments are taken in one call: for a single row that is a quarter of the time.
        first = arguments[0]
        positions = arguments if len(arguments) > 1 else (slice(first, first + 1),)
        self.steps.append((functions, itemgetter(*positions), len(self.values) - 1))
        return len(self.values) - 1

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the values of the terms, (n, n_terms), for scores (n,) or (n, k)."""
        out = np.empty((len(scores), len(self.results)))
        columns = scores[None] if scores.ndim == 1 else scores.T
        values = self.values.copy()
        of_numbers = len(scores) == 1
        with np.errstate(all="ignore"):
            for start in range(0, len(scores), FORMULA_BLOCK_ROWS):
                block = slice(start, start + FORMULA_BLOCK_ROWS)
                for i, j in self.scores:
                    column = columns[j, block]
                    values[i] = column[0] if of_numbers else np.ascontiguousarray(column)
                for functions, arguments_of, i in self.steps:
                    values[i] = functions[of_numbers](*arguments_of(values))
                for j, i in enumerate(self.results):
                    out[block, j] = values[i]
        return out
