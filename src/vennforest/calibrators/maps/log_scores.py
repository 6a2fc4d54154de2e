"""Logarithms of scores that zeros do not spoil: what maps of logarithms are fitted to."""

from __future__ import annotations

from numbers import Real
from typing import Literal, Self

import attrs
import numpy as np
from attrs.validators import instance_of, optional

from vennforest._state import array, number, require, stored
from vennforest._validation import FloatArray, InputError, IntArray, check_option
from vennforest.calibrators.core.formula import Terms, summed
from vennforest.calibrators.core.logistic import LARGEST_SLOPE
from vennforest.calibrators.core.probabilities import (
    Interior,
    are_probabilities,
    check_probabilities,
    check_unit_interval,
)
from vennforest.calibrators.maps.temperature import TemperatureScaling

On = Literal["auto", "probabilities", "logits"]
"""What the scores are."""

WAY_OUT = ' with on="probabilities" (on="logits" takes any)'


def check_not_negative(value: object, name: str, zero: bool = True) -> float:
    """Return a finite number not below zero, or above it.

    Raises
    ------
    InputError
        Naming the argument.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        rule = "finite and not negative" if zero else "finite and above 0"
        raise InputError(f"{name} must be {rule}, got {value!r}")
    return number


def choose_on(on: On, scores: FloatArray) -> Literal["probabilities", "logits"]:
    """Return what the scores are: what ``on`` says, or with ``"auto"`` what they can be.

    Raises
    ------
    ValueError
        If ``on`` has none of its values, or scores are not probabilities although it says so.
    """
    check_option(on, On, "on")
    if on == "logits" or (on == "auto" and not are_probabilities(scores)):
        return "logits"
    if scores.ndim == 1:
        check_unit_interval(scores, WAY_OUT)
    else:
        check_probabilities(scores, WAY_OUT)
    return "probabilities"


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
            return check_probabilities(scores, WAY_OUT)
        check_unit_interval(scores, WAY_OUT)
        return scores

    def formula(self, scores: Terms) -> Terms:
        """Return the probabilities as formulas of the scores."""
        if self.temperature is not None:
            return self.temperature._formula(scores)
        return scores if len(scores) == 1 else tuple(one / summed(scores) for one in scores)


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
