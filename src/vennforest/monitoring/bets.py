"""What a monitor bets on: ways in which objects, and labels given objects, may change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from vennforest._loaded import expect, expect_array, expect_increasing
from vennforest._validation import FloatArray
from vennforest.calibrators.platt import On, fit_platt

BINS = 15
"""Of scores, of about equally many examples; 8 to 30 were alike in simulations."""

LEAST_SHARE = 1e-3
"""Of a label in a bin: a bet on it could win too little, or too much, beyond."""

OBJECTS: dict[str, tuple[float, float]] = {
    "scores are higher": (0.5, 0),
    "scores are much higher": (1, 0),
    "scores are lower": (-0.5, 0),
    "scores are much lower": (-1, 0),
    "scores are more extreme": (0, 0.7),
    "scores are less extreme": (0, -0.7),
}
"""Tilts of the distribution of scores: exponents of rank r in [-1, 1] and of its square."""

LABELS: dict[str, tuple[float, float]] = {
    "the class is more frequent among equal scores": (0.3, 1),
    "the class is much more frequent among equal scores": (0.8, 1),
    "the class is less frequent among equal scores": (-0.3, 1),
    "the class is much less frequent among equal scores": (-0.8, 1),
    "scores tell less of the class": (0, 0.75),
    "scores tell much less of the class": (0, 0.4),
    "scores tell nothing of the class": (0, 0),
    "scores tell more of the class": (0, 1.3),
}
"""Changes of the label's share p in a bin: shift of log-odds, and slope about the mean."""

SHARES: dict[str, float] = {
    "the class is a little more frequent": 0.25,
    "the class is more frequent": 0.5,
    "the class is much more frequent": 1,
    "the class is a little less frequent": -0.25,
    "the class is less frequent": -0.5,
    "the class is much less frequent": -1,
}
"""Changes of the class's share with the objects of each class as before: shift of log-odds."""

WEIGHT = 1.5
"""Of a bet on a class's share, beside 1 of the others."""


@dataclass(frozen=True)
class Bets:
    """Bins of a score, and bets that are fair in them.

    Attributes
    ----------
    edges : ndarray of shape (n_bins - 1,)
        Scores; a bin is ``[edge, next edge)``.
    upper : ndarray of shape (n_bins - 1,)
        Share of objects up to each edge, in (0, 1).
    shares : ndarray of shape (n_bins,)
        Share of the label in each bin, in (0, 1).
    factors : ndarray of shape (n_bets, 2 n_bins)
        What each bet multiplies its capital by: in a bin without, and with, the label.
    logs : ndarray of shape (n_bets, 2 n_bins)
        Natural logarithms of the factors.
    prior : ndarray of shape (n_bets,)
        Sums to 1.
    names : tuple of str
        What each bet says has changed.
    """

    edges: FloatArray
    upper: FloatArray
    shares: FloatArray
    factors: FloatArray
    logs: FloatArray
    prior: FloatArray
    names: tuple[str, ...]

    def cells(self, scores: FloatArray) -> NDArray[np.int64]:
        """Return the bin of each score, (n,)."""
        return np.searchsorted(self.edges, scores, side="right").astype(np.int64)

    def check_loaded(self) -> None:
        """Refuse bets that are not fair, or of other bins.

        Raises
        ------
        ValueError
            If the mean factor of a bet is not 1, or shapes differ.
        """
        n, k = len(self.shares), len(self.prior)
        expect_array(self.edges, "edges", (n - 1,))
        expect_increasing(self.edges, "edges")
        expect_array(self.upper, "upper", (n - 1,), low=0, high=1)
        expect_increasing(self.upper, "upper")
        expect_array(self.shares, "shares", (n,), low=LEAST_SHARE / 2, high=1 - LEAST_SHARE / 2)
        expect_array(self.factors, "factors", (k, 2 * n), low=1e-12, high=1e12)
        expect_array(self.logs, "logs", (k, 2 * n))
        expect(np.allclose(np.exp(self.logs), self.factors), "logs must be those of factors")
        expect_array(self.prior, "prior", (k,), low=0, high=1)
        expect(abs(self.prior.sum() - 1) < 1e-9, "prior must sum to 1")
        expect(
            np.allclose(self.factors @ _masses(self.upper, self.shares), 1, rtol=1e-9),
            "factors must be 1 on average",
        )
        named = isinstance(self.names, tuple | list) and all(isinstance(a, str) for a in self.names)
        expect(named and len(self.names) == k, "names must be as many as bets")


def design(scores: FloatArray, hits: NDArray[np.bool_], *, probabilities: bool) -> Bets:
    """Return bins and bets for scores that are like these.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Of examples that are no part of the reference.
    hits : ndarray of shape (n,)
        Whether each has the label.
    probabilities : bool
        Whether scores are in [0, 1].
    """
    edges = np.unique(np.quantile(scores, np.arange(1, BINS) / BINS, method="higher"))
    edges = edges[edges > scores.min()]
    cells = np.searchsorted(edges, scores, side="right")
    n = np.bincount(cells, minlength=len(edges) + 1)
    mass = n / n.sum()
    if hits.any() and not hits.all():
        on: On = "logit" if probabilities else "score"
        smooth = fit_platt(scores, hits.astype(np.float64), on=on)
        fitted = smooth(scores)
    else:
        fitted = np.full(len(hits), (hits.sum() + 0.5) / (len(hits) + 1))
    shares = np.bincount(cells, fitted, minlength=len(n)) / n
    return _make(edges, mass, shares.clip(LEAST_SHARE, 1 - LEAST_SHARE))


def design_objects(scores: FloatArray) -> Bets:
    """Return bins and bets on the objects alone, for scores that are like these."""
    whole = design(scores, np.arange(len(scores)) % 2 == 0, probabilities=False)
    n = len(whole.shares)
    mass = np.diff(whole.upper, prepend=0.0, append=1.0)
    tilts = _tilts(mass)
    factors = np.array([np.repeat(tilt, 2) for tilt in tilts.values()])
    prior = np.full(len(tilts), 1 / len(tilts))
    return Bets(
        whole.edges,
        whole.upper,
        np.full(n, 0.5),
        factors,
        np.log(factors),
        prior,
        tuple(tilts),
    )


def _make(edges: FloatArray, mass: FloatArray, shares: FloatArray) -> Bets:
    names, factors, prior = [], [], []
    for name, tilt in _tilts(mass).items():
        names.append(name)
        factors.append(np.repeat(tilt, 2))
        prior.append(1.0)
    for name, how in LABELS.items():
        q = _shifted(mass, shares, *how)
        names.append(name)
        factors.append(_interleaved((1 - q) / (1 - shares), q / shares))
        prior.append(1.0)
    mean = float(mass @ shares)
    for name, shift in SHARES.items():
        new = float(expit(logit(mean) + shift))
        ones = np.ones(len(mass))
        factors.append(_interleaved((1 - new) / (1 - mean) * ones, new / mean * ones))
        names.append(name)
        prior.append(WEIGHT)
    upper = np.cumsum(mass)[:-1]
    weights = np.array(prior)
    table = np.array(factors)
    return Bets(edges, upper, shares, table, np.log(table), weights / weights.sum(), tuple(names))


def _tilts(mass: FloatArray) -> dict[str, FloatArray]:
    """Return for each change of the objects the ratio of densities in every bin."""
    rank = 2 * (np.cumsum(mass) - mass / 2) - 1
    found = {}
    for name, (line, square) in OBJECTS.items():
        tilt = np.exp(line * rank + square * rank**2)
        found[name] = tilt / (mass @ tilt)
    return found


def _shifted(mass: FloatArray, shares: FloatArray, shift: float, slope: float) -> FloatArray:
    """Return shares with shifted log-odds, or spread about their mean, which stays."""
    odds = logit(shares)
    if slope == 1:
        moved: FloatArray = expit(odds + shift)
        return moved.clip(LEAST_SHARE / 2, 1 - LEAST_SHARE / 2)
    mean = float(mass @ shares)
    centre = logit(mean)
    at = brentq(lambda d: float(mass @ expit(centre + slope * (odds - centre) + d)) - mean, -20, 20)
    spread: FloatArray = expit(centre + slope * (odds - centre) + at)
    return spread.clip(LEAST_SHARE / 2, 1 - LEAST_SHARE / 2)


def _interleaved(without: FloatArray, having: FloatArray) -> FloatArray:
    return np.stack([without, having], axis=1).ravel()


def _masses(upper: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the probability of every cell where nothing has changed."""
    mass = np.diff(upper, prepend=0.0, append=1.0)
    return _interleaved(mass * (1 - shares), mass * shares)
