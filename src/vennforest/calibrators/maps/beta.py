"""Beta calibration: a logistic regression on both logarithms of the score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import attrs
import numpy as np

from vennforest._state import number, stored
from vennforest._validation import FloatArray, check_option
from vennforest.calibrators.core.formula import Term
from vennforest.calibrators.core.logistic import (
    LARGEST_SLOPE,
    Standard,
    fit_logistic,
    probability,
)
from vennforest.calibrators.core.one_vs_rest import Column, Maps, OneVsRestCalibrator
from vennforest.calibrators.core.probabilities import ANY_SCORES, Interior, check_unit_interval
from vennforest.calibrators.maps.platt import Targets, make_targets

WAY_OUT = f" for beta calibration ({ANY_SCORES})"

Parameters = Literal["abm", "am", "ab"]
"""Which of the map's parameters are free."""


@stored("beta-map")
@attrs.frozen(eq=False)
class BetaMap:
    """A fitted map ``1 / (1 + exp(-(a ln s - b ln(1 - s) + c)))``.

    Attributes
    ----------
    a, b : float
        Non-negative.
    c : float
        Any number.
    interior : Interior
        Where scores are clipped first.
    """

    a: float = attrs.field(validator=number(0, LARGEST_SLOPE))
    b: float = attrs.field(validator=number(0, LARGEST_SLOPE))
    c: float = attrs.field(validator=number(-LARGEST_SLOPE, LARGEST_SLOPE))
    interior: Interior = attrs.field(validator=attrs.validators.instance_of(Interior))

    @np.errstate(under="ignore")
    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,).

        Raises
        ------
        ValueError
            If a score is outside [0, 1].
        """
        check_unit_interval(scores, WAY_OUT)
        s = self.interior.clip(scores)
        return probability(self.a * np.log(s) - self.b * np.log1p(-s) + self.c)

    def formula(self, x: Term) -> Term:
        """Return the probability as a formula of the score."""
        s = x.clip(self.interior.low, self.interior.high)
        return (self.a * s.log() - self.b * (1.0 - s).log() + self.c).logistic()


def fit_beta(
    scores: FloatArray,
    positive: FloatArray,
    weight: FloatArray | None,
    parameters: Parameters,
    targets: Targets = "smoothed",
) -> BetaMap:
    """Fit a beta map by maximum likelihood.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        In [0, 1].
    positive : ndarray of shape (n,)
        Labels, 0.0 or 1.0.
    weight : ndarray of shape (n,) or None
        How often each example is to count, above zero.
    parameters : {"abm", "am", "ab"}
        See ``BetaCalibration``.
    targets : {"smoothed", "hard"}
        See ``BetaCalibration``.

    Raises
    ------
    ValueError
        If a score is outside [0, 1].
    """
    interior = Interior.of(scores, WAY_OUT)
    s = interior.clip(scores)
    w = np.ones(len(s)) if weight is None else weight
    target = make_targets(positive, w, targets)
    masses = (w * (1 - target), w * target)
    rising, falling = np.log(s), -np.log1p(-s)
    if parameters == "am":
        (a,), c, _ = _not_negative([rising + falling], *masses)
        return BetaMap(a, a, c, interior)
    if parameters == "ab":
        # m = 1/2 is c = (a - b) ln 2: the same regression on ln 2s and -ln 2(1 - s), without c.
        (a, b), _, _ = _not_negative(
            [rising + np.log(2), falling - np.log(2)], *masses, intercept=False
        )
        return BetaMap(a, b, (a - b) * float(np.log(2)), interior)
    (a, b), c, _ = _not_negative([rising, falling], *masses)
    return BetaMap(a, b, c, interior)


def _not_negative(
    columns: Sequence[FloatArray],
    negative: FloatArray,
    positive: FloatArray,
    intercept: bool = True,
) -> tuple[list[float], float, float]:
    """Return the best coefficients that are not below zero, the intercept, and the loss.

    The loss is convex, so where the free optimum violates constraints, the constrained one meets
    one of these with equality: that column is dropped, and of two the better way is taken.
    """
    weight = negative + positive
    standards = [Standard.of(column, intercept, weight) for column in columns]
    z = np.array([one(column) for one, column in zip(standards, columns, strict=True)])
    slopes, c, loss = fit_logistic(z.reshape(len(columns), -1), negative, positive, intercept)
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
        left = left or [np.zeros(len(negative))]
        fitted, c, loss = _not_negative(left, negative, positive, intercept)
        ways.append(([*fitted[:dropped], 0.0, *fitted[dropped:]][: len(columns)], c, loss))
    return min(ways, key=lambda way: way[2])


@stored("beta-calibration")
class BetaCalibration(OneVsRestCalibrator):
    """Beta calibration: ``1 / (1 + exp(-(a ln s - b ln(1 - s) + c)))`` of scores s in [0, 1].

    The map that is right when the scores of either class follow a beta distribution (Kull, Silva
    Filho & Flach 2017, eq. 3), fitted by maximum likelihood with a, b >= 0 so that it does not
    decrease. Many classes: one map per class against the rest, normalised.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        Which parameters are free; m is the score at which the map gives 1/2,
        ``c = b ln(1 - m) - a ln m``. ``"abm"``: all; ``"am"``: a = b, a sigmoid of the log-odds;
        ``"ab"``: m = 1/2.
    targets : {"smoothed", "hard"}, default="smoothed"
        What it is fitted to. ``"smoothed"``: (N+ + 1) / (N+ + 2) and 1 / (N- + 2), as in
        `PlattScaling`. ``"hard"``: 1 and 0, as Kull et al. have it; where labels are separable,
        which the few examples of a rare class often are, that leads to certainties, and one that
        fails costs more than all else gains.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    maps_ : tuple of BetaMap
        One map for two classes, else one a class.
    a_, b_, c_ : ndarray of shape (1,) or (k,)
        The parameters of every map.

    Raises
    ------
    ValueError
        From ``fit``, if a parameter has none of these values; from ``fit`` and
        ``predict_proba``, if scores are outside [0, 1].

    Notes
    -----
    Scores of 0 and 1, which forests give, are moved halfway to the nearest calibration score
    inside, by 2.2e-16 at least and 0.01 at most; new scores beyond these two places count as the
    places. Where a or b comes out below zero, it is
    set to 0 and the rest fitted again, which is the constrained optimum. With ``targets="hard"``
    separable scores have their maximum at infinity: the fit stops at a steep finite map.

    References
    ----------
    Kull, Silva Filho & Flach (2017), Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers, AISTATS.

    Examples
    --------
    >>> from vennforest.calibrators.maps.beta import BetaCalibration
    >>> model = BetaCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.28, 0.79])
    """

    _map_type = BetaMap

    def __init__(self, parameters: Parameters = "abm", targets: Targets = "smoothed") -> None:
        self.parameters = parameters
        self.targets = targets

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        check_option(self.parameters, Parameters, "parameters")
        check_option(self.targets, Targets, "targets")
        return super()._fit_columns(columns)

    @property
    def _takes_probabilities(self) -> bool:
        return True

    @property
    def a_(self) -> FloatArray:
        """A of every map."""
        return np.array([one.a for one in self.maps_])

    @property
    def b_(self) -> FloatArray:
        """B of every map."""
        return np.array([one.b for one in self.maps_])

    @property
    def c_(self) -> FloatArray:
        """C of every map."""
        return np.array([one.c for one in self.maps_])

    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> BetaMap:
        return fit_beta(scores, positive, weight, self.parameters, self.targets)
