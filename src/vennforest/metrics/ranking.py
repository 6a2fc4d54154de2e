"""How well estimates rank: the area under the ROC curve with its interval, and the curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics._inputs import (
    ClassEstimates,
    check_estimates,
    check_level,
    group_numbers,
    positive_problem,
)

MOST_POINTS = 1000
"""Of more points of a curve so many are kept."""


@dataclass(frozen=True)
class AucInterval:
    """The area under the ROC curve and its confidence interval.

    Attributes
    ----------
    auc : float
        In [0, 1]; of more than two classes the mean of those of each against the rest, weighted by
        their shares. NaN where there is one class only.
    low, high : float
        Ends of the interval, in [0, 1].
    level : float
        Its confidence, in (0, 1).
    """

    auc: float
    low: float
    high: float
    level: float

    @property
    def above_chance(self) -> bool:
        """Whether the whole interval lies above 1/2, the area of random ranking."""
        return self.low > 0.5

    @property
    def below_chance(self) -> bool:
        """Whether the whole interval lies below 1/2."""
        return self.high < 0.5


def weighted_auc(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the area under the ROC curve; of many classes the mean weighted by their shares.

    scikit-learn's ``roc_auc_score``, for two classes that of the positive one. For more it is
    Σ_j share_j · AUC_j, each class against the rest (Fawcett 2006, total AUC, as in Boström 2008);
    a class that is missing from ``y`` has share 0, where ``roc_auc_score`` warns, raises or gives
    NaN.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.

    Returns
    -------
    float
        In [0, 1]; NaN where ``y`` holds one class only, since no pair can be ranked.

    Raises
    ------
    ValueError
        As ``brier_decomposition``.
    """
    estimates = check_estimates(
        y, p, sample_weight=sample_weight, classes=classes, pos_label=pos_label
    )
    total, area = 0.0, 0.0
    for problem in estimates.additive():
        if problem.outcome.all():
            return float("nan")
        if not problem.outcome.any():
            continue
        share = float(problem.weight @ problem.outcome)
        area += share * float(
            roc_auc_score(problem.outcome, problem.p, sample_weight=problem.weight)
        )
        total += share
    return area / total if total else float("nan")


def auc_interval(
    y: ArrayLike,
    p: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
) -> AucInterval:
    """Return the area under the ROC curve with a confidence interval.

    Parameters
    ----------
    y, p, classes, pos_label
        As in ``brier_decomposition``.
    groups : array-like of shape (n,), optional
        Rows of one group count as one observation; by default every row is one of its own.
    level : float
        Confidence, in (0, 1).

    Raises
    ------
    ValueError
        As ``brier_decomposition``, if ``level`` is out of range, or groups are of other rows.

    Notes
    -----
    The variance is that of DeLong, DeLong & Clarke-Pearson (1988), from how far each observation
    moves the area; for groups these are summed over each group (Obuchowski 1997), for more than two
    classes over the classes. The interval is symmetric in the log-odds of the area. Where ranking
    is perfect, or one class has a single observation, that variance is not an estimate: then the
    interval is the score interval with the variance of Hanley & McNeil (1982), as Newcombe (2006,
    method 5) proposes. In simulations of 60 to 1,000 rows with 10 to 30 positive ones an interval
    of 95 % held the true area in 94 to 96 % of the samples, and in 92 % where it was .92.
    """
    check_level(level)
    estimates = check_estimates(y, p, classes=classes, pos_label=pos_label)
    n = len(estimates.codes)
    member = np.arange(n) if groups is None else group_numbers(groups, n)
    counts = np.bincount(estimates.codes, minlength=estimates.p.shape[1])
    if (counts > 0).sum() < 2:
        return AucInterval(float("nan"), 0.0, 1.0, level)
    z = float(ndtri((1 + level) / 2))
    area, moves = _influence(estimates, counts)
    few = _fewest_observations(estimates, counts, member)
    if groups is None and estimates.positive is not None and min(few) > 1:
        # DeLong divides the sum of each class's squares by its own number less one.
        own = estimates.codes == estimates.positive
        moves = moves * np.sqrt(np.where(own, few[0] / (few[0] - 1), few[1] / (few[1] - 1)))
        variance = float(moves @ moves) / n**2
    else:
        sums = np.bincount(member, weights=moves)
        variance = float(sums @ sums) / n**2 * len(sums) / max(1, len(sums) - 1)
    if min(few) < 2 or variance <= 1e-18 or not 0 < area < 1:
        return AucInterval(area, *_score_interval(area, *few, z), level)
    margin = z * np.sqrt(variance) / (area * (1 - area))
    low, high = expit(logit(area) - margin), expit(logit(area) + margin)
    return AucInterval(area, float(low), float(high), level)


def _influence(estimates: ClassEstimates, counts: IntArray) -> tuple[float, FloatArray]:
    """Return the area, of many classes weighted, and how far each row moves it, (n,), times n."""
    n = len(estimates.codes)
    of_all = estimates.positive is None
    columns = range(len(counts)) if estimates.positive is None else [estimates.positive]
    area, moves = 0.0, np.zeros(n)
    for j in columns:
        if not 0 < counts[j] < n:
            continue
        own, score, share = estimates.codes == j, estimates.p[:, j], counts[j] / n
        ranks = rankdata(score)
        above = np.empty(n)  # the share of the other side that a row is ranked right against
        above[own] = (ranks[own] - rankdata(score[own])) / (n - counts[j])
        above[~own] = 1 - (ranks[~own] - rankdata(score[~own])) / counts[j]
        one = float(above[own].mean())
        step = (above - one) / np.where(own, share, 1 - share)
        if of_all:  # the shares that weigh the classes are estimated too
            area += share * one
            moves += share * step + one * (own - share)
        else:
            area, moves = one, step
    return area, moves


def _fewest_observations(
    estimates: ClassEstimates, counts: IntArray, member: IntArray
) -> tuple[int, int]:
    """Return how many observations there are of the positive (or largest) class and beside it."""
    j = int(counts.argmax()) if estimates.positive is None else estimates.positive
    own = estimates.codes == j
    return len(np.unique(member[own])), len(np.unique(member[~own]))


def _score_interval(area: float, m: int, n: int, z: float) -> tuple[float, float]:
    """Return the areas whose Hanley-McNeil error is z times their distance from this one."""
    pairs = (m + n) / 2 - 1

    def excess(theta: float) -> float:
        spread = 1 + pairs * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        variance = theta * (1 - theta) * spread / (m * n)
        return float((theta - area) ** 2 - z**2 * variance)

    # 0 and 1 are roots themselves where the area is there: the other root is meant.
    low = brentq(excess, 0.0, min(area, 1 - 1e-12)) if area > 0 else 0.0
    high = brentq(excess, max(area, 1e-12), 1.0) if area < 1 else 1.0
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class RankingCurves:
    """ROC, precision-recall and gain curves of the positive class.

    Attributes
    ----------
    false_positive_rate, true_positive_rate : ndarray of shape (a,)
        The ROC curve, from (0, 0) to (1, 1).
    recall, precision : ndarray of shape (b,)
        The precision-recall curve; recall falls to 0.
    average_precision : float
        scikit-learn's, in [0, 1]; of random ranking the share of the class.
    share : float
        The share of the positive class, in [0, 1].
    gini : float
        Twice the area under the ROC curve, minus 1; in [-1, 1].
    kolmogorov_smirnov : float
        Largest distance of the two rates, in [0, 1].
    depth, gain : ndarray of shape (c,)
        Share of rows taken from the top, and share of the positive class found among them. Rows of
        equal estimates are taken in part, as if drawn at random.
    """

    false_positive_rate: FloatArray
    true_positive_rate: FloatArray
    recall: FloatArray
    precision: FloatArray
    average_precision: float
    share: float
    gini: float
    kolmogorov_smirnov: float
    depth: FloatArray
    gain: FloatArray

    def found(self, depth: ArrayLike) -> FloatArray:
        """Return which share of the positive class is found in the given share from the top."""
        return np.interp(np.asarray(depth, np.float64), self.depth, self.gain)


def ranking_curves(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> RankingCurves:
    """Return what ROC, precision-recall and gain diagrams show.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.

    Raises
    ------
    ValueError
        As ``brier_decomposition``, if there are more than two classes and no ``pos_label``, or not
        both outcomes.
    """
    outcome, estimate, weight = positive_problem(y, p, sample_weight, classes, pos_label)
    if outcome.all() or not outcome.any():
        raise ValueError("y must hold the positive class and another one, got one of them only")
    fpr, tpr, _ = roc_curve(outcome, estimate, sample_weight=weight, drop_intermediate=False)
    precision, recall, _ = precision_recall_curve(outcome, estimate, sample_weight=weight)
    share = float(weight @ outcome / weight.sum())
    depth = share * tpr + (1 - share) * fpr
    auc = float(np.trapezoid(tpr, fpr))
    some, others = _thinned(len(fpr)), _thinned(len(recall))
    return RankingCurves(
        false_positive_rate=fpr[some],
        true_positive_rate=tpr[some],
        recall=recall[others],
        precision=precision[others],
        average_precision=float(average_precision_score(outcome, estimate, sample_weight=weight)),
        share=share,
        gini=2 * auc - 1,
        kolmogorov_smirnov=float(np.abs(tpr - fpr).max()),
        depth=depth,
        gain=tpr,
    )


def _thinned(n: int) -> IntArray:
    """Return at most MOST_POINTS places of n, the ends among them."""
    if n <= MOST_POINTS:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, MOST_POINTS).round().astype(np.intp))
