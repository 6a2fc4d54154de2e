"""What a monitor bets on: changes of objects, of a class's share, and of labels given scores."""

from __future__ import annotations

from typing import Literal, get_args

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit

from vennforest._validation import FloatArray, array, check_array, check_increasing, require
from vennforest.calibrators import PlattScaling
from vennforest.counts import ScoreCounts

Kind = Literal["scores", "share", "labels given scores"]
"""What bets are on: objects alone, the share of a class, or labels among equal scores."""

BINS = 15
"""Of scores, of about equally many examples; 8 to 30 did equally well in simulations."""

LEAST_SHARE = 1e-3
"""Of a label in a bin: a bet on it could win too little, or too much, beyond."""

DEVIANCE = 6.0
"""Up to which scores count as the probabilities that they say they are: chi-square, 95%."""

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
    "among equal scores the class is more frequent": (0.3, 1),
    "among equal scores the class is much more frequent": (0.8, 1),
    "among equal scores the class is less frequent": (-0.3, 1),
    "among equal scores the class is much less frequent": (-0.8, 1),
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
"""Shifts of the log-odds of the class's share."""

NAMES: dict[Kind, tuple[str, ...]] = {
    "scores": tuple(OBJECTS),
    "share": tuple(SHARES),
    "labels given scores": tuple(LABELS),
}


@attrs.frozen(eq=False)
class Bets:
    """Bins of a score, and bets that are fair in them.

    A bin is ``[edge, next edge)`` of ``edges`` (n_bins - 1,); for a share there is one. ``limits``
    are where p-values are cut, in (0, 1): the share of objects up to each edge (n_bins - 1,), or of
    examples without the label in each bin (n_bins,). ``factors`` are what each bet multiplies its
    capital by: in each bin (n_bets, n_bins), or in each without and with the label (n_bets,
    2 n_bins).
    """

    kind: Kind = attrs.field(validator=attrs.validators.in_(get_args(Kind)))
    edges: FloatArray = attrs.field(validator=array(None))
    limits: FloatArray = attrs.field(validator=array(None, low=0, high=1))
    factors: FloatArray = attrs.field(validator=array(None, None, low=1e-12, high=1e12))
    logs: FloatArray = attrs.field(init=False)
    """Natural logarithms of the factors."""

    def __attrs_post_init__(self) -> None:
        """Refuse bets that are not fair, or of other bins."""
        check_increasing(self.edges, "edges")
        n, columns = self.n_bins, self.n_bins * (2 if self.of_labels else 1)
        require(
            self.factors.shape == (len(self.names), columns), "factors must be of bets and bins"
        )
        if self.of_labels:
            check_array(self.limits, "limits", (n,), "f", LEAST_SHARE / 2, 1 - LEAST_SHARE / 2)
            means = self.factors[:, ::2] * self.limits + self.factors[:, 1::2] * (1 - self.limits)
        else:
            check_array(self.limits, "limits", (n - 1,))
            check_increasing(self.limits, "limits")
            means = self.factors @ np.diff(self.limits, prepend=0.0, append=1.0)
        require(np.allclose(means, 1, rtol=1e-9), "factors must be 1 on average")
        object.__setattr__(self, "logs", np.log(self.factors))

    @property
    def names(self) -> tuple[str, ...]:
        """What each bet says has changed."""
        return NAMES[self.kind]

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) + 1

    @property
    def of_labels(self) -> bool:
        """Whether the bets see labels."""
        return self.kind != "scores"

    def cells(self, scores: FloatArray) -> NDArray[np.int64]:
        """Return the bin of each score, (n,)."""
        return np.searchsorted(self.edges, scores, side="right").astype(np.int64)


def bets_on_scores(scores: FloatArray) -> Bets:
    """Return bets on the objects alone, for scores that are like these."""
    edges, mass = _bins(scores)
    rank = 2 * (np.cumsum(mass) - mass / 2) - 1
    tilts = [np.exp(line * rank + square * rank**2) for line, square in OBJECTS.values()]
    factors = np.array([tilt / (mass @ tilt) for tilt in tilts])
    return Bets("scores", edges, np.cumsum(mass)[:-1], factors)


def bets_on_share(share: float) -> Bets:
    """Return bets on the share of a class that was this before."""
    old = min(max(share, LEAST_SHARE), 1 - LEAST_SHARE)
    shares = [float(expit(logit(old) + shift)) for shift in SHARES.values()]
    factors = np.array([[(1 - new) / (1 - old), new / old] for new in shares])
    return Bets("share", np.empty(0), np.array([1 - old]), factors)


def bets_on_labels(scores: FloatArray, shares: FloatArray) -> Bets:
    """Return bets on labels given scores.

    Scores (n,) are of the design, and shares (n,) what the label's is thought to be at each.
    """
    edges, mass = _bins(scores)
    cells = np.searchsorted(edges, scores, side="right")
    sums = np.bincount(cells, shares, minlength=len(mass))
    old = (sums / (mass * len(scores))).clip(LEAST_SHARE, 1 - LEAST_SHARE)
    changed = [_changed(mass, old, *how) for how in LABELS.values()]
    factors = [np.stack([(1 - new) / (1 - old), new / old], axis=1).ravel() for new in changed]
    return Bets("labels given scores", edges, 1 - old, np.array(factors))


def thought_shares(
    scores: FloatArray, hits: NDArray[np.bool_], *, probabilities: bool
) -> FloatArray:
    """Return what the share of a label is among objects with each of these scores, in (0, 1).

    The scores themselves, if they are probabilities of the label and a sigmoid of their log-odds
    does not fit its presence ``hits`` (n,) significantly better; else that sigmoid.
    """
    n, found = len(hits), int(hits.sum())
    inside = scores.clip(LEAST_SHARE, 1 - LEAST_SHARE) if probabilities else scores
    if 0 < found < n:
        counts = ScoreCounts.from_scores(scores, hits)
        sigmoid = PlattScaling(on="logit" if probabilities else "score")._fit_checked(counts)
        fitted = sigmoid._predict_proba(scores)[:, 1]
    else:
        fitted = np.full(n, (found + 0.5) / (n + 1))
    fitted = fitted.clip(LEAST_SHARE, 1 - LEAST_SHARE)
    if not probabilities:
        return fitted
    gain = _log_likelihood(fitted, hits) - _log_likelihood(inside, hits)
    return inside if 2 * gain < DEVIANCE else fitted


def _log_likelihood(p: FloatArray, hits: NDArray[np.bool_]) -> float:
    odds = logit(p)
    return float(log_expit(np.where(hits, odds, -odds)).sum())


def _bins(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return edges of bins that contain about as many of these scores, and the share in each."""
    edges = np.unique(np.quantile(scores, np.arange(1, BINS) / BINS, method="higher"))
    edges = edges[edges > scores.min()]
    cells = np.searchsorted(edges, scores, side="right")
    return edges, np.bincount(cells, minlength=len(edges) + 1) / len(scores)


def _changed(mass: FloatArray, shares: FloatArray, shift: float, slope: float) -> FloatArray:
    """Return shares with shifted log-odds, or spread about their mean, which stays."""
    odds = logit(shares)
    centre, at = 0.0, shift
    if slope != 1:
        mean = float(mass @ shares)
        centre = float(logit(mean))
        at = float(
            brentq(
                lambda d: float(mass @ expit(centre + slope * (odds - centre) + d)) - mean, -20, 20
            )
        )
    changed: FloatArray = expit(centre + slope * (odds - centre) + at)
    return changed.clip(LEAST_SHARE / 2, 1 - LEAST_SHARE / 2)
