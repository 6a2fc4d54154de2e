"""Confidence intervals of shares, and bounds sorted by probability."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import t as student

from vennforest._messages import shown
from vennforest._validation import FloatArray, IntArray, class_index, encode_labels
from vennforest.multiprobability import Multiprobability
from vennforest.scores import check_scores

MAX_POINTS = 400
"""Maximum number of objects in a curve."""


@dataclass(frozen=True, eq=False)
class IntervalCurve:
    """Bounds and intervals of one event, sorted by probability.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Rank of each object, from 1 to n; increasing.
    low, high, p : ndarray of shape (m,)
        Lower and upper probability, and the merged probability.
    outcome : ndarray of shape (m,), or None
        1.0 where the event happened, 0.0 elsewhere.
    event : str
        Label of the class, or ``"predicted label"``.
    n : int
        Number of objects, m of which are in the curve.
    confidence : tuple of two ndarrays of shape (m,), or None
        Lower and upper ends of the confidence intervals.
    level : float or None
        Level of the confidence intervals.
    """

    x: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    outcome: FloatArray | None
    event: str
    n: int
    confidence: tuple[FloatArray, FloatArray] | None = None
    level: float | None = None


def interval_curve(
    y: ArrayLike | None,
    m: Multiprobability,
    *,
    p: FloatArray | None = None,
    confidence: Any = None,
    pos_label: Any = None,
) -> IntervalCurve:
    """Return bounds and intervals of one class, sorted by probability.

    Of more than 400 objects, evenly spaced ones are kept.

    Parameters
    ----------
    y : array-like of shape (n,) or None
        The observed labels, if they are known.
    m : Multiprobability
        Lower and upper probabilities of n objects.
    p : ndarray of shape (n, k), optional
        Merged probabilities; by default the middle of the bounds.
    confidence : ConfidenceIntervals, optional
        Confidence intervals of the same objects, as ``predict_confidence`` returns.
    pos_label : label, optional
        The class; by default the second of two, and with more the predicted label.
    """
    if not isinstance(m, Multiprobability) or not len(m):
        raise ValueError(f"m must be a Multiprobability of at least one object, got {shown(m)}")
    middle = (m.lower + m.upper) / 2 if p is None else check_scores(p, "p")
    if middle.shape != m.lower.shape:
        raise ValueError(f"p must have shape {m.lower.shape}, got {middle.shape}")
    if confidence is not None and confidence.lower.shape != m.lower.shape:
        raise ValueError(
            f"confidence must have shape {m.lower.shape}, got {confidence.lower.shape}"
        )
    if pos_label is None and len(m.classes) > 2:
        column, event = m.lower.argmax(axis=1), "predicted label"
    else:
        code = class_index(m.classes, pos_label)
        column, event = np.full(len(m), code), str(m.classes[code])
    rows = np.arange(len(m))
    order = np.lexsort((m.upper[rows, column], m.lower[rows, column], middle[rows, column]))
    if len(m) > MAX_POINTS:
        rows = np.linspace(0, len(m) - 1, MAX_POINTS).round().astype(np.intp)
        order = order[rows]
    cells = order, column[order]
    outcome = None
    if y is not None:
        is_event = column == encode_labels(y, m.classes, len(m))[0]
        outcome = is_event[order].astype(np.float64)
    curve = IntervalCurve(
        rows.astype(np.float64) + 1,
        m.lower[cells],
        m.upper[cells],
        middle[cells],
        outcome,
        event,
        len(m),
    )
    if confidence is None:
        return curve
    ends = confidence.lower[cells], confidence.upper[cells]
    return replace(curve, confidence=ends, level=confidence.level)


def share_interval(
    outcome: FloatArray,
    groups: IntArray | None = None,
    weight: FloatArray | None = None,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return Wilson's confidence interval of the share of 1 in ``outcome`` (n,).

    With groups, n is divided by the design effect (Korn & Graubard 1998, Survey Methodology 24,
    193-201): the ratio of the share's variance over groups to that of independent rows, at least 1,
    times (t / z)². If all outcomes are equal, each group counts as one row. For a single group the
    interval is [0, 1]. Weights (n,) are numbers of observations.
    """
    weight = np.ones(len(outcome)) if weight is None else weight
    n = float(weight.sum())
    share = float(weight @ outcome / n)
    tail = (1 + level) / 2
    z = float(ndtri(tail))
    if groups is not None:
        member = np.unique(groups, return_inverse=True)[1]
        sizes = np.bincount(member, weights=weight)
        if len(sizes) == 1:
            return 0.0, 1.0
        residual = np.bincount(member, weights=weight * (outcome - share))
        effect = float((sizes**2).sum()) / n
        if 0 < share < 1:
            between = len(sizes) / (len(sizes) - 1) * float((residual**2).sum())
            effect = max(1.0, between / (n * share * (1 - share)))
        n /= effect * (float(student.ppf(tail, len(sizes) - 1)) / z) ** 2
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    return low, 1.0 if share == 1 else min(1.0, middle + half)
