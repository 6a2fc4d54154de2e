"""The event that is looked at: its probabilities, levels of them, and thresholds.

With two classes it is the positive class, with more that the predicted label is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray
from vennforest.decisions import CostMatrix
from vennforest.metrics import threshold_table
from vennforest.multiprobability import Multiprobability
from vennforest.report.measures import MethodEstimates, Predictions

if TYPE_CHECKING:
    import pandas as pd

RARE_SHARE = 0.1
"""Share of the positive class below which levels and thresholds are powers of ten."""

LEVEL_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RARE_LEVEL_EDGES = (
    0.0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0,
)  # fmt: skip
USUAL_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
RARE_THRESHOLD_MULTIPLES = (0.5, 1, 2, 5, 10, 20, 50)
"""Thresholds for a rare class, as multiples of its share."""


@dataclass(frozen=True, eq=False)
class Event:
    """One method's estimates of the event, each (n,).

    ``outcome`` is 1.0 where it happened; ``bounds`` and ``confidence`` are pairs of lower and upper
    ends, or None.
    """

    p: FloatArray
    outcome: FloatArray
    bounds: tuple[FloatArray, FloatArray] | None
    confidence: tuple[FloatArray, FloatArray] | None

    @classmethod
    def of(cls, estimates: MethodEstimates, codes: IntArray, positive: int | None) -> Event:
        """Return the event of the positive class, or of a correct label where that is None."""
        n = len(codes)
        column = estimates.p.argmax(axis=1) if positive is None else np.full(n, positive)
        cells, bounds, confidence = (np.arange(n), column), estimates.bounds, estimates.confidence
        return cls(
            estimates.p[cells],
            (column == codes).astype(np.float64),
            None if bounds is None else (bounds.lower[cells], bounds.upper[cells]),
            None if confidence is None else (confidence[0][cells], confidence[1][cells]),
        )

    def summary(self, rows: IntArray, groups: IntArray | None) -> dict[str, Any]:
        """Return what was expected and what was observed in some rows."""
        low, high = share_interval(self.outcome[rows], None if groups is None else groups[rows])
        means = {
            "n": len(rows),
            "expected": float(self.p[rows].mean()),
            "observed": float(self.outcome[rows].mean()),
            "observed_low": low,
            "observed_high": high,
        }
        for name, ends in (("bound", self.bounds), ("confidence", self.confidence)):
            lower, upper = (np.nan, np.nan) if ends is None else (end[rows].mean() for end in ends)
            means |= {f"{name}_low": float(lower), f"{name}_high": float(upper)}
        return means


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


def level_rows(p: FloatArray, is_rare: bool) -> list[IntArray]:
    """Return the rows of each level of probability that has any; levels are closed below."""
    edges = RARE_LEVEL_EDGES if is_rare else LEVEL_EDGES
    level = np.searchsorted(edges[1:-1], p, side="right")
    return [np.flatnonzero(level == i) for i in np.unique(level)]


def levels(event: Event, is_rare: bool, groups: IntArray | None) -> pd.DataFrame:
    """Return what was expected and observed, a row for each level of probability."""
    import pandas as pd

    rows_of_levels = level_rows(event.p, is_rare)
    return pd.DataFrame([event.summary(rows, groups) for rows in rows_of_levels])


def cost_threshold(costs: CostMatrix | None, positive: int | None) -> float | None:
    """Return the probability at which two decisions cost the same; None where there is none."""
    if costs is None or positive is None or costs.costs.shape != (2, 2):
        return None
    gap = costs.costs[:, 0] - costs.costs[:, 1]
    if gap[positive] == gap[1 - positive]:
        return None
    p = float(gap[1 - positive] / (gap[1 - positive] - gap[positive]))
    return p if 0 < p < 1 else None


def shown_thresholds(share: float, tie: float | None) -> list[float]:
    """Return the thresholds to show for a class of this share, with that of the costs."""
    thresholds = set(USUAL_THRESHOLDS)
    if share < RARE_SHARE:
        sizes = [share * multiple for multiple in RARE_THRESHOLD_MULTIPLES]
        one_digit = {round(size, -math.floor(math.log10(size))) for size in sizes if size > 0}
        thresholds = one_digit | {0.5}
    if tie is not None:
        thresholds = {t for t in thresholds if abs(t - tie) > 1e-9} | {tie}
    return sorted(t for t in thresholds if 0 < t < 1)


def event_options(predictions: Predictions, method: str, positive: int | None) -> dict[str, Any]:
    """Return one method's estimates as the arguments of a metric."""
    classes = predictions.classes
    return {
        "y": classes[predictions.codes],
        "p": predictions.estimates[method].p,
        "classes": classes,
        "pos_label": None if positive is None else classes[positive],
    }


def confidence_as_bounds(predictions: Predictions, method: str) -> Multiprobability | None:
    """Return confidence intervals in the form in which metrics take bounds."""
    confidence = predictions.estimates[method].confidence
    return None if confidence is None else Multiprobability(*confidence, predictions.classes)


def thresholds(
    predictions: Predictions, method: str, positive: int, tie: float | None
) -> pd.DataFrame:
    """Return what flagging rows at thresholds does, a row for each threshold.

    With confidence intervals, ``sure_yes``, ``open`` and ``sure_no`` count the rows whose interval
    is above the threshold, contains it or is below it; ``positive_…`` how many are positive.
    """
    import pandas as pd

    share = float((predictions.codes == positive).mean())
    table = threshold_table(
        **event_options(predictions, method, positive),
        thresholds=shown_thresholds(share, tie),
        bounds=confidence_as_bounds(predictions, method),
    )
    frame = pd.DataFrame({key: value for key, value in vars(table).items() if value is not None})
    names = {"depends": "open", "positive_depends": "positive_open"}
    return frame.rename(columns=names).set_index("threshold")
