"""The predictions that a report is about, whoever made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.confidence import ConfidenceIntervals
from vennforest.classifier.intervals import ForestSpread
from vennforest.multiprobability import Multiprobability

RAW: str = "none"
"""The model as it is, without calibration."""

BASELINE: str = "baseline"
"""The class frequencies as the probabilities of every row."""


@dataclass(frozen=True, eq=False)
class MethodEstimates:
    """One method's probabilities of every row, by models that were not trained on it.

    Attributes
    ----------
    p : ndarray of shape (n, k)
        Probabilities.
    bounds : Multiprobability or None
        Lower and upper ones, where the method gives them.
    confidence : ConfidenceIntervals or None
        How well the frequency among cases with such scores is known, around ``p``, at the level
        .95; None where the calibration scores are not known.
    """

    p: FloatArray
    bounds: Multiprobability | None
    confidence: ConfidenceIntervals | None = None


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Estimates of all methods for every row.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Labels, sorted.
    codes : ndarray of shape (n,)
        Index of each row's class.
    fold : ndarray of shape (n,)
        The fold in which the row was predicted; all 0 where one model predicted all.
    rows : ndarray of shape (n,)
        The row's position in X.
    estimates : dict of str to MethodEstimates
        By method.
    importances : dict of str to float
        Of each column, the mean decrease of impurity, over all folds; they sum to 1. Empty where
        the model has none.
    encodings : dict of str to str
        How each column became numbers, where X is a data frame: see ``TableEncoder``.
    missing : float or None
        Share of the cells that are missing, where X is a data frame.
    notes : list of str
        What was done about classes and folds that do not fit.
    groups : ndarray of shape (n,) or None
        Numbers of the groups that count as one observation each.
    ratio : float or None
        Predicted over training rows, the mean over folds; None: 1 / (folds - 1).
    forest : ForestSpread or None
        How far another forest of this size would move probabilities, the mean square over folds;
        None where that is not known.
    """

    classes: NDArray[Any]
    codes: IntArray
    fold: IntArray
    rows: IntArray
    estimates: dict[str, MethodEstimates]
    importances: dict[str, float]
    encodings: dict[str, str]
    missing: float | None = None
    notes: list[str] = field(default_factory=list)
    groups: IntArray | None = None
    ratio: float | None = None
    forest: ForestSpread | None = None

    @classmethod
    def without_folds(
        cls,
        classes: NDArray[Any],
        codes: IntArray,
        estimates: dict[str, MethodEstimates],
        groups: IntArray | None,
    ) -> Self:
        """Return estimates by models that were not trained on any of these rows."""
        rows = np.arange(len(codes))
        return cls(classes, codes, np.zeros_like(rows), rows, estimates, {}, {}, groups=groups)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def baseline(self) -> MethodEstimates:
        """Return the share of each class as every row's probabilities.

        The shares are those of the very rows that are predicted: no constant has a lower log loss
        or Brier score on them.
        """
        shares = np.bincount(self.codes, minlength=len(self.classes)) / len(self.codes)
        return MethodEstimates(np.tile(shares, (len(self.codes), 1)), None)
