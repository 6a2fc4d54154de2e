"""Levels of probability and thresholds: what was expected, and what was observed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray
from vennforest.decisions import CostMatrix
from vennforest.metrics import threshold_table
from vennforest.multiprobability import Multiprobability
from vennforest.report.measures import Event, MethodEstimates, Predictions

if TYPE_CHECKING:
    import pandas as pd

LEVEL_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RARE_LEVEL_EDGES = (
    0.0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0,
)  # fmt: skip
USUAL_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
RARE_THRESHOLD_MULTIPLES = (0.5, 1, 2, 5, 10, 20, 50)
"""Thresholds for a rare class, as multiples of its share."""


def summarise(event: Event, rows: IntArray, groups: IntArray | None) -> dict[str, Any]:
    """Return what was expected and what was observed in some rows."""
    low, high = share_interval(event.outcome[rows], None if groups is None else groups[rows])
    summary = {
        "n": len(rows),
        "expected": float(event.p[rows].mean()),
        "observed": float(event.outcome[rows].mean()),
        "observed_low": low,
        "observed_high": high,
    }
    for name, ends in (("bound", event.bounds), ("confidence", event.confidence)):
        if ends is not None:
            means = (float(end[rows].mean()) for end in ends)
            summary |= dict(zip((f"{name}_low", f"{name}_high"), means, strict=True))
    return summary


def share_interval(outcome: FloatArray, groups: IntArray | None = None) -> tuple[float, float]:
    """Return the 95% confidence interval (Wilson) of the share of 1 in ``outcome`` (n,).

    With groups n is divided by the design effect (Korn & Graubard 1998, Survey Methodology 24,
    193-201): the variance of the share over groups over that of independent rows, at least 1, times
    (t / z)². Where all rows agree each group counts as one row. Of one group nothing is known.
    """
    n, share = float(len(outcome)), float(outcome.mean())
    z = float(norm.ppf(0.975))
    if groups is not None:
        member = np.unique(groups, return_inverse=True)[1]
        sizes = np.bincount(member)
        if len(sizes) == 1:
            return 0.0, 1.0
        residual = np.bincount(member, weights=outcome - share)
        effect = float((sizes**2).sum()) / n
        if 0 < share < 1:
            between = len(sizes) / (len(sizes) - 1) * float((residual**2).sum())
            effect = max(1.0, between / (n * share * (1 - share)))
        n /= effect * (float(student.ppf(0.975, len(sizes) - 1)) / z) ** 2
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    return low, 1.0 if share == 1 else min(1.0, middle + half)


def levels(event: Event, is_rare: bool, groups: IntArray | None) -> pd.DataFrame:
    """Return what was expected and observed: a row for each level, which is closed below."""
    import pandas as pd

    edges = RARE_LEVEL_EDGES if is_rare else LEVEL_EDGES
    level = np.searchsorted(edges[1:-1], event.p, side="right")
    rows_of_levels = (np.flatnonzero(level == i) for i in np.unique(level))
    return pd.DataFrame([summarise(event, rows, groups) for rows in rows_of_levels])


def cost_threshold(costs: CostMatrix | None, positive: int | None) -> float | None:
    """Return the probability at which two decisions cost the same; None where there is none."""
    if costs is None or positive is None or costs.costs.shape != (2, 2):
        return None
    gap = costs.costs[:, 0] - costs.costs[:, 1]
    if gap[positive] == gap[1 - positive]:
        return None
    p = float(gap[1 - positive] / (gap[1 - positive] - gap[positive]))
    return p if 0 < p < 1 else None


def confidence_as_bounds(
    estimates: MethodEstimates, predictions: Predictions
) -> Multiprobability | None:
    """Return confidence intervals in the form in which metrics take bounds."""
    confidence = estimates.confidence
    return None if confidence is None else Multiprobability(*confidence, predictions.classes)


def thresholds(predictions: Predictions, method: str, tie: float | None) -> pd.DataFrame:
    """Return what flagging rows at thresholds does, a row for each threshold.

    With confidence intervals, ``sure_yes``, ``open`` and ``sure_no`` count the rows whose interval
    is above the threshold, contains it or is below it.
    """
    import pandas as pd

    shown = set(USUAL_THRESHOLDS)
    if predictions.is_rare:
        sizes = [(predictions.share or 0.0) * multiple for multiple in RARE_THRESHOLD_MULTIPLES]
        shown = {round(size, -math.floor(math.log10(size))) for size in sizes if size > 0} | {0.5}
    if tie is not None:
        shown = {t for t in shown if abs(t - tie) > 1e-9} | {tie}
    estimates = predictions.estimates[method]
    table = threshold_table(
        **predictions.for_metric(estimates),
        thresholds=sorted(t for t in shown if 0 < t < 1),
        bounds=confidence_as_bounds(estimates, predictions),
    )
    columns = {key: value for key, value in vars(table).items() if value is not None}
    return pd.DataFrame(columns).rename(columns={"depends": "open"}).set_index("threshold")
