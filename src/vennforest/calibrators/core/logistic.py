"""Logistic regression on one or two columns by a safeguarded Newton method."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np

from vennforest._state import number, stored
from vennforest._validation import FloatArray

MAX_STEPS = 300
"""Newton steps; a few suffice unless the maximum lies at infinity."""

TOLERANCE = 1e-18
"""Squared length of a Newton step, relative to the rarer label's mass, after which it is over.

The method converges quadratically, so the step that is this short leaves an error of rounding.
"""


PERFECT = 1e-10
"""Mean log loss, relative to the rarer label's share, that cannot be worth improving."""


SMALLEST = float(np.nextafter(0, 1))
"""The smallest number above zero."""

LARGEST_SLOPE = 1e100
"""Largest coefficient of a map: products with logarithms, and sums of them, stay finite."""


@stored("standard")
@attrs.frozen
class Standard:
    """A shift and a scale under which a column of numbers has mean 0 and deviation 1.

    ``z = (s / unit - centre) / spread``; ``unit`` is a power of two, so that dividing by it is
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
def logistic(f: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return p = 1 / (1 + exp(-f)), 1 - p without cancellation, and exp(-abs(f)), each (n,)."""
    e = np.exp(-np.abs(f))
    large = 1 / (1 + e)
    small = e * large
    above = f >= 0
    return np.where(above, large, small), np.where(above, small, large), e


@np.errstate(under="ignore")
def fit_logistic(
    z: FloatArray,
    negative: FloatArray,
    positive: FloatArray,
    intercept: bool = True,
    start: tuple[FloatArray, float] | None = None,
) -> tuple[FloatArray, float, float]:
    """Return the coefficients and the intercept that maximise the likelihood.

    Minimises ``sum negative * log(1 + exp(f)) + positive * log(1 + exp(-f))`` over
    ``f = coefficients @ z + b`` with Newton steps that are halved until the sum decreases enough
    (Lin, Lin & Weng 2007, Algorithm 1).

    Parameters
    ----------
    z : ndarray of shape (d, n)
        One row a feature, of mean 0 and deviation 1 (or with deviation 1 only, without
        intercept).
    negative, positive : ndarray of shape (n,)
        How often each example counts as one label and as the other; smoothed targets split it.
    intercept : bool
        Whether b is fitted; 0 otherwise.
    start : (ndarray of shape (d,), float), optional
        Coefficients and intercept to begin with, where they are better than none.

    Returns
    -------
    coefficients : ndarray of shape (d,)
    intercept : float
    loss : float
        The mean of what is minimised.

    Notes
    -----
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
    b = float(np.log((share + 1e-9) / (1 - share + 1e-9))) if intercept else 0.0
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
        middle = np.array([(curve * row).sum() / height if intercept else 0.0 for row in z])
        centred = z - middle[:, None]
        gradient = (centred * slope).sum(axis=1)
        gradient_b = float(slope.sum()) if intercept else 0.0
        hessian = np.array([(centred * (curve * row)).sum(axis=1) for row in centred])
        hessian[np.diag_indices(len(z))] += 1e-24 * height
        step: FloatArray = -np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        step_b = -gradient_b / height - float(middle @ step) if intercept else 0.0
        decrement = gradient_b**2 / height - float(gradient @ step)
        if decrement <= TOLERANCE * scale:
            return weights + step, b + step_b, loss
        length = 1.0
        # Sums of this many terms agree to about 1e-14; less of a gain cannot be seen in them.
        while (tried := evaluate(weights + length * step, b + length * step_b))[0] > (
            loss * (1 + 1e-14) - 1e-4 * length * decrement
        ):
            length /= 2
            if length < 1e-10:
                return weights, b, loss
        weights, b = weights + length * step, b + length * step_b
        loss, p, q = tried
    return weights, b, loss
