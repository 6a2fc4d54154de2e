"""Bounds and intervals sorted by probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vennforest._messages import shown
from vennforest._validation import FloatArray, class_index, encode_labels
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
    if confidence is not None:
        shape = np.shape(getattr(confidence, "lower", 0))
        if shape != m.lower.shape:
            raise ValueError(f"confidence must have shape {m.lower.shape}, got {shape}")
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
    x, low, high = rows.astype(np.float64) + 1, m.lower[cells], m.upper[cells]
    ends = level = None
    if confidence is not None:
        ends, level = (confidence.lower[cells], confidence.upper[cells]), confidence.level
    return IntervalCurve(x, low, high, middle[cells], outcome, event, len(m), ends, level)
