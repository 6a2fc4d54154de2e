"""Curves of reliability diagrams: bins, and the isotonic curve with its band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from vennforest._validation import FloatArray, check_inside
from vennforest.metrics._inputs import EventEstimates, Strategy, binned, check_estimates

N_HISTOGRAM_BINS = 25
"""Equal parts of [0, 1] in the histogram."""

MAX_BAND_LEVELS = 2000
"""Distinct estimates for which labels are drawn for a consistency band."""


class Recalibration(NamedTuple):
    """The isotonic fit of outcomes to estimates, at the m distinct estimates, each (m,).

    ``p`` increases strictly, ``weight`` counts observations, ``observed`` is the share of positives
    and ``fitted`` its isotonic regression.
    """

    p: FloatArray
    weight: FloatArray
    observed: FloatArray
    fitted: FloatArray


def recalibrate(problem: EventEstimates) -> Recalibration:
    """Return the isotonic regression of the outcomes on the distinct estimates."""
    p, level = np.unique(problem.p, return_inverse=True)
    weight = np.bincount(level, weights=problem.weight).astype(np.float64)
    observed = np.bincount(level, weights=problem.weight * problem.outcome) / weight
    # Sums of weights may round the share of an event that always happened to just below 1.
    observed = np.clip(observed, 0.0, 1.0)
    fitted = np.clip(isotonic_regression(observed, weights=weight).x, 0.0, 1.0)
    return Recalibration(p, weight, observed, fitted)


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Observed shares against estimates: binned, by isotonic regression, with a band.

    Attributes
    ----------
    bin_estimate, bin_share, bin_weight : ndarray of shape (b,)
        Mean estimate, observed share and number of observations of the non-empty bins.
    corp_estimate, corp_share : ndarray of shape (c,)
        Corners of the CORP curve: the ends of each block of the isotonic regression.
    band_estimate, band_low, band_high : ndarray of shape (g,)
        Consistency band: the range of CORP curves of calibrated estimates. Empty without
        resamples.
    histogram : ndarray of shape (h,)
        Share of observations in h equal parts of [0, 1].
    event : str
        The class of the estimates, or ``"predicted label"``.
    level : float
        The share of calibrated samples that the band covers at each point.
    """

    bin_estimate: FloatArray
    bin_share: FloatArray
    bin_weight: FloatArray
    corp_estimate: FloatArray
    corp_share: FloatArray
    band_estimate: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    histogram: FloatArray
    event: str
    level: float


def reliability_curve(
    y: ArrayLike,
    p: ArrayLike,
    *,
    bins: int = 10,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.9,
    n_resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
) -> ReliabilityCurve:
    """Return the bins, curve, band and histogram of a reliability diagram.

    Parameters
    ----------
    y, p, bins, strategy, sample_weight, classes, pos_label
        As in ``brier_decomposition``. With more than two classes and no ``pos_label`` the curve is
        that of the confidence in the predicted label.
    level : float
        Pointwise level of the consistency band, in (0, 1).
    n_resamples : int
        Calibrated samples drawn for the band; 0 for no band.
    random_state : int, Generator or None
        The seed of these draws.

    Notes
    -----
    The CORP curve and its band are those of Dimitriadis, Gneiting & Jordan (2021): labels are
    drawn with the estimates as their probabilities, the isotonic regression of each sample is read
    at the estimates, and quantiles are taken point by point. Of more than 2,000 distinct estimates
    neighbours are drawn together, with their mean as the probability.
    """
    check_inside(level, "level")
    if n_resamples < 0:
        raise ValueError(f"n_resamples must not be negative, got {n_resamples}")
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    fit = recalibrate(estimates.main())
    n_k, r_k, phi_k = binned(EventEstimates(fit.observed, fit.p, fit.weight), bins, strategy)
    steps = np.flatnonzero(np.diff(fit.fitted) > 0)
    corners = np.unique(np.concatenate([[0], steps, steps + 1, [len(fit.fitted) - 1]]))
    rng = np.random.default_rng(random_state)
    counts, _ = np.histogram(fit.p, N_HISTOGRAM_BINS, (0, 1), weights=fit.weight)
    return ReliabilityCurve(
        r_k,
        phi_k,
        n_k,
        fit.p[corners],
        fit.fitted[corners],
        *_band(fit, level, n_resamples, rng),
        histogram=counts / counts.sum(),
        event=estimates.event,
        level=level,
    )


def _band(
    fit: Recalibration, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return estimates (g,) with quantiles of the isotonic fits of calibrated labels."""
    if not n_resamples:
        return np.empty(0), np.empty(0), np.empty(0)
    block = np.arange(len(fit.p))
    if len(block) > MAX_BAND_LEVELS:
        cumulative = np.cumsum(fit.weight)
        block = np.ceil(cumulative / cumulative[-1] * MAX_BAND_LEVELS - 1e-9).astype(np.intp)
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    weight = np.add.reduceat(fit.weight, starts)
    p = (np.add.reduceat(fit.weight * fit.p, starts) / weight).clip(0, 1)
    n = np.maximum(1, np.rint(weight)).astype(np.int64)
    positives = rng.binomial(n, p, size=(n_resamples, len(p)))
    fits = np.array([isotonic_regression(row / n, weights=n).x for row in positives])
    low, high = np.quantile(fits, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return p, low, high
