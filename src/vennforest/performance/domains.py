"""How much more frequent kinds of rows are among new rows than among those calibrated on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from vennforest._validation import FloatArray
from vennforest.classifier import CalibratedClassifier

MOST_RATIO = 50.0
"""Density ratios are at most this, and at least one divided by it."""


def density_ratios(
    estimator: Any, old: Any, new: Any, random_state: int
) -> tuple[FloatArray, FloatArray]:
    """Return the density of new rows divided by that of old ones, at old rows and at new ones.

    A calibrated classifier is trained to tell new rows from old, and the odds that it gives to a
    row that it was not trained on are the ratio, but for the numbers of rows (Bickel, Brückner &
    Scheffer 2009).

    Parameters
    ----------
    estimator : classifier
        One that takes such rows; a clone is fitted.
    old, new : array-like, sparse matrix or data frame of shape (n, d) and (m, d)
    random_state : int

    Returns
    -------
    (ndarray of shape (n,), ndarray of shape (m,))
        Above zero; those at old rows have mean 1.
    """
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    n, m = old.shape[0], new.shape[0]
    is_new = np.repeat([0, 1], [n, m])
    domain = CalibratedClassifier(clone(estimator), random_state=random_state, merge="pooled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of training rows is not of the user's model
        p = domain.fit(_stacked(old, new), is_new).oob_probability_
    odds = p[:, 1] / np.maximum(p[:, 0], np.finfo(float).tiny) * n / m
    ratios: FloatArray = np.clip(odds, 1 / MOST_RATIO, MOST_RATIO)
    ratios /= ratios[:n].mean()
    return ratios[:n], ratios[n:]


def _stacked(old: Any, new: Any) -> Any:
    if issparse(old):
        parts: Any = [old, new]
        return vstack(parts).tocsr()
    if hasattr(old, "iloc"):
        import pandas as pd

        return pd.concat([old, new], ignore_index=True)
    return np.concatenate([np.asarray(old), np.asarray(new)])
