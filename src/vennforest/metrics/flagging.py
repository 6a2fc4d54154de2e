"""Flagging rows at thresholds: shares, predictive values and net benefit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from vennforest._validation import FloatArray, InputError
from vennforest.metrics._inputs import EventEstimates
from vennforest.metrics.variance import variance_of_sum
from vennforest.scores import as_numbers


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """Shares and predictive values at t thresholds; arrays of shape (t,).

    Rows are flagged if their probability is at least the threshold. Ratios are NaN if undefined.

    Attributes
    ----------
    threshold : ndarray
        Thresholds in [0, 1].
    flagged : ndarray
        Share of flagged rows.
    sensitivity, specificity : ndarray
        Share of flagged rows among positives, and of unflagged rows among negatives.
    positive_value, negative_value : ndarray
        Predictive values: share of positives among flagged rows, and of negatives among the others.
    intervals : dict of str to tuple of two ndarrays
        Ends of the intervals of these four, by name, if a ``level`` was given.
    sure_yes, sure_no, depends : ndarray or None
        Number of rows (sum of weights) flagged at both bounds, at neither, and at one of them.
    """

    threshold: FloatArray
    flagged: FloatArray
    sensitivity: FloatArray
    specificity: FloatArray
    positive_value: FloatArray
    negative_value: FloatArray
    sure_yes: FloatArray | None = None
    sure_no: FloatArray | None = None
    depends: FloatArray | None = None
    intervals: dict[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit of flagging rows at t thresholds; arrays of shape (t,).

    Intervals are pointwise, and NaN with fewer than two rows or groups of the rarer outcome.

    Attributes
    ----------
    threshold : ndarray
        Thresholds in (0, 1).
    net_benefit, everyone : ndarray
        Net benefit of flagging rows by their probability, and of flagging every row.
    net_benefit_low, net_benefit_high : ndarray
        Confidence interval of the net benefit, which is its difference from flagging no row.
    gain, gain_low, gain_high : ndarray
        Net benefit minus the larger one of flagging every row and none, with an interval.
    versus : ndarray or None
        Net benefit of flagging rows by the other probabilities.
    difference, difference_low, difference_high : ndarray or None
        ``net_benefit`` minus ``versus``, with a confidence interval.
    """

    threshold: FloatArray
    net_benefit: FloatArray
    net_benefit_low: FloatArray
    net_benefit_high: FloatArray
    everyone: FloatArray
    gain: FloatArray
    gain_low: FloatArray
    gain_high: FloatArray
    versus: FloatArray | None = None
    difference: FloatArray | None = None
    difference_low: FloatArray | None = None
    difference_high: FloatArray | None = None


def net_gain(
    event: EventEstimates,
    versus: FloatArray,
    at: FloatArray,
    level: float,
    lowest: ArrayLike,
    highest: ArrayLike,
) -> FloatArray:
    """Return the difference of two net benefits and the ends of its interval, (3, t).

    No rows have a difference outside ``lowest`` and ``highest`` (t,), at which ends are clipped.

    Rows that one of the two flags contribute ±1 if they are positive and ±odds if not, others 0.
    Half a row is added to each of the four kinds of rows (Bonett & Price 2012), or the interval
    would be too short if few rows contribute. Groups widen it by their design effect.
    """
    outcome, p, weight, groups = event
    odds, total = at / (1 - at), weight.sum()
    sums = {}  # of weights, and of their squares, by outcome and by who flags the row
    for value in (1, 0):
        for sign in (1, -1):
            rows = (outcome == value) & (sign * (p - versus) > 0)
            for power in (1, 2):
                upper, lower = (
                    weight_around(values[rows], weight[rows] ** power, at)[1]
                    for values in ((p, versus) if sign > 0 else (versus, p))
                )
                sums[value, sign, power] = upper - lower
    hits, alarms = (sums[value, 1, 1] - sums[value, -1, 1] for value in (1, 0))
    difference = (hits - odds * alarms) / total
    # Σ w² (gain - mean)², from the sums of w² over rows that gain 1, -1, odds and -odds.
    square = float(weight @ weight)
    linear = sums[1, 1, 2] - sums[1, -1, 2] - odds * (sums[0, 1, 2] - sums[0, -1, 2])
    independent = sums[1, 1, 2] + sums[1, -1, 2] + odds**2 * (sums[0, 1, 2] + sums[0, -1, 2])
    independent += difference**2 * square - 2 * difference * linear
    n_units, effect = event.units, np.ones(len(at))
    if groups is not None:
        for i, threshold in enumerate(at):
            flagged = (p >= threshold).astype(np.float64) - (versus >= threshold)
            gain = weight * (flagged * np.where(outcome > 0, 1.0, -odds[i]) - difference[i])
            clustered = variance_of_sum(gain, groups)
            effect[i] = max(1.0, clustered / independent[i]) if independent[i] > 0 else 1.0
    if n_units < 2:
        return np.stack([difference, *np.full((2, len(at)), np.nan)])
    extra = (1 + odds**2) * square / len(p)
    error = np.sqrt(effect * (np.maximum(independent, 0) + extra)) / total
    margin = stdtrit(n_units - 1, (1 + level) / 2) * error
    low, high = np.maximum(difference - margin, lowest), np.minimum(difference + margin, highest)
    return np.stack([difference, low, high])


def weight_around(values: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
    """Return the total weight of the values (n,) below thresholds (t,), and of others, (2, t)."""
    order = np.argsort(values, kind="stable")
    total = np.append(0.0, np.cumsum(weight[order]))
    below = total[np.searchsorted(values[order], at, "left")]
    return np.stack([below, total[-1] - below])


def share_of(part: FloatArray, remainder: FloatArray) -> FloatArray:
    """Return the share (t,) of a part of a total, NaN where the total is 0."""
    share = np.full(len(part), np.nan)
    np.divide(part, part + remainder, out=share, where=part + remainder > 0)
    return share


def check_thresholds(thresholds: ArrayLike) -> FloatArray:
    """Return thresholds (t,) in [0, 1]."""
    at = as_numbers(np.atleast_1d(np.asarray(thresholds)), "thresholds")
    if at.ndim > 1:
        raise InputError(f"thresholds must have shape (t,), got {at.shape}")
    is_outside = ~((at >= 0) & (at <= 1))
    if is_outside.any():
        raise ValueError(f"thresholds must lie in [0, 1], got {at[is_outside][0]}")
    return at
