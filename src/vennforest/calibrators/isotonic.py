"""Isotonic calibration: the non-decreasing map that fits the labels best."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from vennforest._validation import FloatArray, check_array, check_increasing, require
from vennforest.calibrators.base import Calibrator, normalised_formula
from vennforest.calibrators.formula import Term
from vennforest.counts import ScoreCounts


class IsotonicCalibration(Calibrator):
    """Isotonic calibration: the non-decreasing map from scores to probabilities that fits best.

    Minimises ``sum w (y - m(s))**2`` over non-decreasing m (Niculescu-Mizil & Caruana 2005,
    eq. 6) by pooling adjacent violators. Many classes: one map a class against the rest,
    normalised; where every class gets 0, the raw scores.

    The value of a score that is no calibration score is that of the next calibration score above
    (Niculescu-Mizil & Caruana 2005, Table 1), above them all the last one. `SplineCalibration`
    gives a smooth map.

    Examples
    --------
    >>> model = IsotonicCalibration().fit([0.1, 0.3, 0.5, 0.7], [0, 1, 0, 1])
    >>> model.predict_proba([0.1, 0.2, 0.6])[:, 1]
    array([0. , 0.5, 1. ])
    """

    title = "Isotonic"
    _reads = "order"
    knots_: list[FloatArray]
    """Of each column the last score of each step but the highest, (m - 1,)."""
    values_: list[FloatArray]
    """Of each column the values (m,), which do not decrease."""

    def _fit(self, counts: ScoreCounts) -> None:
        self.knots_, self.values_ = [], []
        for column in counts.columns():
            total = column.weights.sum(axis=1)
            share = column.weights[:, 1] / total
            fitted = np.clip(isotonic_regression(share, weights=total).x, 0, 1)
            rises = np.flatnonzero(fitted[1:] != fitted[:-1])
            self.knots_.append(column.scores[rises])
            self.values_.append(fitted[np.append(rises, len(fitted) - 1)])

    def _formula(self, scores: Term) -> Term:
        starts = [np.nextafter(knots, np.inf) for knots in self.knots_]
        p = scores.look_up(starts, {"p": self.values_})["p"]
        return normalised_formula(p, scores, self._n_columns())

    def _check_state(self) -> None:
        super()._check_state()
        n = self._n_columns()
        require(len(self.knots_) == len(self.values_) == n, f"knots_ and values_ must be {n}")
        for knots, values in zip(self.knots_, self.values_, strict=True):
            check_array(values, "values_", (None,), low=0, high=1)
            require(len(values) and (np.diff(values) >= 0).all(), "values_ must not decrease")
            check_array(knots, "knots_", (len(values) - 1,))
            check_increasing(knots, "knots_")
