"""The Brier score and its decomposition into reliability, resolution and uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

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
        Mean squared distance of the bins' mean estimates from their observed shares; 0 is best.
    resolution : float
        Mean squared distance of the bins' observed shares from the overall one; larger is better.
    uncertainty : float
        Brier score of the overall share as the estimate of every row.
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
        Number of bins, or their increasing edges in [0, 1], or one bin for each distinct estimate.
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
    the same bins and the same n.

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
