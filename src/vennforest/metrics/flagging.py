"""Flagging rows at thresholds: shares, predictive values and net benefit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from vennforest._validation import FloatArray, IntArray, check_inside, class_index
from vennforest.metrics._inputs import check_versus, group_numbers, positive_problem
from vennforest.metrics.intervals import share_interval
from vennforest.multiprobability import BoundsOfClasses
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


def threshold_table(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike,
    *,
    bounds: BoundsOfClasses | None = None,
    groups: ArrayLike | None = None,
    level: float | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> ThresholdTable:
    """Return shares and predictive values of flagging rows at thresholds.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.
    thresholds : array-like of shape (t,)
        Thresholds in [0, 1].
    bounds : Multiprobability or ConfidenceIntervals, optional
        Bounds for the same rows, required for ``sure_yes``, ``sure_no`` and ``depends``.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, for the intervals.
    level : float, optional
        Confidence level of intervals, in (0, 1): Wilson's, with groups for the effective number of
        rows (Korn & Graubard 1998). By default none are computed.
    """
    at = _check_thresholds(thresholds)
    problem = positive_problem(y, p, sample_weight, classes, pos_label)
    outcome, estimate, weight = problem
    group = group_numbers(groups, p, sample_weight)
    positive, negative = weight * outcome, weight * (1 - outcome)
    hits, alarms = _weight_above(estimate, positive, at), _weight_above(estimate, negative, at)
    n_positive, n_negative = positive.sum(), negative.sum()
    counts: dict[str, FloatArray] = {}
    if bounds is not None:
        low, high = _bounds_of(bounds, y, sample_weight, pos_label)
        at_low, at_high = _weight_above(low, weight, at), _weight_above(high, weight, at)
        counts = {"sure_yes": at_low, "sure_no": weight.sum() - at_high}
        counts["depends"] = at_high - at_low
    return ThresholdTable(
        threshold=at,
        flagged=(hits + alarms) / weight.sum(),
        sensitivity=_ratio(hits, n_positive),
        specificity=_ratio(n_negative - alarms, n_negative),
        positive_value=_ratio(hits, hits + alarms),
        negative_value=_ratio(n_negative - alarms, weight.sum() - hits - alarms),
        intervals={} if level is None else _intervals_of_shares(at, level, group, *problem),
        **counts,
    )


def _intervals_of_shares(
    at: FloatArray,
    level: float,
    group: IntArray | None,
    outcome: FloatArray,
    p: FloatArray,
    weight: FloatArray,
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the ends (t,) of the intervals of the shares in a `ThresholdTable`."""
    check_inside(level, "level")
    ends: dict[str, list[tuple[float, float]]] = {}
    event = outcome > 0
    for threshold in at:
        flagged = p >= threshold
        shares = {
            "sensitivity": (event, flagged),
            "specificity": (~event, ~flagged),
            "positive_value": (flagged, event),
            "negative_value": (~flagged, ~event),
        }
        for name, (among, hit) in shares.items():
            some = None if group is None else group[among]
            pair = (np.nan, np.nan)
            if among.any():
                pair = share_interval(hit[among].astype(np.float64), some, weight[among], level)
            ends.setdefault(name, []).append(pair)
    return {name: tuple(np.transpose(pairs)) for name, pairs in ends.items()}


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit of flagging rows at t thresholds; arrays of shape (t,).

    Attributes
    ----------
    threshold : ndarray
        Thresholds in (0, 1).
    net_benefit, everyone : ndarray
        Net benefit of flagging rows by their probability, and of flagging every row.
    versus : ndarray or None
        Net benefit of flagging rows by the other probabilities.
    difference, difference_low, difference_high : ndarray or None
        ``net_benefit`` minus ``versus``, and its pointwise confidence interval, which is infinite
        with a single row or group.
    """

    threshold: FloatArray
    net_benefit: FloatArray
    everyone: FloatArray
    versus: FloatArray | None = None
    difference: FloatArray | None = None
    difference_low: FloatArray | None = None
    difference_high: FloatArray | None = None


def decision_curve(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike,
    *,
    versus: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> DecisionCurve:
    """Return the net benefit of decisions at thresholds.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``threshold_table``.
    thresholds : array-like of shape (t,)
        Thresholds in (0, 1).
    versus : array-like of shape (n,) or (n, k), optional
        Other probabilities for the same rows, whose net benefit is compared.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, for the interval of the difference; by default all rows are
        independent.
    level : float
        Pointwise confidence level of this interval, in (0, 1).

    Notes
    -----
    Vickers & Elkin (2006): the net benefit at threshold t is TP / n - w FP / n with the weight
    w = t / (1 - t) of a false positive.

    The difference is a mean over rows. Rows that only one of the two flags contribute ±1 if they
    are positive and ±w if not, the others 0. Student's interval uses the variance of this mean
    after half a row is added to each of the four kinds, as for paired proportions (Bonett & Price
    2012); otherwise it would be too short if few rows contribute.

    Examples
    --------
    >>> y, p, q = [0, 0, 1, 1] * 50, [0.1, 0.2, 0.6, 0.7] * 50, [0.1, 0.6, 0.2, 0.7] * 50
    >>> curve = decision_curve(y, p, [0.5], versus=q)
    >>> curve.difference, curve.difference_low.round(2), curve.difference_high.round(2)
    (array([0.5]), array([0.43]), array([0.57]))
    """
    at = _check_thresholds(thresholds)
    if ((at <= 0) | (at >= 1)).any():
        raise ValueError("thresholds must lie in (0, 1), got 0 or 1")
    outcome, estimate, weight = positive_problem(y, p, sample_weight, classes, pos_label)
    positive, negative = weight * outcome, weight * (1 - outcome)
    odds, n = at / (1 - at), weight.sum()

    def benefit(values: FloatArray) -> FloatArray:
        hits, alarms = _weight_above(values, positive, at), _weight_above(values, negative, at)
        return np.asarray((hits - alarms * odds) / n)

    check_inside(level, "level")
    group = group_numbers(groups, p, sample_weight)  # checked even where there is no difference
    band: dict[str, FloatArray] = {}
    if versus is not None:
        check_versus(versus, p)
        p_versus = positive_problem(y, versus, sample_weight, classes, pos_label).p
        band = {"versus": benefit(p_versus), "difference": benefit(estimate) - benefit(p_versus)}
        margin = _margin_of_difference(estimate, p_versus, outcome, weight, group, at, level)
        band["difference_low"] = band["difference"] - margin
        band["difference_high"] = band["difference"] + margin
    everyone = (positive.sum() - negative.sum() * odds) / n
    return DecisionCurve(at, benefit(estimate), everyone, **band)


def _margin_of_difference(
    p: FloatArray,
    p_versus: FloatArray,
    outcome: FloatArray,
    weight: FloatArray,
    group: IntArray | None,
    at: FloatArray,
    level: float,
) -> FloatArray:
    """Return half the width of the interval for the difference of net benefits, (t,)."""
    n = weight.sum()
    size = weight if group is None else np.bincount(group, weights=weight)
    # Without groups a weight of 2 is two observations.
    n_groups = n if group is None else len(size)
    if n_groups < 2:
        return np.full(len(at), np.inf)
    variance = np.empty(len(at))
    for i, threshold in enumerate(at):
        odds = threshold / (1 - threshold)
        flagged = (p >= threshold).astype(np.float64) - (p_versus >= threshold)
        gain = flagged * np.where(outcome > 0, 1.0, -odds)
        gain -= weight @ gain / n
        if group is None:
            squares = weight @ gain**2
        else:
            squares = (np.bincount(group, weights=weight * gain) ** 2).sum()
        extra = (1 + odds**2) * (n / n_groups) ** 2  # half a row of mean size of the four kinds
        variance[i] = (squares * n_groups / (n_groups - 1) + extra) / n**2
    return np.asarray(stdtrit(n_groups - 1, (1 + level) / 2) * np.sqrt(variance))


def _weight_above(values: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
    """Return the total weight of the values (n,) at or above each threshold, (t,)."""
    order = np.argsort(values, kind="stable")
    below = np.append(0.0, np.cumsum(weight[order]))
    return np.asarray(below[-1] - below[np.searchsorted(values[order], at, "left")])


def _ratio(numerator: FloatArray, denominator: Any) -> FloatArray:
    """Return ratios (t,), NaN where the denominator is 0."""
    ratio = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=ratio, where=np.asarray(denominator) > 0)
    return ratio


def _check_thresholds(thresholds: ArrayLike) -> FloatArray:
    at = as_numbers(np.atleast_1d(np.asarray(thresholds)), "thresholds")
    is_outside = ~((at >= 0) & (at <= 1))
    if is_outside.any():
        raise ValueError(f"thresholds must lie in [0, 1], got {at[is_outside][0]}")
    return at


def _bounds_of(
    bounds: BoundsOfClasses, y: ArrayLike, sample_weight: Any, pos_label: Any
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds of the positive class in the rows with positive weight."""
    n = len(np.asarray(y))
    if len(bounds) != n:
        raise ValueError(f"bounds must be of {n} rows, got {len(bounds)}")
    column = class_index(bounds.classes, pos_label)
    counted = np.broadcast_to(np.asarray(1 if sample_weight is None else sample_weight) > 0, n)
    return bounds.lower[counted, column], bounds.upper[counted, column]
