"""Bets of a monitor: on changes of the scores, of a class's share, and of labels given scores."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators import PlattScaling
from vennforest.counts import ScoreCounts
from vennforest.scores import ScoreKind

Watched = Literal["labels", "objects"]
"""Data that a monitor compares with the reference: labels and scores, or scores alone."""

BetKind = Literal["scores", "share", "labels given scores"]
"""Changes that bets are on: of scores, of the share of a class, or of labels given scores."""

N_BET_BINS = 15
"""Number of bins of about equally many scores; 8 to 30 did equally well in simulations."""

MIN_SHARE = 1e-3
"""Shares of a label are clipped to [MIN_SHARE, 1 - MIN_SHARE], which bounds the gain of a bet."""

MAX_DEVIANCE = 6.0
"""Largest deviance of calibrated scores: 95% quantile of chi-square, 2 degrees of freedom."""

SCORE_TILTS: dict[str, tuple[float, float]] = {
    "scores are higher": (0.5, 0),
    "scores are much higher": (1, 0),
    "scores are lower": (-0.5, 0),
    "scores are much lower": (-1, 0),
    "scores are more extreme": (0, 0.7),
    "scores are less extreme": (0, -0.7),
}
"""Exponents of the rank r in [-1, 1] of a score, and of r²."""

LABEL_CHANGES: dict[str, tuple[float, float]] = {
    "among equal scores the class is more frequent": (0.3, 1),
    "among equal scores the class is much more frequent": (0.8, 1),
    "among equal scores the class is less frequent": (-0.3, 1),
    "among equal scores the class is much less frequent": (-0.8, 1),
    "scores tell less of the class": (0, 0.75),
    "scores tell much less of the class": (0, 0.4),
    "scores tell nothing of the class": (0, 0),
    "scores tell more of the class": (0, 1.3),
}
"""Shift of the log-odds of the label's share in a bin, and slope about the mean share."""

SHARE_SHIFTS: dict[str, float] = {
    "the class is a little more frequent": 0.25,
    "the class is more frequent": 0.5,
    "the class is much more frequent": 1,
    "the class is a little less frequent": -0.25,
    "the class is less frequent": -0.5,
    "the class is much less frequent": -1,
}
"""Shift of the log-odds of the share of the class."""

BET_NAMES: dict[BetKind, tuple[str, ...]] = {
    "scores": tuple(SCORE_TILTS),
    "share": tuple(SHARE_SHIFTS),
    "labels given scores": tuple(LABEL_CHANGES),
}

BET_KINDS: dict[Watched, tuple[BetKind, ...]] = {"labels": tuple(BET_NAMES), "objects": ("scores",)}
"""Kinds of evidence about each class."""


class Bets(NamedTuple):
    """Bins of a score, and fair bets, whose factors have mean 1 if nothing changes.

    A bin is ``[edge, next edge)`` of ``edges`` (n_bins - 1,). ``limits`` discretise p-values: the
    share of scores up to each edge, or of examples without the label in each bin. ``factors``
    (n_bets, n_bins) or (n_bets, 2 n_bins) multiply the capital of a bet in each bin, or in each bin
    without and with the label.
    """

    edges: FloatArray
    limits: FloatArray
    factors: FloatArray


def design_bets(
    scores: FloatArray, codes: IntArray, k: int, watch: Watched, probabilities: bool
) -> list[Bets]:
    """Return bets of every kind on every class, from reference scores (n, c) and codes (n,)."""
    bets = []
    for j, column in enumerate(scores.T):
        bets.append(bets_on_scores(column))
        if watch == "labels":
            hits = codes == (1 if k == 2 else j)
            shares = expected_shares(column, hits, probabilities=probabilities)
            bets += [bets_on_share(float(shares.mean())), bets_on_labels(column, shares)]
    return bets


def bets_on_scores(scores: FloatArray) -> Bets:
    """Return bets on changes of the scores, from reference scores (n,).

    Factors are exponential tilts of the reference distribution over bins, scaled to mean 1.
    """
    edges, mass = _bin_scores(scores)
    rank = 2 * (np.cumsum(mass) - mass / 2) - 1
    tilts = [np.exp(linear * rank + square * rank**2) for linear, square in SCORE_TILTS.values()]
    factors = np.array([tilt / (mass @ tilt) for tilt in tilts])
    return Bets(edges, np.cumsum(mass)[:-1], factors)


def bets_on_share(share: float) -> Bets:
    """Return bets on changes of the share of a class from the reference ``share``."""
    share = min(max(share, MIN_SHARE), 1 - MIN_SHARE)
    changed = [float(expit(logit(share) + shift)) for shift in SHARE_SHIFTS.values()]
    factors = np.array([[(1 - new) / (1 - share), new / share] for new in changed])
    return Bets(np.empty(0), np.array([1 - share]), factors)


def bets_on_labels(scores: FloatArray, shares: FloatArray) -> Bets:
    """Return bets on labels given scores (n,), with reference shares (n,) of the label.

    Factors are likelihood ratios of a label in its bin under changed and reference shares.
    """
    edges, mass = _bin_scores(scores)
    bins = np.searchsorted(edges, scores, side="right")
    sums = np.bincount(bins, shares, minlength=len(mass))
    share = (sums / (mass * len(scores))).clip(MIN_SHARE, 1 - MIN_SHARE)
    changed = [_changed_shares(mass, share, *change) for change in LABEL_CHANGES.values()]
    factors = [np.stack([(1 - new) / (1 - share), new / share], axis=1).ravel() for new in changed]
    return Bets(edges, 1 - share, np.array(factors))


def expected_shares(
    scores: FloatArray, hits: NDArray[np.bool_], *, probabilities: bool
) -> FloatArray:
    """Return the expected share of a label at each of its scores (n,), in (0, 1).

    These are the scores if they are probabilities and a sigmoid of their log-odds does not fit
    the labels ``hits`` (n,) significantly better, else the values of the sigmoid.
    """
    n, n_hits = len(hits), int(hits.sum())
    if 0 < n_hits < n:
        # Without the checks of fit: a score that falls with its label is no error here.
        kind: ScoreKind = "probability" if probabilities else "score"
        platt = PlattScaling()._fit_checked(ScoreCounts.from_scores(scores, hits), kind=kind)
        fitted = platt._predict_proba(scores)[:, 1]
    else:
        fitted = np.full(n, (n_hits + 0.5) / (n + 1))
    fitted = fitted.clip(MIN_SHARE, 1 - MIN_SHARE)
    if not probabilities:
        return fitted
    clipped = scores.clip(MIN_SHARE, 1 - MIN_SHARE)
    ratios = np.where(hits, fitted / clipped, (1 - fitted) / (1 - clipped))
    return clipped if 2 * np.log(ratios).sum() < MAX_DEVIANCE else fitted


def _bin_scores(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return edges of bins with about equally many scores, and the share of scores in each bin."""
    edges = np.unique(np.quantile(scores, np.arange(1, N_BET_BINS) / N_BET_BINS, method="higher"))
    edges = edges[edges > scores.min()]
    bins = np.searchsorted(edges, scores, side="right")
    return edges, np.bincount(bins, minlength=len(edges) + 1) / len(scores)


def _changed_shares(mass: FloatArray, shares: FloatArray, shift: float, slope: float) -> FloatArray:
    """Return shares with shifted log-odds, or with rescaled log-odds and an unchanged mean."""
    mean = float(mass @ shares)
    centre = float(logit(mean)) if slope != 1 else 0.0
    stretched = centre + slope * (logit(shares) - centre)
    if slope != 1:
        shift = float(brentq(lambda d: float(mass @ expit(stretched + d)) - mean, -20, 20))
    changed: FloatArray = expit(stretched + shift)
    return changed.clip(MIN_SHARE / 2, 1 - MIN_SHARE / 2)
