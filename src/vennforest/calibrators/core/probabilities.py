"""Scores that are probabilities: what is checked, and how their logarithms stay finite."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np

from vennforest._state import number, require, stored
from vennforest._validation import FloatArray
from vennforest.calibrators.core.formula import Term

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


def _margin(distance: FloatArray) -> float:
    above = distance[distance > 0]
    return min(max(float(above.min()) / 2, NEAREST), FARTHEST) if len(above) else FARTHEST
