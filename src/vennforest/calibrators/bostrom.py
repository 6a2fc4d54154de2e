"""Boström's correction: the most probable class is raised, the others shrink alike."""

from __future__ import annotations

import numpy as np

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators._logistic import logistic
from vennforest.calibrators._probabilities import check_probabilities
from vennforest.calibrators.base import Calibrator

GRID = 51
"""A and B are integers from 0 to 50."""

BLOCK = 2048
"""How many distinct probabilities are tried at once against the grid (40 MB)."""

EQUAL = 1e-12
"""Mean Brier scores closer than this are equal."""


class BostromScaling(Calibrator):
    """Boström's correction: raise the largest probability of each example, shrink the others.

    With the largest probability p_max of an example, its class (the winner) gets ``p + r (1 - p)``
    and every other class ``p (1 - r)`` (Boström 2008, section 2.3.2), where
    ``r = 1 / (1 + exp(B - A p_max))`` and A, B are the integers from 0 to 50 with the smallest
    Brier score ``mean |p' - y|**2`` over vectors on the calibration set. Any number of classes.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    A_, B_ : int
        The chosen parameters of r.

    Raises
    ------
    ValueError
        From ``fit`` and ``predict_proba``, if scores are no probabilities: outside [0, 1], or
        rows of columns that do not sum to 1.

    Notes
    -----
    The paper gives r a sigmoid "on the same form as used in Platt scaling", which would be
    ``1 / (1 + exp(A p + B))`` and fall with p for every A > 0, while its argument asks for one
    that does not fall. So the sign of A, and with it that of B, is corrected here.

    One column of scores s stands for the vector (1 - s, s). Of equal largest probabilities the
    first class is the winner. Of parameters with equal Brier scores (within 1e-12) the smallest A
    is taken, then the smallest B. Rows still sum to 1, the winner stays the winner, so accuracy
    is unchanged, and for two classes so is the area under the ROC curve.

    ``|p' - y|**2`` is a quadratic in 1 - r whose coefficients depend on p and y alone, so they
    are summed over equal p_max first and the 2,601 pairs cost one pass over distinct values.

    Examples
    --------
    >>> from vennforest.calibrators.bostrom import BostromScaling
    >>> model = BostromScaling().fit([0.1, 0.3, 0.6, 0.8], ["no", "no", "yes", "yes"])
    >>> model.predict_proba([0.3, 0.7]).round(3)
    array([[1., 0.],
           [0., 1.]])
    """

    _keeps_columns = True

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        p, winner = _vectors(scores)
        rows = np.arange(len(p))
        largest = p[rows, winner]
        wrong = codes != winner
        # With q = 1 - r, and w and y the unit vectors of the winner and of the label:
        # |p' - y|^2 = q^2 |p - w|^2 + 2 q (p - w) . (w - y) + |w - y|^2.
        others = p.copy()
        others[rows, winner] = 0
        square = (1 - largest) ** 2 + np.square(others).sum(axis=1)
        linear = np.where(wrong, 2 * (largest - 1 - p[rows, codes]), 0.0)
        w = np.ones(len(p)) if weight is None else weight
        values, group = np.unique(largest, return_inverse=True)
        square, linear = (np.bincount(group, w * part, len(values)) for part in (square, linear))
        self.A_, self.B_ = _smallest(values, square / w.sum(), linear / w.sum())

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        p, winner = _vectors(scores)
        rows = np.arange(len(p))
        _, q, _ = logistic(self.A_ * p[rows, winner] - self.B_)
        corrected = p * q[:, None]
        corrected[rows, winner] = 1 - (1 - p[rows, winner]) * q
        return corrected


def _vectors(scores: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return probabilities (n, k), rows summing to 1, and each row's winner (n,)."""
    p = check_probabilities(scores, "")
    winner = p.argmax(axis=1)
    return p / p.sum(axis=1, keepdims=True), winner


def _smallest(values: FloatArray, square: FloatArray, linear: FloatArray) -> tuple[int, int]:
    """Return A and B with the smallest ``sum square q**2 + linear q`` over the values' q."""
    steps = np.arange(GRID)
    loss = np.zeros((GRID, GRID))
    shift = np.exp(-steps.astype(np.float64))
    for begin in range(0, len(values), BLOCK):
        block = slice(begin, begin + BLOCK)
        for A in steps:
            q = 1 / (1 + np.exp(A * values[block]) * shift[:, None])
            loss[A] += (q * (q * square[block] + linear[block])).sum(axis=1)
    best = np.flatnonzero(loss.ravel() <= loss.min() + EQUAL)[0]
    return int(best) // GRID, int(best) % GRID
