"""Platt scaling: a sigmoid of the score, or of its log-odds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import attrs
import numpy as np
from attrs.validators import instance_of, optional

from vennforest._blocks import in_blocks
from vennforest._state import number, stored
from vennforest._validation import FloatArray, check_option
from vennforest.calibrators.core.formula import Term
from vennforest.calibrators.core.logistic import Standard, fit_logistic, probability
from vennforest.calibrators.core.one_vs_rest import Column, Maps, OneVsRestCalibrator
from vennforest.calibrators.core.probabilities import (
    Interior,
    are_probabilities,
    check_unit_interval,
)

Targets = Literal["smoothed", "hard"]
"""What the sigmoid is fitted to."""

On = Literal["score", "logit"]
"""What the sigmoid is a function of."""

OnOrAuto = Literal["score", "logit", "auto"]

MANY, FEW = 2048, 256
"""From so many scores on, so many stretches of them tell where to begin."""

TOO_SMALL = 1e-290
"""Scores this small beside the unit of the scale count as 0 in formulas."""

WAY_OUT = ' with on="logit" (on="score" takes any)'


@stored("sigmoid")
@attrs.frozen(eq=False)
class PlattMap:
    """A fitted sigmoid from scores to probabilities.

    Attributes
    ----------
    standard : Standard
        The scale on which the sigmoid was fitted.
    slope, intercept : float
        ``p = 1 / (1 + exp(-(slope * z + intercept)))`` of the standard score z.
    interior : Interior or None
        Where scores are clipped before their log-odds are taken; None: the scores themselves.
    """

    standard: Standard = attrs.field(validator=instance_of(Standard))
    slope: float = attrs.field(validator=number())
    intercept: float = attrs.field(validator=number())
    interior: Interior | None = attrs.field(default=None, validator=optional(instance_of(Interior)))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,).

        Raises
        ------
        ValueError
            If the map is one of log-odds and a score is outside [0, 1].
        """
        return in_blocks(self._read, scores)

    @np.errstate(under="ignore")
    def _read(self, scores: FloatArray) -> FloatArray:
        if self.interior is not None:
            check_unit_interval(scores, WAY_OUT)
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
    on: On = "score",
) -> PlattMap:
    """Fit a sigmoid by maximum likelihood.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Any finite numbers; in [0, 1] with ``on="logit"``.
    positive : ndarray of shape (n,)
        Labels, 0.0 or 1.0.
    weight : ndarray of shape (n,), optional
        How often each example is to count, above zero.
    targets : {"smoothed", "hard"}
        See ``PlattScaling``.
    on : {"score", "logit"}
        See ``PlattScaling``.

    Raises
    ------
    ValueError
        If scores are outside [0, 1] with ``on="logit"``.
    """
    w = np.ones(len(scores)) if weight is None else weight
    target = make_targets(positive, w, targets)
    return _fit_sigmoid(scores, weight, w * (1 - target), w * target, on)


def fit_platt_to_counts(
    scores: FloatArray, weight: FloatArray, positive: FloatArray, on: On = "score"
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
    on: On,
    ascending: bool = False,
) -> PlattMap:
    """Fit to how often each score counts as one label and as the other, each (n,)."""
    interior = None
    if on == "logit":
        interior = Interior.of(scores, WAY_OUT)
        scores = interior.log_odds(scores)
    standard = Standard.of(scores, weight=weight)
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
    """Return what a map is fitted to, (n,): see ``PlattScaling``.

    Parameters
    ----------
    positive : ndarray of shape (n,)
        Labels, 0.0 or 1.0.
    weight : ndarray of shape (n,)
        How often each example is to count.
    targets : {"smoothed", "hard"}
    """
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
        score in [0, 1]. Scores of 0 and 1, which forests give, are moved halfway to the nearest
        calibration score inside, by 2.2e-16 at least and 0.01 at most; new scores beyond these
        two places count as the places. ``"auto"``: the log-odds if all calibration scores are in
        [0, 1], else the score; this is what ``method="platt"`` means.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    maps_ : tuple of PlattMap
        One map for two classes, else one a class.
    A_, B_ : ndarray of shape (1,) or (k,)
        A and B of every map, for scores (or log-odds) as they came.

    Raises
    ------
    ValueError
        From ``fit``, if a parameter has none of these values; from ``fit`` and ``predict_proba``,
        if scores are outside [0, 1] with ``on="logit"``.

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
    >>> from vennforest.calibrators.maps.platt import PlattScaling
    >>> model = PlattScaling().fit([0.1, 0.3, 0.4, 0.8], ["no", "no", "yes", "yes"])
    >>> model.predict_proba([0.2, 0.9]).round(2)
    array([[0.66, 0.34],
           [0.15, 0.85]])
    """

    _map_type = PlattMap

    def __init__(self, targets: Targets = "smoothed", on: OnOrAuto = "score") -> None:
        self.targets = targets
        self.on = on

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        check_option(self.targets, Targets, "targets")
        check_option(self.on, OnOrAuto, "on")
        columns, on = list(columns), self.on
        if on == "auto":
            on = "logit" if all(are_probabilities(column[0]) for column in columns) else "score"
        return Maps([fit_platt(*column, self.targets, on) for column in columns])

    @property
    def _takes_probabilities(self) -> bool:
        return self._learnt.maps[0].interior is not None

    @property
    def A_(self) -> FloatArray:  # noqa: N802
        """A of every map."""
        return np.array([one.A for one in self.maps_])

    @property
    def B_(self) -> FloatArray:  # noqa: N802
        """B of every map."""
        return np.array([one.B for one in self.maps_])

    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> PlattMap:
        one: PlattMap = self._fit_columns([(scores, positive, weight)]).maps[0]
        return one
