"""What was observed among rows of like probability, with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray
from vennforest.report.predictions import MethodEstimates

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

RARE = 0.1
"""Below this share of the positive class probabilities are looked at by powers of ten."""

EVEN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
STEPS = (0.0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Level:
    """Rows of like probability.

    Attributes
    ----------
    n : int
        How many they are.
    p : float
        Their mean probability of the event.
    low, high : float or None
        Their mean bounds, where there are some.
    share : float
        Share of them for which the event happened.
    least, most : float
        Wilson's 95 % confidence interval of that share, see `share_interval`.
    begin, end : float
        The probabilities it reaches from and to.
    """

    n: int
    p: float
    low: float | None
    high: float | None
    share: float
    least: float
    most: float
    begin: float
    end: float


def share_interval(outcome: FloatArray, groups: IntArray | None = None) -> tuple[float, float]:
    """Return the 95 % confidence interval (Wilson) of the share of events.

    Parameters
    ----------
    outcome : ndarray of shape (n,)
        1 where the event happened, else 0.
    groups : ndarray of shape (n,), optional
        Rows of one group are not independent. n is then divided by the design effect, the variance
        of the share over groups divided by that of independent rows, at least 1, and by (t / z)²
        for the few groups it is estimated from (Korn & Graubard 1998, Survey Methodology 24,
        193-201). Where all rows agree the effect is taken for its largest, as if each group were
        one row repeated; of one group nothing is known.
    """
    n, share = float(len(outcome)), float(outcome.mean())
    z = float(norm.ppf(0.975))
    if groups is not None:
        member = np.unique(groups, return_inverse=True)[1]
        sizes = np.bincount(member)
        if len(sizes) == 1:
            return 0.0, 1.0
        rest = np.bincount(member, weights=outcome - share)
        effect = float((sizes**2).sum()) / n
        if 0 < share < 1:
            over_groups = len(sizes) / (len(sizes) - 1) * float((rest**2).sum())
            effect = max(1.0, over_groups / (n * share * (1 - share)))
        n /= effect * (float(student.ppf(0.975, len(sizes) - 1)) / z) ** 2
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * float(np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)))
    least = 0.0 if share == 0 else max(0.0, middle - half)
    return least, 1.0 if share == 1 else min(1.0, middle + half)


def share_of_positive(evaluation: Evaluation) -> float | None:
    """Return the share of the positive class; None with more than two classes."""
    if evaluation.positive is None:
        return None
    return float((evaluation.folds.codes == evaluation.positive).mean())


def is_rare(evaluation: Evaluation) -> bool:
    """Tell whether the positive class is so rare that even steps of probability show nothing."""
    share = share_of_positive(evaluation)
    return share is not None and share < RARE


def event_of(
    evaluation: Evaluation, estimates: MethodEstimates
) -> tuple[FloatArray, FloatArray, FloatArray | None, FloatArray | None]:
    """Return probability, outcome and bounds (None: none) of the event looked at, each (n,).

    The positive class of two; with more classes that the predicted label is right.
    """
    codes = evaluation.folds.codes
    at = evaluation.positive
    bounds = estimates.bounds
    if at is not None:
        outcome = (codes == at).astype(np.float64)
        if bounds is None:
            return estimates.p[:, at], outcome, None, None
        return estimates.p[:, at], outcome, bounds.lower[:, at], bounds.upper[:, at]
    column = estimates.p.argmax(axis=1) if bounds is None else bounds.lower.argmax(axis=1)
    outcome = (column == codes).astype(np.float64)
    p = np.take_along_axis(estimates.p, column[:, None], axis=1)[:, 0]
    if bounds is None:
        return p, outcome, None, None
    low, high = bounds.of_label()
    return p, outcome, low, high


def levels(evaluation: Evaluation, method: str) -> list[Level]:
    """Return what was observed by level of a method's probability; empty levels are left out."""
    p, outcome, low, high = event_of(evaluation, evaluation.folds.estimates[method])
    groups = evaluation.folds.groups
    return [
        Level(
            len(at),
            float(p[at].mean()),
            None if low is None else float(low[at].mean()),
            None if high is None else float(high[at].mean()),
            float(outcome[at].mean()),
            *share_interval(outcome[at], None if groups is None else groups[at]),
            *ends,
        )
        for at, ends in members(p, is_rare(evaluation))
    ]


def members(p: FloatArray, rare: bool) -> list[tuple[IntArray, tuple[float, float]]]:
    """Return the rows of each level that has some, by probability, and the level's ends.

    Levels are closed below.
    """
    edges = STEPS if rare else EVEN
    number = np.searchsorted(edges[1:-1], p, side="right")
    found = ((np.flatnonzero(number == i), ends) for i, ends in enumerate(pairwise(edges)))
    return [(at, ends) for at, ends in found if len(at)]


def level_of(evaluation: Evaluation, method: str, row: int) -> Level:
    """Return the level of a row of the predictions."""
    p = event_of(evaluation, evaluation.folds.estimates[method])[0]
    groups = members(p, is_rare(evaluation))
    return levels(evaluation, method)[next(i for i, (at, _) in enumerate(groups) if row in at)]
