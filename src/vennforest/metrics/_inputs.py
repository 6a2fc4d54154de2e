"""Checked estimates of probabilities, one problem for each event, and bins of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from vennforest._messages import not_one_of, warn
from vennforest._validation import (
    FloatArray,
    IntArray,
    check_option,
    check_scores,
    check_weights,
    encode_labels,
)

RANGE_TOLERANCE = 1e-9
"""Rounding error of summed votes outside [0, 1]."""

SUM_TOLERANCE = 1e-5
"""Rounding error of the sum of a float32 row."""

ROUNDING_DECIMALS = range(2, 7)
"""Decimals to which users round probabilities."""


class EventEstimates(NamedTuple):
    """Estimates of one event and whether it happened.

    ``outcome`` (n,) in {0.0, 1.0}, ``p`` (n,) in [0, 1], ``weight`` (n,) above zero.
    """

    outcome: FloatArray
    p: FloatArray
    weight: FloatArray


class ClassEstimates(NamedTuple):
    """Checked estimates of every class.

    ``codes`` (n,) is each label's column, ``p`` (n, k) has a column per class, ``weight`` (n,) is
    above zero, ``positive`` is the column of the positive class (None: more than two classes and
    no ``pos_label``), and ``event`` its label, or "predicted label".
    """

    codes: IntArray
    p: FloatArray
    weight: FloatArray
    positive: int | None
    event: str

    def of_column(self, j: int) -> EventEstimates:
        """Return the two-class problem of class j against the rest."""
        column = np.ascontiguousarray(self.p[:, j])
        return EventEstimates((self.codes == j).astype(np.float64), column, self.weight)

    def one_vs_rest(self) -> Iterator[EventEstimates]:
        """Yield the two-class problem of every class against the rest."""
        return (self.of_column(j) for j in range(self.p.shape[1]))

    def of_predicted(self) -> EventEstimates:
        """Return the problem "is the predicted label right", with the confidence in it.

        The predicted label is that of the largest estimate, the first of equals.
        """
        predicted = self.p.argmax(axis=1)
        right = (predicted == self.codes).astype(np.float64)
        return EventEstimates(right, self.p[np.arange(len(right)), predicted], self.weight)

    def main(self) -> EventEstimates:
        """Return the positive class's problem, or that of the predicted label without one."""
        return self.of_predicted() if self.positive is None else self.of_column(self.positive)

    def additive(self) -> list[EventEstimates]:
        """Return the problems whose measures add up: the positive class's, or every class's."""
        if self.positive is not None:
            return [self.of_column(self.positive)]
        return list(self.one_vs_rest())


def check_estimates(
    y: ArrayLike,
    p: ArrayLike,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> ClassEstimates:
    """Return labels, estimates and weights that fit together; rows of weight 0 are left out.

    Parameters are described by `brier_decomposition`.
    """
    estimates = check_probabilities(p)
    check_consistent_length(estimates, y)
    if not len(estimates):
        raise ValueError("p must contain at least one estimate, got 0 sample(s)")
    codes, labels = encode_labels(y, classes)
    weight = check_weights(sample_weight, len(estimates))
    codes, labels, positive = _positive(codes, labels, pos_label, estimates)
    event = "predicted label" if positive is None else str(labels[positive])
    if pos_label is not None:
        event = str(pos_label)
    if estimates.ndim == 1:
        pair = [1 - estimates, estimates]
        estimates = np.column_stack(pair if positive == 1 else pair[::-1])
    if weight is None:
        weight = np.ones(len(estimates))
    counted = weight > 0
    return ClassEstimates(codes[counted], estimates[counted], weight[counted], positive, event)


def positive_problem(
    y: ArrayLike, p: ArrayLike, sample_weight: Any, classes: Any, pos_label: Any
) -> EventEstimates:
    """Return outcome, estimate and weight of the positive class, each (n,)."""
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    if estimates.positive is None:
        raise ValueError(f"pos_label must name one of {estimates.p.shape[1]} classes, got None")
    return estimates.of_column(estimates.positive)


def group_numbers(groups: ArrayLike, n: int) -> IntArray:
    """Return the number of each row's group, (n,)."""
    numbers: IntArray = np.unique(np.asarray(groups), return_inverse=True)[1]
    if len(numbers) != n:
        raise ValueError(f"groups must be of {n} rows, got {len(numbers)}")
    return numbers


def check_probabilities(p: ArrayLike) -> FloatArray:
    """Return probabilities (n,) or (n, k) as float64, clipped where rounding left [0, 1]."""
    array = check_scores(p, "p")
    outside = (array < -RANGE_TOLERANCE) | (array > 1 + RANGE_TOLERANCE)
    if outside.any():
        raise ValueError(
            f"p must lie in [0, 1], got {array[outside][0]}: calibrate scores that are no "
            "probabilities first"
        )
    if array.ndim == 2:
        if array.shape[1] < 2:
            raise ValueError(
                f"p must have shape (n,) or a column for each class, got {array.shape}"
            )
        array = _summing_to_one(array)
    return np.clip(array, 0.0, 1.0)


def _summing_to_one(p: FloatArray) -> FloatArray:
    """Return probabilities (n, k) with rows that sum to 1; raise an error for more than rounding.

    Of k numbers rounded to d decimals the sum is off by at most k/2 of the last decimal; such
    rows are divided by their sums.
    """
    sums = p.sum(axis=1)
    error = np.abs(sums - 1)
    if (error <= SUM_TOLERANCE).all():
        return p
    decimals = next((d for d in ROUNDING_DECIMALS if _is_rounded(p, d)), None)
    tolerance = (
        SUM_TOLERANCE if decimals is None else p.shape[1] / 2 * 10.0**-decimals + RANGE_TOLERANCE
    )
    wrong = error > tolerance
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"p must have rows that sum to 1 within {tolerance:.2g}, got a sum of {sums[row]:.6g} "
            f"in row {row + 1:,}: give the probabilities of all classes, unrounded, or divide each "
            "row by its sum"
        )
    warn(
        f"{int((error > SUM_TOLERANCE).sum()):,} rows of probabilities do not sum to 1, since they "
        f"are rounded to {decimals} decimals: each row is divided by its sum"
    )
    return np.asarray(p / sums[:, None])


def _is_rounded(p: FloatArray, decimals: int) -> bool:
    scaled = p * 10.0**decimals
    return bool((np.abs(scaled - np.rint(scaled)) < 1e-6).all())


def _positive(
    codes: IntArray, labels: NDArray[Any], pos_label: Any, p: FloatArray
) -> tuple[IntArray, NDArray[Any], int | None]:
    """Return codes and classes that fit the columns of p, and the positive column."""
    if len(labels) == 1 and (p.ndim == 1 or p.shape[1] == 2):
        codes, labels = _second_class(codes, labels, pos_label)
    k = len(labels)
    column = None
    if pos_label is not None:
        column = next((j for j, label in enumerate(labels) if label == pos_label), None)
        if column is None:
            raise not_one_of("pos_label", labels.tolist(), pos_label)
    if p.ndim == 1:
        if k == 2:
            return codes, labels, 1 if column is None else column
        if column is None:
            raise ValueError(
                f"p must have a column for each of {k} classes, got {p.shape}: or name the class "
                "whose probability it is with pos_label="
            )
        return (codes == column).astype(np.intp), labels, 1
    if p.shape[1] != k:
        raise ValueError(
            f"p must have a column for each of {k} classes, got {p.shape}: name classes that are "
            "missing from y with classes="
        )
    return codes, labels, 1 if k == 2 and column is None else column


def _second_class(
    codes: IntArray, labels: NDArray[Any], pos_label: Any
) -> tuple[IntArray, NDArray[Any]]:
    """Return codes and two classes for a y of one class: 0 and 1, or with ``pos_label``."""
    label = labels[0]
    if labels.dtype.kind in "biuf" and label in (0, 1) and pos_label in (None, 0, 1):
        return np.full_like(codes, int(label)), np.array([0, 1]).astype(labels.dtype)
    if pos_label is None:
        raise ValueError(
            "y must contain at least two classes (or name them with classes=), "
            f"got one class: {label!r}"
        )
    if label == pos_label:
        return np.ones_like(codes), np.array([None, label], dtype=object)
    return np.zeros_like(codes), np.array([label, pos_label], dtype=object)


Bins = int | ArrayLike | Literal["distinct"]
"""A number of bins, their edges, or ``"distinct"``: a bin for every value that occurs."""

Strategy = Literal["uniform", "quantile"]
"""Bins of equal width, or of equal count."""


class BinMeans(NamedTuple):
    """Contents of the non-empty bins, each of shape (b,), in increasing order of the estimates.

    ``weight`` is the number of observations, ``estimate`` their mean estimate (r_k), ``observed``
    the share of them in which the event happened (φ_k).
    """

    weight: FloatArray
    estimate: FloatArray
    observed: FloatArray


def bin_codes(
    p: FloatArray, bins: Bins, strategy: Strategy = "uniform", weight: FloatArray | None = None
) -> IntArray:
    """Return the bin of each estimate (n,), for weights (n,) above zero (None: 1 each).

    Bins are closed to the right; the first one contains 0 as well. Equal-count bins never part
    equal estimates: bin b ends at the smallest estimate below or at which b/K of the weight lies.
    """
    check_option(strategy, Strategy, "strategy")
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins < 1:
            raise ValueError(f"bins must be at least 1, got {bins}")
        if strategy == "quantile":
            return _equal_count(p, int(bins), weight)
        # i / K is the float nearest the edge, so an estimate of 0.29 is at the edge 29 / 100.
        return np.searchsorted(np.arange(1, bins) / bins, p, side="left").astype(np.intp)
    if isinstance(bins, str) and bins == "distinct":
        return np.unique(p, return_inverse=True)[1].astype(np.intp)
    edges = np.asarray(bins)
    if edges.dtype.kind not in "fiu" or edges.ndim != 1 or not len(edges):
        raise ValueError(f"bins must be a number, edges or 'distinct', got {bins!r}")
    if not ((edges >= 0) & (edges <= 1)).all() or (np.diff(edges) <= 0).any():
        raise ValueError(f"bins must be increasing edges in [0, 1], got {edges.tolist()}")
    inner = edges[(edges > 0) & (edges < 1)].astype(np.float64)
    return np.searchsorted(inner, p, side="left").astype(np.intp)


def _equal_count(p: FloatArray, bins: int, weight: FloatArray | None) -> IntArray:
    distinct = np.unique(p, return_inverse=True)[1].astype(np.intp)
    cumulative = np.cumsum(np.bincount(distinct, weights=weight))
    # Slightly below the exact shares, which sums of weights like 0.1 may miss by rounding.
    targets = np.arange(1, bins) * (cumulative[-1] / bins) * (1 - 1e-12)
    last = np.searchsorted(cumulative, targets, side="left")
    return np.searchsorted(last, np.arange(len(cumulative)), side="left")[distinct]


def binned(problem: EventEstimates, bins: Bins, strategy: Strategy) -> BinMeans:
    """Return the means in every non-empty bin."""
    codes = bin_codes(problem.p, bins, strategy, problem.weight)
    total: FloatArray = np.bincount(codes, weights=problem.weight).astype(np.float64)
    filled = total > 0
    estimate, observed = (
        np.bincount(codes, weights=problem.weight * values)[filled] / total[filled]
        for values in (problem.p, problem.outcome)
    )
    return BinMeans(total[filled], estimate, observed)
