"""Boström's correction: the most probable class is raised, the others shrink alike."""

from __future__ import annotations

import numpy as np

from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import Term, first_of_largest, if_at_most
from vennforest.counts import ScoreCounts

N_VALUES = 51  # A and B are integers from 0 to 50
N_CELLS = 4096  # equal cells at whose means probabilities are put together if there are more
EQUAL_BRIER_SCORE = 1e-12  # mean Brier scores closer than this are equal


class BostromScaling(Calibrator):
    """Boström's correction: raise the largest probability of each example, shrink the others.

    With the largest probability p_max of an example, its class (the winner) gets ``p + r (1 - p)``
    and every other class ``p (1 - r)`` (Boström 2008, section 2.3.2), where
    ``r = 1 / (1 + exp(B - A p_max))`` and A, B are the integers from 0 to 50 with the smallest
    Brier score ``mean |p' - y|**2`` over vectors on the calibration set. Any number of classes.

    Notes
    -----
    The paper's sigmoid would fall with p for every A > 0, while its argument asks for one that does
    not fall: the signs of A and B are corrected here.

    One column of scores s stands for the vector (1 - s, s). Of parameters with equal Brier scores
    the smallest A is taken, then the smallest B. The winner, of equals the first class, stays the
    winner, so accuracy is unchanged.

    Examples
    --------
    >>> model = BostromScaling().fit([0.1, 0.3, 0.6, 0.8], ["no", "no", "yes", "yes"])
    >>> model.predict_proba([0.3, 0.7]).round(3)
    array([[1., 0.],
           [0., 1.]])
    """

    title = "Boström"
    A_: int
    B_: int

    def _fit(self, counts: ScoreCounts) -> None:
        p, weights, rows = counts.scores, counts.weights, np.arange(len(counts))
        p = np.column_stack([1 - p, p]) if p.ndim == 1 else p / p.sum(axis=1, keepdims=True)
        winner = p.argmax(axis=1)
        largest = p[rows, winner]
        # With q = 1 - r, and w and y the unit vectors of the winner and of the label:
        # |p' - y|^2 = q^2 |p - w|^2 + 2 q (p - w) . (w - y) + |w - y|^2.
        losers = p.copy()
        losers[rows, winner] = 0
        square = (1 - largest) ** 2 + np.square(losers).sum(axis=1)
        linear = 2 * (largest[:, None] - 1 - p)
        linear[rows, winner] = 0
        square, linear = weights.sum(axis=1) * square, (weights * linear).sum(axis=1)
        values, group = np.unique(largest, return_inverse=True)
        if len(values) > N_CELLS:
            group = (largest * N_CELLS).astype(np.intp)
            n_rows = np.bincount(group, minlength=N_CELLS + 1)
            values = np.bincount(group, largest, N_CELLS + 1) / np.maximum(n_rows, 1)
        square, linear = (np.bincount(group, part, len(values)) for part in (square, linear))
        # The mean of ``square q^2 + linear q``, q = 1 / (1 + exp(A p - B)), for all A and B.
        square, linear = square / counts.total, linear / counts.total
        shift, scores = np.exp(-np.arange(float(N_VALUES)))[:, None], np.empty((N_VALUES, N_VALUES))
        for A in range(N_VALUES):
            q = 1 / (1 + np.exp(A * values) * shift)
            scores[A] = (q * (q * square + linear)).sum(axis=1)
        best = int(np.flatnonzero(scores.ravel() <= scores.min() + EQUAL_BRIER_SCORE)[0])
        self.A_, self.B_ = divmod(best, N_VALUES)

    def _formula(self, scores: Term) -> Term:
        k = len(self.classes_)
        if k == 2:
            x = scores.without_underflow(1e-290)
            first = 1.0 - x
            largest = x.max(first)
            q = self._raised(largest)
            return x.unless_above(first, x * q, 1.0 - (1.0 - largest) * q)
        q = self._raised(scores.largest())
        winner, classes = first_of_largest(scores, k), np.arange(float(k))
        raised, shrunk = 1.0 - (1.0 - scores) * q, scores * q
        return winner.unless_above(classes, if_at_most(classes, winner, raised, shrunk), shrunk)

    def _raised(self, largest: Term) -> Term:
        """Return 1 - r, in which no digit is lost where r is nearly 1."""
        return (float(self.B_) - float(self.A_) * largest).logistic()
