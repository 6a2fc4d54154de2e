"""Maps of one score's log-odds: sigmoids (Platt, beta), parabolas and splines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal

import attrs
import numpy as np
from attrs.validators import instance_of, optional

from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    array,
    check_count,
    check_increasing,
    check_option,
    number,
    require,
)
from vennforest.calibrators.core.formula import Term, Terms
from vennforest.calibrators.core.interface import (
    NUMBERS,
    Calibrator,
    Column,
    Learnt,
    Maps,
    OneVsRestCalibrator,
    against_rest,
    blocks,
)
from vennforest.calibrators.core.scores import (
    ANY_SCORES,
    LARGEST_SLOPE,
    Counts,
    Interior,
    On,
    PenalisedFit,
    Prior,
    Shrinkage,
    Standard,
    are_probabilities,
    check_not_negative,
    check_unit_interval,
    choose_on,
    count_labels,
    fit_logistic,
    fit_penalised,
    probability,
)
from vennforest.calibrators.maps.softmax import ToProbabilities
from vennforest.counts import ScoreCounts

Targets = Literal["smoothed", "hard"]
"""What the sigmoid is fitted to."""

SigmoidOf = Literal["score", "logit"]
"""What the sigmoid is a function of."""

SigmoidOfAny = Literal["score", "logit", "auto"]
"""What may be asked for."""

MANY, FEW = 2048, 256
"""From so many scores on, so many stretches of them tell where to begin."""

TOO_SMALL = 1e-290
"""Scores this small beside the unit of the scale count as 0 in formulas."""

IN_UNIT_INTERVAL = ' with on="logit" (on="score" takes any)'


@stored("sigmoid")
@attrs.frozen(eq=False)
class PlattMap:
    """A fitted sigmoid ``p = 1 / (1 + exp(-(slope * z + intercept)))`` of standard scores z."""

    standard: Standard = attrs.field(validator=instance_of(Standard))
    slope: float = attrs.field(validator=number())
    intercept: float = attrs.field(validator=number())
    interior: Interior | None = attrs.field(default=None, validator=optional(instance_of(Interior)))
    """Where scores are clipped before their log-odds are taken; None: the scores themselves."""

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,)."""
        if len(scores) <= NUMBERS:
            return self._read(scores)
        return np.concatenate([self._read(scores[block]) for block in blocks(len(scores))])

    @np.errstate(under="ignore")
    def _read(self, scores: FloatArray) -> FloatArray:
        if self.interior is not None:
            scores = self.interior.log_odds(scores)
        return probability(self.slope * self.standard(scores) + self.intercept)

    def formula(self, x: Term) -> Term:
        """Return the probability as a formula of the score."""
        if self.interior is not None:
            x = self.interior.log_odds_formula(x)
        scale = self.standard
        z = x.without_underflow(scale.unit * TOO_SMALL) / scale.unit - scale.centre
        return (self.slope * (z / scale.spread) + self.intercept).logistic()

    @property
    def A(self) -> float:  # noqa: N802
        """A of ``p = 1 / (1 + exp(A s + B))`` for scores (or log-odds) s as they came."""
        with np.errstate(over="ignore", under="ignore"):
            return -float(np.float64(self.slope) / self.standard.spread / self.standard.unit)

    @property
    def B(self) -> float:  # noqa: N802
        """B of ``p = 1 / (1 + exp(A s + B))`` for scores (or log-odds) s as they came."""
        with np.errstate(over="ignore", under="ignore"):
            shift = np.float64(self.slope) * self.standard.centre / self.standard.spread
            return float(shift - self.intercept)


def fit_platt(
    scores: FloatArray,
    positive: FloatArray,
    weight: FloatArray | None = None,
    targets: Targets = "smoothed",
    on: SigmoidOf = "score",
) -> PlattMap:
    """Fit a sigmoid to scores (n,), labels 0.0 or 1.0, and weights: see `PlattScaling`."""
    w = np.ones(len(scores)) if weight is None else weight
    target = make_targets(positive, w, targets)
    return _fit_sigmoid(scores, weight, w * (1 - target), w * target, on)


def fit_platt_to_counts(
    scores: FloatArray, weight: FloatArray, positive: FloatArray, on: SigmoidOf = "score"
) -> PlattMap:
    """Fit a sigmoid to the weights (m,) of increasing scores (m,), and the positive ones of these.

    What `fit_platt` finds from single examples with smoothed targets, to rounding.
    """
    negative = weight - positive
    n_positive, n_negative = positive.sum(), negative.sum()
    low, high = 1 / (n_negative + 2), 1 / (n_positive + 2)  # high: what is missing to 1
    return _fit_sigmoid(
        scores,
        weight,
        positive * high + negative * (n_negative + 1) * low,
        positive * (n_positive + 1) * high + negative * low,
        on,
        ascending=True,
    )


def _fit_sigmoid(
    scores: FloatArray,
    weight: FloatArray | None,
    negative: FloatArray,
    positive: FloatArray,
    on: SigmoidOf,
    ascending: bool = False,
) -> PlattMap:
    """Fit to how often each score counts as one label and as the other, each (n,)."""
    interior = None
    if on == "logit":
        interior = Interior.of(scores, IN_UNIT_INTERVAL)
        scores = interior.log_odds(scores)
    standard = Standard.of(scores, weight)
    z = standard(scores)
    start = None
    if ascending and len(z) > MANY:
        total = negative + positive
        at = np.arange(0, len(z), len(z) // FEW)
        mean, less, more, whole = (
            np.add.reduceat(part, at) for part in (z * total, negative, positive, total)
        )
        start = fit_logistic((mean / whole)[None], less, more)[:2]
    slope, intercept, _ = fit_logistic(z[None], negative, positive, start=start)
    return PlattMap(standard, float(slope[0]), intercept, interior)


def make_targets(positive: FloatArray, weight: FloatArray, targets: Targets) -> FloatArray:
    """Return what a map is fitted to, (n,), from labels and weights: see `PlattScaling`."""
    if targets == "hard":
        return positive
    n_positive = float((weight * positive).sum())
    n_negative = float((weight * (1 - positive)).sum())
    return np.where(positive > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))


@stored("platt-scaling")
class PlattScaling(OneVsRestCalibrator):
    """Platt scaling: a sigmoid of the score, fitted by maximum likelihood.

    ``p = 1 / (1 + exp(A s + B))``. Many classes: one sigmoid per class, normalised.

    Parameters
    ----------
    targets : {"smoothed", "hard"}, default="smoothed"
        ``"smoothed"``: (N+ + 1) / (N+ + 2) for the N+ examples of the class and 1 / (N- + 2) for
        the N- others (Niculescu-Mizil & Caruana 2005, eq. 4); with weights N+ and N- are sums of
        weights. ``"hard"``: 1 and 0 (Boström 2008, section 2.2.1).
    on : {"score", "logit", "auto"}, default="score"
        ``"score"``: s is the score itself, any finite number. ``"logit"``: s is the log-odds of a
        score in [0, 1]; 0 and 1, which forests give, are moved halfway to the nearest calibration
        score inside, by 2.2e-16 at least and 0.01 at most. ``"auto"``, which ``method="platt"``
        stands for: the log-odds if all calibration scores are in [0, 1], else the score.

    Notes
    -----
    The fit is Lin, Lin & Weng's (2007) Newton method on scores brought to mean 0 and deviation 1,
    so it depends neither on their scale nor on their offset. With ``targets="hard"`` and
    separable scores the maximum lies at infinity: the fit stops at a steep finite sigmoid.

    References
    ----------
    Platt (2000), Probabilities for SV machines. Lin, Lin & Weng (2007), A note on Platt's
    probabilistic outputs for support vector machines, Machine Learning 68.

    Examples
    --------
    >>> model = PlattScaling().fit([0.1, 0.3, 0.4, 0.8], ["no", "no", "yes", "yes"])
    >>> model.predict_proba([0.2, 0.9]).round(2)
    array([[0.66, 0.34],
           [0.15, 0.85]])
    """

    _map_type = PlattMap

    def __init__(self, targets: Targets = "smoothed", on: SigmoidOfAny = "score") -> None:
        self.targets = targets
        self.on = on

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        check_option(self.targets, Targets, "targets")
        check_option(self.on, SigmoidOfAny, "on")
        columns, on = list(columns), self.on
        if on == "auto":
            on = "logit" if all(are_probabilities(column[0]) for column in columns) else "score"
        return Maps([fit_platt(*column, self.targets, on) for column in columns])

    @property
    def _takes_probabilities(self) -> bool:
        return self._learnt.maps[0].interior is not None

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        if self._takes_probabilities:
            check_unit_interval(scores, IN_UNIT_INTERVAL)
        return super()._predict_proba(scores)

    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> PlattMap:
        one: PlattMap = self._fit_columns([(scores, positive, weight)]).maps[0]
        return one


BETA_SCORES = f" for beta calibration ({ANY_SCORES})"


@stored("beta-map")
@attrs.frozen(eq=False)
class BetaMap:
    """A fitted map ``1 / (1 + exp(-(a ln s - b ln(1 - s) + c)))`` of scores clipped before."""

    a: float = attrs.field(validator=number(0, LARGEST_SLOPE))
    b: float = attrs.field(validator=number(0, LARGEST_SLOPE))
    c: float = attrs.field(validator=number(-LARGEST_SLOPE, LARGEST_SLOPE))
    interior: Interior = attrs.field(validator=instance_of(Interior))

    @np.errstate(under="ignore")
    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,)."""
        check_unit_interval(scores, BETA_SCORES)
        s = self.interior.clip(scores)
        return probability(self.a * np.log(s) - self.b * np.log1p(-s) + self.c)

    def formula(self, x: Term) -> Term:
        """Return the probability as a formula of the score."""
        s = x.clip(self.interior.low, self.interior.high)
        return (self.a * s.log() - self.b * (1.0 - s).log() + self.c).logistic()


def _not_negative(
    columns: Sequence[FloatArray], negative: FloatArray, positive: FloatArray
) -> tuple[list[float], float, float]:
    """Return the best coefficients that are not below zero, the intercept, and the loss.

    The loss is convex, so where the free optimum violates constraints, the constrained one meets
    one of these with equality: that column is dropped, and of two the better way is taken.
    """
    weight = negative + positive
    standards = [Standard.of(column, weight) for column in columns]
    z = np.array([one(column) for one, column in zip(standards, columns, strict=True)])
    slopes, c, loss = fit_logistic(z.reshape(len(columns), -1), negative, positive)
    if (slopes >= 0).all():
        fitted = []
        for slope, one in zip(slopes, standards, strict=True):
            fitted.append(float(slope / one.spread / one.unit))
            c -= float(slope * one.centre / one.spread)
        return fitted, c, loss
    ways = []
    for dropped in np.flatnonzero(slopes < 0):
        left = [column for j, column in enumerate(columns) if j != dropped]
        # A column of zeros stands for no column at all.
        fitted, c, loss = _not_negative(left or [np.zeros(len(negative))], negative, positive)
        ways.append(([*fitted[:dropped], 0.0, *fitted[dropped:]][: len(columns)], c, loss))
    return min(ways, key=lambda way: way[2])


@stored("beta-calibration")
class BetaCalibration(OneVsRestCalibrator):
    """Beta calibration: ``1 / (1 + exp(-(a ln s - b ln(1 - s) + c)))`` of scores s in [0, 1].

    The map that is right when the scores of either class follow a beta distribution (Kull, Silva
    Filho & Flach 2017, eq. 3), fitted by maximum likelihood with a, b >= 0 so it does not
    decrease. Many classes: one map per class against the rest, normalised.

    Parameters
    ----------
    targets : {"smoothed", "hard"}, default="smoothed"
        What it is fitted to. ``"smoothed"``: (N+ + 1) / (N+ + 2) and 1 / (N- + 2), as in
        `PlattScaling`. ``"hard"``: 1 and 0, as Kull et al. have it; where labels are separable,
        which the few examples of a rare class often are, that leads to certainties, and one that
        fails costs more than all else gains.

    Notes
    -----
    Scores of 0 and 1 are moved as in `PlattScaling`. Where a or b comes out below zero, it is set
    to 0 and the rest fitted again, which is the constrained optimum. With ``targets="hard"``
    separable scores have their maximum at infinity: the fit stops at a steep finite map.

    References
    ----------
    Kull, Silva Filho & Flach (2017), Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers, AISTATS.

    Examples
    --------
    >>> model = BetaCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.28, 0.79])
    """

    _map_type = BetaMap

    def __init__(self, targets: Targets = "smoothed") -> None:
        self.targets = targets

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        check_option(self.targets, Targets, "targets")
        return super()._fit_columns(columns)

    @property
    def _takes_probabilities(self) -> bool:
        return True

    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> BetaMap:
        interior = Interior.of(scores, BETA_SCORES)
        s = interior.clip(scores)
        w = np.ones(len(s)) if weight is None else weight
        target = make_targets(positive, w, self.targets)
        (a, b), c, _ = _not_negative([np.log(s), -np.log1p(-s)], w * (1 - target), w * target)
        return BetaMap(a, b, c, interior)


FARTHEST, NEAREST = 1e6, 1e-30
"""Largest log-odds of a knot, and smallest distance of two knots."""


@stored("slope-map")
@attrs.frozen(eq=False)
class SlopeMap:
    """A fitted map ``1 / (1 + exp(-f(z)))`` of the log-odds z of a score.

    The slope of f is given at log-odds (``knots``), with straight lines between and level beyond;
    ``intercept`` is f(0), ``roughness`` the penalty of the bend under which it was fitted.
    """

    shrinkage: Shrinkage = attrs.field(validator=instance_of(Shrinkage))
    knots: FloatArray = attrs.field(validator=array(None, low=-FARTHEST, high=FARTHEST))
    slopes: FloatArray = attrs.field(validator=array(None, low=-LARGEST_SLOPE, high=LARGEST_SLOPE))
    intercept: float = attrs.field(validator=number(-LARGEST_SLOPE, LARGEST_SLOPE))
    roughness: float = attrs.field(default=0.0, validator=number(0))

    def __attrs_post_init__(self) -> None:
        """Refuse slopes at other knots, and knots that do not ascend or nearly touch."""
        require(len(self.knots), "knots must contain one or more")
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
    return from_first(z) - zero


def basis(z: FloatArray, knots: FloatArray) -> FloatArray:
    """Return what a slope of 1 at one knot and 0 at the others adds to f, and ones, (m + 1, n)."""
    return np.array([*(integrals(z, knots, one) for one in np.eye(len(knots))), np.ones(len(z))])


def slope_prior(knots: FloatArray, ridge: float, roughness: float) -> Prior:
    """Return the penalty: on the distance of the mean slope from 1, the intercept, the bend.

    ``ridge / 2`` times the squares of the first two, and ``roughness / 2`` times the integral of
    the squared bend over the knots' range, which is measured in units of that range.
    """
    m = len(knots)
    penalty = np.zeros((m + 1, m + 1))
    penalty[m, m] = ridge / 2
    penalty[:m, :m] = ridge * np.eye(m) / m
    if m > 1:
        width = np.diff(knots)
        bends = np.diff(np.eye(m), axis=0) / np.sqrt(width / width.sum())[:, None]
        penalty[:m, :m] += roughness * bends.T @ bends
    return Prior(np.array([1.0] * m + [0.0]), penalty, np.array([True] * m + [False]))


@stored("log-odds-maps")
@attrs.frozen(eq=False, kw_only=True)
class LogOddsMaps(Maps):
    """Scores become probabilities, and the log-odds of these are what the maps see."""

    to_probabilities: ToProbabilities = attrs.field(validator=instance_of(ToProbabilities))

    def check_classes(self, k: int) -> None:
        """Refuse parts of other classes."""
        super().check_classes(k)
        self.to_probabilities.check_classes(k)


class LogOddsCalibrator(OneVsRestCalibrator):
    """Base of calibrators that map the log-odds of a score; many classes one against the rest."""

    _learns = LogOddsMaps
    _learnt: LogOddsMaps
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
        return self._learnt.to_probabilities.on

    def _formula(self, scores: Terms) -> Terms:
        return super()._formula(self._learnt.to_probabilities.formula(scores))

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        return super()._predict_proba(self._learnt.to_probabilities(scores))

    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> SlopeMap:
        counts = count_labels(scores, positive, weight)
        labels = np.array([counts.negative.sum(), counts.positive.sum()])
        shrinkage = Shrinkage.of(float(self.shrinkage), scores, labels)
        return self._fit_slopes(shrinkage, shrinkage.log_odds(counts.x), counts)

    @abstractmethod
    def _fit_slopes(self, shrinkage: Shrinkage, z: FloatArray, counts: Counts) -> SlopeMap:
        """Fit to counts at log-odds z (m,), which stand beside ``counts.x``."""


@stored("quadratic-scaling")
class QuadraticScaling(LogOddsCalibrator):
    """Quadratic scaling: ``1 / (1 + exp(-(a0 + a1 z + a2 z**2)))`` of the log-odds z of the score.

    Where the log-odds of a score are normally distributed in either class, with variances that
    may differ, the map is of this form. It is fitted by maximum likelihood with a ridge that
    shrinks it towards the identity, and does not decrease: beyond the ends of the calibration
    scores it goes on with the slope it has there. Many classes: one map per class against the rest,
    normalised.

    Parameters
    ----------
    ridge, shrinkage, on
        As of `SplineCalibration`, with a knot at either end of the calibration scores.

    Examples
    --------
    >>> model = QuadraticScaling().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.14, 0.92])
    """

    def __init__(self, ridge: float = 0.3, shrinkage: float = 0.01, on: On = "auto") -> None:
        self.ridge = ridge
        self.shrinkage = shrinkage
        self.on = on

    def _fit_slopes(self, shrinkage: Shrinkage, z: FloatArray, counts: Counts) -> SlopeMap:
        knots = np.unique([z.min(), z.max()])
        # A slope that runs straight from one end to the other is that of a parabola.
        prior = slope_prior(knots, float(self.ridge), 0.0)
        theta = fit_penalised(basis(z, knots), counts, prior).theta
        return SlopeMap(shrinkage, knots, theta[:-1], float(theta[-1]))


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
    shrinkage, on
        As of `MatrixScaling`.

    References
    ----------
    Eilers & Marx (1996), Flexible smoothing with B-splines and penalties, Statistical Science 11.
    Lucena (2018), Spline-based probability calibration, arXiv:1809.07751.

    Examples
    --------
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

    def _fit_slopes(self, shrinkage: Shrinkage, z: FloatArray, counts: Counts) -> SlopeMap:
        knots = _knots(z, counts.negative + counts.positive, self.n_knots)
        features, tried = basis(z, knots), self._tried()
        fits: list[PenalisedFit] = []
        for roughness in tried:
            prior = slope_prior(knots, float(self.ridge), roughness)
            start = fits[-1].theta if fits else None
            fits.append(fit_penalised(features, counts, prior, start))
        best = int(np.argmin([fit.left_out_loss(features, counts) for fit in fits]))
        theta = fits[best].theta
        return SlopeMap(shrinkage, knots, theta[:-1], float(theta[-1]), tried[best])


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
