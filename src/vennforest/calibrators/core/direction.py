"""Whether a high score means that the second class is likelier, or less likely."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, InputError, IntArray, check_option
from vennforest.counts import ScoreCounts

HigherIs = Literal["likelier", "safer", "auto"]
"""What a higher score says of the second class."""

SURE = 4.0
"""Standard errors from 1/2 beyond which the area under the ROC curve leaves no doubt."""


def reversed_at(counts: ScoreCounts, higher_is: HigherIs) -> float | None:
    """Return c where the scores s are to be replaced by c - s, None where they stay.

    c is 1 of probabilities, low + high of scores on a grid, and 0 of others.

    Raises
    ------
    InputError
        If ``higher_is`` is unknown, is not "likelier" with more than two classes, or "auto" finds
        no direction.
    """
    check_option(higher_is, HigherIs, "higher_is")
    if higher_is == "likelier":
        return None
    if len(counts.classes) > 2:
        raise InputError(
            f'higher_is must be "likelier" with more than two classes, got {higher_is!r}'
        )
    if higher_is == "auto":
        area, sure = ranking(counts)
        if not sure:
            raise InputError(
                f'higher_is must be "likelier" or "safer" where the scores do not show which: the '
                f"area under the ROC curve is {area:.3f}, close to 1/2"
            )
        if area > 0.5:
            return None
    if counts.grid is not None:
        return counts.grid.low + counts.grid.high
    scores = counts.tables[0].scores
    return 1.0 if scores[0] >= 0 and scores[-1] <= 1 else 0.0


def ranking(counts: ScoreCounts) -> tuple[float, bool]:
    """Return the area under the ROC curve of two classes, and whether it is surely not 1/2.

    The standard error is that of scores that say nothing, without ties:
    sqrt((m + n + 1) / (12 m n)) for m and n examples (Mann and Whitney 1947, section 4).
    """
    negatives, positives = counts.tables[0].counts.astype(np.float64).T
    m, n = negatives.sum(), positives.sum()
    if m == 0 or n == 0:
        return 0.5, False
    below = np.cumsum(negatives) - negatives / 2  # ties count half
    area = float((positives * below).sum() / (m * n))
    return area, abs(area - 0.5) > SURE * math.sqrt((m + n + 1) / (12 * m * n))


def reversed_counts(counts: ScoreCounts, at: float) -> ScoreCounts:
    """Return counts of two classes with scores s replaced by ``at - s``, which are on no grid.

    Putting them on one again would move some in their last digit: new scores are reversed after
    they are put on it.
    """
    (table,) = counts.tables
    made = ScoreCounts.from_counts(
        at - table.scores[::-1],
        *table.counts[::-1].T,
        classes=counts.classes,
    )
    return ScoreCounts(counts.classes, made.tables, None, counts.displaced)


def direction_of(
    scores: FloatArray, codes: IntArray, weight: NDArray[Any] | None, k: int, higher_is: HigherIs
) -> float | None:
    """Return the same as `reversed_at` for scores (n,) or (n, k), codes and weights (n,)."""
    check_option(higher_is, HigherIs, "higher_is")
    counts = ScoreCounts.from_scores(scores, codes, sample_weight=weight, classes=np.arange(k))
    return reversed_at(counts, higher_is)
