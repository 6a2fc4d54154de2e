"""From examples to counts: what maps for two classes are fitted to."""

from __future__ import annotations

import numpy as np

from vennforest._validation import FloatArray, IntArray

FINEST = 16_384
"""Distinct scores from which on near-equal ones are put together."""

FARTHEST = 40.0
"""Log-odds beyond which scores are put together."""


def count_labels(
    scores: FloatArray, positive: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return distinct scores, ascending, with their weights and positive weights, each (m,).

    Scores are put together as in `group` where many of them differ.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Any finite numbers.
    positive : ndarray of shape (n,)
        Labels, 0.0 or 1.0.
    weight : ndarray of shape (n,) or None
        How often each example is to count, above zero.
    """
    w = np.ones(len(scores)) if weight is None else weight
    if more_differ(scores, FINEST):
        return group(scores, w, w * positive)
    x, point = np.unique(scores, return_inverse=True)
    total: FloatArray = np.bincount(point, w, len(x)).astype(np.float64)
    share: FloatArray = np.bincount(point, w * positive, len(x)).astype(np.float64)
    return x, total, share


def more_differ(scores: FloatArray, number: int) -> bool:
    """Tell whether scores (n,) hold more distinct ones than a number.

    So that the answer is the same for examples and for counts of them; where nearly all differ the
    first of them tell.
    """
    if len(scores) <= number:
        return False
    return len(np.unique(scores[: 2 * number])) > number or len(np.unique(scores)) > number


def group(
    x: FloatArray, weight: FloatArray, positive: FloatArray, cells: int = FINEST
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up counts over equal cells of the log-odds, or of the scores.

    To a smooth map that spans the range, scores within one cell are as good as equal; each cell
    is represented by its mean score. The log-odds count where all scores are within [0, 1].

    Parameters
    ----------
    x : ndarray of shape (n,)
        Scores.
    weight, positive : ndarray of shape (n,)
        Their weights, and the weights of the positive class.
    cells : int
        How many cells.
    """
    z = x
    if x.min() >= 0 and x.max() <= 1:
        with np.errstate(divide="ignore"):
            z = np.clip(np.log(x) - np.log1p(-x), -FARTHEST, FARTHEST)
    low, high = float(z.min()), float(z.max())
    with np.errstate(over="ignore"):
        width = high - low
    if not 0 < width < np.inf:
        return x, weight, positive
    cell: IntArray = ((z - low) / width * cells).astype(np.intp)
    total = np.bincount(cell, weight)
    there = total > 0
    mean: FloatArray = np.bincount(cell, x * weight)[there] / total[there]
    share: FloatArray = np.bincount(cell, positive)[there].astype(np.float64)
    return np.clip(mean, x.min(), x.max()), total[there].astype(np.float64), share
