"""Which bin every estimate falls in, and the means in each bin."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics._inputs import EventEstimates

Bins = int | ArrayLike | Literal["distinct"]
"""A number of bins, their edges, or ``"distinct"``: a bin for every value that occurs."""

Strategy = Literal["uniform", "quantile"]
"""Bins of equal width, or of equal count."""


class Cells(NamedTuple):
    """What the non-empty bins hold, each of shape (b,), in increasing order of the estimates.

    ``weight`` is the number of observations, ``estimate`` their mean estimate (r_k), ``observed``
    the share of them in which the event happened (φ_k).
    """

    weight: FloatArray
    estimate: FloatArray
    observed: FloatArray


def check_bins(bins: Bins, strategy: Strategy) -> FloatArray | int | None:
    """Return inner edges (m,), the number of equal-count bins, or None for distinct values.

    Raises
    ------
    ValueError
        If ``bins`` is not a positive integer, increasing edges in [0, 1] or ``"distinct"``, or
        ``strategy`` is unknown.
    """
    if strategy not in ("uniform", "quantile"):
        raise ValueError(f"strategy must be 'uniform' or 'quantile', got {strategy!r}")
    if isinstance(bins, str):
        if bins != "distinct":
            raise ValueError(f"bins must be a number, edges or 'distinct', got {bins!r}")
        return None
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins < 1:
            raise ValueError(f"bins must be at least 1, got {bins}")
        # i / K is the float nearest the edge, so that an estimate of 0.29 is at the edge 29 / 100.
        return int(bins) if strategy == "quantile" else np.arange(1, bins) / bins
    edges = np.asarray(bins)
    if edges.dtype.kind not in "fiu" or edges.ndim != 1 or not len(edges):
        raise ValueError(f"bins must be a number, edges or 'distinct', got {bins!r}")
    edges = edges.astype(np.float64)
    if not ((edges >= 0) & (edges <= 1)).all() or (np.diff(edges) <= 0).any():
        raise ValueError(f"bins must be increasing edges in [0, 1], got {edges.tolist()}")
    return edges[(edges > 0) & (edges < 1)]


class Binner:
    """Bins of estimates (n,) under changing weights, as resampling needs them.

    Bins are closed to the right; the first one holds 0 as well. Equal-count bins never part equal
    estimates: bin b ends at the smallest estimate below or at which b/K of the weight lies.
    """

    def __init__(self, p: FloatArray, bins: Bins, strategy: Strategy) -> None:
        rule = check_bins(bins, strategy)
        self.n_quantiles = rule if isinstance(rule, int) else 0
        if isinstance(rule, np.ndarray):
            self.fixed = np.searchsorted(rule, p, side="left").astype(np.intp)
        else:
            self.fixed = np.unique(p, return_inverse=True)[1].astype(np.intp)

    def __call__(self, weight: FloatArray) -> IntArray:
        """Return each estimate's bin (n,), for weights (n,) not below zero."""
        if not self.n_quantiles:
            return self.fixed
        k = self.n_quantiles
        reached = np.cumsum(np.bincount(self.fixed, weights=weight))
        # A hair less, so that sums of weights like 0.1 reach the shares that they should.
        wanted = np.arange(1, k) * (reached[-1] / k) * (1 - 1e-12)
        last = np.searchsorted(reached, wanted, side="left")
        return np.searchsorted(last, np.arange(len(reached)), side="left")[self.fixed]


def cells(codes: IntArray, problem: EventEstimates, weight: FloatArray) -> Cells:
    """Return the means in every bin that has weight, for bins (n,) and weights (n,)."""
    total: FloatArray = np.bincount(codes, weights=weight).astype(np.float64)
    filled = total > 0
    estimate = np.bincount(codes, weights=weight * problem.p)[filled] / total[filled]
    observed = np.bincount(codes, weights=weight * problem.outcome)[filled] / total[filled]
    return Cells(total[filled], estimate, observed)


def binned(problem: EventEstimates, bins: Bins, strategy: Strategy) -> Cells:
    """Return the means in every non-empty bin."""
    return cells(Binner(problem.p, bins, strategy)(problem.weight), problem, problem.weight)
