"""The direction of scores, and the range in which new ones are expected."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.special import gammaln

from vennforest._messages import InputError, listed, shown, warn
from vennforest._validation import FloatArray
from vennforest.counts import ScoreCounts
from vennforest.scores import On, are_masked, is_outside, sums_to_one

Increasing = bool | Literal["auto"]
"""Whether the second class becomes more likely as the score rises."""

# Distance of the area under the ROC curve from 1/2 that leaves no doubt of the direction.
MIN_STANDARD_ERRORS = 4.0

# Rows, at most, in which columns are ranked, and the odds against chance from which on another
# assignment of columns to classes is warned of.
MAX_RANKED_ROWS, MIN_ODDS_AGAINST_CHANCE = 4_096, 1e4

# Calibration examples from which on new scores are compared with their range, and the part of it by
# which new scores may lie beyond it.
MIN_EXAMPLES_FOR_RANGE, RANGE_MARGIN = 10, 0.5

# Rows from which on scores for a map of logits that look like probabilities are warned of.
MIN_ROWS_OF_PROBABILITIES = 30


def ranking_area(counts: ScoreCounts) -> tuple[float, float]:
    """Return the area under the ROC curve of two classes, and its error where scores say nothing.

    The error is the standard error without ties (Mann & Whitney 1947, section 4); infinite without
    two classes.
    """
    negatives, positives = counts.weights.T
    m, n = counts.class_totals.tolist()
    if m * n == 0:  # one class, or weights that are next to nothing
        return 0.5, np.inf
    # Pairs with the positive example on the right; ties count half. The threads of a matrix product
    # cost more than they save here.
    pairs = (positives * (np.cumsum(negatives) - negatives / 2)).sum()
    return float(pairs) / (m * n), float(np.sqrt((m + n + 1) / (12 * m * n)))


def warn_of_confidence(counts: ScoreCounts) -> None:
    """Warn if scores of two classes seem to be probabilities of the predicted label.

    They are all at least 1/2, and rank the labels neither as such probabilities of the second class
    would nor otherwise.
    """
    p, (first, second) = counts.scores, counts.classes.tolist()
    if p.min() < 0.5 or p.max() > 1 or p.min() == p.max():
        return
    total = counts.weights.sum(axis=1)
    area, error = ranking_area(counts)
    expected, _ = ranking_area(replace(counts, weights=np.stack([total * (1 - p), total * p]).T))
    margin = MIN_STANDARD_ERRORS * error
    if abs(area - 0.5) <= margin < expected - area:
        warn(
            f"all scores lie in [0.5, 1], and do not rank {second!r} above {first!r} (area under "
            f"the ROC curve {area:.3f}), as probabilities of the predicted label do not: give "
            f"those of {second!r}, which are 1 - p where {first!r} is predicted"
        )


def warn_of_other_columns(counts: ScoreCounts) -> None:
    """Warn if reversed columns, or other columns, rank several classes better beyond chance.

    ``counts`` are of probabilities or log-odds (m, k).
    """
    rows = slice(None, None, 1 + len(counts) // MAX_RANKED_ROWS)
    scores, weights = counts.scores[rows], counts.weights[rows]
    of_classes, total = weights.sum(axis=0), weights.sum(axis=1)
    present = np.flatnonzero((of_classes > 0) & (of_classes < total.sum()))
    n = of_classes[present]
    if len(present) < 2:
        return
    by_label, area = csr_array(weights[:, present].T), np.empty((len(present), len(present)))
    for i, column in enumerate(scores.T[present]):
        values, group = np.unique(column, return_inverse=True)
        of_value = np.bincount(group, total, len(values))
        ranks = np.cumsum(of_value) - of_value / 2
        area[i] = (by_label @ ranks[group] - n**2 / 2) / (n * (total.sum() - n))
    variance = (total.sum() + 1) / (12 * n * (total.sum() - n))
    of_own = area.diagonal()
    column_of = linear_sum_assignment(-area.T)[1]
    is_moved = column_of != np.arange(len(n))
    gain = float((area[column_of, np.arange(len(n))] - of_own).sum())
    n_errors = np.sqrt(2 * (gammaln(len(n) + 1) + np.log(MIN_ODDS_AGAINST_CHANCE)))
    if (1 - 2 * of_own).sum() > 2 * MIN_STANDARD_ERRORS * np.sqrt(variance.sum()):
        warn(
            f"the columns of scores rank their classes backwards (mean area under the ROC curve "
            f"{of_own.mean():.3f}): give scores that are higher where a class is more likely, such "
            "as the negative of distances, or 1 over decimal odds"
        )
    elif gain > n_errors * np.sqrt(2 * variance[is_moved].sum()):
        labels, codes = counts.column_classes, np.arange(len(counts.classes))
        codes[present[column_of]] = present
        if counts.column_codes is not None:
            codes = codes[counts.column_codes]
        warn(
            "the columns of scores rank other classes better than their own (mean area under the "
            f"ROC curve {of_own.mean() + gain / len(n):.3f} and {of_own.mean():.3f}): they are "
            f"read as those of {listed(labels.tolist(), 8)}, and seem to be in the order "
            f"{listed(counts.classes[codes].tolist(), 8)}, which classes= can name"
        )


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
    area, error = ranking_area(counts)
    is_sure = abs(area - 0.5) > MIN_STANDARD_ERRORS * error
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


class NewScores:
    """What new scores, counted over all calls of ``add``, have that those of examples have not."""

    def __init__(self, kind: On, limits: FloatArray | None = None) -> None:
        self._limits = None if kind == "probability" else limits
        self._kind, self._are_probabilities = kind, kind == "logit"
        self._n_rows = self._n_scores = self._n_far = 0
        self._far_value, self._ends = np.nan, (np.inf, -np.inf)
        self._sum_to_one = False

    def add(self, scores: FloatArray, values: FloatArray) -> Self:
        """Count scores (n,) or (n, k), and their ``values`` as the map takes them."""
        self._n_rows += len(scores)
        if self._are_probabilities and len(scores):
            self._sum_to_one = scores.ndim == 2 and scores.shape[1] > 1
            self._ends = min(self._ends[0], scores.min()), max(self._ends[1], scores.max())
            self._are_probabilities = not is_outside(scores).any() and (
                not self._sum_to_one or bool(sums_to_one(scores).all())
            )
        if self._limits is not None:
            low, high = self._limits
            is_far = ((values < low) | (values > high)) & ~are_masked(values, self._kind)
            if is_far.any() and not self._n_far:
                self._far_value = float(values[is_far][0])
            self._n_scores, self._n_far = self._n_scores + values.size, self._n_far + is_far.sum()
        return self

    def warn(self) -> None:
        """Warn of scores that look like probabilities where logits are expected, or lie far off."""
        differ = self._sum_to_one or self._ends[0] < self._ends[1]
        if self._are_probabilities and differ and self._n_rows >= MIN_ROWS_OF_PROBABILITIES:
            warn(
                f"all {self._n_rows:,} rows of scores lie in [0, 1]"
                f"{' and sum to 1' * self._sum_to_one}, as probabilities do, and are read as "
                "logits: take their log-odds or logarithms if they are, or fit with "
                'on="probability"'
            )
        if self._limits is not None and self._n_far:
            low, high = self._limits
            warn(
                f"{self._n_far / self._n_scores:.2%} of the scores lie far outside those "
                f"calibrated on, in [{low:g}, {high:g}], such as {self._far_value:g}: there the "
                "probability is extrapolated. Are they in other units?"
            )
