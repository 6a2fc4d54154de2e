"""Calibration scores: their logarithms, counts of labels at them, regressions, and direction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple, Self, TypeVar

import attrs
import numpy as np
from attrs.validators import instance_of
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import nnls

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
    def of(cls, column: FloatArray, weight: FloatArray | None = None) -> Self:
        """Return the standard of numbers (n,); a constant column becomes exactly 0.

        Weights (n,) count as so many equal numbers.
        """
        _, exponent = np.frexp(np.abs(column).max())
        unit = float(np.ldexp(1.0, int(np.clip(exponent, -1021, 1023))))
        scaled = column / unit
        first = float(scaled[0])
        away = scaled - first
        middle = float(np.average(away, weights=weight))
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
    return np.where(f >= 0, large, e * large)


@np.errstate(under="ignore")
def logistic(f: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return p = 1 / (1 + exp(-f)), 1 - p without cancellation, and exp(-abs(f)), each (n,)."""
    e = np.exp(-np.abs(f))
    large = 1 / (1 + e)
    small = e * large
    above = f >= 0
    return np.where(above, large, small), np.where(above, small, large), e


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
    check_probabilities(scores, MUST_BE_PROBABILITIES)
    return "probabilities"


@stored("interior")
@attrs.frozen
class Interior:
    """An interval within (0, 1) into which scores are clipped before logarithms are taken.

    A forest gives exact zeros and ones, whose log-odds are infinite. Each end lies halfway
    between 0 (or 1) and the calibration score nearest to it, but not nearer to it than 2.2e-16
    and not farther than 0.01. New scores beyond an end count as the end: log-odds are not
    extrapolated beyond those seen.
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
        return np.clip(scores, self.low, self.high)

    def log_odds_formula(self, x: Term) -> Term:
        """Return the formula of ``log_odds``."""
        clipped = x.clip(self.low, self.high)
        return clipped.log() - (1.0 - clipped).log()

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return ``log(s / (1 - s))``, (n,), of the clipped scores."""
        s = self.clip(scores)
        return np.log(s) - np.log1p(-s)


@stored("shrinkage")
@attrs.frozen(eq=False)
class Shrinkage:
    """Shrinks probabilities towards the shares of the classes: ``(s + c pi) / (1 + c)``.

    A forest gives exact zeros, whose logarithms are infinite; drawn they are finite, and the
    logarithms of nearly 0 and of 0 are nearly the same.
    """

    c: float = attrs.field(validator=number(0, LARGEST_SLOPE))
    shares: FloatArray = attrs.field(validator=array(None, low=0, high=1))
    """Of the calibration labels, ``(n_j + 1) / (n + k)``, (k,)."""
    interior: Interior = attrs.field(validator=instance_of(Interior))
    """Where scores are clipped before logarithms are taken if c is 0."""

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


def count_labels(scores: FloatArray, positive: FloatArray, weight: FloatArray | None) -> Counts:
    """Count labels at distinct scores, put together as in `group` where many of them differ."""
    w = np.ones(len(scores)) if weight is None else weight
    if more_differ(scores, FINEST):
        x, total, ones = group(scores, w, w * positive)
    else:
        x, point = np.unique(scores, return_inverse=True)
        total, ones = (
            np.bincount(point, part, len(x)).astype(np.float64) for part in (w, w * positive)
        )
    return Counts(x, total - ones, ones)


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
    """Add up the weights (n,) of scores x (n,), and the positive ones, over equal cells.

    To a smooth map that spans the range, scores within one cell are as good as equal; each cell
    is represented by its mean score. Cells are of the log-odds where all scores are in [0, 1].
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


MAX_STEPS = 300
"""Newton steps; a few suffice unless the maximum lies at infinity."""

TOLERANCE = 1e-18
"""Squared length of a Newton step, relative to the rarer label's mass, after which it is over.

The method converges quadratically, so the step that is this short leaves an error of rounding.
"""


PERFECT = 1e-10
"""Mean log loss, relative to the rarer label's share, that cannot be worth improving."""


@np.errstate(under="ignore")
def fit_logistic(
    z: FloatArray,
    negative: FloatArray,
    positive: FloatArray,
    start: tuple[FloatArray, float] | None = None,
) -> tuple[FloatArray, float, float]:
    """Return the coefficients and the intercept that maximise the likelihood.

    Minimises ``sum negative * log(1 + exp(f)) + positive * log(1 + exp(-f))`` over
    ``f = coefficients @ z + b`` with Newton steps that are halved until the sum decreases enough
    (Lin, Lin & Weng 2007, Algorithm 1), from ``start`` where that is better than none. Features z
    (d, n) have mean 0 and deviation 1. The mean of what is minimised is returned, too.

    Where the maximum lies at infinity (separable examples, one label only) the method stops as
    soon as the remaining gain is negligible, at finite values on the way there.
    """
    mass = float(negative.sum() + positive.sum())
    negative, positive = negative / mass, positive / mass
    total = negative + positive
    share = float(positive.sum())
    rarer = min(share, 1 - share)
    scale = rarer if rarer > 0 else 1.0

    def evaluate(weights: FloatArray, b: float) -> tuple[float, FloatArray, FloatArray]:
        f = np.full(len(total), b)
        for c, row in zip(weights, z, strict=True):
            f += c * row
        p, q, e = logistic(f)
        loss = negative * np.maximum(f, 0) + positive * np.maximum(-f, 0) + total * np.log1p(e)
        return float(loss.sum()), p, q

    weights = np.zeros(len(z))
    b = float(np.log((share + 1e-9) / (1 - share + 1e-9)))
    loss, p, q = evaluate(weights, b)
    if start is not None and (tried := evaluate(*start))[0] < loss:
        (weights, b), (loss, p, q) = start, tried
    for _ in range(MAX_STEPS):
        if loss <= PERFECT * scale:
            break
        slope = negative * p - positive * q
        curve = total * p * q
        height = float(curve.sum())
        if height == 0:
            break
        # Centring by the current curvature separates the intercept from the rest, which keeps
        # the digits where the curvature gathers in a narrow range.
        middle = np.array([(curve * row).sum() / height for row in z])
        centred = z - middle[:, None]
        gradient = (centred * slope).sum(axis=1)
        gradient_b = float(slope.sum())
        hessian = np.array([(centred * (curve * row)).sum(axis=1) for row in centred])
        hessian[np.diag_indices(len(z))] += 1e-24 * height
        step: FloatArray = -np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        step_b = -gradient_b / height - float(middle @ step)
        decrement = gradient_b**2 / height - float(gradient @ step)
        if decrement <= TOLERANCE * scale:
            return weights + step, b + step_b, loss
        found = halved(evaluate, (weights, b), (step, step_b), loss, decrement)
        if found is None:
            break
        length, (loss, p, q) = found
        weights, b = weights + length * step, b + length * step_b
    return weights, b, loss


MAX_PENALISED_STEPS = 200
"""Newton steps with a penalty; fewer than ten are usual."""

LEAST_GAIN = 1e-14
"""Expected gain of a Newton step, relative to the loss and the penalty, that makes it the last.

The method converges quadratically, so the step that gains this little leaves an error of rounding.
"""

STALLED = 1e-9
"""Expected gain, relative likewise, below which steps that no longer gain less are rounding."""


class Counts(NamedTuple):
    """Ascending scores, and how often either label was seen at each: three arrays (m,)."""

    x: FloatArray
    negative: FloatArray
    positive: FloatArray


@dataclass(frozen=True)
class Prior:
    """The quadratic penalty ``(theta - mean) @ penalty @ (theta - mean) / 2`` of d coefficients."""

    mean: FloatArray  # (d,), not below zero where it is bounded
    penalty: FloatArray  # (d, d), symmetric and positive definite
    bounded: NDArray[np.bool_]  # (d,) which coefficients must not be below zero


@dataclass(frozen=True)
class PenalisedFit:
    """Coefficients, and what leaving out one example does to them."""

    theta: FloatArray  # (d,)
    inverse: FloatArray  # (d, d) of the loss's second derivative, 0 where theta is held at zero

    def left_out_loss(self, features: FloatArray, counts: Counts) -> float:
        """Return the log loss of each example under the fit to all others, added up.

        One Newton step from the fit to all, ``f + g h / (1 - h p (1 - p))`` with the gradient g
        and the leverage h of the example (Rad & Maleki 2020, approximate leave-one-out).
        """
        f = self.theta @ features
        p, q, _ = logistic(f)
        leverage = np.einsum("in,in->n", features, self.inverse @ features)
        spread = np.maximum(1 - leverage * p * q, 1e-3)
        with np.errstate(under="ignore"):
            without_negative = f + p * leverage / spread
            without_positive = f - q * leverage / spread
            return float(
                counts.negative @ np.logaddexp(0, without_negative)
                + counts.positive @ np.logaddexp(0, -without_positive)
            )


def is_last(decrease: float, before: float, loss: float) -> bool:
    """Tell whether a Newton step with this expected gain is the last, from that of the one before.

    Near the minimum each gain is far below the last one, until only rounding is left.
    """
    small = max(loss, float(np.finfo(float).tiny))
    return decrease <= LEAST_GAIN * small or before / 4 <= decrease <= STALLED * small


Tried = TypeVar("Tried", bound=tuple[Any, ...])


def halved(
    evaluate: Callable[..., Tried],
    start: Sequence[Any],
    step: Sequence[Any],
    loss: float,
    decrease: float,
) -> tuple[float, Tried] | None:
    """Return the first length of 1, 1/2, ... at which a step gains enough, and what is there.

    ``evaluate`` returns the loss, and more, of parameters. None: there is no such length.
    """
    length = 1.0
    while True:
        tried = evaluate(*(a + length * by for a, by in zip(start, step, strict=True)))
        # Sums of this many terms agree to about 1e-14; less of a gain cannot be seen in them.
        if tried[0] <= loss * (1 + 1e-14) - 1e-4 * length * decrease:
            return length, tried
        length /= 2
        if length < 1e-10:
            return None


@np.errstate(under="ignore")
def fit_penalised(
    features: FloatArray, counts: Counts, prior: Prior, start: FloatArray | None = None
) -> PenalisedFit:
    """Return the coefficients that minimise log loss plus penalty.

    ``sum negative * log(1 + exp(f)) + positive * log(1 + exp(-f))`` with ``f = theta @ features``,
    features (d, m), and the prior's penalty. The sum is strictly convex: Newton steps, each the
    exact minimum of the quadratic model within the bounds, halved until the sum decreases enough.
    They begin at ``start``, within the bounds, or else at the prior's mean.
    """
    # Where next to nothing is counted, the penalty stays finite.
    mass = max(float(counts.negative.sum() + counts.positive.sum()), 1.0)
    negative, positive = counts.negative / mass, counts.positive / mass
    total = negative + positive
    penalty = prior.penalty / mass
    theta = prior.mean if start is None else start

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        f = theta @ features
        p, q, e = logistic(f)
        loss = negative * np.maximum(f, 0) + positive * np.maximum(-f, 0) + total * np.log1p(e)
        away = theta - prior.mean
        return float(loss.sum() + away @ penalty @ away / 2), p, q

    loss, p, q = evaluate(theta)
    hessian, decrease = penalty, np.inf
    for _ in range(MAX_PENALISED_STEPS):
        gradient = features @ (negative * p - positive * q) + penalty @ (theta - prior.mean)
        hessian = (features * (total * p * q)) @ features.T + penalty
        step = _step(hessian, gradient, theta, prior.bounded)
        aim = np.where(prior.bounded, np.maximum(theta + step, 0.0), theta + step)
        decrease, before = -float(gradient @ step), decrease
        if is_last(decrease, before, loss):
            theta = aim
            break
        found = halved(evaluate, (theta,), (step,), loss, decrease)
        if found is None:
            break
        length, (loss, p, q) = found
        theta = aim if length == 1 else theta + length * step
    return PenalisedFit(theta, _inverse(hessian, ~prior.bounded | (theta > 0)) / mass)


def _step(
    hessian: FloatArray, gradient: FloatArray, theta: FloatArray, bounded: NDArray[np.bool_]
) -> FloatArray:
    """Return the step d with the least ``d @ hessian @ d / 2 + gradient @ d``.

    Bounded coefficients, theta plus the step, stay at or above zero.
    """
    unit = 1 / np.sqrt(np.diag(hessian))  # with a unit diagonal the factor keeps its digits
    scaled = hessian * unit * unit[:, None] + 1e-15 * np.eye(len(unit))

    def solve(kept: NDArray[np.bool_]) -> FloatArray:
        """Return the step where the coefficients that are not kept become zero."""
        step = np.where(kept, 0.0, -theta)
        if not kept.any():
            return step
        right = -(gradient + hessian @ step) * unit
        factor = cho_factor(scaled[np.ix_(kept, kept)])
        step[kept] = cho_solve(factor, right[kept]) * unit[kept]
        return step

    free = solve(np.ones(len(unit), np.bool_))
    if (theta + free)[bounded].min(initial=0.0) >= 0:
        return free
    # |factor t - target|^2 is the same function; a free coefficient is a difference of two.
    factor = cholesky(scaled)
    target = solve_triangular(factor, (hessian @ theta - gradient) * unit, trans="T")
    both = np.hstack([factor, -factor[:, ~bounded]])
    t = nnls(both, target, maxiter=50 * both.shape[1])[0]
    found = t[: len(unit)]
    found[~bounded] -= t[len(unit) :]
    exact = solve(~bounded | (found > 0))
    if (theta + exact)[bounded].min() >= -1e-12 * np.abs(theta).max():
        return exact
    return np.asarray(found * unit - theta)


def _inverse(hessian: FloatArray, kept: NDArray[np.bool_]) -> FloatArray:
    inverse = np.zeros_like(hessian)
    inverse[np.ix_(kept, kept)] = np.linalg.pinv(hessian[np.ix_(kept, kept)], hermitian=True)
    return inverse


Increasing = bool | Literal["auto"]
"""Whether the second class becomes more likely as the score rises."""

SURE = 4.0
"""Standard errors from 1/2 beyond which the area under the ROC curve leaves no doubt."""


def check_direction(value: object, name: str = "increasing") -> None:
    """Refuse anything but True, False and "auto"."""
    if not (isinstance(value, bool) or (isinstance(value, str) and value == "auto")):
        raise InputError(f'{name} must be True, False or "auto", got {value!r}')


def reversed_at(counts: ScoreCounts, increasing: Increasing) -> float | None:
    """Return c where the scores s are to be replaced by c - s, None where they stay.

    c is 1 of probabilities, low + high of scores on a grid, and 0 of others.
    """
    check_direction(increasing)
    if increasing is True:
        return None
    if len(counts.classes) > 2:
        raise InputError(f"increasing must be True with more than two classes, got {increasing!r}")
    if increasing == "auto":
        area, sure = ranking(counts)
        if not sure:
            raise InputError(
                "increasing must be True or False where the scores do not show which: the area "
                f"under the ROC curve is {area:.3f}, close to 1/2"
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
