"""The event that is looked at: its levels of probability, its ranking, its thresholds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray
from vennforest.decisions import CostMatrix
from vennforest.metrics import (
    CalibrationLine,
    DecisionCurve,
    RankingCurves,
    ThresholdTable,
    calibration_line,
    decision_curve,
    ranking_curves,
    threshold_table,
)
from vennforest.multiprobability import Multiprobability
from vennforest.report.measures import BASELINE, MethodEstimates

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation


RARE = 0.1
"""Below this share of the positive class probabilities are looked at by powers of ten."""

EVEN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
STEPS = (0.0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def share_interval(outcome: FloatArray, groups: IntArray | None = None) -> tuple[float, float]:
    """Return the 95 % confidence interval (Wilson) of the share of events, 1 in ``outcome`` (n,).

    With groups n is divided by the design effect (Korn & Graubard 1998, Survey Methodology 24,
    193-201): the variance of the share over groups over that of independent rows, at least 1, times
    (t / z)². Where all rows agree it is the largest: each group is one row. Of one group nothing is
    known.
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
    column = _columns(evaluation, estimates)
    outcome = (column[:, 0] == evaluation.folds.codes).astype(np.float64)
    p, bounds = np.take_along_axis(estimates.p, column, axis=1)[:, 0], estimates.bounds
    return p, outcome, *(_ends(bounds, column) or (None, None))


def confidence_of(
    evaluation: Evaluation, estimates: MethodEstimates
) -> tuple[FloatArray, FloatArray] | None:
    """Return the ends of the event's confidence intervals, each (n,); None: not known."""
    return _ends(estimates.confidence, _columns(evaluation, estimates))


def _ends(tables: Any, column: IntArray) -> tuple[FloatArray, FloatArray] | None:
    """Return lower and upper tables' values of one class a row, each (n,); None of None."""
    if tables is None:
        return None
    low, high = (np.take_along_axis(t, column, axis=1)[:, 0] for t in (tables.lower, tables.upper))
    return low, high


def _columns(evaluation: Evaluation, estimates: MethodEstimates) -> IntArray:
    """Return the class whose probability is the event's, of each row, (n, 1)."""
    at, bounds = evaluation.positive, estimates.bounds
    if at is not None:
        return np.full((len(estimates.p), 1), at)
    best = estimates.p if bounds is None else bounds.lower
    found: IntArray = best.argmax(axis=1)[:, None]
    return found


def part_of(evaluation: Evaluation, at: IntArray) -> dict[str, Any]:
    """Return what was expected and observed of the event in some rows, by the recommended method.

    Means of its probability and bounds (None: none), its share, and the ends of its interval.
    """
    p, outcome, *bounds = event_of(evaluation, evaluation.best)
    groups = evaluation.folds.groups
    least, most = share_interval(outcome[at], None if groups is None else groups[at])
    low, high = (None if end is None else float(end[at].mean()) for end in bounds)
    shares = {"observed": float(outcome[at].mean()), "least": least, "most": most}
    return {"n": len(at), "expected": float(p[at].mean()), "low": low, "high": high, **shares}


def levels(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return `part_of` by level of the event's probability; empty levels are left out."""
    p, *_ = event_of(evaluation, evaluation.best)
    return [part_of(evaluation, at) for at in level_rows(evaluation, p)]


def level_rows(evaluation: Evaluation, p: FloatArray) -> list[IntArray]:
    """Return the rows of each level of probability that has any; levels are closed below."""
    edges = STEPS if is_rare(evaluation) else EVEN
    number = np.searchsorted(edges[1:-1], p, side="right")
    return [np.flatnonzero(number == i) for i in np.unique(number)]


USUAL = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
TIMES = (0.5, 1, 2, 5, 10, 20, 50)
"""Thresholds of a rare class, in times of its share."""

TOPS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)


def _of(evaluation: Evaluation, method: str) -> dict[str, Any]:
    estimates = evaluation.folds.estimates[method]
    return {
        "y": evaluation.observed,
        "p": estimates.p,
        "classes": evaluation.folds.classes,
        "pos_label": evaluation.label,
    }


def ranking_of(evaluation: Evaluation, method: str) -> RankingCurves:
    """Return the curves of one method's ranking by the positive class."""
    return ranking_curves(**_of(evaluation, method))


def ranking_rows(evaluation: Evaluation) -> list[tuple[Any, ...]]:
    """Return the rows of the table of rankings: raw and recommended method, random ranking."""
    tops = tops_of(evaluation)
    rows: list[tuple[Any, ...]] = []
    for method in evaluation.raw_and_best:
        curves, auc = ranking_of(evaluation, method), evaluation.measures[method].auc
        rows.append((method, auc, curves.average_precision, curves.gain_at(tops).tolist()))
    return [*rows, (BASELINE, 0.5, share_of_positive(evaluation), tops)]


def tops_of(evaluation: Evaluation) -> list[float]:
    """Return the shares of rows from the top that are at least five rows."""
    return [top for top in TOPS if top * len(evaluation.folds.codes) >= 5]


def cost_threshold(costs: CostMatrix | None, positive: int | None) -> float | None:
    """Return the probability at which two decisions cost the same; None where there is none."""
    if costs is None or positive is None or costs.costs.shape != (2, 2):
        return None
    gap = costs.costs[:, 0] - costs.costs[:, 1]
    at_positive, at_other = float(gap[positive]), float(gap[1 - positive])
    if at_positive == at_other:
        return None
    p = at_other / (at_other - at_positive)
    return p if 0 < p < 1 else None


def thresholds_of(evaluation: Evaluation) -> list[float]:
    """Return the thresholds to look at, increasing: the usual ones, or times of a rare share."""
    share = share_of_positive(evaluation)
    assert share is not None and evaluation.positive is not None
    wanted = set(USUAL)
    if share < RARE:
        sizes = [share * times for times in TIMES]  # rounded to one significant digit
        wanted = {round(size, -math.floor(math.log10(size))) for size in sizes} | {0.5}
    tie = cost_threshold(evaluation.costs, evaluation.positive)
    if tie is not None:
        wanted = {t for t in wanted if abs(t - tie) > 1e-9} | {tie}
    return sorted(t for t in wanted if 0 < t < 1)


def thresholds_table(evaluation: Evaluation) -> ThresholdTable:
    """Return what comes of flagging rows from each threshold on."""
    return threshold_table(thresholds=thresholds_of(evaluation), **_of_best(evaluation))


def _of_best(evaluation: Evaluation) -> dict[str, Any]:
    """Return the recommended method's estimates, with its confidence intervals as bounds."""
    known, bounds = evaluation.confidence, None
    if known is not None:
        bounds = Multiprobability(known.lower, known.upper, evaluation.folds.classes)
    return {**_of(evaluation, evaluation.verdict.method), "bounds": bounds}


def curve_of(evaluation: Evaluation) -> DecisionCurve:
    """Return the recommended method's decision curve, over thresholds that fit the share."""
    share = share_of_positive(evaluation)
    assert share is not None
    most = 0.95 if share >= RARE else min(0.95, 20 * share)
    return decision_curve(thresholds=np.linspace(most / 100, most, 100), **_of_best(evaluation))


def line_rows(evaluation: Evaluation) -> list[tuple[str, CalibrationLine]]:
    """Return calibration intercept, slope and observed over expected of every method."""
    groups = evaluation.folds.groups
    return [
        (method, calibration_line(groups=groups, **_of(evaluation, method)))
        for method in evaluation.measures
    ]
