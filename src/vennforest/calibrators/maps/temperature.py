"""Temperature scaling: all log-odds divided by one number."""

from __future__ import annotations

from typing import Literal, Self

import attrs
import numpy as np
from attrs.validators import instance_of, optional
from scipy.optimize import brentq

from vennforest._state import number, require, stored
from vennforest._validation import FloatArray, IntArray, check_option
from vennforest.calibrators.core.formula import Terms, softmax, summed
from vennforest.calibrators.core.interface import Calibrator, Learnt
from vennforest.calibrators.core.logistic import SMALLEST
from vennforest.calibrators.core.probabilities import (
    MUST_BE_PROBABILITIES,
    Interior,
    On,
    are_probabilities,
    check_probabilities,
    check_unit_interval,
    choose_on,
)

FARTHEST = 10.0
"""The logarithm of the temperature stays this close to that of the logits' deviation."""


@stored("temperature")
@attrs.frozen(eq=False)
class Temperature(Learnt):
    """What halves of logits are divided by, and the inverse temperature that they then have.

    Attributes
    ----------
    interior : Interior or None
        Where probabilities are clipped before logarithms are taken; None: scores are logits.
    unit, beta : float
        Above zero; halves of logits are divided by the one and multiplied by the other.
    """

    interior: Interior | None = attrs.field(
        validator=attrs.validators.optional(attrs.validators.instance_of(Interior))
    )
    unit: float = attrs.field(validator=number(SMALLEST))
    beta: float = attrs.field(validator=number(SMALLEST))


@stored("temperature-scaling")
class TemperatureScaling(Calibrator):
    """Temperature scaling: divide logits by one temperature T, then softmax.

    ``p = softmax(z / T)`` with the T that minimises the log loss of the calibration set (Guo,
    Pleiss, Sun & Weinberger 2017, eq. 9). The most probable class stays what it was. Any number
    of classes.

    Parameters
    ----------
    on : {"auto", "probabilities", "logits"}, default="auto"
        What the scores are. ``"probabilities"``: in [0, 1], rows of columns summing to 1; z are
        their logarithms, with zeros and whatever is less than half the smallest calibration
        score above 0 put there (within 2.2e-16 and 0.01). ``"logits"``: decision values, taken
        as they are; one column z stands for (0, z). ``"auto"``: probabilities where the
        calibration scores can be such, else logits; new scores are then taken for the same.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    temperature_ : float
        T. Above 1 it makes estimates less extreme.
    on_ : {"probabilities", "logits"}
        What the calibration scores were taken for.

    Raises
    ------
    ValueError
        From ``fit``, if ``on`` has none of these values; from ``fit`` and ``predict_proba``, if
        scores are to be probabilities and are none.

    Notes
    -----
    The loss is convex in 1 / T, so T is where its derivative is zero. Where that is nowhere
    (every label is that of the largest logit, or the logits are worse than none) T is cut off at
    exp(-10) or exp(10) times the logits' deviation from the largest of their row.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    >>> from vennforest.calibrators.maps.temperature import TemperatureScaling
    >>> model = TemperatureScaling().fit([0.01, 0.99, 0.9, 0.98], [1, 2, 1, 2])
    >>> model.predict_proba([0.99]).round(2)
    array([[0.11, 0.89]])
    """

    _learns = Temperature
    _keeps_columns = True

    def __init__(self, on: On = "auto") -> None:
        self.on = on

    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> Temperature:
        check_option(self.on, On, "on")
        interior = None
        if self.on == "probabilities" or (self.on == "auto" and are_probabilities(scores)):
            p = check_probabilities(scores, WAY_OUT)
            # Two classes are clipped by the second's share, so that one column and two agree.
            interior = Interior.of(p[:, 1] if p.shape[1] == 2 else p.ravel())
        half = _half_logits(scores, interior)
        largest = float(-half.min())
        unit = float(np.ldexp(1.0, int(np.clip(np.frexp(largest)[1], -1021, 1023))))
        with np.errstate(under="ignore"):
            z = half / unit
            deviation = float(np.sqrt(np.average(np.square(z).mean(axis=0), weights=weight)))
            z /= deviation or 1.0
            beta = _inverse_temperature(z, codes, weight) / (deviation or 1.0)
        return Temperature(interior, unit, beta)

    @property
    def on_(self) -> Literal["probabilities", "logits"]:
        """What the calibration scores were taken for."""
        return "logits" if self._learnt.interior is None else "probabilities"

    @property
    def temperature_(self) -> float:
        """T."""
        with np.errstate(over="ignore", under="ignore"):
            return float(2 * np.float64(self._learnt.unit) / self._learnt.beta)

    def _formula(self, scores: Terms) -> Terms:
        found: Temperature = self._learnt
        if len(scores) == 1:
            (x,) = scores
            z = x if found.interior is None else found.interior.log_odds_formula(x)
            # Half of the logit is what is scaled, see the class.
            return ((z / (2 * found.unit) * found.beta).logistic(),)
        if found.interior is not None:
            scores = tuple(one.max(found.interior.low).log() for one in scores)
        return softmax([one / (2 * found.unit) * found.beta for one in scores])

    @np.errstate(under="ignore", over="ignore")
    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        found = self._learnt
        p = np.exp(_half_logits(scores, found.interior) / found.unit * found.beta)
        p /= p.sum(axis=0)
        return np.ascontiguousarray(p.T)


WAY_OUT = ' with on="probabilities" (on="logits" takes any)'


def _half_logits(scores: FloatArray, interior: Interior | None) -> FloatArray:
    """Return half of each logit's distance from the largest of its row, (k, n), at most 0.

    Halves, because the distance itself may overflow; one row per class, because sums over few
    classes are then fast.
    """
    if interior is not None:
        p = check_probabilities(scores, WAY_OUT)
        if p.shape[1] == 2:
            scores = interior.log_odds(p[:, 1])
        else:
            scores = np.log(np.maximum(p, interior.low))
    if scores.ndim == 1:
        logits = np.stack([np.zeros(len(scores)), scores])
    else:
        logits = np.ascontiguousarray(scores.T)
    with np.errstate(under="ignore"):
        half: FloatArray = logits / 2
        half -= half.max(axis=0)
    return half


def _inverse_temperature(z: FloatArray, codes: IntArray, weight: FloatArray | None) -> float:
    """Return the beta that minimises the log loss of ``softmax(beta * z)``.

    Parameters
    ----------
    z : ndarray of shape (k, n)
        Not above 0, the largest of each column is 0, with a mean square of 1 (or all zero).
    codes : ndarray of shape (n,)
        Each column's class.
    weight : ndarray of shape (n,) or None
        How often each column is to count.
    """
    if not z.any():
        return 1.0
    of_label = z[codes, np.arange(len(codes))]
    w = np.ones(len(codes)) if weight is None else weight / weight.max()

    def slope(log_beta: float) -> float:
        e = np.exp(np.exp(log_beta) * z)
        expected = (e * z).sum(axis=0) / e.sum(axis=0)
        return float((w * (expected - of_label)).sum())

    if slope(-FARTHEST) >= 0:
        return float(np.exp(-FARTHEST))
    if slope(FARTHEST) <= 0:
        return float(np.exp(FARTHEST))
    return float(np.exp(brentq(slope, -FARTHEST, FARTHEST, xtol=1e-15, rtol=1e-15)))


@stored("to-probabilities")
@attrs.frozen(eq=False)
class ToProbabilities:
    """Turns decision values into probabilities by temperature scaling; probabilities stay.

    So the maps that follow see the same whatever the scale of the decision values.

    Attributes
    ----------
    temperature : TemperatureScaling or None
        Fitted to the calibration scores; None where these are probabilities.
    """

    temperature: TemperatureScaling | None = attrs.field(
        validator=optional(instance_of(TemperatureScaling))
    )

    @classmethod
    def fit(
        cls, on: On, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> Self:
        """Fit to calibration scores (n,) or (n, k), their codes and weights."""
        if choose_on(on, scores) == "probabilities":
            return cls(None)
        model = TemperatureScaling(on="logits")
        return cls(model.fit(scores, codes, sample_weight=weight, classes=np.arange(k)))

    def check_classes(self, k: int) -> None:
        """Refuse a temperature of another number of classes than k.

        Raises
        ------
        ValueError
            If it is.
        """
        one = self.temperature
        require(one is None or len(one.classes_) == k, f"temperature must be of {k} classes")

    @property
    def on(self) -> Literal["probabilities", "logits"]:
        """What the calibration scores were taken for."""
        return "probabilities" if self.temperature is None else "logits"

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) of the second class, or (n, k) of every class.

        Raises
        ------
        ValueError
            If they were to be probabilities and are none.
        """
        if self.temperature is not None:
            p = self.temperature._predict_proba(scores)
            return p if scores.ndim == 2 else np.ascontiguousarray(p[:, 1])
        if scores.ndim == 2:
            return check_probabilities(scores, MUST_BE_PROBABILITIES)
        check_unit_interval(scores, MUST_BE_PROBABILITIES)
        return scores

    def formula(self, scores: Terms) -> Terms:
        """Return the probabilities as formulas of the scores."""
        if self.temperature is not None:
            return self.temperature._formula(scores)
        return scores if len(scores) == 1 else tuple(one / summed(scores) for one in scores)
