"""Likelihood-ratio intervals for a probability that does not decrease with the score."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from threading import Lock
from typing import NamedTuple, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators import likelihood_ratio_kernels as kernels

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.995, 0.999)
QUANTILES = (0.280, 0.430, 0.651, 0.984, 1.236, 1.602, 1.871, 2.269, 2.960, 3.894, 4.631, 6.380)
"""Levels, and the quantiles of the limit of 2 log lambda where f rises smoothly.

Made by ``benchmarks/likelihood_ratio_quantiles.py``, with standard errors of .002 to .09; those of
.9 and .95 are Banerjee & Wellner's (2005), which it confirms (1.604, 2.267).
"""

PLACES = 2000
"""Scores at which ends are computed; where there are more, they are spread over all ranks."""

SIMULATED = 80
"""Scores at which the quantile is simulated; it changes slowly between them."""

GROUPS = 2048
"""Groups of neighbouring scores that labels are drawn for; where there are more scores."""

ALONE = 64
"""Scores at either end that are never grouped: there single labels decide."""

DRAWS = 200
"""Drawn label sets of a simulated quantile."""

DRAWN_AT_ONCE = 1 << 20
"""Labels that are drawn at once."""

BANDWIDTH = 2.5
"""Of the smooth curve that labels are drawn from: so many n^(-1/5) in ranks.

Chosen on simulated curves: with less, curves that are flat are covered in .90 of cases at .95,
since what is drawn from rises with the noise; with more, intervals widen everywhere.
"""


SCORES_AT_ONCE = 1 << 14
"""Scores whose kernel is computed at once."""

MOST_TABLES = 32
"""Tables that are kept: those of the fits and levels that were asked for last."""

_TABLES: OrderedDict[bytes, IntervalTable] = OrderedDict()
_LOCK = Lock()


def limit_quantile(level: float) -> float:
    """Return the quantile of 2 log lambda at smooth, rising f, in the limit of many examples.

    Between tabulated levels it is interpolated in -log(1 - level), on which the tail is nearly
    linear; beyond the last one likewise.
    """
    known = -np.log1p(-np.array((0.0, *LEVELS)))
    values = np.array((0.0, *QUANTILES))
    asked = -np.log1p(-level)
    if asked > known[-1]:
        slope = (values[-1] - values[-2]) / (known[-1] - known[-2])
        return float(values[-1] + slope * (asked - known[-1]))
    return float(np.interp(asked, known, values))


class IntervalTable(NamedTuple):
    """Ends of the intervals at some of the calibration scores."""

    x: FloatArray
    """(m,) scores, increasing."""
    lower: FloatArray
    """(m,) ends there, in [0, 1]."""
    upper: FloatArray
    """(m,)"""

    def read(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends (n,) at scores (n,).

        Between two scores the lower end is that of the left one and the upper end that of the
        right one: f does not decrease.
        """
        left = np.searchsorted(self.x, scores, "right")
        right = np.searchsorted(self.x, scores, "left")
        lower = np.append(0.0, self.lower)[left]
        upper = np.append(self.upper, 1.0)[right]
        return np.minimum(lower, upper), np.maximum(lower, upper)

    def steps(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return where the ends change, (m,), and the ends below, between and above, (m + 1,)."""
        edges = np.unique(np.concatenate([self.x, np.nextafter(self.x, np.inf)]))
        return edges, *self.read(np.append(-np.inf, edges))


class Regressions(NamedTuple):
    """The isotonic regressions of all prefixes of the scores, as a tree: see the kernels."""

    value: FloatArray
    parent: NDArray[np.int32]
    jump: NDArray[np.int32]
    best: FloatArray

    @classmethod
    def of(cls, W: FloatArray, Y: FloatArray) -> Self:
        """Return the tree for cumulative sums (m + 1,) that begin at 0."""
        m = len(W)
        tree = cls(np.empty(m), np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m))
        kernels.grow(W, Y, *tree)
        return tree

    def fit(self) -> FloatArray:
        """Return the isotonic regression of all scores, (m,)."""
        fit = np.empty(len(self.value) - 1)
        last = len(fit)
        while last > 0:
            first = int(self.parent[last])
            fit[first:last] = self.value[last]
            last = first
        return fit


def interval_table(
    x: FloatArray, total: FloatArray, positive: FloatArray, level: float
) -> IntervalTable:
    """Return the table for counted examples and a level, made once while it is in use."""
    digest = blake2b(np.float64(level).tobytes(), digest_size=16)
    for column in (x, total, positive):
        digest.update(np.ascontiguousarray(column, np.float64).data)
    key = digest.digest()
    with _LOCK:
        table = _TABLES.get(key)
        if table is not None:
            _TABLES.move_to_end(key)
            return table
    if len(x):
        table = LikelihoodRatio.from_counts(x, total, positive).table(level)
    else:
        table = IntervalTable(*np.empty((3, 0)))
    with _LOCK:
        _TABLES[key] = table
        while len(_TABLES) > MOST_TABLES:
            _TABLES.popitem(last=False)
    return table


SLOWEST = 0.1
"""Expected scores rise at least so fast with the scores they are expected from."""


def expected_scores(scores: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the scores that less noisy scorers are expected to give, (n,), in the same order.

    An out-of-bag score is the mean over a third of the trees, the score of a new object that over
    all of them. So the noise of the former, of this variance (n,) each, is taken out on average, by
    Tweedie's formula (Efron 2011): E[S | s] = s + (v g)'(s) / g(s), g the density of the scores,
    estimated with a Gaussian kernel.
    """
    n = len(scores)
    width = float(scores.std())
    if n < 2 or not width > 0 or not variance.any():
        return scores
    width *= 1.2 * n ** (-1 / 7)  # of the order that suits a derivative
    knots = np.linspace(scores.min(), scores.max(), 256)
    density, noise, slope = np.zeros((3, len(knots)))
    for first in range(0, n, SCORES_AT_ONCE):
        some = slice(first, first + SCORES_AT_ONCE)
        distance = (knots[:, None] - scores[some]) / width
        near = np.exp(-0.5 * distance**2)
        density += near.sum(axis=1)
        noise += near @ variance[some]
        slope -= (near * distance).sum(axis=1) / width
    noise /= density
    expected = knots + noise * slope / density + np.gradient(noise, knots)
    rising = np.maximum(np.diff(expected), SLOWEST * np.diff(knots))
    climbed = expected[0] + np.append(0.0, np.cumsum(rising))
    found: FloatArray = np.interp(scores, knots, climbed)
    return found


def design_effect(
    scores: FloatArray,
    positive: NDArray[np.bool_],
    weight: FloatArray | None,
    groups: IntArray,
) -> float:
    """Return how many dependent examples count as one independent one, at least 1.

    The sum over groups (n,) of squared sums of residuals, divided by the sum of squared residuals
    (Rao & Scott 1981): 1 on average if labels of one group are independent given their scores, c
    for groups of c copies. Residuals are those of a smooth curve, which does not follow single
    groups.
    """
    weight = np.ones(len(scores)) if weight is None else weight
    x, number = np.unique(scores, return_inverse=True)
    total = np.bincount(number, weight, len(x))
    W = np.append(0.0, np.cumsum(total))
    Y = np.append(0.0, np.cumsum(np.bincount(number, weight * positive, len(x))))
    ranks = (W[:-1] + total / 2) / W[-1]
    starts = _spread(ranks, GROUPS, ALONE)
    grouped = np.add.reduceat(total, starts)
    fit = np.add.reduceat(total * Regressions.of(W, Y).fit(), starts) / grouped
    curve = np.interp(
        ranks, (W[starts] + grouped / 2) / W[-1], _smooth(fit, grouped, ranks[starts])
    )
    residual = weight * (positive - curve[number])
    single = float((residual**2).sum())
    summed = float((np.bincount(groups, residual) ** 2).sum())
    return max(1.0, summed / single) if single > 0 else 1.0


@attrs.frozen(eq=False)
class LikelihoodRatio:
    """What the likelihood ratio of examples of two classes leaves possible, at any score.

    The interval at x is the set of all theta with 2 log lambda(theta) <= q, where lambda is the
    ratio of the largest Bernoulli likelihood over all functions f that do not decrease to that over
    those of them with f(x) = theta (Banerjee & Wellner 2001, Annals of Statistics 29). It is the
    same for all x between two neighbouring scores.
    """

    x: FloatArray  # (m,) distinct calibration scores, increasing
    W: FloatArray  # (m + 1,) cumulative weight, from 0
    Y: FloatArray  # (m + 1,) and that of the positive class
    below: Regressions  # of all prefixes
    above: Regressions  # of all suffixes, reversed, with labels exchanged
    fit: FloatArray  # (m,) the isotonic regression

    @classmethod
    def from_counts(cls, x: FloatArray, total: ArrayLike, positive: ArrayLike) -> Self:
        """Make the tables for weights above zero, (m,), at increasing scores (m,)."""
        W = np.append(0.0, np.cumsum(np.asarray(total, np.float64)))
        Y = np.append(0.0, np.cumsum(np.asarray(positive, np.float64)))
        below = Regressions.of(W, Y)
        return cls(x, W, Y, below, Regressions.of(*_mirrored(W, Y)), below.fit())

    def places(self, scores: FloatArray) -> IntArray:
        """Return where scores (n,) stand: 2 i in the gap before score i, 2 i + 1 at it."""
        low = np.searchsorted(self.x, scores, "left")
        return low + np.searchsorted(self.x, scores, "right")

    def ends(self, scores: FloatArray, quantile: float) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends (n,) at scores (n,) for one quantile of 2 log lambda."""
        places, back = np.unique(self.places(scores), return_inverse=True)
        low, up = self.ends_at(places, *np.full((2, len(places)), float(quantile)))
        return low[back], up[back]

    def ends_at(
        self, places: IntArray, lower_quantile: FloatArray, upper_quantile: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends (n,) at places (n,), each for its own quantile (n,)."""
        m = len(self.x)
        out = np.empty((2, len(places)))
        largest = self.below.best[-1]
        trees = self.below, self.above
        fit = np.append(self.fit, 1.0)
        kernels.intervals(places, fit, self.W, self.Y, *trees, largest, upper_quantile, out[1])
        # The lower end is the upper one of reversed scores with labels exchanged.
        mirrored = _mirrored(self.W, self.Y)
        fit = np.append(1.0 - self.fit[::-1], 1.0)
        kernels.intervals(
            2 * m - places, fit, *mirrored, *trees[::-1], largest, lower_quantile, out[0]
        )
        return 1.0 - out[0], out[1]

    def table(self, level: float) -> IntervalTable:
        """Return the intervals of a level, with the quantile that fits each place and n.

        Where f is flat, at the ends of the scores and for few examples 2 log lambda is larger than
        in its limit. So labels are drawn from a smooth curve near the isotonic regression, and the
        quantile is that of their 2 log lambda at each place, but not less than the limit's. The
        draws have a seed of their own: the same examples give the same intervals.
        """
        weight = np.diff(self.W)
        ranks = (self.W[:-1] + weight / 2) / self.W[-1]
        starts = _spread(ranks, GROUPS, ALONE)  # a group reaches up to the next one's first score
        grouped = np.add.reduceat(weight, starts)
        fit = np.add.reduceat(weight * self.fit, starts) / grouped
        middle = (self.W[starts] + grouped / 2) / self.W[-1]
        at = _spread(middle, SIMULATED, 8)
        quantile = _simulated_quantile(grouped, _smooth(fit, grouped, middle), at, level)
        # A running mean over three places takes out some of the simulation's noise.
        padded = np.pad(quantile, 1, mode="edge")
        quantile = padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4
        quantile = np.maximum(quantile, limit_quantile(level))
        places = _spread(ranks, PLACES, ALONE)
        found = np.interp(ranks[places], middle[at], quantile)
        # Where no example at all is positive, simulated labels are none either. The upper end is
        # then the exact one: (1 - theta)^n = 1 - level, three in n at .95; the lower likewise.
        exact = np.maximum(found, -2 * np.log1p(-level))
        lower, upper = self.ends_at(
            2 * places + 1,
            np.where(self.fit[places] == 1, exact, found),
            np.where(self.fit[places] == 0, exact, found),
        )
        return IntervalTable(self.x[places], lower, upper)


def _mirrored(W: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the cumulative sums of reversed scores with labels exchanged."""
    weight = W[-1] - W[::-1]
    return weight, weight - (Y[-1] - Y[::-1])


def _spread(ranks: FloatArray, most: int, alone: int) -> IntArray:
    """Return numbers of at most so many scores, equally spaced in rank, and all at either end."""
    m = len(ranks)
    if m <= most:
        return np.arange(m)
    inner = np.searchsorted(ranks, np.linspace(0, 1, most - 2 * alone)).clip(0, m - 1)
    return np.unique(np.concatenate([np.arange(alone), inner, np.arange(m - alone, m)]))


def _smooth(fit: FloatArray, weight: FloatArray, ranks: FloatArray) -> FloatArray:
    """Return an isotonic regression (m,) smoothed over ranks, inside (0, 1)."""
    n = weight.sum()
    knots = np.linspace(0, 1, 101)
    near = weight * np.exp(-0.5 * ((knots[:, None] - ranks) / (BANDWIDTH * n**-0.2)) ** 2)
    least = min(0.5, 0.5 / n)
    smooth: FloatArray = np.interp(ranks, knots, near @ fit / near.sum(axis=1))
    return smooth.clip(least, 1 - least)


def _simulated_quantile(
    weight: FloatArray, curve: FloatArray, at: IntArray, level: float
) -> FloatArray:
    """Return the quantile of 2 log lambda at some of the scores for labels drawn from a curve.

    ``weight`` (m,) at each score is that of as many examples, to the next whole number.
    """
    rng = np.random.default_rng(0)
    W = np.append(0.0, np.cumsum(weight))
    number = np.maximum(1, np.rint(weight)).astype(np.int64)
    found = np.empty((DRAWS, len(at)))
    size = max(1, DRAWN_AT_ONCE // len(weight))
    for first in range(0, DRAWS, size):
        some = found[first : first + size]
        if (number == 1).all():
            positive = weight * (rng.random((len(some), len(weight))) < curve)
        else:
            drawn = rng.binomial(number, curve, (len(some), len(weight)))
            positive = weight / number * drawn
        kernels.drawn_ratios(W, positive, 2 * at + 1, curve[at], some)
    return np.quantile(found, level, axis=0)
