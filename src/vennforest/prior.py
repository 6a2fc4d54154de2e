"""Other shares of the classes: odds of probabilities and bounds shifted, new shares estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2

from vennforest._messages import warn
from vennforest._state import stored
from vennforest._validation import FloatArray, InputError, IntArray, array, require
from vennforest.multiprobability import Multiprobability

__all__ = ["PriorEstimate"]

SUM_SLACK = 1e-6
"""How far from 1 the sum of shares that a user typed may be."""

SHARE_STEP = 1e-6
"""Steps below which the end of an interval is found."""


def read_shares(given: Mapping[Any, float], classes: NDArray[Any], known: FloatArray) -> FloatArray:
    """Return a share for each of k classes from those that were named, each in (0, 1).

    Classes that are not named share the rest in proportion to the shares ``known`` (k,).
    """
    if not hasattr(given, "items"):
        raise InputError(
            f"shares must name labels, as in {{label: share}}, got {type(given).__name__}"
        )
    named = dict(given.items())
    column = {label: j for j, label in enumerate(classes.tolist())}
    shares = np.full(len(classes), np.nan)
    for label, share in named.items():
        if label not in column:
            raise InputError(f"shares must be of classes {classes.tolist()}, got {label!r}")
        try:
            value = float(share)
        except (TypeError, ValueError):
            value = np.nan
        if not 0 < value < 1:
            raise InputError(
                f"shares must lie between 0 and 1, both excluded, got {share!r} for {label!r}"
            )
        shares[column[label]] = value
    missing = np.isnan(shares)
    rest = 1 - float(shares[~missing].sum())
    if missing.all():
        raise InputError("shares must name a class, got none")
    if missing.any():
        if rest <= 0:
            raise InputError(
                f"shares must leave something to {classes[missing].tolist()}, got {1 - rest:g}"
            )
        shares[missing] = rest * known[missing] / known[missing].sum()
    elif abs(rest) > SUM_SLACK:
        raise InputError(f"shares must sum to 1, got {1 - rest:g}")
    normalised: FloatArray = shares / shares.sum()
    return normalised


def class_shares(codes: IntArray, weight: FloatArray | None, k: int) -> FloatArray:
    """Return the share of each of k classes among examples, (k,), by weight."""
    counts = np.bincount(codes, weight, minlength=k).astype(np.float64)
    shares: FloatArray = counts / counts.sum()
    return shares


def shift_probabilities(p: FloatArray, factors: FloatArray) -> FloatArray:
    """Return probabilities (n, k) under other shares of the classes, rows summing to 1.

    Factors (k,) are the new share of each class divided by the old one, up to a common factor:
    ``p'_j = f_j p_j / sum_i f_i p_i`` (Elkan 2001, Theorem 2; Saerens, Latinne & Decaestecker
    2002, eq. 2.4).
    """
    shifted = p * factors
    if p.shape[1] == 2:
        second = shifted[:, 1] / shifted.sum(axis=1)
        return np.column_stack([1 - second, second])
    shares: FloatArray = shifted / shifted.sum(axis=1, keepdims=True)
    return shares


def shift_bounds(bounds: Multiprobability, factors: FloatArray) -> Multiprobability:
    """Return bounds of one predictor under other shares of the classes (see above for factors).

    *Two classes*: the odds of both bounds are multiplied by ``f_1 / f_0``.

    *Bounds of k distributions* (``bounds.distributions``): each is shifted as a whole, and the
    bounds are the least and the largest value of each class. With ``D_y = sum_i f_i l_i + f_y (u_y
    - l_y)`` these are ``f_j l_j / max over y != j of D_y`` and ``f_j u_j / D_j``.

    *Intervals of each class against the rest*: what the rest consists of at such a score is not
    known, so the lower bound takes the largest factor of the other classes and the upper one
    the smallest: ``f_j l / (f_j l + f_max (1 - l))`` and ``f_j u / (f_j u + f_min (1 - u))``. They
    are as wide as that makes them; where the other classes keep their proportions nothing is lost.
    """
    if bounds.distributions and len(factors) > 2:
        lower, upper = _shift_distributions(bounds.lower, bounds.upper, factors)
    else:
        lower, upper = shift_intervals(bounds.lower, bounds.upper, factors)
    return Multiprobability(lower, upper, bounds.classes, bounds.widened)


def _shift_distributions(
    low: FloatArray, high: FloatArray, factors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    total = (low @ factors)[:, None] + factors * (high - low)
    upper = factors * high / total
    lower = np.empty_like(low)
    for j, factor in enumerate(factors):
        lower[:, j] = factor * low[:, j] / np.delete(total, j, axis=1).max(axis=1)
    return lower, upper


def shift_intervals(
    low: FloatArray, high: FloatArray, factors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return ends (n, k) of an interval for each class under other shares: see `shift_bounds`."""
    if len(factors) == 2:
        p0 = _odds(low[:, 1], high[:, 0], factors[1], factors[0])
        p1 = _odds(high[:, 1], low[:, 0], factors[1], factors[0])
        return np.column_stack([1 - p1, p0]), np.column_stack([1 - p0, p1])
    lower, upper = np.empty_like(low), np.empty_like(high)
    for j, factor in enumerate(factors):
        rest = np.delete(factors, j)
        lower[:, j] = _odds(low[:, j], 1 - low[:, j], factor, rest.max())
        upper[:, j] = _odds(high[:, j], 1 - high[:, j], factor, rest.min())
    return lower, upper


def _odds(p: FloatArray, other: FloatArray, factor: float, of_other: float) -> FloatArray:
    """Return the probability whose odds are those of p to other, times the factors' ratio."""
    own = factor * p
    return own / (own + of_other * other)


@stored("shifted-prior")
@attrs.frozen(eq=False)
class ShiftedPrior:
    """Class frequencies that were set in the place of those calibrated on."""

    shares: FloatArray = attrs.field(validator=array(None, low=0, high=1))
    factors: FloatArray = attrs.field(validator=array(None, low=0, high=1))
    """Set frequencies divided by those that the calibrators have, the largest of them 1."""

    def __attrs_post_init__(self) -> None:
        """Refuse shares that do not sum to 1, and zeros."""
        require(len(self.shares) == len(self.factors), "factors must be as many as shares")
        require(abs(self.shares.sum() - 1) < 1e-9, "shares must sum to 1")
        require((self.shares > 0).all() and (self.factors > 0).all(), "shares must be above 0")

    @classmethod
    def of(
        cls,
        shares: Mapping[Any, float],
        instead_of: Mapping[Any, float] | None,
        known: FloatArray,
        before: ShiftedPrior | None,
        classes: NDArray[Any],
    ) -> Self:
        """Return the shift to other class frequencies: see `read_shares`.

        The present ones are ``known`` (k,), unless ``instead_of`` names them, and come from the
        shift ``before``.
        """
        if instead_of is not None:
            known = read_shares(instead_of, classes, known)
        elif (known == 0).any():
            raise InputError(
                f"shares must be of classes with calibration examples, got none of "
                f"{classes[known == 0].tolist()}: name the shares they were drawn with "
                "(instead_of), or set more examples aside"
            )
        wanted = read_shares(shares, classes, known)
        factors = wanted / known
        if before is not None:
            factors = before.factors * factors
        return cls(wanted, factors / factors.max())


@dataclass(frozen=True, eq=False)
class PriorEstimate:
    """Shares of the classes among unlabelled objects."""

    classes: NDArray[Any]
    """The labels, of shape (k,)."""
    estimate: FloatArray
    """The share of each, in [0, 1], of shape (k,); they sum to 1."""
    lower: FloatArray
    """Lower ends of confidence intervals for the shares, in [0, 1], of shape (k,)."""
    upper: FloatArray
    """Upper ends."""
    level: float
    """The level of each interval, in (0, 1)."""
    identified: bool
    """Whether the scores tell all classes apart; if not, the intervals say which shares may be."""

    @property
    def shares(self) -> dict[Any, float]:
        """The estimate by label, as ``with_prior`` takes it.

        A share of 0 is given as 1e-6: a class that may occur is never ruled out.
        """
        kept = np.maximum(self.estimate, 1e-6)
        return dict(zip(self.classes.tolist(), (kept / kept.sum()).tolist(), strict=True))


def estimate_shares(
    p: FloatArray,
    calibration_p: FloatArray,
    calibration_codes: IntArray,
    prior: FloatArray,
    classes: NDArray[Any],
    level: float = 0.95,
) -> PriorEstimate:
    """Estimate the shares of the classes among new objects from their probabilities.

    Probabilities of the new objects (m, k) and of the calibration examples (n, k) are calibrated
    where the classes have shares ``prior`` (k,), above zero. A warning says so if the scores do not
    tell all classes apart.

    The estimate maximises the likelihood of Saerens, Latinne & Decaestecker (2002),
    ``L(q) = sum_i log sum_j q_j p_ij / prior_j`` over shares q. It is concave; their
    expectation-maximisation climbs it, and Newton's method with a barrier, used here, reaches the
    same place in fewer steps.

    The interval of a share contains the values t with ``2 (max L - max L given q_j = t) <= c r_j``,
    c the quantile of chi-square with one degree of freedom. For r_j = 1 that is the profile
    likelihood, which takes the probabilities for true; r_j is by how much the variance of the
    estimate is larger since they are learnt from n examples: with ``g = (p / prior) / (q . p /
    prior)``, the score, and H its information, ``H^-1 (Cov g / m + sum_y q_y^2 Cov(g | y) / n_y)
    H^-1`` against ``H^-1 / m``.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, both excluded, got {level!r}")
    if not len(p):
        raise InputError("X must contain at least one row, got none")
    ratio = np.asfortranarray(p / prior)
    q = mixture_shares(ratio, prior)
    m, k = ratio.shape
    g = ratio / (ratio @ q)[:, None]
    tangent = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, 1:]]))[0][:, 1:]
    information = tangent.T @ (g.T @ g / m) @ tangent
    values = np.linalg.eigvalsh(information)
    identified = bool(values[0] > 1e-9 * max(1.0, values[-1]))
    if not identified:
        warn(
            "the scores of X do not tell all classes apart, so their shares are not known "
            "from them: see the intervals"
        )
    inflation, spread = np.ones(k), np.full(k, np.inf)
    if identified:
        inverse = tangent @ np.linalg.inv(information) @ tangent.T
        inflation = _inflation(g, q, calibration_p / prior, calibration_codes, inverse)
        spread = np.diag(inverse) / m
    largest = _log_likelihood(ratio @ q)
    allowed = float(chi2.ppf(level, 1)) / 2
    lower, upper = np.zeros(k), np.ones(k)
    for j in range(k):
        room = allowed * inflation[j]
        fall = _Fall(ratio, prior, q, j, largest)
        width = np.sqrt(2 * room * spread[j])  # were the log likelihood a parabola
        lower[j] = _end(fall, q[j], 0.0, q[j] - width, room)
        upper[j] = _end(fall, q[j], 1.0, q[j] + width, room)
    return PriorEstimate(classes, q, lower, upper, level, identified)


def _inflation(
    g: FloatArray,
    q: FloatArray,
    calibration: FloatArray,
    codes: IntArray,
    inverse: FloatArray,
) -> FloatArray:
    """Return by how much the variance of each share exceeds that of the likelihood, (k,)."""
    m, k = g.shape
    own = calibration / (calibration @ q)[:, None]
    total = np.atleast_2d(np.cov(g.T, bias=True)) / m
    for j in range(k):
        mine = own[codes == j]
        if len(mine) > 1:
            total += q[j] ** 2 * np.cov(mine.T) / len(mine)
    spread = np.diag(inverse @ total @ inverse)
    factor: FloatArray = np.maximum(1.0, spread * m / np.diag(inverse))
    return factor


class _Fall:
    """How far below its top the largest log likelihood is, as a function of the share of class j.

    Each call begins at the shares of the other classes that the one before found.
    """

    def __init__(
        self, ratio: FloatArray, prior: FloatArray, q: FloatArray, j: int, largest: float
    ) -> None:
        self._own, self._rest = ratio[:, [j]], np.delete(ratio, j, axis=1)
        others = np.delete(prior, j)
        self._others, self._largest = others / others.sum(), largest
        near = np.delete(q, j)
        self._near = near / near.sum()

    def __call__(self, t: float) -> float:
        """Return the fall at the share t, not below 0."""
        mixed = t * self._own + (1 - t) * self._rest
        if t in (0, 1) and not mixed.any(axis=1).all():  # an object that could not be there
            return np.inf
        if mixed.shape[1] > 1:
            self._near = mixture_shares(mixed, self._others, self._near)
        return max(self._largest - _log_likelihood(mixed @ self._near), 0.0)


def _end(fall: _Fall, top: float, bound: float, guess: float, room: float) -> float:
    """Return the share between the top and a bound at which the fall is ``room``, else the bound.

    The square root of the fall is nearly a straight line, so secants find it soon.
    """

    def excess(t: float) -> float:
        return float(np.sqrt(min(fall(t), 1e300)) - np.sqrt(room))

    beyond = top + 1.2 * (guess - top)
    between = min(top, bound) < beyond < max(top, bound)
    for far in (beyond, bound) if between else (bound,):
        if excess(far) > 0:
            return float(brentq(excess, far, top, xtol=SHARE_STEP))
    return bound


def _log_likelihood(mixed: FloatArray) -> float:
    return float(np.log(np.maximum(mixed, np.finfo(float).tiny)).sum())


def mixture_shares(
    ratio: FloatArray, start: FloatArray, near: FloatArray | None = None
) -> FloatArray:
    """Return the shares q (k,) that maximise ``sum_i log sum_j q_j ratio_ij``.

    Ratios (m, k) are not negative, no row is of zeros. The search begins at ``start``, above zero,
    which is returned where all shares do as well; or at ``near``, which is nearly right.

    ``mean log(ratio q) - sum q + b sum start log q`` is maximised over q > 0 by Newton's method,
    for b falling to 1e-10: without the barrier its maximum lies on the simplex by itself, and
    with it the mean log likelihood is within b of its largest value.
    """
    columns = np.ascontiguousarray(ratio.T)
    tiny, m = np.finfo(float).tiny, len(ratio)
    q, barrier = start.copy(), 1e-2
    if near is not None:
        q, barrier = 0.999 * near + 0.001 * start, 1e-6

    def value(q: FloatArray, mixed: FloatArray) -> float:
        logs = np.log(np.maximum(mixed, tiny)).mean()
        return float(logs - q.sum() + barrier * (start @ np.log(q)))

    mixed, g = q @ columns, np.empty_like(columns)
    while True:
        now = value(q, mixed)
        for _ in range(50):
            np.divide(columns, mixed, out=g)
            slope = g.mean(axis=1) - 1 + barrier * start / q
            curve = g @ g.T / m + np.diag(barrier * start / q**2)
            # In units of q, so shares near 0 cost no digits.
            step = q * np.linalg.solve(q[:, None] * curve * q, q * slope)
            gain = float(slope @ step)
            if gain < 1e-13:
                break
            length = 1.0
            if (step < 0).any():
                length = min(1.0, 0.99 * float((q[step < 0] / -step[step < 0]).min()))
            while True:
                moved = q + length * step
                there = moved @ columns
                then = value(moved, there)
                if then >= now + 0.1 * length * gain or length <= 1e-10:
                    break
                length /= 2
            q, mixed, now = moved, there, then
        if barrier <= 1e-10:
            break
        barrier /= 100
    shares: FloatArray = q / q.sum()
    return shares
