"""Measures of predictions as sums over rows, so they can be taken under probable labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from vennforest._validation import FloatArray, IntArray

Metric = Literal["accuracy", "precision", "recall", "brier", "log_loss", "auc", "cost"]
"""What can be estimated."""

EPSILON = float(np.finfo(np.float64).eps)
"""What a probability counts as at least in the log loss, as in scikit-learn."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows of what their labels contribute.

    Attributes
    ----------
    n : int
        Rows.
    positives, ranks, hits : ndarray of shape (c,)
        Of each class that is counted (the positive one of two): rows with that label, their ranks
        by the predicted probability, and those of them for which it was decided.
    pairs : ndarray of shape (c,)
        Pairs of a row of the class with a row of another: n₁ n₀, or its expectation.
    same : ndarray of shape (c,)
        Pairs within the class, a row with itself included: n₁ (n₁ + 1) / 2, likewise.
    brier, log_loss, cost, right : ndarray of shape ()
    """

    n: int
    positives: FloatArray
    ranks: FloatArray
    hits: FloatArray
    pairs: FloatArray
    same: FloatArray
    brier: FloatArray
    log_loss: FloatArray
    cost: FloatArray
    right: FloatArray


class Predictions:
    """What was predicted and decided of rows, and what each label would make of it.

    Parameters
    ----------
    p : ndarray of shape (m, k)
        Predicted probabilities.
    decided : ndarray of shape (m,)
        The class that was decided for.
    counted : sequence of int
        The classes that precision, recall and AUC are of: the positive one of two, else all.
    paid : ndarray of shape (m, k) or None
        What the decision costs under each label.
    """

    def __init__(
        self, p: FloatArray, decided: IntArray, counted: Sequence[int], paid: FloatArray | None
    ) -> None:
        m, k = p.shape
        self.n, self.counted = m, np.asarray(counted, np.intp)
        self.decided = (decided[:, None] == self.counted).astype(np.float64)
        self.n_decided = self.decided.sum(axis=0)
        self.ranks = np.column_stack([rankdata(p[:, j]) for j in self.counted])
        squares = (p**2).sum(axis=1, keepdims=True)
        # Of two classes the square of one probability's error, of more the sum over all.
        self.brier = (squares - 2 * p + 1) / (2 if k == 2 else 1)
        self.log_loss = -np.log(np.clip(p, EPSILON, 1))
        self.right = np.zeros((m, k))
        self.right[np.arange(m), decided] = 1
        self.paid = np.zeros((m, k)) if paid is None else paid

    def expected(self, q: FloatArray) -> Sums:
        """Return the expected sums if row i has label j with probability q_ij, independently."""
        own = q[:, self.counted]
        n1 = own.sum(axis=0)
        # Of independent labels E n₁² = (E n₁)² + Σ q (1 − q).
        square = n1**2 + (own * (1 - own)).sum(axis=0)
        return Sums(
            self.n,
            n1,
            (own * self.ranks).sum(axis=0),
            (own * self.decided).sum(axis=0),
            self.n * n1 - square,
            (square + n1) / 2,
            *(np.asarray((q * one).sum()) for one in self._dense()),
        )

    def drawn(self, codes: IntArray) -> Sums:
        """Return the sums for labels (m,), as numbers of classes."""
        own = (codes[:, None] == self.counted).astype(np.float64)
        rows = np.arange(self.n)
        n1 = own.sum(axis=0)
        return Sums(
            self.n,
            n1,
            np.einsum("ij,ij->j", own, self.ranks),
            np.einsum("ij,ij->j", own, self.decided),
            n1 * (self.n - n1),
            n1 * (n1 + 1) / 2,
            *(np.asarray(one[rows, codes].sum()) for one in self._dense()),
        )

    def _dense(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self.brier, self.log_loss, self.paid, self.right

    def measure(self, metric: Metric, sums: Sums) -> float:
        """Return a measure, NaN where it is not defined."""
        return MEASURES[metric](self, sums)


def _mean_defined(part: FloatArray, whole: FloatArray) -> float:
    """Return the mean ratio over classes of which it is defined, NaN if of none."""
    there = whole > 1e-12
    return float((part[there] / whole[there]).mean()) if there.any() else float("nan")


MEASURES: dict[Metric, Callable[[Predictions, Sums], float]] = {
    "accuracy": lambda _, s: float(s.right) / s.n,
    "precision": lambda given, s: _mean_defined(s.hits, given.n_decided),
    "recall": lambda _, s: _mean_defined(s.hits, s.positives),
    "brier": lambda _, s: float(s.brier) / s.n,
    "log_loss": lambda _, s: float(s.log_loss) / s.n,
    # Mann & Whitney: ranks of the class, less those of its rows among themselves.
    "auc": lambda _, s: _mean_defined(s.ranks - s.same, s.pairs),
    "cost": lambda _, s: float(s.cost) / s.n,
}
"""Each measure of the sums."""
