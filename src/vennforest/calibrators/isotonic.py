"""Isotonic calibration: the non-decreasing map that fits the labels best."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import isotonic_regression

from vennforest._validation import FloatArray, check_array, check_increasing, check_option, require
from vennforest.calibrators.base import OneVsRestCalibrator
from vennforest.calibrators.formula import Term
from vennforest.counts import ScoreCounts

Between = Literal["step", "nearest", "linear"]
"""How the fit is read between calibration scores."""


class IsotonicCalibration(OneVsRestCalibrator):
    """Isotonic calibration: the non-decreasing map from scores to probabilities that fits best.

    Minimises ``sum w (y - m(s))**2`` over non-decreasing m (Niculescu-Mizil & Caruana 2005,
    eq. 6) by pooling adjacent violators. Many classes: one map a class against the rest,
    normalised; where every class gets 0, the raw scores.

    Parameters
    ----------
    between : {"step", "nearest", "linear"}, default="step"
        The value of a score that is not a calibration score. ``"step"``: that of the next
        calibration score above (Niculescu-Mizil & Caruana 2005, Table 1). ``"nearest"``: that of
        the nearest calibration score, of two equally near the smaller (the direct method of Vovk &
        Petej 2014). ``"linear"``: on the straight line between the neighbours (as scikit-learn's
        ``IsotonicRegression``). Beyond all calibration scores: the first or the last value.

    Examples
    --------
    >>> model = IsotonicCalibration().fit([0.1, 0.3, 0.5, 0.7], [0, 1, 0, 1])
    >>> model.predict_proba([0.1, 0.2, 0.6])[:, 1]
    array([0. , 0.5, 1. ])
    """

    title = "Isotonic"
    knots_: list[FloatArray]
    """Of each column the last scores (m - 1,) of the steps, or the ends (m,) of straight lines."""
    values_: list[FloatArray]
    """Of each column the values (m,), which do not decrease."""

    def __init__(self, between: Between = "step") -> None:
        self.between = between

    def _fit_columns(self, columns: list[ScoreCounts]) -> None:
        check_option(self.between, Between, "between")
        self.knots_, self.values_ = [], []
        for counts in columns:
            x, total = counts.scores, counts.weights.sum(axis=1)
            share = counts.weights[:, 1] / total
            fitted = np.clip(isotonic_regression(share, weights=total).x, 0, 1)
            rises = np.flatnonzero(fitted[1:] != fitted[:-1])
            if self.between == "linear":
                # A level stretch needs its two ends alone.
                corners = np.unique(np.concatenate([[0], rises, rises + 1, [len(x) - 1]]))
                self.knots_.append(x[corners])
                self.values_.append(fitted[corners])
                continue
            knots, following = x[rises], x[rises + 1]
            if self.between == "nearest":  # halves, since the sum of two scores may overflow
                middle = knots / 2 + following / 2
                knots = np.clip(middle, knots, np.nextafter(following, -np.inf))
            self.knots_.append(knots)
            self.values_.append(fitted[np.append(rises, len(x) - 1)])

    def _column_formula(self, score: Term, j: int) -> Term:
        knots, values = self.knots_[j], self.values_[j]
        if self.between != "linear":
            return score.look_up(np.nextafter(knots, np.inf), {"p": values})["p"]
        with np.errstate(over="ignore"):
            width = np.minimum(np.diff(knots), np.finfo(np.float64).max)
        line = score.look_up(
            knots,
            {
                "knot": np.concatenate([knots[:1], knots]),
                "width": np.concatenate([[1.0], width, [1.0]]),
                "low": np.concatenate([values[:1], values]),
                "high": np.append(values, values[-1:]),
            },
        )
        share = ((score.clip(knots[0], knots[-1]) - line["knot"]) / line["width"]).clip(0.0, 1.0)
        p = line["low"] * (1.0 - share) + line["high"] * share
        return p.clip(line["low"], line["high"])

    def _check_state(self) -> None:
        super()._check_state()
        check_option(self.between, Between, "between")
        n = self._n_columns()
        require(len(self.knots_) == len(self.values_) == n, f"knots_ and values_ must be {n}")
        for knots, values in zip(self.knots_, self.values_, strict=True):
            check_array(values, "values_", (None,), low=0, high=1)
            require(len(values) and (np.diff(values) >= 0).all(), "values_ must not decrease")
            check_array(knots, "knots_", (len(values) - (self.between != "linear"),))
            check_increasing(knots, "knots_")
