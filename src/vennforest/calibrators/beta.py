"""Beta calibration: a sigmoid of the logarithms of a probability and of its complement."""

from __future__ import annotations

import numpy as np

from vennforest._validation import FloatArray, check_array, check_option, require
from vennforest.calibrators.base import OneVsRestCalibrator
from vennforest.calibrators.formula import Term
from vennforest.calibrators.regression import (
    MAX_COEFFICIENT,
    Targets,
    clip_limits,
    fit_sigmoid,
    standardise,
)
from vennforest.counts import ScoreCounts


class BetaCalibration(OneVsRestCalibrator):
    """Beta calibration: ``1 / (1 + exp(-(a ln s - b ln(1 - s) + c)))`` of scores s in [0, 1].

    The map that is right when the scores of either class follow a beta distribution (Kull, Silva
    Filho & Flach 2017, eq. 3), fitted by maximum likelihood with a, b >= 0 so it does not
    decrease. Scores of 0 and 1 are moved as in `PlattScaling`. Many classes: one map per class
    against the rest, normalised.

    Parameters
    ----------
    targets : {"smoothed", "hard"}, default="smoothed"
        As of `PlattScaling`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, 3) or (k, 3)
        a, b and c of the second class or of each.

    Examples
    --------
    >>> model = BetaCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.28, 0.79])
    """

    title = "Beta"
    _takes_probabilities = True
    coef_: FloatArray
    clip_: FloatArray
    """Where the scores of each column are clipped before logarithms are taken, (c, 2)."""

    def __init__(self, targets: Targets = "smoothed") -> None:
        self.targets = targets

    def _fit_columns(self, columns: list[ScoreCounts]) -> None:
        check_option(self.targets, Targets, "targets")
        limits, fits = [], []
        for counts in columns:
            self._check_probabilities(counts.scores)
            low, high = clip_limits(counts.scores)
            s = np.clip(counts.scores, low, high)
            features = np.array([np.log(s), -np.log1p(-s)])
            weight = counts.weights.sum(axis=1)
            center, scale = np.array([standardise(x, weight) for x in features]).T
            z = (features - center[:, None]) / scale[:, None]
            slopes, c = fit_sigmoid(z, counts.weights, self.targets, 2)
            slopes /= scale
            limits.append((low, high))
            fits.append((*slopes, c - slopes @ center))
        self.clip_, self.coef_ = np.array(limits), np.array(fits)

    def _column_formula(self, score: Term, j: int) -> Term:
        (low, high), (a, b, c) = self.clip_[j].tolist(), self.coef_[j].tolist()
        s = score.clip(low, high)
        f: Term = a * s.log() - b * (1.0 - s).log() + c
        return f.logistic()

    def _check_state(self) -> None:
        super()._check_state()
        n = self._n_columns()
        check_array(self.coef_, "coef_", (n, 3), low=-MAX_COEFFICIENT, high=MAX_COEFFICIENT)
        require((self.coef_[:, :2] >= 0).all(), "a and b must not be negative")
        check_array(self.clip_, "clip_", (n, 2), low=0, high=1)
        low, high = self.clip_.T
        require(((low > 0) & (low <= high) & (high < 1)).all(), "clip_ must be inside (0, 1)")
