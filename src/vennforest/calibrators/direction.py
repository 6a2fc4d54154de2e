"""The direction of scores, and the range in which new ones are expected."""

from __future__ import annotations

from typing import Literal

import numpy as np

from vennforest._messages import InputError, shown, warn
from vennforest._validation import FloatArray
from vennforest.counts import ScoreCounts
from vennforest.scores import ScoreKind, are_masked

Increasing = bool | Literal["auto"]
"""Whether the second class becomes more likely as the score rises."""

# Distance of the area under the ROC curve from 1/2 that leaves no doubt of the direction.
MIN_STANDARD_ERRORS = 4.0

# Calibration examples from which on new scores are compared with their range, and the part of it by
# which new scores may lie beyond it.
MIN_EXAMPLES_FOR_RANGE, RANGE_MARGIN = 10, 0.5


def ranking_area(counts: ScoreCounts) -> tuple[float, bool]:
    """Return the area under the ROC curve of two classes, and whether it is surely not 1/2."""
    negatives, positives = counts.weights.T
    m, n = counts.class_totals.tolist()
    if m * n == 0:  # one class, or weights that are next to nothing
        return 0.5, False
    # Pairs with the positive example on the right; ties count half.
    pairs = positives @ np.cumsum(negatives) - positives @ negatives / 2
    area = float(pairs) / (m * n)
    # The standard error of scores that say nothing, without ties (Mann & Whitney 1947, section 4).
    error = float(np.sqrt((m + n + 1) / (12 * m * n)))
    return area, abs(area - 0.5) > MIN_STANDARD_ERRORS * error


def reversal_center(
    counts: ScoreCounts, increasing: Increasing, are_probabilities: bool
) -> float | None:
    """Return c where scores s become c - s (1 of probabilities, else 0), None where they stay."""
    if not (isinstance(increasing, bool) or increasing == "auto"):
        raise InputError(f'increasing must be True, False or "auto", got {shown(increasing)}')
    if len(counts.classes) > 2:
        if increasing is not True:
            raise InputError(
                f"increasing must be True with several classes, got {shown(increasing)}"
            )
        return None
    area, is_sure = ranking_area(counts)
    if increasing is True and is_sure and area < 0.5:
        first, second = counts.classes.tolist()
        warn(
            f"the scores of {second!r} are lower than those of {first!r} (area under the ROC "
            f"curve {area:.3f}), which the map cannot follow: give increasing=False if a high "
            f"score means that {second!r} is less likely"
        )
    if increasing == "auto":
        if not is_sure:
            raise InputError(
                'increasing must be True or False, got "auto" and scores that do not show which: '
                f"the area under the ROC curve is {area:.3f}"
            )
        increasing = area > 0.5
    if increasing:
        return None
    return 1.0 if are_probabilities else 0.0


def score_ends(counts: ScoreCounts, kind: ScoreKind) -> FloatArray:
    """Return the smallest and the largest calibration score but those of masked classes, (2,)."""
    x = counts.scores[~are_masked(counts.scores, kind)]
    return np.array([x.min(), x.max()]) if x.size else np.zeros(2)


def expected_range(ends: FloatArray, total: float) -> FloatArray | None:
    """Return the range of the calibration scores, or [0, 1], with a margin, (2,); None: any.

    ``ends`` (2,) are the smallest and largest score of examples that have weight ``total``.
    """
    low, high = ends.tolist()
    if total < MIN_EXAMPLES_FOR_RANGE or low == high:
        return None
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    margin = RANGE_MARGIN * (high - low)
    limits = np.array([low - margin, high + margin])
    return limits if np.isfinite(limits).all() else None


def check_range(scores: FloatArray, kind: ScoreKind, low: float, high: float) -> None:
    """Warn of scores far outside the range of the calibration scores, but of no masked classes."""
    is_outside = ((scores < low) | (scores > high)) & ~are_masked(scores, kind)
    if not is_outside.any():
        return
    share, value = float(np.mean(is_outside)), scores[is_outside][0]
    warn(
        f"{share:.2%} of the scores lie far outside those calibrated on, in [{low:g}, "
        f"{high:g}], such as {value:g}: there the probability is "
        "extrapolated. Are they in other units?"
    )
