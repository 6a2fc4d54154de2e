"""Calibration errors in bins, and the decomposition of the Brier score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from vennforest._validation import check_option
from vennforest.metrics._inputs import ClassEstimates, EventEstimates, Strategy, binned

ErrorKind = Literal["expected", "maximum", "root-mean-square", "confidence", "classwise"]
"""Summaries of the differences between mean estimates and observed shares of bins."""


def error_of(estimates: ClassEstimates, kind: ErrorKind, bins: int, strategy: Strategy) -> float:
    """Return the calibration error over bins; see `Estimates.calibration_error`."""
    check_option(kind, ErrorKind, "kind")
    if kind == "classwise":
        problems = estimates.one_vs_rest()
        return float(np.mean([_error(p, "expected", bins, strategy) for p in problems]))
    event = estimates.of_predicted() if kind == "confidence" else estimates.main()
    return _error(event, kind, bins, strategy)


def _error(problem: EventEstimates, kind: ErrorKind, bins: int, strategy: Strategy) -> float:
    """Return the calibration error of a two-class problem."""
    n_k, r_k, phi_k = binned(problem, bins, strategy)
    share, gap = n_k / n_k.sum(), np.abs(r_k - phi_k)
    if kind == "maximum":
        return float(gap.max())
    return float(np.sqrt(share @ gap**2) if kind == "root-mean-square" else share @ gap)


@dataclass(frozen=True)
class BrierDecomposition:
    """Murphy's decomposition of the Brier score.

    Attributes
    ----------
    reliability : float
        Mean squared distance of the bins' mean estimates from their observed shares; 0 is best.
    resolution : float
        Mean squared distance of the bins' observed shares from the overall one; larger is better.
    uncertainty : float
        Brier score if every row's estimate is the overall share.
    sharpness : float
        Variance of the estimates.
    brier : float
        The Brier score: for two classes of the positive one (in [0, 1]), for more of the vectors
        (in [0, 2]).
    """

    reliability: float
    resolution: float
    uncertainty: float
    sharpness: float
    brier: float


def decomposition_of(
    estimates: ClassEstimates, bins: int, strategy: Strategy
) -> BrierDecomposition:
    """Return the decomposition of the Brier score; see `Estimates.brier_decomposition`."""
    terms = []
    positive = estimates.positive
    for problem in estimates.one_vs_rest() if positive is None else [estimates.of_column(positive)]:
        share = problem.weight / problem.weight.sum()
        base, mean = share @ problem.outcome, share @ problem.p
        n_k, r_k, phi_k = binned(problem, bins, strategy)
        n_k = n_k / n_k.sum()
        reliability, resolution = n_k @ (r_k - phi_k) ** 2, n_k @ (phi_k - base) ** 2
        sharpness = share @ (problem.p - mean) ** 2
        brier = share @ (problem.outcome - problem.p) ** 2
        terms.append((reliability, resolution, base * (1 - base), sharpness, brier))
    return BrierDecomposition(*np.sum(terms, axis=0).tolist())
