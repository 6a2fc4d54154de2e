"""Ranking and decisions: areas and curves of the ROC, and tables over thresholds."""

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
    roc_curve,
)

from vennforest._validation import FloatArray, IntArray, check_inside, class_index
from vennforest.metrics._inputs import (
    ClassEstimates,
    check_estimates,
    group_numbers,
    positive_problem,
)
from vennforest.multiprobability import Multiprobability

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
    check_inside(level, "level")
    estimates = check_estimates(y, p, None, classes, pos_label)
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
        raise ValueError("y must contain the positive class and another one, got one of them only")
    fpr, tpr, _ = roc_curve(outcome, estimate, sample_weight=weight, drop_intermediate=False)
    precision, recall, _ = precision_recall_curve(outcome, estimate, sample_weight=weight)
    share = float(weight @ outcome / weight.sum())
    depth = share * tpr + (1 - share) * fpr
    some, others = _thinned(len(fpr)), _thinned(len(recall))
    return RankingCurves(
        false_positive_rate=fpr[some],
        true_positive_rate=tpr[some],
        recall=recall[others],
        precision=precision[others],
        average_precision=float(average_precision_score(outcome, estimate, sample_weight=weight)),
        share=share,
        depth=depth,
        gain=tpr,
    )


def _thinned(n: int) -> IntArray:
    """Return at most MOST_POINTS places of n, the ends among them."""
    if n <= MOST_POINTS:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, MOST_POINTS).round().astype(np.intp))


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """Decisions at t thresholds, each array of shape (t,); NaN where nothing is divided by.

    A row is flagged where its probability is at least the threshold.

    Attributes
    ----------
    threshold : ndarray
        In [0, 1].
    flagged : ndarray
        Share of rows that are flagged.
    sensitivity, specificity : ndarray
        Share of the positive class that is flagged, and of the others that is not.
    positive_value, negative_value : ndarray
        Predictive values: share of the flagged rows that are positive, and of the others that are
        not.
    sure_yes, sure_no, depends : ndarray or None
        Number of rows (sum of weights) flagged at both bounds, at neither, and at one of them.
    positive_yes, positive_no, positive_depends : ndarray or None
        How many of these are positive.
    """

    threshold: FloatArray
    flagged: FloatArray
    sensitivity: FloatArray
    specificity: FloatArray
    positive_value: FloatArray
    negative_value: FloatArray
    sure_yes: FloatArray | None = None
    sure_no: FloatArray | None = None
    depends: FloatArray | None = None
    positive_yes: FloatArray | None = None
    positive_no: FloatArray | None = None
    positive_depends: FloatArray | None = None


def threshold_table(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike,
    *,
    bounds: Multiprobability | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> ThresholdTable:
    """Return what flagging rows at thresholds does.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.
    thresholds : array-like of shape (t,)
        In [0, 1].
    bounds : Multiprobability, optional
        Of the same rows, for the counts in three ways.
    """
    at = _check_thresholds(thresholds)
    outcome, estimate, weight = positive_problem(y, p, sample_weight, classes, pos_label)
    negative = weight * (1 - outcome)
    positive = weight * outcome
    hit, false = _at_least(estimate, positive, at), _at_least(estimate, negative, at)
    n_positive, n_negative = positive.sum(), negative.sum()
    counts: dict[str, FloatArray] = {}
    if bounds is not None:
        low, high = _bounds_of(bounds, y, sample_weight, pos_label)
        for name, values in (("sure", weight), ("positive", positive)):
            yes, open_or_yes = _at_least(low, values, at), _at_least(high, values, at)
            counts |= {f"{name}_yes": yes, f"{name}_no": values.sum() - open_or_yes}
            counts["depends" if name == "sure" else "positive_depends"] = open_or_yes - yes
    return ThresholdTable(
        threshold=at,
        flagged=(hit + false) / weight.sum(),
        sensitivity=_ratio(hit, n_positive),
        specificity=_ratio(n_negative - false, n_negative),
        positive_value=_ratio(hit, hit + false),
        negative_value=_ratio(n_negative - false, weight.sum() - hit - false),
        **counts,
    )


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit of flagging rows at t thresholds, each array of shape (t,).

    Attributes
    ----------
    threshold : ndarray
        In (0, 1).
    net_benefit : ndarray
        Of flagging where the probability is at least the threshold, in (-inf, share].
    everyone : ndarray
        Of flagging every row; flagging no one has net benefit 0.
    at_lower, at_upper : ndarray or None
        Of flagging where the lower bound is at least the threshold, and where the upper one is.
    """

    threshold: FloatArray
    net_benefit: FloatArray
    everyone: FloatArray
    at_lower: FloatArray | None = None
    at_upper: FloatArray | None = None


def decision_curve(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike,
    *,
    bounds: Multiprobability | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> DecisionCurve:
    """Return the net benefit of decisions at thresholds.

    Parameters
    ----------
    y, p, bounds, sample_weight, classes, pos_label
        As in ``threshold_table``.
    thresholds : array-like of shape (t,)
        In (0, 1).

    Notes
    -----
    Vickers & Elkin (2006): the net benefit at threshold t is TP / n - FP / n * t / (1 - t): true
    positives, less false ones at the exchange rate that the threshold implies.
    """
    at = _check_thresholds(thresholds)
    if ((at <= 0) | (at >= 1)).any():
        raise ValueError("thresholds must lie in (0, 1), got 0 or 1")
    outcome, estimate, weight = positive_problem(y, p, sample_weight, classes, pos_label)
    worth = [weight * outcome, weight * (1 - outcome)]
    odds, n = at / (1 - at), weight.sum()

    def benefit(values: FloatArray) -> FloatArray:
        gained, lost = (_at_least(values, each, at) for each in worth)
        worth_it: FloatArray = (gained - lost * odds) / n
        return worth_it

    band: dict[str, FloatArray] = {}
    if bounds is not None:
        low, high = _bounds_of(bounds, y, sample_weight, pos_label)
        band = {"at_lower": benefit(low), "at_upper": benefit(high)}
    everyone = (worth[0].sum() - worth[1].sum() * odds) / n
    return DecisionCurve(at, benefit(estimate), everyone, **band)


def _at_least(values: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
    """Return the weight of the values (n,) that are at least each threshold, (t,)."""
    order = np.argsort(values, kind="stable")
    below = np.append(0.0, np.cumsum(weight[order]))
    found: FloatArray = below[-1] - below[np.searchsorted(values[order], at, "left")]
    return found


def _ratio(part: FloatArray, whole: Any) -> FloatArray:
    whole = np.broadcast_to(whole, part.shape)
    filled = whole > 0
    ratio: FloatArray = np.where(filled, part / np.where(filled, whole, 1.0), np.nan)
    return ratio


def _check_thresholds(thresholds: ArrayLike) -> FloatArray:
    at = np.atleast_1d(np.asarray(thresholds, np.float64))
    outside = ~((at >= 0) & (at <= 1))
    if at.ndim != 1 or outside.any():
        raise ValueError(
            f"thresholds must lie in [0, 1], got {at[outside][0] if outside.any() else at.shape}"
        )
    return at


def _bounds_of(
    bounds: Multiprobability, y: ArrayLike, sample_weight: Any, pos_label: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of the positive class in the rows that have weight."""
    n = len(np.asarray(y))
    if len(bounds) != n:
        raise ValueError(f"bounds must be of {n} rows, got {len(bounds)}")
    column = class_index(bounds.classes, pos_label)
    kept = np.broadcast_to(np.asarray(1 if sample_weight is None else sample_weight) > 0, n)
    return bounds.lower[kept, column], bounds.upper[kept, column]
