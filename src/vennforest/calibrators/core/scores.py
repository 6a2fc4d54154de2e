"""Calibration scores: their direction, counts of labels at them, and their logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self

import attrs
import numpy as np
from attrs.validators import instance_of
from numpy.typing import NDArray

from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    array,
    check_option,
    number,
    require,
)
from vennforest.calibrators.core.formula import Term, Terms
from vennforest.counts import ScoreCounts

SMALLEST = float(np.nextafter(0, 1))
"""The smallest number above zero."""

LARGEST_SLOPE = 1e100
"""Largest coefficient of a map: products with logarithms, and sums of them, stay finite."""


@stored("standard")
@attrs.frozen
class Standard:
    """A shift and a scale under which a column of numbers has mean 0 and deviation 1.

    ``z = (s / unit - centre) / spread``; ``unit`` is a power of two, so dividing by it is
    exact and nothing overflows, however large or small the numbers are.
    """

    unit: float = attrs.field(validator=number(SMALLEST))
    centre: float = attrs.field(validator=number())
    spread: float = attrs.field(validator=number(SMALLEST))

    @classmethod
    @np.errstate(under="ignore")
    def of(cls, column: FloatArray, shift: bool = True, weight: FloatArray | None = None) -> Self:
        """Return the standard of numbers (n,); a constant column becomes exactly 0.

        Without ``shift`` numbers are scaled only. Weights (n,) count as so many equal numbers.
        """
        _, exponent = np.frexp(np.abs(column).max())
        unit = float(np.ldexp(1.0, int(np.clip(exponent, -1021, 1023))))
        scaled = column / unit
        first = float(scaled[0]) if shift else 0.0
        away = scaled - first
        middle = float(np.average(away, weights=weight)) if shift else 0.0
        spread = float(np.sqrt(np.average(np.square(away - middle), weights=weight)))
        return cls(unit, first + middle, spread or 1.0)

    def __call__(self, column: FloatArray) -> FloatArray:
        """Return numbers (n,) on the standard scale, cut off far beyond any use."""
        with np.errstate(over="ignore", under="ignore"):
            z: FloatArray = np.clip((column / self.unit - self.centre) / self.spread, -1e100, 1e100)
        return z


@np.errstate(under="ignore")
def probability(f: FloatArray) -> FloatArray:
    """Return p = 1 / (1 + exp(-f)), (n,): the first that `logistic` returns, to the last bit."""
    e = np.exp(-np.abs(f))
    large = 1 / (1 + e)
    p: FloatArray = np.where(f >= 0, large, e * large)
    return p


@np.errstate(under="ignore")
def logistic(f: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return p = 1 / (1 + exp(-f)), 1 - p without cancellation, and exp(-abs(f)), each (n,)."""
    e = np.exp(-np.abs(f))
    large = 1 / (1 + e)
    small = e * large
    above = f >= 0
    return np.where(above, large, small), np.where(above, small, large), e


@np.errstate(under="ignore")
def softmax(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the softmax (n, k) of logits (n, k), and the logarithm of its divisor, (n,)."""
    largest = z.max(axis=1, keepdims=True)
    p = np.exp(z - largest)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    return p, (np.log(total) + largest)[:, 0]


@stored("multinomial")
@attrs.frozen(eq=False)
class Multinomial:
    """A fitted map ``softmax(logs @ slopes + intercepts)``.

    Attributes
    ----------
    slopes : ndarray of shape (k, k)
    intercepts : ndarray of shape (k,)
    """

    slopes: FloatArray = attrs.field(
        validator=array(None, None, low=-LARGEST_SLOPE, high=LARGEST_SLOPE)
    )
    intercepts: FloatArray = attrs.field(
        validator=array(None, low=-LARGEST_SLOPE, high=LARGEST_SLOPE)
    )

    def __attrs_post_init__(self) -> None:
        """Refuse slopes and intercepts of different classes."""
        k = len(self.intercepts)
        require(self.slopes.shape == (k, k), f"slopes must have shape {(k, k)}")

    def __call__(self, logs: FloatArray) -> FloatArray:
        """Return probabilities (n, k) for logarithms (n, k)."""
        # Not a matrix product: its last bits depend on how many rows there are.
        z = np.tile(self.intercepts, (len(logs), 1))
        for column, slopes in zip(logs.T, self.slopes, strict=True):
            z += column[:, None] * slopes
        return softmax(z)[0]


NEAREST, FARTHEST = float(np.finfo(np.float64).eps), 0.01
"""Bounds of the distance between 0 or 1 and the place where log-odds are cut off."""

SUM_TOLERANCE = 1e-5
"""How far from 1 a row may sum: single-precision probabilities of many classes."""


ANY_SCORES = '"venn-abers", "venn", "platt", "isotonic" and "temperature" take any scores'
"""Hint for scores outside [0, 1]."""


def check_unit_interval(scores: FloatArray, way_out: str = "") -> None:
    """Refuse scores outside [0, 1]."""
    outside = (scores < 0) | (scores > 1)
    if outside.any():
        raise ValueError(f"scores must be in [0, 1]{way_out}, got {scores[outside][0]}")


def are_probabilities(scores: FloatArray) -> bool:
    """Tell whether scores (n,) or (n, k) lie in [0, 1] and rows of columns sum to 1."""
    if ((scores < 0) | (scores > 1)).any():
        return False
    return scores.ndim == 1 or bool((np.abs(scores.sum(axis=1) - 1) <= SUM_TOLERANCE).all())


def check_probabilities(scores: FloatArray, way_out: str = "") -> FloatArray:
    """Return scores as rows (n, k) that sum to 1; one column s stands for (1 - s, s)."""
    check_unit_interval(scores, way_out)
    if scores.ndim == 1:
        return np.column_stack([1 - scores, scores])
    total = scores.sum(axis=1, keepdims=True)
    wrong = np.abs(total[:, 0] - 1) > SUM_TOLERANCE
    if wrong.any():
        raise ValueError(
            f"scores must sum to 1 in every row{way_out}, got {total[wrong][0, 0]}: "
            "divide each row by its sum"
        )
    shares: FloatArray = scores / total
    return shares


On = Literal["auto", "probabilities", "logits"]
"""What the scores are."""

MUST_BE_PROBABILITIES = ' with on="probabilities" (on="logits" takes any)'


def check_not_negative(value: object, name: str, zero: bool = True) -> float:
    """Return a finite number not below zero, or above it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        rule = "finite and not negative" if zero else "finite and above 0"
        raise InputError(f"{name} must be {rule}, got {value!r}")
    return number


def choose_on(on: On, scores: FloatArray) -> Literal["probabilities", "logits"]:
    """Return what the scores are: what ``on`` says, or with ``"auto"`` what they can be."""
    check_option(on, On, "on")
    if on == "logits" or (on == "auto" and not are_probabilities(scores)):
        return "logits"
    if scores.ndim == 1:
        check_unit_interval(scores, MUST_BE_PROBABILITIES)
    else:
        check_probabilities(scores, MUST_BE_PROBABILITIES)
    return "probabilities"


@stored("interior")
@attrs.frozen
class Interior:
    """An interval within (0, 1) into which scores are clipped before logarithms are taken.

    A forest gives exact zeros and ones, whose log-odds are infinite. Each end lies halfway
    between 0 (or 1) and the calibration score nearest to it, but not nearer to it than 2.2e-16
    and not farther than 0.01: calibration scores strictly inside (0, 1) keep their log-odds, and
    zeros and ones stand a little outside of them. New scores beyond an end count as the end, so
    log-odds are not extrapolated beyond those seen.

    Attributes
    ----------
    low, high : float
        The ends.
    """

    low: float = attrs.field(validator=number(0, 1))
    high: float = attrs.field(validator=number(0, 1))

    def __attrs_post_init__(self) -> None:
        """Refuse ends that are 0 or 1, or exchanged."""
        require(0 < self.low <= self.high < 1, "low and high must be in (0, 1), in this order")

    @classmethod
    def of(cls, scores: FloatArray, way_out: str = "") -> Self:
        """Return the interval for calibration scores (n,) in [0, 1]."""
        check_unit_interval(scores, way_out)
        return cls(_margin(scores), 1 - _margin(1 - scores))

    def clip(self, scores: FloatArray) -> FloatArray:
        """Return scores (n,) clipped into the interval."""
        clipped: FloatArray = np.clip(scores, self.low, self.high)
        return clipped

    def log_odds_formula(self, x: Term) -> Term:
        """Return the formula of ``log_odds``."""
        clipped = x.clip(self.low, self.high)
        return clipped.log() - (1.0 - clipped).log()

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return ``log(s / (1 - s))``, (n,), of the clipped scores."""
        s = self.clip(scores)
        odds: FloatArray = np.log(s) - np.log1p(-s)
        return odds


@stored("shrinkage")
@attrs.frozen(eq=False)
class Shrinkage:
    """Shrinks probabilities towards the shares of the classes: ``(s + c pi) / (1 + c)``.

    A forest gives exact zeros, whose logarithms are infinite; drawn they are finite, and the
    logarithms of nearly 0 and of 0 are nearly the same.

    Attributes
    ----------
    c : float
        Not negative; 0 leaves the scores as they are.
    shares : ndarray of shape (k,)
        Of the calibration labels, ``(n_j + 1) / (n + k)``.
    interior : Interior
        Where scores are clipped before logarithms are taken if c is 0.
    """

    c: float = attrs.field(validator=number(0, LARGEST_SLOPE))
    shares: FloatArray = attrs.field(validator=array(None, low=0, high=1))
    interior: Interior = attrs.field(validator=instance_of(Interior))

    def __attrs_post_init__(self) -> None:
        """Refuse shares that do not sum to 1, and a strength under which a logarithm is of 0."""
        require(len(self.shares) >= 2, "shares must be of two classes or more")
        require(abs(self.shares.sum() - 1) < 1e-9, "shares must sum to 1")
        drawn = self.c * self.shares / (1 + self.c)
        require(
            self.c == 0 or drawn.min() > 0,
            f"shrinkage must be 0 or so large that it can be told from 0, got {self.c}",
        )

    @classmethod
    def of(cls, c: float, p: FloatArray, counts: FloatArray) -> Self:
        """Return the shrinkage for calibration probabilities p (n,) or (n, k), labels counted."""
        shares = (counts + 1) / (counts.sum() + len(counts))
        return cls(c, shares, Interior.of(p.ravel()))

    def logs(self, p: FloatArray) -> FloatArray:
        """Return ``log(k p)``, (n, k), of probabilities (n,) or (n, k): 0 where all are equal."""
        if p.ndim == 1:
            if self.c == 0:
                p = self.interior.clip(p)
            both: FloatArray = np.column_stack([self._log(1 - p, 0), self._log(p, 1)])
            both += np.log(2.0)
            return both
        if self.c == 0:
            logs: FloatArray = np.log(np.maximum(p, self.interior.low) * p.shape[1])
            return logs
        drawn: FloatArray = np.log((p + self.c * self.shares) * (p.shape[1] / (1 + self.c)))
        return drawn

    def log_formulas(self, p: Terms) -> Terms:
        """Return the formulas of the logarithms, without the constant, of each class."""
        p = (1.0 - p[0], p[0]) if len(p) == 1 else p
        if self.c == 0:
            return tuple(one.clip(self.interior.low, self.interior.high).log() for one in p)
        drawn = zip(p, (self.c * self.shares).tolist(), strict=True)
        return tuple(((one + share) / (1 + self.c)).log() for one, share in drawn)

    def log_odds(self, p: FloatArray) -> FloatArray:
        """Return the log-odds (n,) of probabilities (n,) of the second class."""
        if self.c == 0:
            return self.interior.log_odds(p)
        return self._log(p, 1) - self._log(1 - p, 0)

    def _log(self, p: FloatArray, j: int) -> FloatArray:
        logs: FloatArray = np.log((p + self.c * self.shares[j]) / (1 + self.c))
        return logs


def _margin(distance: FloatArray) -> float:
    above = distance[distance > 0]
    return min(max(float(above.min()) / 2, NEAREST), FARTHEST) if len(above) else FARTHEST


FINEST = 16_384
"""Distinct scores from which on near-equal ones are put together."""

MOST_LOG_ODDS = 40.0
"""Log-odds beyond which scores are put together."""


def count_labels(
    scores: FloatArray, positive: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return distinct scores, ascending, with their weights and positive weights, each (m,).

    Scores are put together as in `group` where many of them differ.
    """
    w = np.ones(len(scores)) if weight is None else weight
    if more_differ(scores, FINEST):
        return group(scores, w, w * positive)
    x, point = np.unique(scores, return_inverse=True)
    total: FloatArray = np.bincount(point, w, len(x)).astype(np.float64)
    share: FloatArray = np.bincount(point, w * positive, len(x)).astype(np.float64)
    return x, total, share


def more_differ(scores: FloatArray, number: int) -> bool:
    """Tell whether scores (n,) contain more distinct ones than a number.

    So the answer is the same for examples and for counts of them; where nearly all differ the
    first of them tell.
    """
    if len(scores) <= number:
        return False
    return len(np.unique(scores[: 2 * number])) > number or len(np.unique(scores)) > number


def group(
    x: FloatArray, weight: FloatArray, positive: FloatArray, cells: int = FINEST
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up counts over equal cells of the log-odds, or of the scores.

    To a smooth map that spans the range, scores within one cell are as good as equal; each cell
    is represented by its mean score. The log-odds count where all scores are within [0, 1].

    Parameters
    ----------
    x : ndarray of shape (n,)
        Scores.
    weight, positive : ndarray of shape (n,)
        Their weights, and the weights of the positive class.
    cells : int
        How many cells.
    """
    z = x
    if x.min() >= 0 and x.max() <= 1:
        with np.errstate(divide="ignore"):
            z = np.clip(np.log(x) - np.log1p(-x), -MOST_LOG_ODDS, MOST_LOG_ODDS)
    low, high = float(z.min()), float(z.max())
    with np.errstate(over="ignore"):
        width = high - low
    if not 0 < width < np.inf:
        return x, weight, positive
    cell: IntArray = ((z - low) / width * cells).astype(np.intp)
    total = np.bincount(cell, weight)
    there = total > 0
    mean: FloatArray = np.bincount(cell, x * weight)[there] / total[there]
    share: FloatArray = np.bincount(cell, positive)[there].astype(np.float64)
    return np.clip(mean, x.min(), x.max()), total[there].astype(np.float64), share


CELLS = 4_096
"""Scores of two classes from which on near-equal ones are put together."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct pairs of score and label, with their weights.

    Label by label, each in the order of that label's own score.

    Attributes
    ----------
    scores : ndarray of shape (m,) or (m, k)
    codes : ndarray of shape (m,)
        Index of the class.
    weight : ndarray of shape (m,)
        Above zero.
    """

    scores: FloatArray
    codes: IntArray
    weight: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> Cells:
        """Return the cells of a calibration set.

        Many scores of two classes are put together where they are nearly equal, see `group`.
        """
        w = np.ones(len(codes)) if weight is None else weight
        if scores.ndim == 1 and more_differ(scores, CELLS):
            x, total, positive = group(scores, w, w * (codes == 1), CELLS)
            both = np.concatenate([total - positive, positive])
            code = np.repeat(np.arange(2), len(x))
            scores, codes, w = np.tile(x, 2)[both > 0], code[both > 0], both[both > 0]
        rows = scores[:, None] if scores.ndim == 1 else scores
        if scores.ndim == 1:
            own = np.where(codes == 1, scores, -scores)
            order = np.lexsort([own, codes])
        else:
            own = scores[np.arange(len(codes)), codes]
            order = np.lexsort([*scores.T[::-1], own, codes])
        rows, codes, w = rows[order], codes[order], w[order]
        new = np.append(True, (codes[1:] != codes[:-1]) | (rows[1:] != rows[:-1]).any(axis=1))
        total = np.add.reduceat(w, np.flatnonzero(new))
        return cls(scores[order][new], codes[new], total)

    def select(self, weight: FloatArray) -> Cells:
        """Return the cells of which something is left under other weights (m,)."""
        there = weight > 0
        return Cells(self.scores[there], self.codes[there], weight[there])

    def split(self, n_folds: int) -> Iterator[FloatArray]:
        """Yield each fold's share (m,) of the cells' weights.

        The examples of a label lie side by side on a line in the cells' order, each as long as
        its weight, and the units of the line are dealt out to the folds in a shuffled order that
        is always the same. So the folds do not depend on the order of the examples, an example of
        weight 2 is treated as two examples are, and exchanging labels (and scores) changes
        nothing. Without the shuffle every fold would have nearly the same shares of labels at
        each score, and a map that follows chance would look as good as it does on what it was
        fitted to.
        """
        ends = np.cumsum(self.weight)
        first = np.flatnonzero(np.append(True, self.codes[1:] != self.codes[:-1]))
        sizes = np.diff(np.append(first, len(ends)))
        ends -= np.repeat((ends - self.weight)[first], sizes)
        # Sums of other weights than integers may leave a hair beyond a unit.
        units = np.ceil(np.maximum.reduceat(ends, first) * (1 - 1e-12)).astype(np.int64)
        deals = [_deal(int(n), n_folds) for n in np.clip(units, 1, LONGEST)]
        for fold in range(n_folds):
            share = np.empty(len(ends))
            for start, size, deal in zip(first, sizes, deals, strict=True):
                line = np.append(0.0, ends[start : start + size])
                share[start : start + size] = np.diff(_length_within(line, deal == fold))
            yield np.clip(share, 0.0, self.weight)


LONGEST = 1 << 20
"""Units of a line that are shuffled; a longer line repeats them."""


def _deal(units: int, n_folds: int) -> IntArray:
    """Return the fold of each unit, (units,): equally many each, in shuffled order."""
    deal: IntArray = np.random.RandomState(0).permutation(np.arange(units) % n_folds)
    return deal


def _length_within(x: FloatArray, mine: NDArray[np.bool_]) -> FloatArray:
    """Return how much of each [0, x] lies in the units that are mine, repeated without end."""
    total = np.append(0.0, np.cumsum(mine))
    rounds = np.floor(x / len(mine))
    rest = np.clip(x - rounds * len(mine), 0.0, len(mine))
    unit = np.minimum(rest.astype(np.intp), len(mine) - 1)
    length: FloatArray = rounds * total[-1] + total[unit] + (rest - unit) * mine[unit]
    return length


HigherIs = Literal["likelier", "safer", "auto"]
"""What a higher score says of the second class."""

SURE = 4.0
"""Standard errors from 1/2 beyond which the area under the ROC curve leaves no doubt."""


def reversed_at(counts: ScoreCounts, higher_is: HigherIs) -> float | None:
    """Return c where the scores s are to be replaced by c - s, None where they stay.

    c is 1 of probabilities, low + high of scores on a grid, and 0 of others.
    """
    check_option(higher_is, HigherIs, "higher_is")
    if higher_is == "likelier":
        return None
    if len(counts.classes) > 2:
        raise InputError(
            f'higher_is must be "likelier" with more than two classes, got {higher_is!r}'
        )
    if higher_is == "auto":
        area, sure = ranking(counts)
        if not sure:
            raise InputError(
                f'higher_is must be "likelier" or "safer" where the scores do not show which: the '
                f"area under the ROC curve is {area:.3f}, close to 1/2"
            )
        if area > 0.5:
            return None
    if counts.grid is not None:
        return counts.grid.low + counts.grid.high
    scores = counts.tables[0].scores
    return 1.0 if scores[0] >= 0 and scores[-1] <= 1 else 0.0


def ranking(counts: ScoreCounts) -> tuple[float, bool]:
    """Return the area under the ROC curve of two classes, and whether it is surely not 1/2.

    The standard error is that of scores that say nothing, without ties:
    sqrt((m + n + 1) / (12 m n)) for m and n examples (Mann and Whitney 1947, section 4).
    """
    negatives, positives = counts.tables[0].counts.astype(np.float64).T
    m, n = negatives.sum(), positives.sum()
    if m == 0 or n == 0:
        return 0.5, False
    below = np.cumsum(negatives) - negatives / 2  # ties count half
    area = float((positives * below).sum() / (m * n))
    return area, abs(area - 0.5) > SURE * math.sqrt((m + n + 1) / (12 * m * n))


def reversed_counts(counts: ScoreCounts, at: float) -> ScoreCounts:
    """Return counts of two classes with scores s replaced by ``at - s``, which are on no grid.

    Putting them on one again would move some in their last digit: new scores are reversed after
    they are put on it.
    """
    (table,) = counts.tables
    made = ScoreCounts.from_counts(
        at - table.scores[::-1],
        *table.counts[::-1].T,
        classes=counts.classes,
    )
    return ScoreCounts(counts.classes, made.tables, None, counts.displaced)


def direction_of(
    scores: FloatArray, codes: IntArray, weight: NDArray[Any] | None, k: int, higher_is: HigherIs
) -> float | None:
    """Return the same as `reversed_at` for scores (n,) or (n, k), codes and weights (n,)."""
    check_option(higher_is, HigherIs, "higher_is")
    counts = ScoreCounts.from_scores(scores, codes, sample_weight=weight, classes=np.arange(k))
    return reversed_at(counts, higher_is)
