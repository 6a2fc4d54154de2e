"""Maps of the log-odds of a score whose slope runs straight between knots and is never negative."""

from __future__ import annotations

from dataclasses import dataclass

import attrs
import numpy as np

from vennforest._state import array, check_increasing, number, require, stored
from vennforest._validation import FloatArray
from vennforest.calibrators.core.formula import Term
from vennforest.calibrators.core.logistic import LARGEST_SLOPE, logistic
from vennforest.calibrators.core.penalised import Counts, PenalisedFit, Prior, fit_penalised
from vennforest.calibrators.maps.log_scores import Shrinkage

FARTHEST, NEAREST = 1e6, 1e-30
"""Largest log-odds of a knot, and smallest distance of two knots."""


@stored("slope-map")
@attrs.frozen(eq=False)
class SlopeMap:
    """A fitted map ``1 / (1 + exp(-f(z)))`` of the log-odds z of a score.

    Attributes
    ----------
    shrinkage : Shrinkage
        How scores become log-odds.
    knots : ndarray of shape (m,)
        Log-odds, ascending.
    slopes : ndarray of shape (m,)
        The slope of f at each, straight lines between and level beyond.
    intercept : float
        f of the log-odds 0.
    roughness : float
        The penalty of the bend under which it was fitted.
    """

    shrinkage: Shrinkage = attrs.field(validator=attrs.validators.instance_of(Shrinkage))
    knots: FloatArray = attrs.field(validator=array(None, low=-FARTHEST, high=FARTHEST))
    slopes: FloatArray = attrs.field(validator=array(None, low=-LARGEST_SLOPE, high=LARGEST_SLOPE))
    intercept: float = attrs.field(validator=number(-LARGEST_SLOPE, LARGEST_SLOPE))
    roughness: float = attrs.field(default=0.0, validator=number(0))

    def __attrs_post_init__(self) -> None:
        """Refuse slopes at other knots, and knots that do not ascend or nearly touch."""
        require(len(self.knots), "knots must hold one or more")
        check_increasing(self.knots, "knots")
        require((np.diff(self.knots) >= NEAREST).all(), f"knots must be {NEAREST} apart")
        require(len(self.slopes) == len(self.knots), "slopes must be one for each knot")

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,) in [0, 1]."""
        return logistic(self.logits(self.shrinkage.log_odds(scores)))[0]

    def formula(self, x: Term) -> Term:
        """Return the probability as a formula of the score."""
        first, second = self.shrinkage.log_formulas((x,))
        z = second - first
        knots, slopes = self.knots.tolist(), self.slopes.tolist()
        at: list[float] = self.logits(self.knots).tolist()

        def line(k: int) -> Term:
            rise: Term = slopes[k] * (z - knots[k])
            return at[k] + rise

        f = line(len(knots) - 1)
        for k in range(len(knots) - 2, -1, -1):
            bend = (slopes[k + 1] - slopes[k]) / (knots[k + 1] - knots[k]) / 2
            t = z - knots[k]
            f = z.unless_above(knots[k + 1], line(k) + bend * t * t, f)
        return z.unless_above(knots[0], line(0), f).logistic()

    def logits(self, z: FloatArray) -> FloatArray:
        """Return f (n,) of log-odds (n,)."""
        with np.errstate(under="ignore"):
            f: FloatArray = integrals(z, self.knots, self.slopes) + self.intercept
        return f


def integrals(z: FloatArray, knots: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the integral (n,) of the slope from 0 to each z (n,)."""
    if len(knots) == 1:
        straight: FloatArray = z * slopes[0]
        return straight
    width = np.diff(knots)
    heights = np.concatenate([[0.0], np.cumsum(width * (slopes[1:] + slopes[:-1]) / 2)])

    def from_first(x: FloatArray) -> FloatArray:
        left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
        t = x - knots[left]
        within = np.clip(t, 0.0, width[left])
        beyond = t - within
        bend = (slopes[left + 1] - slopes[left]) / width[left]
        end = np.where(beyond > 0, slopes[left + 1], slopes[left])
        area: FloatArray = heights[left] + within * (slopes[left] + bend * within / 2)
        area += beyond * end
        return area

    zero = from_first(np.zeros(1))
    area: FloatArray = from_first(z) - zero
    return area


def basis(z: FloatArray, knots: FloatArray) -> FloatArray:
    """Return what a slope of 1 at one knot and 0 at the others adds to f, (m, n)."""
    return np.array([integrals(z, knots, one) for one in np.eye(len(knots))])


@dataclass(frozen=True, eq=False)
class SlopeProblem:
    """Counts at log-odds, and how slopes at knots are fitted to them."""

    knots: FloatArray
    features: FloatArray
    counts: Counts
    ridge: float
    bounded: bool

    @classmethod
    def of(
        cls, z: FloatArray, knots: FloatArray, counts: Counts, ridge: float, bounded: bool = True
    ) -> SlopeProblem:
        """Return the problem for counts at log-odds z (m,)."""
        features = np.vstack([basis(z, knots), np.ones((1, len(z)))])
        return cls(knots, features, counts, ridge, bounded)

    def prior(self, roughness: float) -> Prior:
        """Return the penalty: on the distance of the mean slope from 1, the intercept, the bend.

        ``ridge / 2`` times the squares of the first two, and ``roughness / 2`` times the integral
        of the squared bend over the knots' range, which is measured in units of that range.
        """
        m = len(self.knots)
        penalty = np.zeros((m + 1, m + 1))
        penalty[m, m] = self.ridge / 2
        penalty[:m, :m] = self.ridge * np.eye(m) / m
        if m > 1:
            width = np.diff(self.knots)
            bends = np.diff(np.eye(m), axis=0) / np.sqrt(width / width.sum())[:, None]
            penalty[:m, :m] += roughness * bends.T @ bends
        return Prior(np.array([1.0] * m + [0.0]), penalty, np.array([self.bounded] * m + [False]))

    def fit(self, roughness: float, start: FloatArray | None = None) -> PenalisedFit:
        """Return the coefficients: slopes at the knots, and the intercept."""
        return fit_penalised(self.features, self.counts, self.prior(roughness), start)
