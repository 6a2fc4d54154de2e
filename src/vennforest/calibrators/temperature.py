"""Temperature scaling, and the base of calibrators that see decision values through it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from vennforest._validation import FloatArray, check_number, check_option, columns
from vennforest.calibrators.base import SUM_TOLERANCE, Calibrator
from vennforest.calibrators.formula import Terms, divided_by_sum, softmax
from vennforest.calibrators.regression import clip_limits, log_odds, log_odds_of
from vennforest.counts import ScoreCounts

# The logarithm of the temperature stays this close to that of the logits' deviation.
MAX_LOG_RATIO = 10.0
ScoreKind = Literal["probabilities", "logits"]


class LogitCalibrator(Calibrator):
    """Base of calibrators that take probabilities or, where scores can be no such, logits.

    Of two columns of logits the difference is taken, of two columns of probabilities the second.
    """

    on: ScoreKind | None = None
    """What the scores are, where the caller knows it; None: as the calibration scores show."""
    on_: ScoreKind
    """What the calibration scores were: new scores are taken for the same."""

    def _columns(self, scores: FloatArray, k: int, is_fitted: bool) -> FloatArray:
        kind = self.on_ if is_fitted else self._kind(scores)
        if k == 2 and scores.ndim == 2 and scores.shape[1] == 2 and kind == "logits":
            return np.asarray(scores[:, 1] - scores[:, 0])
        return columns(scores, k)

    def _kind(self, scores: FloatArray) -> ScoreKind:
        """Return what calibration scores (n,) or (n, k) are."""
        if self.on is not None:
            return self.on
        are_logits = ((scores < 0) | (scores > 1)).any()
        if scores.ndim == 2:
            are_logits |= (np.abs(scores.sum(axis=1) - 1) > SUM_TOLERANCE).any()
        return "logits" if are_logits else "probabilities"

    def _fit(self, counts: ScoreCounts) -> None:
        self.on_ = self._kind(counts.scores)
        if self.on_ == "probabilities":
            self._check_probabilities(counts.scores)

    @property
    def _takes_probabilities(self) -> bool:
        return self.on_ == "probabilities"

    def _check_state(self) -> None:
        super()._check_state()
        check_option(self.on_, ScoreKind, "on_")


class TemperatureScaling(LogitCalibrator):
    """Temperature scaling: divide logits by one temperature T, then softmax.

    ``p = softmax(z / T)`` with the T that minimises the log loss of the calibration set (Guo,
    Pleiss, Sun & Weinberger 2017, eq. 9). The most probable class stays what it was. Any number
    of classes. The logits z of probabilities are their logarithms; scores that are no probabilities
    are logits themselves, and one column z stands for (0, z).

    Attributes
    ----------
    temperature_ : float
        T; above 1 it makes estimates less extreme.
    on_ : {"probabilities", "logits"}
        What the calibration scores were.

    Notes
    -----
    Where the loss has no minimum, T is cut off at exp(-10) or exp(10) times the logits' deviation.
    Before logarithms are taken, probabilities are raised to half the smallest calibration score
    above 0.

    Examples
    --------
    >>> model = TemperatureScaling().fit([0.01, 0.99, 0.9, 0.98], [1, 2, 1, 2])
    >>> model.predict_proba([0.99]).round(2)
    array([[0.11, 0.89]])
    """

    title = "Temperature"
    temperature_: float
    low_: float
    high_: float
    """Where probabilities are clipped before logarithms are taken."""

    def _fit(self, counts: ScoreCounts) -> None:
        super()._fit(counts)
        z = counts.scores
        self.low_, self.high_ = 0.0, 1.0
        if self.on_ == "probabilities":
            p = z if z.ndim == 1 else z / z.sum(axis=1, keepdims=True)
            self.low_, self.high_ = clip_limits(p.ravel())
            if p.ndim == 1:
                z = log_odds_of(p, self.low_, self.high_)
            else:
                z = np.log(np.maximum(p, self.low_))
        # Distances from the largest of the row may overflow, their halves not.
        half = np.stack([np.zeros(len(z)), z / 2]) if z.ndim == 1 else z.T / 2
        half -= half.max(axis=0)
        self.temperature_ = 2 * fit_temperature(half, counts.weights.T)

    def _formula(self, scores: Terms) -> Terms:
        if len(scores) == 1:
            z = scores[0]
            if self.on_ == "probabilities":
                z = log_odds(z, self.low_, self.high_)
            return ((z / self.temperature_).logistic(),)
        if self.on_ == "probabilities":
            scores = tuple(p.max(self.low_).log() for p in divided_by_sum(scores))
        return softmax([score / self.temperature_ for score in scores])

    def _check_state(self) -> None:
        super()._check_state()
        check_number(self.temperature_, "temperature_", float(np.finfo(np.float64).tiny))
        check_number(self.low_, "low_", 0, 1)
        check_number(self.high_, "high_", self.low_, 1)


def fit_temperature(z: FloatArray, weights: FloatArray) -> float:
    """Return the T of the least log loss of ``softmax(z / T)``; columns of z have maximum 0."""
    size = float(-z.min())
    if size == 0:
        return 1.0
    weights = weights / weights.sum()
    total = weights.sum(axis=0)
    z = z / size
    deviation = float(np.sqrt(np.square(z).mean(axis=0) @ total))
    z = z / deviation
    of_labels = float((weights * z).sum())

    def slope(log_beta: float) -> float:
        e = np.exp(np.exp(log_beta) * z)
        return float(total @ ((e * z).sum(axis=0) / e.sum(axis=0))) - of_labels

    if slope(-MAX_LOG_RATIO) >= 0:
        log_beta = -MAX_LOG_RATIO
    elif slope(MAX_LOG_RATIO) <= 0:
        log_beta = MAX_LOG_RATIO
    else:
        log_beta = brentq(slope, -MAX_LOG_RATIO, MAX_LOG_RATIO, xtol=1e-15, rtol=1e-15)
    return float(size * deviation * np.exp(-log_beta))


class ProbabilityCalibrator(LogitCalibrator):
    """Base of calibrators of probabilities; logits become such by temperature scaling first."""

    temperature_: float
    """By which logits are divided before their softmax; 1 for probabilities."""

    def _fit(self, counts: ScoreCounts) -> None:
        super()._fit(counts)
        self.temperature_, p = 1.0, counts.scores
        if self.on_ == "logits":
            scaling = TemperatureScaling()._fit_checked(counts)
            self.temperature_, p = scaling.temperature_, scaling._predict_proba(p)
            p = p[:, 1] if counts.scores.ndim == 1 else p
        elif p.ndim == 2:
            p = p / p.sum(axis=1, keepdims=True)
        self._fit_probabilities(ScoreCounts(counts.classes, p, counts.weights, counts.error))

    @abstractmethod
    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        """Set the attributes of the map of probabilities (m,), which do not decrease, or (m, k)."""

    def _formula(self, scores: Terms) -> Terms:
        if self.on_ == "logits":
            scaled = [score / self.temperature_ for score in scores]
            scores = (scaled[0].logistic(),) if len(scaled) == 1 else softmax(scaled)
        elif len(scores) > 1:
            scores = divided_by_sum(scores)
        return self._map_formula(scores)

    @abstractmethod
    def _map_formula(self, p: Terms) -> Terms:
        """Return the formulas of the map of probabilities."""

    def _check_state(self) -> None:
        super()._check_state()
        check_number(self.temperature_, "temperature_", float(np.finfo(np.float64).tiny))
