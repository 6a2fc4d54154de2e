"""How many examples of each class there are at each score: the form in which parts add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import check_consistent_length

from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_option,
    check_scores,
    check_weights,
    columns,
    encode_labels,
)

__all__ = ["ScoreCounts", "ScoreGrid", "ScoreTable"]

On = Literal["score", "logit"]
"""What is cut into cells."""

REACH = 20.0
"""Log-odds beyond which scores share the outermost cells; up to here every cell has its floats."""

MOST_CELLS = 1 << 24
"""Of so many cells each one's middle still lies in it after rounding, also on log-odds."""


@stored("score-grid")
@attrs.frozen
class ScoreGrid:
    """A fixed grid: every score becomes the middle of its cell.

    The grid is chosen before the data are seen, so the rounded score is a score function like any
    other, and what is proved of scores is proved of it. A calibrator fitted to counts on a grid
    puts new scores on the same grid.

    Parameters
    ----------
    cells : int, default=1,048,576
        How many, from 1 to 2**24.
    on : {"score", "logit"}, default="score"
        ``"score"``: cells of equal width from ``low`` to ``high``; the cell of s is
        ``floor((s - low) / (high - low) * cells)``, that of ``high`` the last one. ``"logit"``:
        of scores in [0, 1], cells of equal width of ``ln s - ln(1 - s)`` from -20 to 20; beyond
        these two count the outermost cells. Rare events need this one.
    low, high : float, default=0.0 and 1.0
        The range of the scores; 0 and 1 with ``on="logit"``.

    Notes
    -----
    From 0 to 1 with a power of two of cells every step of the formula is exact, so all
    systems agree on every cell. Logarithms of two systems may differ in the last bit: there a
    score within 1e-15 of the edge of a cell of log-odds may fall in its neighbour.

    Examples
    --------
    >>> ScoreGrid(cells=4)([0.0, 0.3, 1.0])
    array([0.125, 0.375, 0.875])
    """

    cells: int = 1 << 20
    on: On = "score"
    low: float = 0.0
    high: float = 1.0

    def __attrs_post_init__(self) -> None:
        """Refuse anything but a grid."""
        check_count(self.cells, "cells")
        if self.cells > MOST_CELLS:
            raise InputError(f"cells must be at most {MOST_CELLS}, got {self.cells}")
        check_option(self.on, On, "on")
        for name in ("low", "high"):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise InputError(f"{name} must be a finite number, got {value!r}")
            object.__setattr__(self, name, float(value))
        object.__setattr__(self, "cells", int(self.cells))
        with np.errstate(over="ignore"):
            width = np.float64(self.high) - np.float64(self.low)
        if not 0 < width < np.inf:
            raise InputError(
                f"high must lie above low={self.low}, by less than 1.8e308, got {self.high}"
            )
        # Narrower, and floats between low and high are fewer than cells.
        largest = np.float64(max(abs(self.low), abs(self.high)))
        if width / self.cells < 4 * np.spacing(largest):
            raise InputError(
                f"cells must be fewer than floats between {self.low} and {self.high}, "
                f"got {self.cells}"
            )
        if self.on == "logit" and (self.low, self.high) != (0.0, 1.0):
            raise InputError(
                f'low and high must be 0 and 1 with on="logit", got {self.low} and {self.high}'
            )

    def cell_of(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Return the number of each score's cell, from 0, in the shape of the scores.

        Raises
        ------
        ValueError
            If a score is NaN or outside the range of the grid; the message names the row.
        """
        s = check_scores(scores)
        outside = (s < self.low) | (s > self.high)
        if outside.any():
            at = tuple(int(i) for i in np.argwhere(outside)[0])
            way_out = "" if self.on == "logit" else ": give ScoreGrid another low or high"
            raise ValueError(
                f"scores must be in [{self.low:g}, {self.high:g}], the range of the grid, "
                f"got {s[at]} at position {at[0]}{way_out}"
            )
        if self.on == "score":
            place = (s - self.low) / (self.high - self.low) * self.cells
        else:
            with np.errstate(divide="ignore"):
                z = np.clip(np.log(s) - np.log(1 - s), -REACH, REACH)
            place = (z + REACH) / (2 * REACH) * self.cells
        cells: NDArray[np.int64] = np.minimum(place.astype(np.int64), self.cells - 1)
        return cells

    def score_of(self, cells: ArrayLike) -> FloatArray:
        """Return the score that stands for each cell, numbered as by ``cell_of``: its middle."""
        number = np.asarray(cells)
        if number.dtype.kind not in "iu" and number.size:
            raise ValueError(f"cells must contain integers, got {number.dtype}")
        wrong = (number < 0) | (number >= self.cells)
        if wrong.any():
            raise ValueError(f"cells must be in [0, {self.cells - 1}], got {number[wrong].flat[0]}")
        share = (number.astype(np.float64) + 0.5) / self.cells
        if self.on == "logit":
            middle: FloatArray = expit(share * (2 * REACH) - REACH)
        else:
            middle = self.low + share * (self.high - self.low)
        return middle

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Return scores (n,) or (n, k), each replaced by the middle of its cell."""
        return self.score_of(self.cell_of(scores))

    def to_sql(self, score: str) -> str:
        """Return the expression of a cell's number in SQL (DuckDB, Spark, PostgreSQL).

        ``score`` is a column or an expression, quoted as the system wants it, of values in the
        range of the grid, which is not checked.
        """
        cells, reach = sql_number(self.cells), sql_number(REACH)
        if self.on == "score":
            width = sql_number(self.high - self.low)
            place = f"({score} - {sql_number(self.low)}) / {width} * {cells}"
        else:
            z = (
                f"CASE WHEN {score} <= 0 THEN -{reach} WHEN {score} >= 1 THEN {reach} "
                f"ELSE GREATEST(LEAST(LN({score}) - LN(1 - {score}), {reach}), -{reach}) END"
            )
            place = f"(({z}) + {reach}) / {sql_number(2 * REACH)} * {cells}"
        return f"CAST(LEAST(FLOOR({place}), {sql_number(self.cells - 1)}) AS BIGINT)"


def sql_number(value: float) -> str:
    """Return a finite number as SQL reads it, as a double and to the last bit."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


CountArray = NDArray[np.int64] | FloatArray
"""How many, as integers, or sums of weights."""

MOST = (1 << 63) - 1
"""The largest sum of counts: that of a 64-bit integer."""


class ScoreTable(NamedTuple):
    """Distinct scores, ascending, and how many examples of each class have them.

    ``scores`` has shape (m,) and ``counts`` (m, 2): all other classes, then the class whose score
    it is. Or, of score vectors: shapes (m, k), in lexicographic order, and (m, k).
    """

    scores: FloatArray
    counts: CountArray


def whole(
    weight: ArrayLike | None, n: int, name: str = "sample_weight", zeros: bool = False
) -> Any:
    """Return weights as int64 if they are integers, else as float64; None where there are none."""
    if weight is None:
        return None
    given = np.asarray(weight)
    if given.dtype.kind not in "biu":
        floats = np.asarray(given, np.float64)
        if not zeros or floats.any() or floats.shape != (n,):
            checked = check_weights(floats, n, name)
            return np.ones(n) if checked is None else checked
        return floats
    if given.ndim == 0 and not zeros:
        given = np.full(n, given)
    if given.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {given.shape}")
    wrong = (given < 0) | (given > MOST)
    if wrong.any():
        rule = "not be negative" if (given < 0).any() else "be at most 2**63 - 1"
        raise ValueError(f"{name} must {rule}, got {given[wrong][0]}")
    whole = given.astype(np.int64)
    if (total := column_sums(whole[:, None])[0]) > MOST:
        raise ValueError(f"{name} must sum to at most 2**63 - 1, got {total}: use floats")
    return whole


def column_sums(counts: NDArray[Any]) -> list[int] | list[float]:
    """Return the exact sums of columns of integers, or the sums of floats."""
    if counts.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return [float(one) for one in counts.sum(axis=0)]
    low = 32  # halves of so many bits add up without overflow
    high = (counts >> low).sum(axis=0, dtype=np.int64).tolist()
    rest = (counts & ((1 << low) - 1)).sum(axis=0, dtype=np.int64).tolist()
    return [(int(a) << low) + int(b) for a, b in zip(high, rest, strict=True)]


def check_sum(total: float) -> None:
    """Refuse a sum of counts that no 64-bit integer contains, or that is infinite."""
    if isinstance(total, int) and total > MOST:
        raise ValueError(
            f"counts must sum to at most 2**63 - 1, got {total}: compute with weights (floats)"
        )
    if not total < math.inf:
        raise ValueError("counts must have a finite sum, got inf")


def tabulate(x: FloatArray, codes: IntArray, k: int, weight: CountArray | None) -> ScoreTable:
    """Add up examples by score, or score vector, and class."""
    distinct, row = _distinct(x + 0.0)  # one zero
    cell = row * k + codes
    size = len(distinct) * k
    counts: CountArray
    if weight is None:
        counts = np.bincount(cell, minlength=size).astype(np.int64)
    elif weight.dtype.kind == "f":
        counts = np.bincount(cell, weight, size).astype(np.float64)
    else:  # bincount would add integers as floats
        counts = np.zeros(size, np.int64)
        np.add.at(counts, cell, weight)
    return ScoreTable(distinct, counts.reshape(-1, k))


def _distinct(x: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct scores, or score vectors, and which each one is."""
    distinct, row = np.unique(x, axis=0 if x.ndim == 2 else None, return_inverse=True)
    return distinct, row.reshape(-1)


def merge(one: ScoreTable, two: ScoreTable) -> ScoreTable:
    """Return the counts of both tables at every score of either."""
    scores, row = _distinct(np.concatenate([one.scores, two.scores]))
    counts = np.zeros((len(scores), one.counts.shape[1]), np.result_type(one.counts, two.counts))
    counts[row[: len(one.scores)]] += one.counts
    counts[row[len(one.scores) :]] += two.counts
    return ScoreTable(scores, counts)


def compress(table: ScoreTable, size: int) -> tuple[ScoreTable, int | float]:
    """Return the table at no more than ``size`` scores, and the largest weight that moved."""
    x, counts = table
    if len(x) <= size:
        return table, 0
    weight = counts.sum(axis=1)
    ends = np.cumsum(weight)
    before, total = ends - weight, ends[-1]
    if counts.dtype.kind == "f":
        group = np.minimum((before / total * size).astype(np.int64), size - 1)
    elif int(total) <= MOST // size:
        group = before * size // total
    else:  # the product would overflow; the step is at least total / size
        group = np.minimum(before // -(-int(total) // size), size - 1)
    start = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    last = np.append(start[1:], len(x)) - 1
    moved = (before[last] - before[start]).max()
    return ScoreTable(x[last], np.add.reduceat(counts, start, axis=0)), moved.item()


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """How many examples of each class have each score: what fits of parts of the data add up to.

    `from_scores`, `from_counts` and `one_vs_rest` make them, ``+`` adds them, and ``fit_counts``
    of every calibrator takes them in place of scores and labels.

    Parameters
    ----------
    classes : ndarray of shape (k,)
        The labels, sorted.
    tables : tuple of ScoreTable
        Two classes: one table, of the second class's score. More: one a class against the rest,
        or, where score vectors are kept, a single one.
    grid : ScoreGrid, optional
        The grid on which scores were put before they were counted.
    displaced : int or float, default=0
        Of what weight, at most, `compress` has moved examples past any one score.

    Notes
    -----
    *Exactness.* Numbers of examples are 64-bit integers: sums are exact, in whatever order parts
    are added, and a sum beyond 2**63 - 1 is refused. Sums of weights (a ``sample_weight`` of
    floats) are floats: the order of two parts makes no difference, that of more than two makes
    one of rounding, at most 1.2e-16 of the sum for each part.

    *More than two classes.* Venn–Abers, Platt, isotonic, beta, quadratic and spline calibration
    need counts of each class against the rest; the others the distinct score vectors
    (``vectors=True``), of which there may be as many as there are examples.

    Examples
    --------
    >>> monday = ScoreCounts.from_scores([0.1, 0.4, 0.4], ["no", "no", "yes"])
    >>> tuesday = ScoreCounts.from_scores([0.4, 0.8], ["yes", "yes"], classes=["no", "yes"])
    >>> both = monday + tuesday
    >>> len(both), both.total
    (3, 5)
    >>> both.tables[0].counts
    array([[1, 0],
           [1, 2],
           [0, 1]])
    """

    classes: NDArray[Any]
    tables: tuple[ScoreTable, ...]
    grid: ScoreGrid | None = None
    displaced: float = 0

    def __post_init__(self) -> None:
        """Refuse tables that do not fit together."""
        k = len(self.classes)
        if self.classes.ndim != 1 or k < 2 or not (self.classes[1:] > self.classes[:-1]).all():
            raise ValueError(
                f"classes must be two labels or more in sorted order, got {self.classes.tolist()}"
            )
        if len(self.tables) != (1 if k == 2 or self.vectors else k):
            raise ValueError(f"tables must be one a class of {k}, got {len(self.tables)}")
        sums = []
        for x, counts in self.tables:
            width = k if x.ndim == 2 else 2
            if counts.shape != (len(x), width) or x.shape not in ((len(x),), (len(x), k)):
                raise ValueError(
                    f"counts must have shape {(len(x), width)}, got {counts.shape} for scores of "
                    f"shape {x.shape}"
                )
            if not np.isfinite(x).all():
                raise ValueError("scores must be finite, got NaN or inf")
            if x.ndim == 1 and not (x[1:] > x[:-1]).all():
                raise ValueError("scores must increase")
            if counts.dtype not in (np.int64, np.float64):
                raise ValueError(f"counts must be of int64 or float64, got {counts.dtype}")
            if not (counts >= 0).all() or (counts == 0).all(axis=1).any():
                raise ValueError("counts must not be negative, and above zero at every score")
            sums.append(column_sums(counts))
        total = sum(sums[0])
        check_sum(total)
        of_classes = sums[0] if len(sums) == 1 else [positive for _, positive in sums]
        of_tables = [sum(of_table) for of_table in sums]
        slack = 0 if isinstance(total, int) else 1e-9 * total
        if any(abs(one - total) > slack for one in [*of_tables, sum(of_classes)]):
            raise ValueError(
                "tables must be of the same examples, each of one class, "
                f"got sums {of_tables} and classes of {list(of_classes)}"
            )
        object.__setattr__(self, "_class_totals", of_classes)

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        grid: ScoreGrid | None = None,
        vectors: bool = False,
    ) -> ScoreCounts:
        """Count examples.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            Of the second class (two classes; from two columns the second is taken), or one column
            a class in sorted order of the labels. There may be none, if classes are named.
        y : array-like of shape (n,)
            Their labels, of any dtype.
        sample_weight : array-like of shape (n,), optional
            Non-negative. Integers count so many examples; floats make the counts sums of
            weights.
        classes : array-like of shape (k,), optional
            Every class. All parts of one data set must know the same classes.
        grid : ScoreGrid, optional
            Scores are put on it first.
        vectors : bool, default=False
            Of more than two classes, keep the distinct score vectors. Not on a grid.
        """
        x = check_scores(scores)
        check_consistent_length(x, y)
        if not len(x) and classes is None:
            raise ValueError("classes must be named where there is no example, got None")
        codes, labels = encode_labels(y if len(x) else np.asarray(classes)[:0], classes)
        if len(labels) < 2:
            raise ValueError(
                "y must contain at least two classes (or name them with classes=), "
                f"got one class: {labels.tolist()[0]!r}"
            )
        k = len(labels)
        x = columns(x, k) if x.size else np.empty((0,) if k == 2 else (0, k))
        if vectors and grid is not None:
            raise ValueError("grid must be None with vectors=True: it is one of single scores")
        if grid is not None:
            x = grid(x)
        weight = whole(sample_weight, len(x))
        if weight is not None and (weight == 0).any():
            kept = weight > 0
            x, codes, weight = x[kept], codes[kept], weight[kept]
        if k == 2 or vectors:
            tables = [tabulate(x, codes, k, weight)]
        else:
            tables = [tabulate(x[:, j], (codes == j).astype(np.intp), 2, weight) for j in range(k)]
        return cls(labels, tuple(tables), grid)

    @classmethod
    def from_counts(
        cls,
        scores: ArrayLike,
        negatives: ArrayLike,
        positives: ArrayLike,
        *,
        classes: ArrayLike = (0, 1),
        grid: ScoreGrid | None = None,
    ) -> ScoreCounts:
        """Take counts of two classes at scores, such as a GROUP BY gives them.

        Parameters
        ----------
        scores : array-like of shape (m,)
            Scores of the second class, in any order; counts at equal ones are added.
        negatives, positives : array-like of shape (m,)
            How many examples of the first and of the second class have that score: integers, or
            floats for sums of weights; not below zero.
        classes : array-like of shape (2,), default=(0, 1)
            The two labels, the negative one first; like everywhere they are sorted.
        grid : ScoreGrid, optional
            As of `from_scores`.
        """
        x = check_scores(scores)
        if x.ndim != 1:
            raise ValueError(f"scores must have shape (m,), got {x.shape}")
        labels = np.asarray(classes)
        if labels.shape != (2,) or not labels[0] < labels[1]:
            raise ValueError(f"classes must be two labels in sorted order, got {labels.tolist()}")
        if grid is not None:
            x = grid(x)
        both = [
            whole(one, len(x), name, zeros=True)
            for one, name in ((negatives, "negatives"), (positives, "positives"))
        ]
        weight = np.concatenate(both)  # floats, if either are
        there = weight > 0
        codes = np.repeat(np.arange(2), len(x))[there]
        return cls(labels, (tabulate(np.tile(x, 2)[there], codes, 2, weight[there]),), grid)

    @classmethod
    def one_vs_rest(cls, parts: Sequence[ScoreCounts], classes: ArrayLike) -> ScoreCounts:
        """Put together counts of each of more than two classes against the rest.

        There is one a class, in the order of the sorted labels: each of two classes, the rest
        first, of that class's score.
        """
        wrong = [one for one in parts if len(one.classes) != 2 or one.grid != parts[0].grid]
        if wrong or len(parts) < 3:
            raise ValueError("parts must be three or more counts of two classes on one grid")
        tables = tuple(one.tables[0] for one in parts)
        displaced = max(one.displaced for one in parts)
        return cls(np.asarray(classes), tables, parts[0].grid, displaced)

    @property
    def vectors(self) -> bool:
        """Whether distinct score vectors are kept."""
        return self.tables[0].scores.ndim == 2

    @property
    def class_totals(self) -> list[int] | list[float]:
        """How many examples, or what weight, each class has: k numbers."""
        totals: list[int] | list[float] = self.__dict__["_class_totals"]
        return totals

    @property
    def total(self) -> int | float:
        """How many examples, or what weight, there is in all."""
        return sum(self.class_totals)

    @property
    def error(self) -> float:
        """What share of the examples `compress` has moved past any one score, at most; in [0, 1].

        0 where nothing was compressed.
        """
        return min(self.displaced / self.total, 1.0) if self.displaced else 0.0

    def __len__(self) -> int:
        """Return how many distinct scores are held, in all tables together."""
        return sum(len(table.scores) for table in self.tables)

    def __eq__(self, other: object) -> bool:
        """Tell whether two counts are the same to the last bit."""
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        return (
            np.array_equal(self.classes, other.classes)
            and (self.grid, self.displaced) == (other.grid, other.displaced)
            and len(self.tables) == len(other.tables)
            and all(
                one.counts.dtype == two.counts.dtype
                and np.array_equal(one.scores, two.scores)
                and np.array_equal(one.counts, two.counts)
                for one, two in zip(self.tables, other.tables, strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        """Return the counts of both parts together.

        Raises
        ------
        ValueError
            If they are of other classes, on another grid, one with and one without score vectors,
            or sum to more than 2**63 - 1.
        """
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        if not np.array_equal(self.classes, other.classes):
            raise ValueError(
                "counts must be of the same classes to be added, got "
                f"{self.classes.tolist()} and {other.classes.tolist()}: name all of them with "
                "classes= in every part"
            )
        if self.grid != other.grid:
            raise ValueError(
                f"counts must be on the same grid to be added, got {self.grid} and {other.grid}"
            )
        if self.vectors != other.vectors:
            raise ValueError("counts must all keep score vectors to be added, or none of them")
        check_sum(self.total + other.total)
        tables = tuple(merge(a, b) for a, b in zip(self.tables, other.tables, strict=True))
        displaced = self.displaced + other.displaced
        return ScoreCounts(self.classes, tables, self.grid, displaced)

    def __radd__(self, other: object) -> ScoreCounts:
        """Let ``sum`` begin with its 0."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def compress(self, size: int) -> ScoreCounts:
        """Return counts at no more than ``size`` scores a table.

        Neighbouring scores are put together at the largest of them, so the cumulative number
        of examples at or below any score (of all, and of each class) falls by at most
        ``total / size``. `error` gives the share that it may have fallen by, over this and all
        earlier compressions of what was added: at most ``1 / size`` each time.

        Raises
        ------
        ValueError
            If ``size`` is not such an integer, or score vectors are kept, which have no neighbours.

        Notes
        -----
        A score goes to the group number ``floor(size * b / total)``, with the weight b of all
        scores below it. So all scores of a group but the largest have a weight of at most
        ``total / size`` together, and these are the ones that move. Which scores are put together
        depends on the calibration scores: unlike a fixed grid, it is not a score function that was
        known beforehand.
        """
        check_count(size, "size")
        if self.vectors:
            raise ValueError("counts must not keep score vectors to be compressed")
        done = [compress(table, int(size)) for table in self.tables]
        moved = max(weight for _, weight in done)
        tables = tuple(table for table, _ in done)
        return ScoreCounts(self.classes, tables, self.grid, self.displaced + moved)

    def examples(self, table: int = 0) -> tuple[FloatArray, IntArray, FloatArray | None]:
        """Return one of the tables as weighted examples: scores, codes of the columns, and weights.

        Weights are None where all are 1.
        """
        x, counts = self.tables[table]
        row, code = np.nonzero(counts)
        weight = counts[row, code].astype(np.float64)
        return x[row], code, None if (weight == 1).all() else weight
