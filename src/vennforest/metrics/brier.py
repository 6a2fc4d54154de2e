"""The Brier score and its decompositions: binned (Murphy), and isotonic (CORP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import (
    Bins,
    EventEstimates,
    Strategy,
    binned,
    check_estimates,
)


@dataclass(frozen=True)
class BrierDecomposition:
    """Murphy's decomposition of the Brier score.

    Attributes
    ----------
    reliability : float
        How far the mean estimates of the bins lie from the observed shares; 0 is best.
    resolution : float
        How far the observed shares of the bins lie from the overall one; the larger the better.
    uncertainty : float
        The score of always estimating the overall share.
    sharpness : float
        Variance of the estimates.
    brier : float
        The Brier score: of the positive class with two classes (in [0, 1]), over vectors with more
        (in [0, 2]).
    """

    reliability: float
    resolution: float
    uncertainty: float
    sharpness: float
    brier: float


def brier_decomposition(
    y: ArrayLike,
    p: ArrayLike,
    *,
    bins: Bins = 100,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> BrierDecomposition:
    """Split the Brier score into reliability, resolution and uncertainty.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any dtype.
    p : array-like of shape (n,) or (n, k)
        Probability of the positive class, or of every class in sorted order; in [0, 1].
    bins : int, array-like of edges, or "distinct"
        How many bins; or their edges in [0, 1], increasing; or a bin for every distinct estimate.
        Bins are closed to the right.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal count (equal estimates stay together).
    sample_weight : array-like of shape (n,), optional
        Non-negative; a weight of 2 is the observation twice.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    pos_label : label, optional
        The positive class; by default the second of two. With more than two classes and no
        ``pos_label`` every term is the sum over the classes, each against the rest, and ``brier``
        is the score over vectors.

    Raises
    ------
    ValueError
        If estimates are NaN, outside [0, 1] or (rows of a matrix) do not sum to 1, if shapes,
        bins or weights are not as above, or if ``y`` contains one class and the other is not known.

    Notes
    -----
    With n_k of N observations in bin k, r_k their mean estimate, φ_k the share of positives among
    them and ȳ the overall share (Murphy 1973; Johansson et al. 2018, eq. 13):
    reliability Σ n_k (r_k − φ_k)² / N, resolution Σ n_k (φ_k − ȳ)² / N, uncertainty ȳ (1 − ȳ).

    Reliability minus resolution plus uncertainty is the Brier score only where all estimates in a
    bin are equal (Stephenson, Coelho & Jolliffe 2008). And binning is biased: the variance of the
    average φ_k of n_k labels, φ_k (1 − φ_k) / n_k, raises reliability and resolution, the more so
    the fewer observations a bin has (Bröcker 2012; Ferro & Fricker 2012). Compare only numbers with
    the same bins and the same n; ``corp_decomposition`` needs no bins.

    Examples
    --------
    >>> brier_decomposition(["no", "no", "yes", "yes"], [0.2, 0.2, 0.2, 0.8])
    BrierDecomposition(reliability=0.0233..., resolution=0.0833..., uncertainty=0.25, ...)
    """
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    terms = [_decompose(problem, bins, strategy) for problem in estimates.additive()]
    return BrierDecomposition(*(float(sum(term)) for term in zip(*terms, strict=True)))


def _decompose(problem: EventEstimates, bins: Bins, strategy: Strategy) -> tuple[float, ...]:
    """Return the fields of a `BrierDecomposition`."""
    share = problem.weight / problem.weight.sum()
    base, mean = float(share @ problem.outcome), float(share @ problem.p)
    n_k, r_k, phi_k = binned(problem, bins, strategy)
    n_k = n_k / n_k.sum()
    return (
        float(n_k @ (r_k - phi_k) ** 2),
        float(n_k @ (phi_k - base) ** 2),
        base * (1 - base),
        float(share @ (problem.p - mean) ** 2),
        float(share @ (problem.outcome - problem.p) ** 2),
    )


@dataclass(frozen=True)
class CorpDecomposition:
    """The CORP decomposition: ``score = miscalibration − discrimination + uncertainty``.

    Attributes
    ----------
    miscalibration : float
        MCB: how much better the recalibrated estimates score; not below 0, 0 is best.
    discrimination : float
        DSC: how much better those score than the overall share; not below 0.
    uncertainty : float
        UNC: the score of always estimating the overall share.
    score : float
        The Brier score.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float
    score: float


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
    """Return the isotonic regression of the outcomes on the estimates; equal ones form a point."""
    p, place = np.unique(problem.p, return_inverse=True)
    weight = np.bincount(place, weights=problem.weight).astype(np.float64)
    observed = np.bincount(place, weights=problem.weight * problem.outcome) / weight
    # Sums of weights may round the share of an event that always happened to just below 1.
    observed = np.clip(observed, 0.0, 1.0)
    fitted = np.clip(isotonic_regression(observed, weights=weight).x, 0.0, 1.0)
    return Recalibration(p, weight, observed, fitted)


def corp_decomposition(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CorpDecomposition:
    """Split the Brier score into miscalibration, discrimination and uncertainty, without bins.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``, where terms are summed over classes too.

    Notes
    -----
    With S the Brier score, p̂ the isotonic regression of the outcomes on the estimates and ȳ the
    overall share: MCB = S(p) − S(p̂), DSC = S(ȳ) − S(p̂), UNC = S(ȳ) (Dimitriadis, Gneiting &
    Jordan 2021, doi:10.1073/pnas.2016191118). p̂ is the best increasing function of p
    in hindsight, so MCB and DSC are never negative. It is fitted to the
    data it is judged on: of perfect estimates, too, a finite sample shows a small MCB.
    """
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    terms = [_parts(problem) for problem in estimates.additive()]
    return CorpDecomposition(*(float(sum(term)) for term in zip(*terms, strict=True)))


def _parts(problem: EventEstimates) -> tuple[float, float, float, float]:
    fit = recalibrate(problem)
    share = fit.weight / fit.weight.sum()

    def score_of(p: FloatArray) -> float:
        return float(share @ (fit.observed * (1 - p) ** 2 + (1 - fit.observed) * p**2))

    score, recalibrated = score_of(fit.p), score_of(fit.fitted)
    uncertainty = score_of(np.full_like(fit.p, float(share @ fit.observed)))
    # Never below zero but by rounding.
    terms = max(0.0, score - recalibrated), max(0.0, uncertainty - recalibrated)
    return *terms, uncertainty, score
