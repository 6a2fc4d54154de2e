"""Measures of predictions for given labels, and their expectations over uncertain labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from vennforest._validation import FloatArray, IntArray

Metric = Literal["accuracy", "precision", "recall", "brier", "log_loss", "auc", "cost"]
"""Measures whose value can be estimated."""

EPSILON = float(np.finfo(np.float64).eps)
"""Smallest probability in the log loss, as in scikit-learn."""


class LabelledPredictions:
    """Predictions and decisions for m rows, with their measures for uncertain or given labels.

    Parameters
    ----------
    p : ndarray of shape (m, k)
        Probabilities.
    decisions : ndarray of shape (m,)
        Class indices of the decisions.
    positive : sequence of int
        Classes of which precision, recall and AUC are averaged: the positive one of two, else all.
    costs : ndarray of shape (m, k) or None
        Cost of each decision under each label.
    """

    def __init__(
        self, p: FloatArray, decisions: IntArray, positive: Sequence[int], costs: FloatArray | None
    ) -> None:
        m, k = p.shape
        self.n, self.positive = m, np.asarray(positive, np.intp)
        self.is_decided = (decisions[:, None] == self.positive).astype(np.float64)
        self.n_decided = self.is_decided.sum(axis=0)
        self.ranks = np.column_stack([rankdata(p[:, j]) for j in self.positive])
        squares = (p**2).sum(axis=1, keepdims=True)
        # Of two classes the square of one probability's error, of more the sum over all.
        brier = (squares - 2 * p + 1) / (2 if k == 2 else 1)
        correct = np.zeros((m, k))
        correct[np.arange(m), decisions] = 1
        costs = np.zeros((m, k)) if costs is None else costs
        self.losses = brier, -np.log(np.clip(p, EPSILON, 1)), costs, correct

    def expected(self, q: FloatArray) -> dict[Metric, float]:
        """Return the expected measures for independent labels with probabilities q (m, k)."""
        q_positive = q[:, self.positive]
        sums = [float((q * loss).sum()) for loss in self.losses]
        return self._measures(q_positive, (q_positive * (1 - q_positive)).sum(axis=0), sums)

    def of_labels(self, codes: IntArray) -> dict[Metric, float]:
        """Return the measures for class indices (m,)."""
        is_positive = (codes[:, None] == self.positive).astype(np.float64)
        rows = np.arange(self.n)
        sums = [float(loss[rows, codes].sum()) for loss in self.losses]
        return self._measures(is_positive, 0.0, sums)

    def _measures(
        self, q_positive: FloatArray, variance: FloatArray | float, sums: list[float]
    ) -> dict[Metric, float]:
        """Return the measures, given the probabilities (m, c) of the positive classes.

        For known labels these are 0 and 1. ``variance`` (c,) is that of the number of rows of each
        class, and ``sums`` are the sums of ``losses`` over rows. The AUC is by ranks (Mann &
        Whitney 1947).
        """
        n1 = q_positive.sum(axis=0)
        square = n1**2 + variance  # E n₁² of the number of rows of a class
        ranks = (q_positive * self.ranks).sum(axis=0)
        hits = (q_positive * self.is_decided).sum(axis=0)
        brier, log_loss, cost, accuracy = (total / self.n for total in sums)
        return {
            "accuracy": accuracy,
            "precision": _mean_defined(hits, self.n_decided),
            "recall": _mean_defined(hits, n1),
            "brier": brier,
            "log_loss": log_loss,
            # Mann & Whitney: ranks of the class, less those of its rows among themselves, n₁ (n₁ +
            # 1) / 2, over the pairs with rows of other classes.
            "auc": _mean_defined(ranks - (square + n1) / 2, self.n * n1 - square),
            "cost": cost,
        }


def _mean_defined(numerator: FloatArray, denominator: FloatArray) -> float:
    """Return the mean ratio over the classes with a denominator above 0, NaN without any."""
    defined = denominator > 1e-12
    ratios = numerator[defined] / denominator[defined]
    return float(ratios.mean()) if len(ratios) else float("nan")
