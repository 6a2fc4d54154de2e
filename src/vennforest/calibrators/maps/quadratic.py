"""Quadratic scaling: a logistic regression on the log-odds of the score and their square."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Literal

import attrs
import numpy as np

from vennforest._state import stored
from vennforest._validation import FloatArray, InputError, IntArray
from vennforest.calibrators.core.fitted import Learnt
from vennforest.calibrators.core.formula import Terms
from vennforest.calibrators.core.interface import Calibrator
from vennforest.calibrators.core.label_counts import count_labels
from vennforest.calibrators.core.one_vs_rest import Column, Maps, OneVsRestCalibrator, against_rest
from vennforest.calibrators.core.penalised import Counts
from vennforest.calibrators.core.probabilities import are_probabilities
from vennforest.calibrators.maps.log_scores import (
    On,
    Shrinkage,
    ToProbabilities,
    check_not_negative,
    choose_on,
)
from vennforest.calibrators.maps.slopes import SlopeMap, SlopeProblem
from vennforest.counts import ScoreCounts


@stored("log-odds-maps")
@attrs.frozen(eq=False, kw_only=True)
class LogOddsMaps(Maps):
    """Scores become probabilities, and the log-odds of these are what the maps see."""

    to_probabilities: ToProbabilities = attrs.field(
        validator=attrs.validators.instance_of(ToProbabilities)
    )

    def check_classes(self, k: int) -> None:
        """Refuse parts of other classes."""
        super().check_classes(k)
        self.to_probabilities.check_classes(k)


class LogOddsCalibrator(OneVsRestCalibrator):
    """Base of calibrators that map the log-odds of a score; many classes one against the rest."""

    _learns = LogOddsMaps
    _map_type = SlopeMap
    ridge: float
    shrinkage: float
    on: On

    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> LogOddsMaps:
        to_probabilities = ToProbabilities.fit(self.on, scores, codes, weight, k)
        fitted = super()._fit(to_probabilities(scores), codes, weight, k)
        return LogOddsMaps(maps=fitted.maps, to_probabilities=to_probabilities)

    def _fit_counts(self, counts: ScoreCounts) -> Learnt:
        if len(counts.tables) == 1:
            return Calibrator._fit_counts(self, counts)
        # Of probabilities one column tells nothing of the others but that they make 1 together.
        k = len(counts.classes)
        columns = list(against_rest(counts))
        if self.on == "logits" or not all(are_probabilities(column[0]) for column in columns):
            raise ValueError(
                f"counts of {k} classes must be at probabilities for {type(self).__name__}, or "
                "keep score vectors: use ScoreCounts.from_scores(..., vectors=True)"
            )
        choose_on(self.on, columns[0][0])
        maps = self._fit_columns(columns).maps
        return LogOddsMaps(maps=maps, to_probabilities=ToProbabilities(None))

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        check_not_negative(self.ridge, "ridge", zero=False)
        check_not_negative(self.shrinkage, "shrinkage")
        return super()._fit_columns(columns)

    @property
    def on_(self) -> Literal["probabilities", "logits"]:
        """What the calibration scores were taken for."""
        found: LogOddsMaps = self._learnt
        return found.to_probabilities.on

    def _formula(self, scores: Terms) -> Terms:
        return super()._formula(self._learnt.to_probabilities.formula(scores))

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        return super()._predict_proba(self._learnt.to_probabilities(scores))

    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> SlopeMap:
        x, total, ones = count_labels(scores, positive, weight)
        counts = Counts(x, total - ones, ones)
        labels = np.array([counts.negative.sum(), counts.positive.sum()])
        shrinkage = Shrinkage.of(float(self.shrinkage), scores, labels)
        return self._fit_slopes(shrinkage, shrinkage.log_odds(x), counts)

    @abstractmethod
    def _fit_slopes(self, shrinkage: Shrinkage, z: FloatArray, counts: Counts) -> SlopeMap:
        """Fit to counts at log-odds z (m,), which stand beside ``counts.x``."""


@stored("quadratic-scaling")
class QuadraticScaling(LogOddsCalibrator):
    """Quadratic scaling: ``1 / (1 + exp(-(a0 + a1 z + a2 z**2)))`` of the log-odds z of the score.

    Where the log-odds of a score are normally distributed in either class, with variances that
    may differ, the map is of this form. It is fitted by maximum likelihood with a ridge that
    shrinks it towards the identity. Many classes: one map per class against the rest,
    normalised.

    Parameters
    ----------
    ridge : float, default=0.3
        Above 0. ``ridge / 2`` times the squared distances of the slope from 1 (the mean over both
        ends of the calibration scores) and half of that of the intercept from 0 is added to the
        sum of the losses.
    monotone : bool, default=True
        Whether the map must not decrease: the slope stays at or above 0 at both ends of the
        calibration scores' log-odds. Beyond the ends it goes on with the slope it has there.
    shrinkage : float, default=0.01
        Non-negative: see `MatrixScaling`.
    on : {"auto", "probabilities", "logits"}, default="auto"
        What the scores are: see `MatrixScaling`.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    maps_ : tuple of SlopeMap
        One map for two classes, else one a class.
    a_ : ndarray of shape (1, 3) or (k, 3)
        a0, a1 and a2 of every map, which hold between the ends.
    on_ : {"probabilities", "logits"}
        What the calibration scores were taken for.

    Raises
    ------
    ValueError
        From ``fit``, if a parameter has none of these values; from ``fit`` and ``predict_proba``,
        if scores are to be probabilities and are none.

    Examples
    --------
    >>> from vennforest.calibrators.maps.quadratic import QuadraticScaling
    >>> model = QuadraticScaling().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.14, 0.92])
    """

    def __init__(
        self,
        ridge: float = 0.3,
        monotone: bool = True,
        shrinkage: float = 0.01,
        on: On = "auto",
    ) -> None:
        self.ridge = ridge
        self.monotone = monotone
        self.shrinkage = shrinkage
        self.on = on

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        if not isinstance(self.monotone, bool | np.bool_):
            raise InputError(f"monotone must be a boolean, got {self.monotone!r}")
        return super()._fit_columns(columns)

    @property
    def a_(self) -> FloatArray:
        """a0, a1 and a2 of every map."""
        return np.array([_coefficients(one) for one in self.maps_])

    def _fit_slopes(self, shrinkage: Shrinkage, z: FloatArray, counts: Counts) -> SlopeMap:
        knots = np.unique([z.min(), z.max()])
        # A slope that runs straight from one end to the other is that of a parabola.
        fit = SlopeProblem.of(z, knots, counts, float(self.ridge), bool(self.monotone)).fit(0.0)
        return SlopeMap(shrinkage, knots, fit.theta[:-1], float(fit.theta[-1]))


def _coefficients(one: SlopeMap) -> list[float]:
    """Return a0, a1 and a2 between the ends."""
    if len(one.knots) == 1:
        return [one.intercept, float(one.slopes[0]), 0.0]
    (low, high), (u, v) = one.knots, one.slopes
    a2 = (v - u) / (2 * (high - low))
    a1 = u - 2 * a2 * low
    middle = (low + high) / 2
    f = float(one.logits(np.array([middle]))[0])
    return [f - a1 * middle - a2 * middle**2, a1, a2]
