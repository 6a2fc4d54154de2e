"""Curves of reliability diagrams: bins, a smooth and an isotonic curve, and a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from vennforest._numerics import binomial_bound
from vennforest._validation import FloatArray
from vennforest.metrics._inputs import EventEstimates
from vennforest.metrics.calibration_line import CalibrationLine
from vennforest.metrics.variance import IntervalEstimate

Band = Literal["smooth", "confidence"]
"""Bands around the smooth curve, and around the isotonic one."""

MAX_BAND_GROUPS = 200
"""Maximum number of groups of neighbouring estimates for a confidence band; of 20 to 2,000, about
this number makes the band narrowest for 1,000 to 100,000 rows."""


class IsotonicFit(NamedTuple):
    """Isotonic regression of outcomes on estimates, at the m distinct estimates.

    ``p`` (m,) are the increasing estimates, ``weight`` (m,) their numbers of observations,
    ``observed`` (m,) the shares of positives and ``fitted`` (m,) the isotonic regression.
    """

    p: FloatArray
    weight: FloatArray
    observed: FloatArray
    fitted: FloatArray


def recalibrate(problem: EventEstimates) -> IsotonicFit:
    """Return the isotonic regression of the outcomes on the distinct estimates."""
    p, level = np.unique(problem.p, return_inverse=True)
    weight = np.bincount(level, weights=problem.weight).astype(np.float64)
    observed = np.bincount(level, weights=problem.weight * problem.outcome) / weight
    # Sums of weights may round the share of an event that always happened to just below 1.
    observed = np.clip(observed, 0.0, 1.0)
    fitted = np.clip(isotonic_regression(observed, weights=weight).x, 0.0, 1.0)
    return IsotonicFit(p, weight, observed, fitted)


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Bins, smooth curve, isotonic curve and band of a reliability diagram.

    Attributes
    ----------
    bin_estimate, bin_share, bin_weight, bin_low, bin_high : ndarray of shape (b,)
        Mean estimate, observed share and number of observations of the non-empty bins, and Wilson's
        confidence interval of the share.
    smooth_estimate, smooth_share : ndarray of shape (m,)
        Smooth curve: logistic regression on a natural spline of the log-odds. Empty if the
        likelihood has no maximum, as for separated labels.
    corp_estimate, corp_share : ndarray of shape (c,)
        Corners of the CORP curve: the ends of each block of the isotonic regression.
    band_estimate, band_low, band_high : ndarray of shape (g,)
        The band, as selected by the parameter ``band`` of `reliability_curve`.
    estimate, positives, negatives : ndarray of shape (d,)
        The distinct estimates, and their numbers of observations with each outcome.
    line : CalibrationLine
        Calibration intercept and slope, and the ratio of observed to expected events.
    auc : IntervalEstimate or None
        Area under the ROC curve; None of the predicted label.
    event : str
        Label of the positive class, or ``"predicted label"``.
    level : float
        Confidence level of intervals and band.
    """

    bin_estimate: FloatArray
    bin_share: FloatArray
    bin_weight: FloatArray
    bin_low: FloatArray
    bin_high: FloatArray
    smooth_estimate: FloatArray
    smooth_share: FloatArray
    corp_estimate: FloatArray
    corp_share: FloatArray
    band: Band
    band_estimate: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    estimate: FloatArray
    positives: FloatArray
    negatives: FloatArray
    line: CalibrationLine
    auc: IntervalEstimate | None
    event: str
    level: float


class CalibrationBand(NamedTuple):
    """Simultaneous confidence band of a calibration curve; arrays have shape (g,).

    ``x`` increases from 0 to 1. Between two points, the lower bound is that of the left point and
    the upper bound that of the right one.
    """

    x: FloatArray
    lower: FloatArray
    upper: FloatArray


def confidence_band(event: EventEstimates, level: float) -> CalibrationBand:
    """Return the simultaneous confidence band; see `Estimates.calibration_band`."""
    if event.groups is not None or (event.weight != 1).any():
        raise ValueError(
            "groups and sample_weight must be None for a confidence band, which counts independent "
            "rows: use band='smooth' of reliability_curve"
        )
    fit = recalibrate(event)
    group = np.arange(len(fit.weight))
    if len(group) > MAX_BAND_GROUPS:  # neighbours with similar sums of weights
        cumulative = np.cumsum(fit.weight)
        group = np.ceil(cumulative / cumulative[-1] * MAX_BAND_GROUPS - 1e-9).astype(np.intp)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    first, last = fit.p[starts], fit.p[np.append(starts[1:], len(fit.p)) - 1]
    positives, total = (
        # Row i, column j: the sum over groups i to j; none below the diagonal.
        np.triu(np.cumsum(sums) - (np.cumsum(sums) - sums)[:, None])
        for sums in (
            np.add.reduceat(np.rint(fit.observed * fit.weight), starts),
            np.add.reduceat(fit.weight, starts),
        )
    )
    error = (1 - level) / (len(starts) * (len(starts) + 1))
    highest = binomial_bound(positives, total, error, upper=True).min(axis=1)
    lowest = binomial_bound(positives, total, error, upper=False).max(axis=0)
    x = np.unique(np.concatenate([[0.0], first, last, [1.0]]))
    isotonic = np.interp(x, fit.p, fit.fitted)
    upper = np.minimum.accumulate(np.append(highest, 1.0)[::-1])[::-1]
    upper = np.maximum(upper[np.searchsorted(first, x, "left")], isotonic)
    lower = np.maximum.accumulate(np.append(0.0, lowest))
    lower = np.minimum(lower[np.searchsorted(last, x, "right")], isotonic)
    changes = (np.diff(lower, prepend=-1.0) > 0) | (np.diff(upper, append=2.0) > 0)
    return CalibrationBand(x[changes], lower[changes], upper[changes])
