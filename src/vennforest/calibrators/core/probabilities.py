"""Scores that are probabilities: what is checked, and logarithms that zeros do not spoil."""

from __future__ import annotations

from numbers import Real
from typing import Literal, Self

import attrs
import numpy as np
from attrs.validators import instance_of

from vennforest._state import array, number, require, stored
from vennforest._validation import FloatArray, InputError, check_option
from vennforest.calibrators.core.formula import Term, Terms
from vennforest.calibrators.core.logistic import LARGEST_SLOPE

NEAREST, FARTHEST = float(np.finfo(np.float64).eps), 0.01
"""Bounds of the distance between 0 or 1 and the place where log-odds are cut off."""

SUM_TOLERANCE = 1e-5
"""How far from 1 a row may sum: single-precision probabilities of many classes."""


ANY_SCORES = '"venn-abers", "venn", "platt", "isotonic" and "temperature" take any scores'
"""Hint for scores outside [0, 1]."""


def check_unit_interval(scores: FloatArray, way_out: str = "") -> None:
    """Refuse scores outside [0, 1].

    Raises
    ------
    ValueError
        Ending in the way out, where there is one.
    """
    outside = (scores < 0) | (scores > 1)
    if outside.any():
        raise ValueError(f"scores must be in [0, 1]{way_out}, got {scores[outside][0]}")


def are_probabilities(scores: FloatArray) -> bool:
    """Tell whether scores (n,) or (n, k) lie in [0, 1] and rows of columns sum to 1."""
    if ((scores < 0) | (scores > 1)).any():
        return False
    return scores.ndim == 1 or bool((np.abs(scores.sum(axis=1) - 1) <= SUM_TOLERANCE).all())


def check_probabilities(scores: FloatArray, way_out: str = "") -> FloatArray:
    """Return scores as rows (n, k) that sum to 1; one column s stands for (1 - s, s).

    Raises
    ------
    ValueError
        If scores are outside [0, 1], or rows do not sum to 1 within 1e-5.
    """
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
        """Return the interval for calibration scores (n,) in [0, 1].

        Raises
        ------
        ValueError
            If a score is outside [0, 1].
        """
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
