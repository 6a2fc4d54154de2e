"""Validation of probability estimates, their one-vs-rest problems, and bins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._class_columns import in_class_order
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_option,
    check_order,
    check_weights,
    class_index,
    encode_groups,
    encode_labels,
    refuse_one_class,
)
from vennforest.scores import as_numbers, check_scores, read_probabilities


class EventEstimates(NamedTuple):
    """Estimates and outcomes of one event.

    ``outcome`` (n,) in {0.0, 1.0}, ``p`` (n,) in [0, 1], ``weight`` (n,) above zero.
    """

    outcome: FloatArray
    p: FloatArray
    weight: FloatArray


def uncertain_rows(
    problem: EventEstimates, groups: IntArray | None
) -> tuple[EventEstimates, IntArray | None]:
    """Return the rows whose estimate is neither 0 nor 1, and the codes of their groups."""
    is_inside = (problem.p > 0) & (problem.p < 1)
    inside = EventEstimates(*(values[is_inside] for values in problem))
    return inside, None if groups is None else np.unique(groups[is_inside], return_inverse=True)[1]


class ClassEstimates(NamedTuple):
    """Validated estimates of every class, for rows with a weight (n,) above zero.

    ``codes`` (n,) are the class indices of the labels and ``p`` (n, k) the estimates. ``positive``
    is the index of the positive class, None for more than two classes and no ``pos_label``.
    ``event`` is its label, or "predicted label".
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
        """Return the estimates of the event that the predicted label is correct.

        The predicted label is that of the largest estimate, the first one of a tie.
        """
        predicted = self.p.argmax(axis=1)
        right = (predicted == self.codes).astype(np.float64)
        return EventEstimates(right, self.p[np.arange(len(right)), predicted], self.weight)

    def main(self) -> EventEstimates:
        """Return the problem of the positive class if there is one, else of the predicted label."""
        return self.of_predicted() if self.positive is None else self.of_column(self.positive)


def check_estimates(
    y: ArrayLike,
    p: ArrayLike,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> ClassEstimates:
    """Return validated estimates; `brier_decomposition` describes the parameters."""
    check_order(p, y=y, sample_weight=sample_weight)
    estimates = check_probabilities(p)
    if not len(estimates):
        raise ValueError("p must contain at least one estimate, got 0 sample(s)")
    codes, labels = encode_labels(y, classes, len(estimates))
    if estimates.ndim == 2 or pos_label is None:  # one column is of ``pos_label`` where it is named
        estimates = check_probabilities(p, labels, classes)
    k = len(labels)
    refuse_one_class(labels)
    weight = check_weights(sample_weight, len(estimates))
    positive = 1 if k == 2 else None
    if pos_label is not None:
        positive = class_index(labels, pos_label)
    event = "predicted label" if positive is None else str(labels[positive])
    if estimates.ndim == 1:
        if positive is None:
            raise ValueError(
                f"p must have a column for each of {k} classes, got {estimates.shape}: or name the "
                "class whose probability it is with pos_label="
            )
        codes, positive = (codes == positive).astype(np.intp), 1
        estimates = np.column_stack([1 - estimates, estimates])
    elif estimates.shape[1] != k:
        raise ValueError(
            f"p must have a column for each of {k} classes, got {estimates.shape}: name classes "
            "that are missing from y with classes="
        )
    weight = np.ones(len(estimates)) if weight is None else weight
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


def group_numbers(
    groups: ArrayLike | None, p: ArrayLike, sample_weight: ArrayLike | None = None
) -> IntArray | None:
    """Return the group code of each row of p with positive weight, None without groups."""
    codes = encode_groups(groups, p)
    if codes is None or sample_weight is None:
        return codes
    return np.unique(codes[np.asarray(sample_weight) > 0], return_inverse=True)[1]


def check_probabilities(
    p: ArrayLike, classes: NDArray[Any] | None = None, named: ArrayLike | None = None
) -> FloatArray:
    """Return probabilities (n,) or (n, k), in [0, 1], each row divided by its sum.

    With ``classes``, the columns are brought into their order: see `in_class_order`, also for
    ``named``.
    """
    if classes is not None:
        p = in_class_order(p, classes, name="p", named=named)
    array = check_scores(p, "p")
    if array.ndim == 2 and array.shape[1] < 2:
        raise ValueError(f"p must have shape (n,) or a column for each class, got {array.shape}")
    return read_probabilities(array, "p")


def check_versus(versus: ArrayLike, p: ArrayLike) -> None:
    """Raise an error unless other estimates are of as many rows as p."""
    other_p, n = as_numbers(versus, "versus"), len(as_numbers(p, "p"))
    if len(other_p) != n:
        raise InputError(f"versus must have the rows of p, {n}, got shape {other_p.shape}")


Strategy = Literal["uniform", "quantile"]
"""Bins of equal width, or of equal count."""


class BinMeans(NamedTuple):
    """Weights and means of the b non-empty bins, in increasing order of the estimates.

    ``weight`` (b,) is the number of observations, ``estimate`` (b,) their mean estimate (r_k), and
    ``observed`` (b,) the share of positives among them (φ_k).
    """

    weight: FloatArray
    estimate: FloatArray
    observed: FloatArray


def bin_codes(
    p: FloatArray, bins: int, strategy: Strategy = "uniform", weight: FloatArray | None = None
) -> IntArray:
    """Return the bin of each estimate (n,), with weights (n,) above zero (by default 1).

    Bins are closed to the right; the first one also contains 0. Equal estimates share a bin: with
    ``"quantile"``, bin b of K ends at the smallest estimate up to which b/K of the weight lies.
    """
    check_count(bins, "bins")
    check_option(strategy, Strategy, "strategy")
    if strategy == "uniform":
        # i / K is the float nearest the edge, so an estimate of 0.29 is at the edge 29 / 100.
        return np.searchsorted(np.arange(1, bins) / bins, p, side="left").astype(np.intp)
    distinct = np.unique(p, return_inverse=True)[1].astype(np.intp)
    cumulative = np.cumsum(np.bincount(distinct, weights=weight))
    # Slightly below the exact shares, which sums of weights like 0.1 may miss by rounding.
    targets = np.arange(1, bins) * (cumulative[-1] / bins) * (1 - 1e-12)
    last = np.searchsorted(cumulative, targets, side="left")
    return np.searchsorted(last, np.arange(len(cumulative)), side="left")[distinct]


def binned(problem: EventEstimates, bins: int, strategy: Strategy) -> BinMeans:
    """Return the means in every non-empty bin."""
    codes = bin_codes(problem.p, bins, strategy, problem.weight)
    total: FloatArray = np.bincount(codes, weights=problem.weight).astype(np.float64)
    filled = total > 0
    estimate, observed = (
        np.bincount(codes, weights=problem.weight * values)[filled] / total[filled]
        for values in (problem.p, problem.outcome)
    )
    return BinMeans(total[filled], estimate, observed)
