"""Curves of reliability diagrams: bins, a smooth and an isotonic curve, and a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from vennforest._validation import FloatArray, IntArray, check_inside, check_option
from vennforest.counts import binomial_bound
from vennforest.metrics._inputs import (
    EventEstimates,
    Strategy,
    bin_codes,
    binned,
    check_estimates,
    group_numbers,
    positive_problem,
)
from vennforest.metrics.auc import AucInterval, auc_interval
from vennforest.metrics.calibration_line import CalibrationLine, line_of
from vennforest.metrics.intervals import share_interval
from vennforest.metrics.smooth import smooth_curve

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
    auc : AucInterval or None
        Area under the ROC curve; None with weights, and of the predicted label.
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
    auc: AucInterval | None
    event: str
    level: float


def reliability_curve(
    y: ArrayLike,
    p: ArrayLike,
    *,
    bins: int = 10,
    strategy: Strategy = "quantile",
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
    band: Band = "smooth",
) -> ReliabilityCurve:
    """Return the bins, curves and band of a reliability diagram.

    Parameters
    ----------
    y, p, bins, strategy, sample_weight, classes, pos_label
        As in ``brier_decomposition``. With more than two classes and no ``pos_label``, the curve
        is that of the confidence in the predicted label.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, each of which intervals and the smooth band treat as one
        observation. The confidence band requires independent rows.
    level : float
        Confidence level of intervals and band, in (0, 1).
    band : {"smooth", "confidence"}
        ``"smooth"``: the pointwise confidence band of the smooth curve, that is of the best-fitting
        spline; it ignores the bias of the spline, and can miss a frequency that bends more.
        ``"confidence"``: the simultaneous confidence band of ``calibration_band``.

    Notes
    -----
    The smooth curve has five knots if there are 200 rows of each outcome (Van Calster et al. 2016),
    and fewer, or none, with fewer rows; its band is that of the delta method. Rows whose estimate
    is 0 or 1 are left out of it. The CORP curve is that of Dimitriadis, Gneiting & Jordan (2021).
    """
    check_inside(level, "level")
    check_option(band, Band, "band")
    if band == "confidence" and groups is not None:
        raise ValueError(
            "groups must be None for band='confidence', which needs independent rows, got groups: "
            "use band='smooth'"
        )
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    problem = estimates.main()
    numbers = group_numbers(groups, p, sample_weight)
    fit = recalibrate(problem)
    n_k, r_k, phi_k = binned(EventEstimates(fit.observed, fit.p, fit.weight), bins, strategy)
    codes = bin_codes(problem.p, bins, strategy, problem.weight)
    bin_low, bin_high = _bin_intervals(problem, numbers, codes, level)
    steps = np.flatnonzero(np.diff(fit.fitted) > 0)
    corners = np.unique(np.concatenate([[0], steps, steps + 1, [len(fit.fitted) - 1]]))
    smooth_estimate, smooth_share, band_low, band_high = smooth_curve(problem, numbers, level)
    band_estimate = smooth_estimate
    if band == "confidence":
        x, low, high = _confidence_band(fit, level)
        # Between two points the lower bound is that of the left one, the upper that of the right.
        band_estimate = np.repeat(x, 3)[1:-1]
        band_low, band_high = np.repeat(low, 3)[:-2], np.repeat(high, 3)[2:]
    auc = None
    if sample_weight is None and estimates.positive is not None:
        auc = auc_interval(problem.outcome, problem.p, groups=numbers, classes=(0, 1), level=level)
    return ReliabilityCurve(
        bin_estimate=r_k,
        bin_share=phi_k,
        bin_weight=n_k,
        bin_low=bin_low,
        bin_high=bin_high,
        smooth_estimate=smooth_estimate,
        smooth_share=smooth_share,
        corp_estimate=fit.p[corners],
        corp_share=fit.fitted[corners],
        band=band,
        band_estimate=band_estimate,
        band_low=band_low,
        band_high=band_high,
        estimate=fit.p,
        positives=fit.weight * fit.observed,
        negatives=fit.weight * (1 - fit.observed),
        line=line_of(problem, numbers, level),
        auc=auc,
        event=estimates.event,
        level=level,
    )


def _bin_intervals(
    problem: EventEstimates, groups: IntArray | None, codes: IntArray, level: float
) -> FloatArray:
    """Return the ends (2, b) of the intervals of the observed shares in bins, from codes (n,)."""
    outcome, _, weight = problem
    ends = []
    for code in np.unique(codes):
        rows = codes == code
        groups_in_bin = None if groups is None else groups[rows]
        ends.append(share_interval(outcome[rows], groups_in_bin, weight[rows], level))
    return np.array(ends).T


class CalibrationBand(NamedTuple):
    """Simultaneous confidence band of a calibration curve; arrays have shape (g,).

    ``x`` increases from 0 to 1. Between two points, the lower bound is that of the left point and
    the upper bound that of the right one.
    """

    x: FloatArray
    lower: FloatArray
    upper: FloatArray


def calibration_band(
    y: ArrayLike,
    p: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CalibrationBand:
    """Return a band that contains the whole calibration curve with the given confidence.

    The calibration curve is the probability of the event given the estimate. The band is valid for
    any number of independent rows, if the curve is non-decreasing; it may be discontinuous.

    Parameters
    ----------
    y, p, classes, pos_label
        As in ``brier_decomposition``; with more than two classes ``pos_label`` is required.
    level : float
        Simultaneous confidence level, in (0, 1).
    sample_weight : array-like of shape (n,), optional
        Integer weights; a weight of 2 counts an observation twice.

    Notes
    -----
    Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023): every interval of neighbouring estimates has
    an upper bound for the curve at its left end and a lower one at its right end, those of
    Clopper & Pearson with error (1 - level) / (m (m + 1)) each; the band is the minimum of the
    upper bounds to the right and the maximum of the lower ones to the left. The m distinct
    estimates are grouped into 200 of equal count if there are more, so the cost is n log n steps
    and m² bounds. If the bounds cross, no non-decreasing curve fits the labels; the band is widened
    to contain the isotonic regression.

    Examples
    --------
    >>> x, lower, upper = calibration_band([0] * 30 + [1] * 30, [0.2] * 30 + [0.7] * 30)
    >>> x, lower.round(2), upper.round(2)
    (array([0. , 0.2, 0.7, 1. ]), array([0.  , 0.  , 0.85, 0.85]), array([0.15, 0.15, 1.  , 1.  ]))
    """
    check_inside(level, "level")
    problem = positive_problem(y, p, sample_weight, classes, pos_label)
    return _confidence_band(recalibrate(problem), level)


def _confidence_band(fit: IsotonicFit, level: float) -> CalibrationBand:
    """Return the simultaneous confidence band of an isotonic regression."""
    fractions = fit.weight[fit.weight != np.rint(fit.weight)]
    if len(fractions):
        raise ValueError(
            "sample_weight must be integers for a confidence band, which counts rows, got a sum of "
            f"{fractions[0]}: use band='smooth' of reliability_curve"
        )
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
