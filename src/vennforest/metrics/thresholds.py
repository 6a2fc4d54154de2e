"""What follows from acting on a probability at a threshold, with bounds counted three ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import positive_problem
from vennforest.multiprobability import Multiprobability


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """Decisions at t thresholds, each array of shape (t,); NaN where nothing is divided by.

    A row is flagged where its probability is at least the threshold.

    Attributes
    ----------
    threshold : ndarray
        In [0, 1].
    flagged : ndarray
        Share of rows that are flagged.
    sensitivity, specificity : ndarray
        Share of the positive class that is flagged, and of the others that is not.
    positive_value, negative_value : ndarray
        Predictive values: share of the flagged rows that are positive, and of the others that are
        not.
    sure_yes, sure_no, depends : ndarray or None
        Number of rows (sum of weights) flagged at both bounds, at neither, and at one of them.
    positive_yes, positive_no, positive_depends : ndarray or None
        How many of these are positive.
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
    positive_yes: FloatArray | None = None
    positive_no: FloatArray | None = None
    positive_depends: FloatArray | None = None


def threshold_table(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike,
    *,
    bounds: Multiprobability | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> ThresholdTable:
    """Return what flagging rows at thresholds does.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.
    thresholds : array-like of shape (t,)
        In [0, 1].
    bounds : Multiprobability, optional
        Of the same rows, for the counts in three ways.

    Raises
    ------
    ValueError
        As ``ranking_curves``, if a threshold lies outside [0, 1], or bounds are of other rows.
    """
    at = _check_thresholds(thresholds)
    outcome, estimate, weight = positive_problem(y, p, sample_weight, classes, pos_label)
    negative = weight * (1 - outcome)
    positive = weight * outcome
    hit, false = _at_least(estimate, positive, at), _at_least(estimate, negative, at)
    n_positive, n_negative = positive.sum(), negative.sum()
    counts: dict[str, FloatArray] = {}
    if bounds is not None:
        low, high, kept = _bounds_of(bounds, y, sample_weight, classes, pos_label)
        low, high = low[kept], high[kept]
        for name, values in (("", weight), ("positive_", positive)):
            yes, open_or_yes = _at_least(low, values, at), _at_least(high, values, at)
            counts["sure_yes" if not name else "positive_yes"] = yes
            counts["sure_no" if not name else "positive_no"] = values.sum() - open_or_yes
            counts["depends" if not name else "positive_depends"] = open_or_yes - yes
    return ThresholdTable(
        threshold=at,
        flagged=(hit + false) / weight.sum(),
        sensitivity=_ratio(hit, n_positive),
        specificity=_ratio(n_negative - false, n_negative),
        positive_value=_ratio(hit, hit + false),
        negative_value=_ratio(n_negative - false, weight.sum() - hit - false),
        **counts,
    )


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit of flagging rows at t thresholds, each array of shape (t,).

    Attributes
    ----------
    threshold : ndarray
        In (0, 1).
    net_benefit : ndarray
        Of flagging where the probability is at least the threshold, in (-inf, share].
    everyone : ndarray
        Of flagging every row; flagging nobody has net benefit 0.
    at_lower, at_upper : ndarray or None
        Of flagging where the lower bound is at least the threshold, and where the upper one is.
    """

    threshold: FloatArray
    net_benefit: FloatArray
    everyone: FloatArray
    at_lower: FloatArray | None = None
    at_upper: FloatArray | None = None


def decision_curve(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike,
    *,
    bounds: Multiprobability | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> DecisionCurve:
    """Return the net benefit of decisions at thresholds.

    Parameters
    ----------
    y, p, bounds, sample_weight, classes, pos_label
        As in ``threshold_table``.
    thresholds : array-like of shape (t,)
        In (0, 1).

    Raises
    ------
    ValueError
        As ``threshold_table``, or if a threshold is 0 or 1.

    Notes
    -----
    Vickers & Elkin (2006): the net benefit at threshold t is TP / n - FP / n * t / (1 - t): true
    positives, less false ones at the exchange rate that the threshold implies.
    """
    at = _check_thresholds(thresholds)
    if ((at <= 0) | (at >= 1)).any():
        raise ValueError("thresholds must lie in (0, 1), got 0 or 1")
    outcome, estimate, weight = positive_problem(y, p, sample_weight, classes, pos_label)
    worth = [weight * outcome, weight * (1 - outcome)]
    odds, n = at / (1 - at), weight.sum()

    def benefit(values: FloatArray) -> FloatArray:
        gained, lost = (_at_least(values, each, at) for each in worth)
        worth_it: FloatArray = (gained - lost * odds) / n
        return worth_it

    band: dict[str, FloatArray] = {}
    if bounds is not None:
        low, high, kept = _bounds_of(bounds, y, sample_weight, classes, pos_label)
        band = {"at_lower": benefit(low[kept]), "at_upper": benefit(high[kept])}
    everyone = (worth[0].sum() - worth[1].sum() * odds) / n
    return DecisionCurve(at, benefit(estimate), everyone, **band)


def _at_least(values: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
    """Return the weight of the values (n,) that are at least each threshold, (t,)."""
    order = np.argsort(values, kind="stable")
    below = np.append(0.0, np.cumsum(weight[order]))
    found: FloatArray = below[-1] - below[np.searchsorted(values[order], at, "left")]
    return found


def _ratio(part: FloatArray, whole: Any) -> FloatArray:
    whole = np.broadcast_to(whole, part.shape)
    filled = whole > 0
    ratio: FloatArray = np.where(filled, part / np.where(filled, whole, 1.0), np.nan)
    return ratio


def _check_thresholds(thresholds: ArrayLike) -> FloatArray:
    at = np.atleast_1d(np.asarray(thresholds, np.float64))
    outside = ~((at >= 0) & (at <= 1))
    if at.ndim != 1 or outside.any():
        raise ValueError(
            f"thresholds must lie in [0, 1], got {at[outside][0] if outside.any() else at.shape}"
        )
    return at


def _bounds_of(
    bounds: Multiprobability, y: ArrayLike, sample_weight: Any, classes: Any, pos_label: Any
) -> tuple[FloatArray, FloatArray, Any]:
    """Return the bounds of the positive class, and which rows have weight."""
    n = len(np.asarray(y))
    if len(bounds) != n:
        raise ValueError(f"bounds must be of {n} rows, got {len(bounds)}")
    labels = bounds.classes.tolist()
    if pos_label is None and len(labels) == 2:
        column = 1
    elif pos_label in labels:
        column = labels.index(pos_label)
    else:
        raise ValueError(f"pos_label must be one of {labels}, got {pos_label!r}")
    kept: Any = slice(None)
    if sample_weight is not None:
        kept = np.broadcast_to(np.asarray(sample_weight, np.float64), (n,)) > 0
    return bounds.lower[:, column], bounds.upper[:, column], kept
