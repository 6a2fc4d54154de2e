"""Confidence intervals for the frequency of a class at a score, which rises with the score.

Two methods, both for examples that are independent given their scores and a frequency f(s) of the
positive class that does not decrease with the score s. Each yields the ends of the interval at
calibration scores; between two of them the lower end is that of the score on the left and the upper
end that of the score on the right.

*Likelihood ratio*. The interval at s contains all theta with 2 log lambda(theta) <= q, where lambda
is the ratio of the largest Bernoulli likelihood over all f that do not decrease to that over those
of them with f(s) = theta (Banerjee & Wellner 2001, Annals of Statistics 29). Where f is flat, at
the ends of the scores, beside jumps and for few examples 2 log lambda is larger than in its limit:
at a rank r of a flat stretch of m examples its mean grows like log(m^2 / (r (m - r))) / 2. So q is
simulated, and at least the quantile of the limit. Labels are drawn from pieces that are each
constant or a logistic function of the rank, as many as the penalised likelihood asks for.

*Exact*. The number S of positives in a stretch of m consecutive examples from score a to score b
lies in stochastic order between Binomial(m, f(a)) and Binomial(m, f(b)). So the upper binomial
bound of S (Clopper & Pearson 1934) with error alpha is at least f(s) for all s <= a with
probability 1 - alpha, and the lower one at most f(s) for all s >= b. Stretches have 4, 8, 16, ...
examples, or a few more, since examples of equal score have no order; they begin, or end, at s.
Which stretches are used follows from the scores alone, so alpha is divided among the D lengths and
the two sides, and the best bound of each side is taken (Yang & Barber 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit

from vennforest._numerics import binomial_bound
from vennforest._validation import FloatArray, InputError, IntArray, check_inside, check_option
from vennforest.calibrators import interval_kernels as kernels
from vennforest.counts import count_examples
from vennforest.multiprobability import BoundsOfClasses

IntervalMethod = Literal["likelihood-ratio", "exact"]
"""How an interval is computed."""

MIN_STRETCH = 4  # examples of the shortest stretch: fewer bound nothing at the usual levels
# Simulated, with standard errors of .002 to .09; Banerjee & Wellner (2005) have 1.604 and 2.267 for
# the levels .9 and .95.
TABULATED_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.995, 0.999)
LIMIT_QUANTILES = (
    0.280, 0.430, 0.651, 0.984, 1.236, 1.602, 1.871, 2.269, 2.960, 3.894, 4.631, 6.380,
)  # fmt: skip
"""Levels, and the quantiles of the limit of 2 log lambda where f rises smoothly."""

# Scores at which ends are computed; if there are more, these are spread over all ranks.
MAX_CURVE_SCORES = 2000
# Scores at which the quantile is simulated, and sets of labels for it.
MAX_SIMULATED_SCORES, N_SIMULATIONS = 120, 200
# Groups of neighbouring scores for which labels are simulated, and scores beside either end and
# each jump that are never grouped, since single labels decide there.
MAX_SIMULATION_GROUPS, N_SINGLE_SCORES = 2048, 64
# Labels that are simulated, and scores whose kernel density is computed, at once.
MAX_SIMULATED_LABELS, MAX_KERNEL_SCORES = 1 << 20, 1 << 14
# Ranks, besides those of isotonic blocks, between which examples count as one rank for the pieces.
MAX_PIECE_RANKS = 64
# Scores on either side of a jump over which its place is uncertain: they have one quantile.
UNCERTAIN_JUMP = 12
MIN_EXPECTED_SLOPE = 0.1  # smallest slope of expected scores over the scores they are expected from


@dataclass(frozen=True, eq=False)
class ConfidenceIntervals(BoundsOfClasses):
    """Confidence intervals for the frequency of every class among objects with given scores.

    Parameters
    ----------
    lower, upper : ndarray of shape (n, k)
        Ends of the intervals, in [0, 1].
    classes : ndarray of shape (k,)
        The label of each column.
    level : float
        The probability, in (0, 1), with which each interval contains the frequency.
    widened : ndarray of bool of shape (n,), or None
        Rows that were widened to contain the probability; None: not compared.
    """

    level: float


class ScoreIntervals(NamedTuple):
    """Lower and upper ends (m,) of the intervals at increasing scores x (m,)."""

    x: FloatArray
    lower: FloatArray
    upper: FloatArray

    def at(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends (n,) at scores (n,).

        Between two of ``x`` the lower end is that of the smaller one and the upper end that of the
        larger one; below all of them the lower end is 0, above all of them the upper end is 1.
        """
        lower = np.append(0.0, self.lower)[np.searchsorted(self.x, scores, "right")]
        upper = np.append(self.upper, 1.0)[np.searchsorted(self.x, scores, "left")]
        # Ends of the exact method that cross refute at the level that f does not decrease.
        return np.minimum(lower, upper), np.maximum(lower, upper)

    def steps(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return where the ends change, (r,), and the ends below, between and above, (r + 1,)."""
        edges = np.unique(np.concatenate([self.x, np.nextafter(self.x, np.inf)]))
        return edges, *self.at(np.append(-np.inf, edges))


def interval_curves(
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    level: float = 0.95,
    method: IntervalMethod = "likelihood-ratio",
    *,
    weight: FloatArray | None = None,
    groups: IntArray | None = None,
    noise: FloatArray | None = None,
) -> list[ScoreIntervals]:
    """Return the curve of the second of two classes, or one per class, from calibration examples.

    Examples of one of the ``groups`` (n,), numbered from 0, are not independent: see
    `group_design_effect`. Scores s of new objects vary less than those of examples by the variance
    ``noise * s * (1 - s)``: see `expected_scores`. The exact method ignores both.
    """
    columns = scores.reshape(len(scores), -1)
    weight = np.ones(len(scores)) if weight is None else weight
    curves = []
    for j in range(columns.shape[1]):
        positive = codes == (1 if n_classes == 2 else j)
        column = np.ascontiguousarray(columns[:, j])
        if noise is not None and method != "exact":
            column = expected_scores(column, noise * column * (1 - column))
        x, total, positives = _count(column, weight, positive)
        if groups is not None and method != "exact":
            effect = group_design_effect(column, positive, weight, groups)
            total, positives = total / effect, positives / effect
        curves.append(intervals_at_scores(x, total, positives, level, method))
    return curves


def intervals_at_scores(
    x: FloatArray,
    total: FloatArray,
    positive: FloatArray,
    level: float = 0.95,
    method: IntervalMethod = "likelihood-ratio",
) -> ScoreIntervals:
    """Return confidence intervals as a curve over increasing scores x (m,).

    ``total`` and ``positive`` (m,) are the weights of all examples, and of the positive ones, at
    each score.
    """
    check_inside(level, "level")
    check_option(method, IntervalMethod, "method")
    if not len(x):
        return ScoreIntervals(*np.empty((3, 0)))
    curve_of = _exact_curve if method == "exact" else _likelihood_ratio_curve
    return curve_of(x, total, positive, level)


def read_intervals(
    curves: Sequence[ScoreIntervals], scores: FloatArray, classes: NDArray[Any], level: float
) -> ConfidenceIntervals:
    """Return the intervals at new scores (n,) of the second of two classes, or (n, k)."""
    if len(classes) == 2:
        low, up = curves[0].at(scores)
        ends = [(1 - up, 1 - low), (low, up)]
    else:
        ends = [curve.at(column) for curve, column in zip(curves, scores.T, strict=True)]
    lower, upper = map(np.column_stack, zip(*ends, strict=True))
    return ConfidenceIntervals(lower, upper, classes, float(level))


# Scores and labels of other kinds than independent examples


def expected_scores(scores: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the scores (n,) expected without so much of their variance (n,), in the same order.

    Out-of-bag scores are means over a third of the trees, those of new objects over all of them.
    Tweedie's formula (Efron 2011) removes the excess v: E[S | s] = s + (v g)'(s) / g(s), with the
    density g of the scores estimated by a Gaussian kernel.
    """
    n = len(scores)
    if n < 2 or not np.ptp(scores) > 0 or not variance.any():
        return scores
    width = 1.2 * float(scores.std()) * n ** (-1 / 7)  # of the order that suits a derivative
    knots = np.linspace(scores.min(), scores.max(), 256)
    density, noise, slope = np.zeros((3, len(knots)))
    for start in range(0, n, MAX_KERNEL_SCORES):
        part = slice(start, start + MAX_KERNEL_SCORES)
        distance = (knots[:, None] - scores[part]) / width
        near = np.exp(-0.5 * distance**2)
        density += near.sum(axis=1)
        noise += near @ variance[part]
        slope -= (near * distance).sum(axis=1) / width
    noise /= density
    expected = knots + noise * slope / density + np.gradient(noise, knots)
    rises = np.maximum(np.diff(expected), MIN_EXPECTED_SLOPE * np.diff(knots))
    increasing = expected[0] + np.append(0.0, np.cumsum(rises))
    return np.asarray(np.interp(scores, knots, increasing))


def group_design_effect(
    scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray, groups: IntArray
) -> float:
    """Return how many dependent examples count as one independent one, at least 1.

    The sum over groups (n,) of squared sums of residuals, divided by the sum of squared residuals
    (Rao & Scott 1981). Residuals are those of a logistic line, which does not follow single groups.
    """
    x, total, positives = _count(scores, weight, positive)
    line = kernels.fit_line(_ranks(total), total, positives, 0, len(total))
    expected = _logistic_line(line, _ranks(total))[np.searchsorted(x, scores)]
    residual = weight * (positive - expected)
    of_examples = float((residual**2).sum())
    of_groups = float((np.bincount(groups, residual) ** 2).sum())
    return max(1.0, of_groups / of_examples) if of_examples > 0 else 1.0


def _count(
    scores: FloatArray, weight: FloatArray, positive: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct scores, the weight at each, and the weight of the positive class."""
    counts = count_examples(np.arange(2), scores, positive.astype(np.intp), weight)
    return counts.scores, counts.weights.sum(axis=1), counts.weights[:, 1]


def _ranks(total: FloatArray) -> FloatArray:
    """Return the mean rank, in [0, 1], of the examples at each score."""
    return np.asarray((np.cumsum(total) - total / 2) / total.sum())


def _spread(
    ranks: FloatArray, n: int, n_single: int, edges: Sequence[int] | IntArray = ()
) -> IntArray:
    """Return about n indices of scores, equally spaced in rank, and denser beside all edges.

    Edges are the first score, the end, and the ``edges`` between them. The ``n_single`` scores on
    either side of each are included, and then some at doubling distances.
    """
    m = len(ranks)
    if m <= n:
        return np.arange(m)
    distance = np.append(np.arange(n_single), n_single << np.arange(m.bit_length()))
    first = np.array([0, *edges, m])[:, None]
    near = np.unique(np.concatenate([first + distance, first - 1 - distance], axis=None))
    near = near[(near >= 0) & (near < m)]
    inner = np.searchsorted(ranks, np.linspace(0, 1, max(n // 2, n - len(near))))
    return np.union1d(near, inner.clip(0, m - 1))


# Exact intervals


def _exact_curve(
    x: FloatArray, total: FloatArray, positive: FloatArray, level: float
) -> ScoreIntervals:
    """Return the best binomial bounds over stretches of 4, 8, 16 ... examples at each score."""
    sums = np.append(total, positive)
    fractions = sums[sums != np.rint(sums)]
    if len(fractions):
        raise InputError(
            "sample_weight must be integers for exact confidence intervals, which count examples, "
            f"got a sum of {fractions[0]}: use method='likelihood-ratio'"
        )
    ends, positives = (np.append(0, np.cumsum(n)).astype(np.intp) for n in (total, positive))
    n = int(ends[-1])
    indices = _spread((ends[:-1] + ends[1:]) / (2 * n), MAX_CURVE_SCORES, N_SINGLE_SCORES)
    lower, upper = np.zeros(len(indices)), np.ones(len(indices))
    lengths = [MIN_STRETCH << d for d in range((n // MIN_STRETCH).bit_length())]
    error = (1 - level) / max(1, 2 * len(lengths))
    for length in lengths:
        # Stretches that begin with a score bound f up to it, those that end with it from it on.
        stop = np.searchsorted(ends, ends[indices] + length)
        is_long = stop < len(ends)
        begin, stop = indices[is_long], stop[is_long]
        s, m = positives[stop] - positives[begin], ends[stop] - ends[begin]
        upper[is_long] = np.minimum(upper[is_long], binomial_bound(s, m, error, upper=True))
        begin = np.searchsorted(ends, ends[indices + 1] - length, "right") - 1
        is_long = begin >= 0
        begin, stop = begin[is_long], indices[is_long] + 1
        s, m = positives[stop] - positives[begin], ends[stop] - ends[begin]
        lower[is_long] = np.maximum(lower[is_long], binomial_bound(s, m, error, upper=False))
    return ScoreIntervals(x[indices], lower, upper)


# Likelihood-ratio intervals


def _likelihood_ratio_curve(
    x: FloatArray, total: FloatArray, positive: FloatArray, level: float
) -> ScoreIntervals:
    """Return the ends at which 2 log lambda reaches its simulated quantile, at each score."""
    fit, ranks = isotonic_regression(positive / total, weights=total).x, _ranks(total)
    curve, jumps = _piecewise_curve(total, positive, fit, ranks)
    starts = _spread(ranks, MAX_SIMULATION_GROUPS, N_SINGLE_SCORES, jumps)
    grouped = np.add.reduceat(total, starts)
    middle = np.add.reduceat(total * ranks, starts) / grouped
    group_jumps = np.searchsorted(starts, jumps)
    simulated = _spread(middle, MAX_SIMULATED_SCORES, 8, group_jumps)
    curve = np.add.reduceat(total * curve, starts) / grouped
    quantile = _simulated_quantile(grouped, curve, simulated, level)
    if len(simulated) < len(starts):
        # A running mean over three scores takes out some of the simulation's noise.
        padded = np.pad(quantile, 1, mode="edge")
        quantile = padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4
        for jump in group_jumps:
            near = (simulated >= jump - UNCERTAIN_JUMP) & (simulated < jump + UNCERTAIN_JUMP)
            quantile[near] = quantile[near].max()
    quantile = np.maximum(quantile, limit_quantile(level))
    indices = _spread(ranks, MAX_CURVE_SCORES, N_SINGLE_SCORES, jumps)
    quantile = np.interp(ranks[indices], middle[simulated], quantile)
    # Where no example at all is positive, simulated labels are none either. The upper end is then
    # the exact one: (1 - theta)^n = 1 - level, three in n at .95; the lower likewise.
    exact = np.maximum(quantile, -2 * np.log1p(-level))
    lower_quantile = np.where(fit[indices] == 1, exact, quantile)
    upper_quantile = np.where(fit[indices] == 0, exact, quantile)
    ends = likelihood_ratio_ends(total, positive, fit, indices, lower_quantile, upper_quantile)
    return ScoreIntervals(x[indices], *ends)


def limit_quantile(level: float) -> float:
    """Return the quantile of 2 log lambda at smooth, rising f, in the limit of many examples."""
    # Between tabulated levels, and beyond the last one, it is linear in -log(1 - level).
    tail = -np.log1p(-np.array((0.0, *TABULATED_LEVELS)))
    values = np.array((0.0, *LIMIT_QUANTILES))
    position = -np.log1p(-level)
    beyond = max(0.0, position - tail[-1]) * (values[-1] - values[-2]) / (tail[-1] - tail[-2])
    return float(np.interp(position, tail, values) + beyond)


def likelihood_ratio_ends(
    total: FloatArray,
    positive: FloatArray,
    fit: FloatArray,
    indices: IntArray,
    lower_quantiles: FloatArray,
    upper_quantiles: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper ends (n,) at scores number ``indices`` (n,), for a quantile each.

    ``total`` and ``positive`` (m,) are the weights at increasing scores, ``fit`` (m,) their
    isotonic regression, and the quantiles (n,) those of 2 log lambda.
    """
    W, Y = np.append(0.0, np.cumsum(total)), np.append(0.0, np.cumsum(positive))
    upper = kernels.upper_ends(W, Y, fit, indices, upper_quantiles)
    # The lower end is the upper one of reversed scores with exchanged labels.
    mirrored = 1 - fit[::-1], len(fit) - 1 - indices, lower_quantiles
    return 1 - kernels.upper_ends(*kernels.mirrored(W, Y), *mirrored), upper


def _logistic_line(line: tuple[float, ...], ranks: FloatArray) -> FloatArray:
    """Return the values (n,) at ranks (n,) of what `interval_kernels.fit_line` returns."""
    _, intercept, slope, center = line
    return np.asarray(expit(intercept + slope * (ranks - center)))


def _piecewise_curve(
    total: FloatArray, positive: FloatArray, fit: FloatArray, ranks: FloatArray
) -> tuple[FloatArray, list[int]]:
    """Return a curve (m,) of constant and logistic pieces, and the indices where pieces begin.

    Pieces begin where blocks of the isotonic ``fit`` do. A piece is parted at the best such place
    as long as the penalised log likelihood gains more than log(n) / 2 by it.
    """
    m, n = len(total), float(total.sum())
    blocks = np.flatnonzero(np.diff(fit) > 0) + 1
    cuts = np.searchsorted(ranks, np.linspace(0, 1, MAX_PIECE_RANKS + 1)[1:-1])
    starts = np.unique(np.concatenate([[0], blocks, cuts[cuts < m]]))
    weight = np.add.reduceat(total, starts)
    mean_rank = np.add.reduceat(total * ranks, starts) / weight
    data = mean_rank, weight, np.add.reduceat(positive, starts)
    candidates = np.searchsorted(starts, blocks)
    bounds = np.append(starts, m)
    curve, jumps, pieces = np.empty(m), [], [(0, len(starts))]
    while pieces:
        start, stop = pieces.pop()
        line = kernels.fit_line(*data, start, stop)
        likelihood, split = kernels.best_split(*data, start, stop, candidates)
        if likelihood - line[0] > 0.5 * np.log(max(n, 2.0)):
            pieces += [(start, split), (split, stop)]
            jumps.append(int(bounds[split]))
        else:
            rows = slice(bounds[start], bounds[stop])
            curve[rows] = _logistic_line(line, ranks[rows])
    smallest = min(0.5, 0.5 / n)
    return np.maximum.accumulate(curve).clip(smallest, 1 - smallest), sorted(jumps)


def _simulated_quantile(
    weight: FloatArray, curve: FloatArray, indices: IntArray, level: float
) -> FloatArray:
    """Return the quantile of 2 log lambda at some scores for labels simulated from a curve."""
    rng = np.random.default_rng(0)  # equal examples give equal intervals
    number = np.maximum(1, np.rint(weight)).astype(np.int64)
    size = max(1, MAX_SIMULATED_LABELS // len(weight))
    ratios = []
    for start in range(0, N_SIMULATIONS, size):
        shape = min(size, N_SIMULATIONS - start), len(weight)
        if (number == 1).all():
            positive = weight * (rng.random(shape) < curve)
        else:
            positive = weight / number * rng.binomial(number, curve, shape)
        ratios.append(kernels.simulated_ratios(weight, positive, indices, curve[indices]))
    return np.asarray(np.quantile(np.concatenate(ratios), level, axis=0, method="weibull"))
