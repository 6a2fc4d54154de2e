"""Measures of predictions as sums over rows, so they can be taken under probable labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from vennforest._validation import FloatArray, IntArray

Metric = Literal["accuracy", "precision", "recall", "brier", "log_loss", "auc", "cost"]
"""What can be estimated."""

EPSILON = float(np.finfo(np.float64).eps)
"""What a probability counts as at least in the log loss, as in scikit-learn."""


class Predictions:
    """What was predicted and decided of rows, and what each label would make of it.

    Of m rows: probabilities ``p`` (m, k), the class that was ``decided`` for (m,), and what that
    costs under each label, ``paid`` (m, k). Precision, recall and AUC are of the classes
    ``counted``: the positive one of two, else all.
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
        brier = (squares - 2 * p + 1) / (2 if k == 2 else 1)
        right = np.zeros((m, k))
        right[np.arange(m), decided] = 1
        cost = np.zeros((m, k)) if paid is None else paid
        self.dense = brier, -np.log(np.clip(p, EPSILON, 1)), cost, right

    def expected(self, q: FloatArray) -> dict[Metric, float]:
        """Return the expected measures if row i has label j with probability q_ij, independently.

        They are ratios of expectations; NaN where a measure is not defined.
        """
        own = q[:, self.counted]
        dense = [float((q * one).sum()) for one in self.dense]
        return self._measures(own, (own * (1 - own)).sum(axis=0), dense)

    def drawn(self, codes: IntArray) -> dict[Metric, float]:
        """Return the measures for labels (m,), as numbers of classes."""
        own = (codes[:, None] == self.counted).astype(np.float64)
        rows = np.arange(self.n)
        return self._measures(own, 0.0, [float(one[rows, codes].sum()) for one in self.dense])

    def _measures(
        self, own: FloatArray, spread: FloatArray | float, dense: list[float]
    ) -> dict[Metric, float]:
        """Return measures from the sums of what rows contribute to them.

        ``own`` (m, c) is each row's probability of the classes that are counted, ``spread`` (c,)
        the variance of their numbers.
        """
        n1 = own.sum(axis=0)
        square = n1**2 + spread  # E n₁² of the number of rows of a class
        ranks, hits = ((own * one).sum(axis=0) for one in (self.ranks, self.decided))
        brier, log_loss, cost, right = (one / self.n for one in dense)
        return {
            "accuracy": right,
            "precision": _mean_defined(hits, self.n_decided),
            "recall": _mean_defined(hits, n1),
            "brier": brier,
            "log_loss": log_loss,
            # Mann & Whitney: ranks of the class, less those of its rows among themselves, n₁ (n₁ +
            # 1) / 2, over the pairs with rows of other classes.
            "auc": _mean_defined(ranks - (square + n1) / 2, self.n * n1 - square),
            "cost": cost,
        }


def _mean_defined(part: FloatArray, whole: FloatArray) -> float:
    """Return the mean ratio over classes of which it is defined, NaN if of none."""
    there = whole > 1e-12
    return float((part[there] / whole[there]).mean()) if there.any() else float("nan")
