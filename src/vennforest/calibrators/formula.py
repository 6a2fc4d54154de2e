"""Formulas: the arithmetic of a calibrator as a tree of terms.

A term is a number for every row or, for more than two classes, one number per class for every row.
`FormulaFunction` computes the tree with numpy; ``vennforest.export`` writes SQL, ONNX and JSON.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from vennforest._validation import FloatArray
from vennforest.scores import MASKED

Operation = Literal[
    "add", "subtract", "multiply", "divide", "min", "max", "log", "exp", "floor", "if <=",
    "sum", "largest", "smallest", "product",
]  # fmt: skip
"""The operations.

``"if <="`` has four terms: the third where the first is <= the second. The last four are of the
classes of a row: ``"product"`` is the row of numbers times a matrix.
"""

# Log-odds beyond which a probability is as good as 0 or 1, and some systems' exp overflows.
MAX_LOG_ODDS = 700.0
LOWEST = -float(np.finfo(np.float64).max)  # the smallest score
# Rows, and numbers of several classes, that are evaluated together: a few columns of so many fit
# into the cache of one core.
FORMULA_BLOCK_ROWS, BLOCK_NUMBERS = 1 << 13, 1 << 16
ROUNDING_OF_SUM = 1e-12  # distance from 1 up to which a sum of probabilities is 1 but for rounding


Value = float | FloatArray
"""A constant: a number, one number per class (k,), or a matrix (k, k)."""


Operator = Callable[["Term", "Term | Value"], "Term"]


def _operators(operation: Operation) -> tuple[Operator, Operator]:
    """Return the methods of a term for an operator with the term on its left, or on its right."""
    return (
        lambda term, value: Computed(operation, (term, value)),
        lambda term, value: Computed(operation, (value, term)),
    )


class Term:
    """A number, or one number per class, for every row."""

    __array_ufunc__ = None  # an array on the left leaves the operation to the term

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("subtract")
    __mul__, __rmul__ = _operators("multiply")
    __truediv__, __rtruediv__ = _operators("divide")

    def __matmul__(self, matrix: FloatArray) -> Term:
        """Return the numbers of the classes times a matrix (k, k)."""
        return Computed("product", (self, matrix))

    def min(self, value: Term | Value) -> Term:
        """Return the smaller of two numbers."""
        return Computed("min", (self, value))

    def max(self, value: Term | Value) -> Term:
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

    def sum(self) -> Term:
        """Return the sum over the classes."""
        return Computed("sum", (self,))

    def largest(self) -> Term:
        """Return the largest number of a class."""
        return Computed("largest", (self,))

    def smallest(self) -> Term:
        """Return the smallest number of a class."""
        return Computed("smallest", (self,))

    def of_class(self, j: int) -> Term:
        """Return the number of one class."""
        return OfClass(self, j)

    def unless_above(self, limit: Term | Value, value: Term | Value, above: Term | Value) -> Term:
        """Return ``value`` where the number is at most the limit, else ``above``."""
        return if_at_most(self, limit, value, above)

    def clip(self, low: Term | Value, high: Term | Value) -> Term:
        """Return the number, limited to [low, high]."""
        return self.max(low).min(high)

    def logistic(self) -> Term:
        """Return ``1 / (1 + exp(-x))``."""
        return 1.0 / (1.0 + (-1.0 * self.clip(-MAX_LOG_ODDS, MAX_LOG_ODDS)).exp())

    def without_underflow(self, smallest: Value) -> Term:
        """Return 0 below ``smallest``, since some systems do not compute with denormals."""
        return self.max(-1.0 * self).unless_above(smallest, 0.0, self)

    def look_up(
        self, starts: Sequence[FloatArray], columns: Mapping[str, Sequence[FloatArray]]
    ) -> dict[str, Term]:
        """Return the entry of each column for the interval that contains the number.

        There is one table for the number, whose entries may be of all classes, or one for each
        class. In a table with ``start`` (m - 1,), which increases, row i of its columns (m,) or
        (m, k) applies from ``start[i - 1]`` on and below ``start[i]``.
        """
        tables = []
        for j, start in enumerate(starts):
            of_table = {name: parts[j] for name, parts in columns.items()}
            changes = np.zeros(len(start), bool)  # rows that repeat the one before are left out
            for column in of_table.values():
                differs = column[1:] != column[:-1]
                changes |= differs if column.ndim == 1 else differs.any(axis=1)
            rows = np.append(True, changes)
            entries = {name: np.ascontiguousarray(c[rows]) for name, c in of_table.items()}
            tables.append(LookupTable(np.append(LOWEST, start)[rows] + 0.0, entries))
        of_scores = tuple(tables)
        return {name: Column(of_scores, name, self) for name in columns}


def if_at_most(
    x: Term | Value, limit: Term | Value, value: Term | Value, above: Term | Value
) -> Term:
    """Return ``value`` where x is at most the limit, else ``above``."""
    return Computed("if <=", (x, limit, value, above))


def entry_or_row(values: FloatArray) -> Value:
    """Return the number of the only column of scores, or those of all classes (k,)."""
    return float(values[0]) if len(values) == 1 else values


@dataclass(frozen=True, eq=False, slots=True)
class Score(Term):
    """The score of the second of two classes, or the scores of all classes."""


@dataclass(frozen=True, eq=False, slots=True)
class Written(Term):
    """A term that is written in a language already, as ``code``."""

    code: Any


@dataclass(frozen=True, eq=False, slots=True)
class Computed(Term):
    """The result of an operation on terms and constants."""

    operation: Operation
    terms: tuple[Term | Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class OfClass(Term):
    """The number of one class."""

    at: Term
    j: int


@dataclass(frozen=True, eq=False, slots=True)
class LookupTable:
    """A table of intervals: row i applies from ``start[i]`` on and below ``start[i + 1]``."""

    start: FloatArray
    columns: dict[str, FloatArray]


@dataclass(frozen=True, eq=False, slots=True)
class Column(Term):
    """The entry of a column for the interval that contains a number: of one table or per class."""

    tables: tuple[LookupTable, ...]
    name: str
    at: Term


class NoFormulaError(ValueError, AttributeError):
    """A calibrator or a taxonomy has no formula; ``dir`` leaves out properties that need one."""

    def __init__(self, kind: str, value: object) -> None:
        super().__init__(f"the {kind} must have a formula, got {value}")


def divided_by_sum(scores: Term) -> Term:
    """Divide the scores of all classes by their sum, unless it is 1 up to rounding."""
    # Division by sums that differ in the last digit would break ties between rows.
    total = scores.sum()
    is_near = (total - 1.0).max(1.0 - total)
    return scores / is_near.unless_above(ROUNDING_OF_SUM, 1.0, total)


def softmax(logits: Term, temperature: float = 1.0) -> Term:
    """Return ``softmax(logits / temperature)``, one per class, 0 where a class is `MASKED`."""
    scaled = logits if temperature == 1 else logits / temperature
    powers = (scaled - scaled.largest()).max(-MAX_LOG_ODDS).exp()
    powers = logits.unless_above(MASKED, 0.0, powers)
    return powers / powers.sum()


def logistic_of_masked(log_odds: Term, temperature: float = 1.0) -> Term:
    """Return the logistic of log-odds over a temperature, 0 or 1 where a class is `MASKED`."""
    p = (log_odds if temperature == 1 else log_odds / temperature).logistic()
    return log_odds.unless_above(MASKED, 0.0, if_at_most(-MASKED, log_odds, 1.0, p))


def marked_logits(logits: Term, is_of_classes: bool, mask_distance: float) -> Term:
    """Return logits of all classes beside their largest, or log-odds, with `MASKED` for masks.

    What `read_scores` does. Those of classes may be minus infinity.
    """
    x = logits.max(LOWEST)
    if is_of_classes:
        x = x - logits.largest()
        return x.unless_above(-mask_distance, MASKED, x)
    return x.unless_above(-mask_distance, MASKED, if_at_most(mask_distance, x, -MASKED, x))


def log_logistic(z: Term) -> Term:
    """Return ``log(1 / (1 + exp(-z)))``, exact for large numbers too."""
    low = z.min(0.0)
    size = (low - z.max(0.0)).max(-MAX_LOG_ODDS)
    return low - (1.0 + size.exp()).log()


def first_of_largest(scores: Term, k: int) -> Term:
    """Return the number of the class with the largest score, the first of equals."""
    return scores.largest().unless_above(scores, np.arange(float(k)), float(k)).smallest()


def log_odds_of_classes(logits: Term) -> Term:
    """Return the log-odds of each class against the rest, from logits up to a shift."""
    largest = logits.largest()
    n_largest = if_at_most(largest, logits, 1.0, 0.0).sum()
    below = if_at_most(largest, logits, LOWEST, logits).largest()
    second = n_largest.unless_above(1.0, below, largest)

    def log_of_others(top: Term) -> Term:
        # Without the class itself the sum still contains 1, of another one at the top.
        powers = (logits - top).clip(-MAX_LOG_ODDS, 0.0).exp()
        return (powers.sum() - powers).log()

    # The largest of the other logits: for the class that has the largest, it is the second one.
    of_others = logits.unless_above(second, largest, second)
    distance = (logits - of_others).clip(LOWEST, -LOWEST)
    return distance - logits.unless_above(second, log_of_others(largest), log_of_others(second))


Code = TypeVar("Code")


class Language(Protocol[Code]):
    """A language in which formulas are written."""

    def score(self) -> Code:
        """Return the score of the second of two classes, or those of all classes."""

    def number(self, value: Value) -> Code:
        """Return a constant."""

    def apply(self, operation: Operation, *terms: Code) -> Code:
        """Return the result of an operation."""

    def of_class(self, term: Code, j: int) -> Code:
        """Return the number of one class."""

    def look_up(self, tables: Sequence[LookupTable], x: Code) -> Mapping[str, Code]:
        """Return the columns' entries for the interval that contains x."""

    def keep(self, term: Code) -> Code:
        """Return the same term, computed once for several uses."""


def terms_of(term: Term) -> tuple[Term | Value, ...]:
    """Return what a term is computed from."""
    if isinstance(term, Computed):
        return term.terms
    return (term.at,) if isinstance(term, Column | OfClass) else ()


def in_order(terms: Iterable[Term]) -> list[Term]:
    """Return terms and all that they are computed from, once each, parts first."""
    ordered: dict[int, Term] = {}
    stack = [*terms][::-1]
    while stack:
        term = stack[-1]
        missing = [p for p in terms_of(term) if id(p) not in ordered and isinstance(p, Term)]
        if missing:
            stack += missing[::-1]
        else:
            ordered.setdefault(id(term), stack.pop())
    return list(ordered.values())


def write_terms(terms: Sequence[Term], language: Language[Code]) -> list[Code]:
    """Return the codes of terms in a language, such as SQL; what they share is written once."""
    distinct: list[Term] = []
    first: dict[Any, int] = {}
    representative: dict[int, int] = {}
    for term in in_order(terms):
        # Of equal operations on equal parts, the first stands for all.
        key: Any = id(term)
        if isinstance(term, Computed):
            parts = term.terms
            numbers = (p if type(p) is float else representative.get(id(p), id(p)) for p in parts)
            key = term.operation, *numbers
        representative[id(term)] = first.setdefault(key, id(term))
        if representative[id(term)] == id(term):
            distinct.append(term)
    uses = Counter(representative.get(id(part)) for term in distinct for part in terms_of(term))
    codes: dict[int, Code] = {}
    tables: dict[tuple[int, int], Mapping[str, Code]] = {}
    for term in distinct:
        operands = [
            codes[representative[id(part)]] if isinstance(part, Term) else language.number(part)
            for part in terms_of(term)
        ]
        if isinstance(term, Score):
            code = language.score()
        elif isinstance(term, Written):
            code = term.code
        elif isinstance(term, Computed):
            code = language.apply(term.operation, *operands)
            if uses[id(term)] > 1:
                code = language.keep(code)
        elif isinstance(term, OfClass):
            code = language.of_class(operands[0], term.j)
        else:
            assert isinstance(term, Column)
            table = id(term.tables), representative[id(term.at)]
            if table not in tables:
                tables[table] = language.look_up(term.tables, operands[0])
            code = tables[table][term.name]
        codes[id(term)] = code
    return [codes[representative[id(term)]] for term in terms]


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
    # Classes are the rows of an array: sums over them run from the first to the last.
    "sum": np.add.reduce,
    "largest": np.maximum.reduce,
    "smallest": np.minimum.reduce,
    # A product for each row: that of all rows rounds a row as their number has it.
    "product": lambda x, matrix: (np.ascontiguousarray(x.T)[:, None] @ matrix)[:, 0].T,
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


class FormulaFunction:
    """A term computed with numpy: the steps are listed once, by `write_terms`, for all calls."""

    def __init__(self, term: Term) -> None:
        self.values: list[Any] = []  # constants, and None for what the steps compute
        self.scores: list[int] = []
        # A function of arrays and one of single numbers, the positions of arguments and result.
        self.steps: list[tuple[Callable[..., Any], Callable[..., Any], itemgetter[Any], int]] = []
        (self.result,) = write_terms([term], self)

    def score(self) -> int:
        """Return the position of the scores."""
        self.values.append(None)
        self.scores.append(len(self.values) - 1)
        return self.scores[-1]

    def number(self, value: Value) -> int:
        """Return the position of a constant."""
        # A number of numpy may be divided by zero.
        array: Any = np.float64(value) if type(value) is float else np.asarray(value, np.float64)
        self.values.append(array[:, None] if array.ndim == 1 else array[()])
        return len(self.values) - 1

    def apply(self, operation: Operation, *terms: int) -> int:
        """Return the position of the result of an operation."""
        return self._add_step(NUMPY[operation], OF_NUMBERS[operation], *terms)

    def of_class(self, term: int, j: int) -> int:
        """Return the position of the number of one class."""
        entry = itemgetter(j)
        return self._add_step(entry, entry, term)

    def look_up(self, tables: Sequence[LookupTable], x: int) -> dict[str, int]:
        """Return the positions of the columns' entries."""
        # The tables one after the other; entry i of a search is in row i - 1 of its table.
        starts = [table.start for table in tables]
        offsets = np.cumsum([0, *map(len, starts[:-1])])[:, None] - 1

        def row_of(x: FloatArray) -> Any:
            if len(starts) == 1:
                return starts[0].searchsorted(x, "right") - 1
            columns = zip(starts, x, strict=True)
            return np.array([start.searchsorted(x_j, "right") for start, x_j in columns]) + offsets

        row = self._add_step(row_of, row_of, x)
        positions = {}
        for name in tables[0].columns:
            joined = np.concatenate([table.columns[name] for table in tables])
            entries = np.ascontiguousarray(joined.T)
            entries_at = partial(entries.take, axis=-1)
            positions[name] = self._add_step(entries_at, entries_at, row)
        return positions

    def keep(self, term: int) -> int:
        """Return the same position: every result is kept."""
        return term

    def _add_step(
        self, of_arrays: Callable[..., Any], of_numbers: Callable[..., Any], *arguments: int
    ) -> int:
        """Return the position of the result of a step, given the positions of its arguments."""
        self.values.append(None)
        # Arguments are taken in one call: for a single row that is a quarter of the time.
        first = arguments[0]
        positions = arguments if len(arguments) > 1 else (slice(first, first + 1),)
        self.steps.append((of_arrays, of_numbers, itemgetter(*positions), len(self.values) - 1))
        return len(self.values) - 1

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the term, (n,) or (n, k), for scores of the same shape."""
        out = np.empty(scores.shape)
        values, n = self.values.copy(), len(scores)
        is_number = scores.shape == (1,)
        size = FORMULA_BLOCK_ROWS if scores.ndim == 1 else max(BLOCK_NUMBERS // scores.shape[1], 2)
        with np.errstate(all="ignore"):
            for start in range(0, n, size):
                block = scores[start : start + size]
                m = len(block)
                if scores.ndim == 2 and m == 1:  # sums of a single column would round otherwise
                    block = np.repeat(block, 2, axis=0)
                columns = block[0] if is_number else np.ascontiguousarray(block.T, np.float64)
                for i in self.scores:
                    values[i] = columns
                for of_arrays, of_numbers, arguments_of, i in self.steps:
                    function = of_numbers if is_number else of_arrays
                    values[i] = function(*arguments_of(values))
                result = values[self.result]
                out[start : start + m] = result if is_number else result.T[:m]
        return out
