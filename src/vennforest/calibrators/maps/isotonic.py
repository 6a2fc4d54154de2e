"""Isotonic calibration: the non-decreasing map that fits the labels best."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import attrs
import numpy as np
from scipy.optimize import isotonic_regression

from vennforest._state import stored
from vennforest._validation import FloatArray, array, check_increasing, check_option, require
from vennforest.calibrators.core.formula import Term, after
from vennforest.calibrators.core.interface import BinaryMap, Column, Maps, OneVsRestCalibrator

Between = Literal["step", "nearest", "linear"]
"""How the fit is read between calibration scores."""


@stored("step-map")
@attrs.frozen(eq=False)
class StepMap:
    """A step function: value j for scores above ``ends[j - 1]`` up to and including ``ends[j]``."""

    ends: FloatArray = attrs.field(validator=array(None))  # (m - 1,) increasing
    values: FloatArray = attrs.field(validator=array(None, low=0, high=1))  # (m,) non-decreasing

    def __attrs_post_init__(self) -> None:
        """Refuse anything but a non-decreasing function."""
        _check_steps(self.ends, "ends", len(self.values) - 1, self.values)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,)."""
        return self.values[np.searchsorted(self.ends, scores, side="left")]

    def formula(self, x: Term) -> Term:
        """Return the probability as a formula of the score."""
        return x.look_up(after(self.ends), {"p": self.values})["p"]


@stored("linear-map")
@attrs.frozen(eq=False)
class LinearMap:
    """Straight lines between the points of a fit, constant outside."""

    knots: FloatArray = attrs.field(validator=array(None))  # (m,) increasing
    values: FloatArray = attrs.field(validator=array(None, low=0, high=1))  # (m,) non-decreasing

    def __attrs_post_init__(self) -> None:
        """Refuse anything but a non-decreasing function."""
        _check_steps(self.knots, "knots", len(self.values), self.values)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,)."""
        if len(self.knots) == 1:
            return np.full(len(scores), self.values[0])
        s = np.clip(scores, self.knots[0], self.knots[-1])
        right = np.searchsorted(self.knots, s, side="left").clip(min=1)
        low, high = self.knots[right - 1], self.knots[right]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            width = high - low
            halved = (s / 2 - low / 2) / (high / 2 - low / 2)  # where the width overflows
            share = np.where(np.isinf(width), halved, (s - low) / width)
            p = self.values[right - 1] * (1 - share) + self.values[right] * share
        inside: FloatArray = np.clip(p, self.values[right - 1], self.values[right])
        return inside

    def formula(self, x: Term) -> Term:
        """Return the probability as a formula of the score."""
        knots, values = self.knots, self.values
        with np.errstate(over="ignore"):
            width = np.minimum(np.diff(knots), np.finfo(np.float64).max)
        line = x.look_up(
            knots,
            {
                "knot": np.concatenate([knots[:1], knots]),
                "width": np.concatenate([[1.0], width, [1.0]]),
                "low": np.concatenate([values[:1], values]),
                "high": np.append(values, values[-1:]),
            },
        )
        share = ((x.clip(knots[0], knots[-1]) - line["knot"]) / line["width"]).clip(0.0, 1.0)
        inside = line["low"] * (1.0 - share) + line["high"] * share
        return inside.clip(line["low"], line["high"])


def _check_steps(places: FloatArray, name: str, n: int, values: FloatArray) -> None:
    """Refuse anything but n increasing places, and values that do not decrease."""
    require(len(values), "values must contain one probability or more")
    require((values[1:] >= values[:-1]).all(), "values must not decrease")
    require(len(places) == n, f"{name} must be {n}")
    check_increasing(places, name)


def last_nearest(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the largest float that is not nearer to ``high`` than to ``low``, exactly.

    Both (n,), with ``low < high``, are finite.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        total = low + high
        large = np.isinf(total)  # then both are huge and of one sign, and halving is exact
        low, high = np.where(large, low / 2, low), np.where(large, high / 2, high)
        total = low + high
        # Knuth's sum without error: low + high = total + error.
        part = total - low
        error = (low - (total - part)) + (high - part)
        middle = np.where(large, total, total / 2)
        # Where the middle is between two floats, the one below is the last nearest to low: a
        # rounding up shows in the error, or, among the smallest floats, in the halving.
        above = (error < 0) | (~large & (2 * middle > total))
        ends: FloatArray = np.where(above, np.nextafter(middle, -np.inf), middle)
    return ends


@stored("isotonic-calibration")
class IsotonicCalibration(OneVsRestCalibrator):
    """Isotonic calibration: the non-decreasing map from scores to probabilities that fits best.

    Minimises ``sum w (y - m(s))**2`` over non-decreasing m (Niculescu-Mizil & Caruana 2005,
    eq. 6) by pooling adjacent violators; equal scores are one point of the fit. Many classes: one
    map a class against the rest, normalised; where every class gets 0, the raw scores.

    Parameters
    ----------
    between : {"step", "nearest", "linear"}, default="step"
        The value of a score f that is not a calibration score. ``"step"``: that of the smallest
        calibration score above f, the rule ``m(f) = m_j for f_i < f <= f_j`` of Niculescu-Mizil
        & Caruana (2005), Table 1, where f_i and f_j are neighbours. ``"nearest"``: that of the
        nearest calibration score, of two equally near the smaller (the direct method of Vovk &
        Petej 2014). ``"linear"``: on the straight line between the neighbours (as scikit-learn's
        ``IsotonicRegression``). In each case the first value below the lowest calibration score
        and the last value above the highest.

    Examples
    --------
    >>> model = IsotonicCalibration().fit([0.1, 0.3, 0.5, 0.7], [0, 1, 0, 1])
    >>> model.predict_proba([0.1, 0.2, 0.6])[:, 1]
    array([0. , 0.5, 1. ])
    """

    _map_type = (StepMap, LinearMap)

    def __init__(self, between: Between = "step") -> None:
        self.between = between

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        check_option(self.between, Between, "between")
        return super()._fit_columns(columns)

    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> BinaryMap:
        x, point = np.unique(scores, return_inverse=True)
        total = np.bincount(point, weight, len(x)).astype(np.float64)
        w = 1.0 if weight is None else weight
        share = np.bincount(point, w * positive, len(x)) / total
        fitted = np.clip(isotonic_regression(share, weights=total).x, 0, 1)
        rises = np.flatnonzero(fitted[1:] != fitted[:-1])
        if self.between == "linear":
            # A level stretch needs its two ends alone.
            kept = np.unique(np.concatenate([[0], rises, rises + 1, [len(x) - 1]]))
            return LinearMap(x[kept], fitted[kept])
        ends = x[rises] if self.between == "step" else last_nearest(x[rises], x[rises + 1])
        return StepMap(ends, fitted[np.append(rises, len(x) - 1)])
