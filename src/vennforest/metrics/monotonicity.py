"""Test of the assumption that the frequency of a class does not fall as its score rises."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import chdtrc, rel_entr

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics.dependence import (
    MIN_EVENT_GROUPS,
    event_groups,
    intragroup_correlation,
    variance_of_sums,
)

MONOTONICITY_LEVEL = 0.05
MAX_SCORE_CELLS, MIN_CELL_EVENTS = 20, 20
"""Cells of neighbouring scores, and how many of the rarer outcome there are for each cell."""


class FallingFrequency(NamedTuple):
    """Where the frequency falls most: from ``before`` to ``after`` between two scores.

    ``column`` is that of the score, and ``pvalue`` is adjusted for the number of columns.
    """

    pvalue: float
    column: int
    low: float
    high: float
    before: float
    after: float

    def __str__(self) -> str:
        """Return a clause."""
        return (
            f"falls from {self.before:.1%} to {self.after:.1%} as the score rises from "
            f"{self.low:.3g} to {self.high:.3g} (p = {self.pvalue:.2g})"
        )


def falling_frequency(
    scores: FloatArray, codes: IntArray, groups: IntArray | None = None
) -> FallingFrequency | None:
    """Return where a frequency falls as its score rises, or None if no test rejects that none does.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, k)
        Scores of the second of two classes, or of every class.
    codes : ndarray of shape (n,)
        Indices of the observed classes.
    groups : ndarray of shape (n,), optional
        Codes from 0 of groups of dependent rows.

    Notes
    -----
    The likelihood ratio of free frequencies in at most 20 cells of equally many rows to the
    isotonic regression of the cells is a mixture of χ² if all frequencies are equal, with Stirling
    numbers of the first kind as weights, and smaller if they rise (Robertson, Wright & Dykstra
    1988, theorem 2.3.1). One test sees every place; its level is 5%, for all columns together.
    With groups the ratio is divided by the design effect of the cells.
    """
    columns = scores.reshape(len(scores), -1)
    positive = [codes == (1 if columns.shape[1] == 1 else j) for j in range(columns.shape[1])]
    falls = [
        _fall(column, event.astype(np.float64), groups)._replace(column=j)
        for j, (column, event) in enumerate(zip(columns.T, positive, strict=True))
    ]
    worst = min(falls, key=lambda fall: fall.pvalue)
    pvalue = min(1.0, worst.pvalue * len(falls))
    return worst._replace(pvalue=pvalue) if pvalue < MONOTONICITY_LEVEL else None


def _fall(scores: FloatArray, outcome: FloatArray, groups: IntArray | None) -> FallingFrequency:
    """Return the test of one column of scores (n,), and where the frequency falls most."""
    n, n_events = len(scores), int(outcome.sum())
    n_cells = min(min(n_events, n - n_events) // MIN_CELL_EVENTS, MAX_SCORE_CELLS)
    values, level, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - count / 2) / n
    cell = np.unique((n_cells * rank).astype(np.intp), return_inverse=True)[1]
    total = np.bincount(cell[level])
    events = np.bincount(cell[level], outcome)
    free = events / total
    regression = isotonic_regression(free, weights=total)
    fit = regression.x.clip(0, 1)
    ratios = 2 * total * (rel_entr(free, fit) + rel_entr(1 - free, 1 - fit))
    effect = 1.0
    if groups is not None:
        expected = fit[cell[level]]
        correlation = intragroup_correlation(outcome, expected, groups)
        if correlation > 0 and event_groups(outcome, groups) < MIN_EVENT_GROUPS:
            return FallingFrequency(1.0, 0, *np.full(4, np.nan))
        pairs = np.unique(groups * len(total) + cell[level], return_inverse=True)[1]
        constant, independent = np.ones((n, 1)), float((expected * (1 - expected)).sum())
        if not independent:  # each cell has one outcome, and their order is that of the scores
            return FallingFrequency(1.0, 0, *np.full(4, np.nan))
        effect = float(variance_of_sums(constant, expected, pairs, correlation)[0, 0]) / independent
    # The part of the block in which the frequencies of two parts differ most.
    block = regression.blocks[np.argmax(np.add.reduceat(ratios, regression.blocks[:-1])) :][:2]
    inner = slice(*block)
    of_left, n_left = np.cumsum(events[inner]), np.cumsum(total[inner])
    gap = of_left - n_left * of_left[-1] / n_left[-1]
    split = int(np.argmax(gap[:-1])) if len(gap) > 1 else 0
    rows = (cell >= block[0]) & (cell < block[1])
    after_rows = max(n_left[-1] - n_left[split], 1)
    return FallingFrequency(
        chi_bar_sf(float(ratios.sum()) / effect, len(total)),
        0,
        float(values[rows].min()),
        float(values[rows].max()),
        float(of_left[split] / n_left[split]),
        float((of_left[-1] - of_left[split]) / after_rows),
    )


def chi_bar_sf(ratio: float, n_cells: int) -> float:
    """Return the probability of a likelihood ratio as large where all ``n_cells`` are alike.

    The isotonic regression of n alike cells has l blocks with probability |s(n, l)| / n!, s the
    Stirling numbers of the first kind; the ratio is then χ² with n - l degrees of freedom.
    """
    if ratio <= 0:
        return 1.0
    shares = np.array([1.0])
    for n in range(2, n_cells + 1):
        shares = np.append(0.0, shares) / n + np.append(shares, 0.0) * (n - 1) / n
    degrees = n_cells - 1 - np.arange(n_cells - 1)
    return float(shares[:-1] @ chdtrc(degrees, ratio))
