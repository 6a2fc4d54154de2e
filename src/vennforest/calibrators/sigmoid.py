"""Platt scaling and beta calibration: sigmoids fitted by maximum likelihood."""

from __future__ import annotations

import numpy as np

from vennforest._validation import FloatArray, check_option
from vennforest.calibrators.base import Calibrator, normalised_formula
from vennforest.calibrators.formula import Term, entry_or_row
from vennforest.calibrators.newton import (
    Targets,
    clip_limits,
    fit_sigmoid,
    log_odds,
    log_odds_limits,
    log_odds_of,
    standardise,
)
from vennforest.counts import ScoreCounts
from vennforest.scores import On

# Between these absolute values standard scores are computed with in formulas.
SMALLEST_STANDARD_SCORE, MAX_STANDARD_SCORE = 1e-290, 1e100


class PlattScaling(Calibrator):
    """Platt scaling: a sigmoid of the score, fitted by maximum likelihood.

    ``p = 1 / (1 + exp(A s + B))`` (Platt 2000). Many classes: one sigmoid per class, normalised.

    Parameters
    ----------
    targets : {"smoothed", "hard"}, default="smoothed"
        ``"smoothed"``: (N+ + 1) / (N+ + 2) for the N+ examples of the class and 1 / (N- + 2) for
        the N- others (Niculescu-Mizil & Caruana 2005, eq. 4); with weights N+ and N- are sums of
        weights. ``"hard"``: 1 and 0 (Boström 2008, section 2.2.1); of separable scores the sigmoid
        is then steep.
    on : {"auto", "probability", "logit", "score"}, default="auto"
        What scores are: see ``vennforest.scores``. s is the log-odds of a probability, which is
        clipped halfway between 0 or 1 and the nearest calibration score inside, and at 0.01 or 0.99
        where that is nearer to 0 or 1; so are logits of masked classes. Logits and other scores are
        s themselves. ``"auto"``: of one column probabilities if all calibration scores are in
        [0, 1], else scores.

    Attributes
    ----------
    on_ : {"probability", "logit", "score"}
        What the calibration scores were.
    slope_, intercept_ : ndarray of shape (1,) or (k,)
        Of the second class or of each: ``p = 1 / (1 + exp(-(slope_ z + intercept_)))`` of the
        standard score ``z = (s - center_) / scale_``.

    Examples
    --------
    >>> model = PlattScaling(on="score").fit([0.1, 0.3, 0.4, 0.8], ["no", "no", "yes", "yes"])
    >>> model.predict_proba([0.2, 0.9]).round(2)
    array([[0.66, 0.34],
           [0.15, 0.85]])
    """

    title = "Platt scaling"
    _reads = "log-odds"
    clip_: FloatArray
    """Where the scores of each column are clipped, (c, 2): probabilities before their log-odds are
    taken, and log-odds that may be of masked classes."""
    center_: FloatArray
    scale_: FloatArray
    slope_: FloatArray
    intercept_: FloatArray

    def __init__(self, targets: Targets = "smoothed", on: On = "auto") -> None:
        self.targets = targets
        self.on = on

    def _fit(self, counts: ScoreCounts) -> None:
        check_option(self.targets, Targets, "targets")
        fits = []
        for column in counts.columns():
            scores, limits = column.scores, (0.0, 1.0)
            if self.on_ == "probability":
                limits = clip_limits(scores)
                scores = log_odds_of(scores, *limits)
            elif self.on_ == "logit":
                limits = log_odds_limits(scores)
                scores = np.clip(scores, *limits)
            center, scale = standardise(scores, column.weights.sum(axis=1))
            z = (scores / 4 - center / 4) / (scale / 4)  # the difference may overflow
            (slope,), intercept = fit_sigmoid(z[None], column.weights, self.targets, 0)
            fits.append((*limits, center, scale, slope, intercept))
        low_, high_, self.center_, self.scale_, self.slope_, self.intercept_ = np.array(fits).T
        self.clip_ = np.column_stack([low_, high_])

    def _formula(self, scores: Term) -> Term:
        s, (low, high) = scores, map(entry_or_row, self.clip_.T)
        if self.on_ == "probability":
            s = log_odds(s, low, high)
        elif self.on_ == "logit":
            s = s.clip(low, high)
        center, scale = entry_or_row(self.center_), entry_or_row(self.scale_)
        z = (s.without_underflow(scale * SMALLEST_STANDARD_SCORE) - center) / scale
        z = z.clip(-MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)
        p = (entry_or_row(self.slope_) * z + entry_or_row(self.intercept_)).logistic()
        return normalised_formula(p, scores, self._n_columns())


class BetaCalibration(Calibrator):
    """Beta calibration: ``1 / (1 + exp(-(a ln s - b ln(1 - s) + c)))`` of scores s in [0, 1].

    The map that is right when the scores of either class follow a beta distribution (Kull, Silva
    Filho & Flach 2017, eq. 3), fitted by maximum likelihood with a, b >= 0 so it does not
    decrease. Scores are clipped as in `PlattScaling`. Many classes: one map per class
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
    _takes_independent_scores = True
    coef_: FloatArray
    clip_: FloatArray
    """Where the scores of each column are clipped before logarithms are taken, (c, 2)."""

    def __init__(self, targets: Targets = "smoothed", on: On = "auto") -> None:
        self.targets = targets
        self.on = on

    def _fit(self, counts: ScoreCounts) -> None:
        check_option(self.targets, Targets, "targets")
        limits, fits = [], []
        for column in counts.columns():
            low, high = clip_limits(column.scores)
            s = np.clip(column.scores, low, high)
            features = np.array([np.log(s), -np.log1p(-s)])
            weight = column.weights.sum(axis=1)
            center, scale = np.array([standardise(x, weight) for x in features]).T
            z = (features - center[:, None]) / scale[:, None]
            slopes, c = fit_sigmoid(z, column.weights, self.targets, 2)
            slopes /= scale
            limits.append((low, high))
            fits.append((*slopes, c - slopes @ center))
        self.clip_, self.coef_ = np.array(limits), np.array(fits)

    def _formula(self, scores: Term) -> Term:
        a, b, c = map(entry_or_row, self.coef_.T)
        s = scores.clip(*map(entry_or_row, self.clip_.T))
        p = (a * s.log() - b * (1.0 - s).log() + c).logistic()
        return normalised_formula(p, scores, self._n_columns())
