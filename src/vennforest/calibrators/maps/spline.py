"""Smooth curves of the log-odds that never decrease: quadratic scaling and splines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import attrs
import numpy as np

from vennforest._state import array, check_increasing, number, require, stored
from vennforest._validation import FloatArray, InputError, IntArray, check_count
from vennforest.calibrators.core.formula import Term, Terms
from vennforest.calibrators.core.interface import Calibrator, Learnt
from vennforest.calibrators.core.label_counts import count_labels
from vennforest.calibrators.core.logistic import (
    LARGEST_SLOPE,
    Counts,
    PenalisedFit,
    Prior,
    fit_penalised,
    probability,
)
from vennforest.calibrators.core.one_vs_rest import Column, Maps, OneVsRestCalibrator, against_rest
from vennforest.calibrators.core.probabilities import (
    On,
    Shrinkage,
    are_probabilities,
    check_not_negative,
    choose_on,
)
from vennforest.calibrators.maps.temperature import ToProbabilities
from vennforest.counts import ScoreCounts

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
        return probability(self.logits(self.shrinkage.log_odds(scores)))

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
    >>> from vennforest.calibrators.maps.spline import QuadraticScaling
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


ROUGHNESS = (1000.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
"""Penalties of the bend that ``"auto"`` chooses among, from the straightest to the most pliable."""

NARROW = 1e-9
"""Relative range of the log-odds up to which all of them count as one."""


@stored("spline-calibration")
class SplineCalibration(LogOddsCalibrator):
    """Spline calibration: ``1 / (1 + exp(-f(z)))`` with a smooth f that never decreases.

    f is a spline of the log-odds z of the score: its slope runs straight from knot to knot and is
    nowhere negative. It is fitted by maximum likelihood with a penalty on the bend, as in
    smoothing splines (Lucena 2018 for calibration; Eilers & Marx 1996), and a ridge that draws it
    towards leaving the scores alone. Many classes: one map per class against the rest, normalised.

    Parameters
    ----------
    n_knots : int, default=8
        At least 2. They stand at quantiles of the calibration scores' log-odds, moved a tenth of
        the way towards even spacing.
    roughness : float or "auto", default="auto"
        Above 0: half of it times the integral of the squared bend ``f''`` is added to the sum of
        the losses, in units of the range of the log-odds. ``"auto"``: what predicts each
        calibration example best from all others, by one Newton step from the fit to all.
    ridge : float, default=0.3
        Above 0: weight of the squared distance of the slope from 1, the mean over the knots, and
        half as much of the intercept from 0.
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
    roughness_ : ndarray of shape (1,) or (k,)
        The penalty of every map.
    on_ : {"probabilities", "logits"}
        What the calibration scores were taken for.

    Raises
    ------
    ValueError
        From ``fit``, if a parameter has none of these values; from ``fit`` and ``predict_proba``,
        if scores are to be probabilities and are none.

    References
    ----------
    Eilers & Marx (1996), Flexible smoothing with B-splines and penalties, Statistical Science 11.
    Lucena (2018), Spline-based probability calibration, arXiv:1809.07751.

    Examples
    --------
    >>> from vennforest.calibrators.maps.spline import SplineCalibration
    >>> model = SplineCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.14, 0.92])
    """

    def __init__(
        self,
        n_knots: int = 8,
        roughness: float | Literal["auto"] = "auto",
        ridge: float = 0.3,
        shrinkage: float = 0.01,
        on: On = "auto",
    ) -> None:
        self.n_knots = n_knots
        self.roughness = roughness
        self.ridge = ridge
        self.shrinkage = shrinkage
        self.on = on

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        check_count(self.n_knots, "n_knots", 2)
        self._tried()
        return super()._fit_columns(columns)

    def _tried(self) -> Sequence[float]:
        """Return the penalties of the bend to choose among."""
        if not isinstance(self.roughness, str):
            return [check_not_negative(self.roughness, "roughness", zero=False)]
        if self.roughness != "auto":
            raise InputError(f'roughness must be a number or "auto", got {self.roughness!r}')
        return ROUGHNESS

    @property
    def roughness_(self) -> FloatArray:
        """The penalty of every map."""
        return np.array([one.roughness for one in self.maps_])

    def _fit_slopes(self, shrinkage: Shrinkage, z: FloatArray, counts: Counts) -> SlopeMap:
        knots = _knots(z, counts.negative + counts.positive, self.n_knots)
        problem = SlopeProblem.of(z, knots, counts, float(self.ridge))
        tried = self._tried()
        best: tuple[float, float, PenalisedFit] | None = None
        start = None
        for roughness in tried:
            fit = problem.fit(roughness, start)
            start = fit.theta
            loss = fit.left_out_loss(problem.features, counts) if len(tried) > 1 else 0.0
            if best is None or loss < best[0]:
                best = loss, roughness, fit
        assert best is not None
        theta = best[2].theta
        return SlopeMap(shrinkage, knots, theta[:-1], float(theta[-1]), best[1])


def _knots(z: FloatArray, weight: FloatArray, n_knots: int) -> FloatArray:
    """Return knots at quantiles of ascending log-odds, moved a tenth towards even spacing.

    So no two are so near to each other that the bend between them loses its digits. Log-odds that
    hardly differ have one knot.
    """
    if z[-1] - z[0] <= NARROW * max(1.0, abs(z[0]), abs(z[-1])):
        return z[:1]
    mass = np.cumsum(weight)
    middle = (mass - weight / 2) / mass[-1]
    part = np.linspace(0, 1, n_knots)
    quantiles = np.interp(part, middle, z)
    quantiles[0], quantiles[-1] = z[0], z[-1]
    knots: FloatArray = 0.9 * quantiles + 0.1 * (z[0] + part * (z[-1] - z[0]))
    knots[0], knots[-1] = z[0], z[-1]
    return knots
