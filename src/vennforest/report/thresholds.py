"""What acting on the probability of the positive class does: ranking, thresholds, net benefit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._validation import FloatArray
from vennforest.decisions import CostMatrix
from vennforest.metrics import (
    CalibrationLine,
    DecisionCurve,
    RankingCurves,
    calibration_line,
    decision_curve,
    ranking_curves,
    threshold_table,
)
from vennforest.report.levels import RARE, share_of_positive
from vennforest.report.predictions import BASELINE

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

USUAL = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
TIMES = (0.5, 1, 2, 5, 10, 20, 50)
"""Thresholds of a rare class, in times of its share."""

TOPS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)


def _of(evaluation: Evaluation, method: str) -> dict[str, Any]:
    estimates = evaluation.folds.estimates[method]
    return {
        "y": evaluation.of_rows,
        "p": estimates.p,
        "classes": evaluation.folds.classes,
        "pos_label": evaluation.label,
    }


def ranking_of(evaluation: Evaluation, method: str) -> RankingCurves:
    """Return the curves of one method's ranking by the positive class."""
    return ranking_curves(**_of(evaluation, method))


def ranking_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the measures of ranking of every method, and those of no ranking at all."""
    found = []
    share = share_of_positive(evaluation)
    tops = tops_of(evaluation)
    for method in evaluation.measures:
        curves = ranking_of(evaluation, method)
        found.append(
            {
                "name": evaluation.names[method],
                "recommended": method == evaluation.verdict.method,
                "auc": evaluation.measures[method].auc,
                "ap": curves.average_precision,
                "gini": curves.gini,
                "ks": curves.kolmogorov_smirnov,
                "found": curves.found(tops).tolist(),
            }
        )
    found.append(
        {
            "name": evaluation.names[BASELINE],
            "recommended": False,
            "auc": 0.5,
            "ap": share,
            "gini": 0.0,
            "ks": 0.0,
            "found": list(tops),
        }
    )
    return found


def tops_of(evaluation: Evaluation) -> list[float]:
    """Return the shares of rows from the top that are at least five rows."""
    return [top for top in TOPS if top * len(evaluation.folds.codes) >= 5]


def lift_rows(evaluation: Evaluation, method: str) -> list[dict[str, Any]]:
    """Return what is found in the top of the ranking, and how many times the average that is."""
    curves = ranking_of(evaluation, method)
    n = len(evaluation.folds.codes)
    positives = curves.share * n
    return [
        {
            "top": top,
            "rows": top * n,
            "found": found,
            "events": found * positives,
            "in_part": abs(found * positives - round(found * positives)) > 1e-6,
            "share": found * positives / (top * n),
            "lift": found / top,
        }
        for top, found in zip(
            tops_of(evaluation), curves.found(tops_of(evaluation)).tolist(), strict=True
        )
    ]


def cost_threshold(costs: CostMatrix | None, positive: int) -> float | None:
    """Return the probability at which two decisions cost the same; None where there is none."""
    if costs is None or costs.costs.shape != (2, 2):
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
        wanted = {_rounded(share * times) for times in TIMES} | {0.5}
    tie = cost_threshold(evaluation.costs, evaluation.positive)
    if tie is not None:
        wanted = {t for t in wanted if abs(t - tie) > 1e-9} | {tie}
    return sorted(t for t in wanted if 0 < t < 1)


def _rounded(value: float) -> float:
    """Return a number rounded to one significant digit."""
    return round(value, -math.floor(math.log10(value)))


def threshold_rows(evaluation: Evaluation, method: str) -> list[dict[str, Any]]:
    """Return the rows of the table of thresholds."""
    bounds = evaluation.folds.estimates[method].bounds
    at = thresholds_of(evaluation)
    table = threshold_table(thresholds=at, bounds=bounds, **_of(evaluation, method))
    assert evaluation.positive is not None
    tie = cost_threshold(evaluation.costs, evaluation.positive)
    names = ("flagged", "sensitivity", "specificity", "positive_value", "negative_value")
    counts = ("sure_yes", "positive_yes", "depends", "positive_depends", "sure_no", "positive_no")
    return [
        {
            "threshold": t,
            "of_costs": t == tie,
            **{name: _known(getattr(table, name)[i]) for name in names},
            **{name: int(getattr(table, name)[i]) for name in counts if bounds is not None},
        }
        for i, t in enumerate(at)
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def curve_of(evaluation: Evaluation, method: str) -> DecisionCurve:
    """Return the decision curve of one method, over thresholds that matter for the share."""
    share = share_of_positive(evaluation)
    assert share is not None
    bounds = evaluation.folds.estimates[method].bounds
    return decision_curve(thresholds=_range(share), bounds=bounds, **_of(evaluation, method))


def _range(share: float) -> FloatArray:
    most = 0.95 if share >= RARE else min(0.95, 20 * share)
    return np.linspace(most / 100, most, 100)


def line_of(evaluation: Evaluation, method: str) -> CalibrationLine:
    """Return calibration intercept, slope and observed over expected of one method."""
    return calibration_line(groups=evaluation.folds.groups, **_of(evaluation, method))


def line_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return these of every method."""
    return [
        {
            "name": evaluation.names[method],
            "recommended": method == evaluation.verdict.method,
            "line": line_of(evaluation, method),
        }
        for method in evaluation.measures
    ]
