"""Learning curves: repeated values over sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray, check_scores


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Mean and spread of repeated values over sizes, each of shape (s,).

    Attributes
    ----------
    sizes : ndarray
        For instance numbers of training examples; increasing.
    mean, low, high : ndarray
        Mean over the repetitions, and the ends of the error bars.
    """

    sizes: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


Spread = Literal["standard-error", "standard-deviation", "range"]
"""What error bars show."""


def learning_curve(
    sizes: ArrayLike, values: ArrayLike, spread: Spread = "standard-error"
) -> LearningCurve:
    """Return mean and error bars of repeated values over sizes.

    Parameters
    ----------
    sizes : array-like of shape (s,)
        Any order.
    values : array-like of shape (s,) or (s, r)
        A value a size, or one a size and repetition (a fold, a seed). NaN: not run.
    spread : {"standard-error", "standard-deviation", "range"}
        Half-width of the bars, the standard error of the mean or the standard deviation of the
        repetitions (both with r − 1), or their smallest and largest value. One repetition has no
        bar.

    Returns
    -------
    LearningCurve

    Raises
    ------
    ValueError
        If shapes do not fit, a size has no value, or ``spread`` is unknown.
    """
    at = check_scores(sizes, "sizes")
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if at.ndim != 1 or table.ndim != 2 or len(at) != len(table):
        raise ValueError(f"values must have a row for each of {len(at)} sizes, got {table.shape}")
    run = ~np.isnan(table)
    n = run.sum(axis=1)
    if not n.all():
        raise ValueError(f"values must hold a number for every size, got none at {at[n == 0][0]:g}")
    mean = np.where(run, table, 0).sum(axis=1) / n
    if spread == "range":
        low = np.where(run, table, np.inf).min(axis=1)
        high = np.where(run, table, -np.inf).max(axis=1)
    elif spread in ("standard-error", "standard-deviation"):
        square = np.where(run, (table - mean[:, None]) ** 2, 0).sum(axis=1)
        half = np.sqrt(square / np.maximum(1, n - 1))
        half = half / np.sqrt(n) if spread == "standard-error" else half
        low, high = mean - half, mean + half
    else:
        raise ValueError(f"spread must be one of {list(get_args(Spread))}, got {spread!r}")
    order = np.argsort(at, kind="stable")
    return LearningCurve(at[order], mean[order], low[order], high[order])
