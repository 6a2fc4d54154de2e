"""Calibration errors in bins, the decomposition of the Brier score, and overconfidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import check_option
from vennforest.metrics._inputs import EventEstimates, Strategy, binned, check_estimates

ErrorKind = Literal["expected", "maximum", "root-mean-square", "confidence", "classwise"]
"""Summaries of the differences between mean estimates and observed shares of bins."""


def calibration_error(
    y: ArrayLike,
    p: ArrayLike,
    *,
    kind: ErrorKind = "expected",
    bins: int = 15,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the calibration error over bins of the estimates.

    Parameters
    ----------
    y, p, bins, strategy, sample_weight, classes, pos_label
        As in ``brier_decomposition``; ``"quantile"`` makes it the adaptive error.
    kind : str
        With r_k the mean estimate, φ_k the observed share and n_k the count of bin k:

        - ``"expected"`` (ECE): Σ n_k |r_k − φ_k| / N;
        - ``"maximum"``: max |r_k − φ_k|;
        - ``"root-mean-square"``: √(Σ n_k (r_k − φ_k)² / N);
        - ``"confidence"``: ECE of the confidence in the predicted label (Guo et al. 2017);
        - ``"classwise"``: mean over the classes of the ECE of each against the rest (Kull et al.
          2019).

        The first three evaluate the positive class; with more than two classes and no
        ``pos_label``, at the confidence in the predicted label.

    Returns
    -------
    float
        The error in [0, 1]; 0 is best. It is biased upwards, like the reliability of
        ``brier_decomposition``.

    Examples
    --------
    >>> calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    """
    check_option(kind, ErrorKind, "kind")
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    if kind == "classwise":
        problems = estimates.one_vs_rest()
        return float(np.mean([_error(p, "expected", bins, strategy) for p in problems]))
    problem = estimates.of_predicted() if kind == "confidence" else estimates.main()
    return _error(problem, kind, bins, strategy)


def _error(problem: EventEstimates, kind: ErrorKind, bins: int, strategy: Strategy) -> float:
    """Return the calibration error of a two-class problem."""
    n_k, r_k, phi_k = binned(problem, bins, strategy)
    share, gap = n_k / n_k.sum(), np.abs(r_k - phi_k)
    if kind == "maximum":
        return float(gap.max())
    return float(np.sqrt(share @ gap**2) if kind == "root-mean-square" else share @ gap)


def confidence_minus_accuracy(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean confidence in the predicted label minus the accuracy, in [-1, 1].

    Estimates are overconfident above 0 and underconfident below (Johansson et al. 2018, Table 1).
    The parameters are those of ``brier_decomposition``.
    """
    problem = check_estimates(y, p, sample_weight, classes, pos_label).of_predicted()
    return float(np.average(problem.p - problem.outcome, weights=problem.weight))


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


def brier_decomposition(
    y: ArrayLike,
    p: ArrayLike,
    *,
    bins: int = 100,
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
    bins : int
        Number of bins, closed to the right.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal count, where equal estimates share a bin.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights; a weight of 2 counts an observation twice, in intervals and tests too.
        Scale weights that are no counts by their sum over the sum of their squares.
    classes : array-like of shape (k,), optional
        All classes, if some may be missing from ``y``.
    pos_label : label, optional
        The positive class; by default the second of two. With more than two classes and no
        ``pos_label``, every term is a sum over the classes, each against the rest.

    Notes
    -----
    With n_k of N observations in bin k, r_k their mean estimate, φ_k the share of positives among
    them and ȳ the overall share (Murphy 1973; Johansson et al. 2018, eq. 13):
    reliability Σ n_k (r_k − φ_k)² / N, resolution Σ n_k (φ_k − ȳ)² / N, uncertainty ȳ (1 − ȳ).
    Reliability minus resolution plus uncertainty is the Brier score only where all estimates in a
    bin are equal (Stephenson, Coelho & Jolliffe 2008).

    The estimates are biased: the variance of φ_k increases reliability and resolution, most with
    few observations per bin (Bröcker 2012; Ferro & Fricker 2012). Compare only results with equal
    bins and n.

    Examples
    --------
    >>> brier_decomposition(["no", "no", "yes", "yes"], [0.2, 0.2, 0.2, 0.8])
    BrierDecomposition(reliability=0.0233..., resolution=0.0833..., uncertainty=0.25, ...)
    """
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
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
