"""Validation of probability estimates, their one-vs-rest problems, and bins."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property
from numbers import Real
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._class_columns import in_class_order
from vennforest._messages import shown
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
from vennforest.metrics.variance import units_of
from vennforest.scores import ScoreError, as_numbers, check_scores, read_probabilities

MIN_WEIGHTED_UNITS = 15
"""Expected number of effective rows of an outcome below which weighted measures have no interval;
observed ones would select the tables in which it is high by chance."""


class EventEstimates(NamedTuple):
    """Estimates and outcomes of one event.

    ``outcome`` (n,) in {0.0, 1.0}, ``p`` (n,) in [0, 1], ``weight`` (n,) above zero, and the codes
    of ``groups`` (n,) of dependent rows, None for independent ones.
    """

    outcome: FloatArray
    p: FloatArray
    weight: FloatArray
    groups: IntArray | None = None

    @property
    def are_enough(self) -> bool:
        """Whether intervals are valid: not of one group.

        Of different weights they are if 15 of each outcome are expected.
        """
        w = self.weight
        is_of_several = self.groups is None or bool(self.groups.any())
        return is_of_several and (
            np.ptp(w) == 0
            or all((w @ p) ** 2 >= MIN_WEIGHTED_UNITS * (w**2 @ p) for p in (self.p, 1 - self.p))
        )

    @property
    def units(self) -> float:
        """Effective number of rows, or groups, of the rarer outcome; 0 if no interval is valid."""
        return units_of(self.outcome, self.weight, self.groups) if self.are_enough else 0.0

    def take(self, rows: Any) -> EventEstimates:
        """Return a part of the rows."""
        groups = None if self.groups is None else recoded(self.groups[rows])
        return EventEstimates(self.outcome[rows], self.p[rows], self.weight[rows], groups)

    def uncertain(self) -> EventEstimates:
        """Return the rows whose estimate is neither 0 nor 1, with weights of mean 1."""
        part = self.take((self.p > 0) & (self.p < 1))
        w = part.weight
        return part._replace(weight=w / w.mean() if len(w) and np.ptp(w) else np.ones(len(w)))


def recoded(groups: IntArray) -> IntArray:
    """Return codes from 0 without gaps."""
    return np.unique(groups, return_inverse=True)[1].astype(np.intp)


class ClassEstimates:
    """Validated estimates of every class; see `Estimates`, which adds the measures.

    Attributes
    ----------
    labels : ndarray of shape (k,)
        Sorted classes.
    codes, p, weight : ndarray of shape (n,), (n, k) and (n,)
        Class indices of the labels, estimates, and weights, of the rows with a weight above zero.
    groups : ndarray of shape (n,), or None
        Codes of groups of dependent rows.
    is_counted : ndarray
        Mask of the given rows with a weight above zero, which are the n rows.
    positive : int or None
        Index of the positive class, None for more than two classes and no ``pos_label``.
    event : str
        Label of the positive class, or "predicted label".
    """

    def __init__(
        self,
        y: ArrayLike,
        p: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        pos_label: Any = None,
        follow_up: tuple[ArrayLike, float] | None = None,
    ) -> None:
        check_order(p, y=y, sample_weight=sample_weight, groups=groups)
        n = len(as_numbers(p, "p"))
        if not n:
            raise ValueError("p must contain at least one estimate, got 0 sample(s)")
        self.codes, self.labels = encode_labels(y, classes, n)
        k = len(self.labels)
        refuse_one_class(self.labels)
        self.positive = 1 if k == 2 else None
        if pos_label is not None:
            self.positive = class_index(self.labels, pos_label)
        is_event = self.positive is not None
        self.event = str(self.labels[self.positive]) if is_event else "predicted label"
        self._pos_label, self._named = pos_label, classes
        self.p = self._columns(p)
        if self.p.shape[1] < k:  # the column of one of several classes
            self.codes, self.positive = (self.codes == self.positive).astype(np.intp), 1
        weight = check_weights(sample_weight, n, warns=False)
        self.weight = np.ones(n) if weight is None else weight
        if follow_up is not None:
            if not (isinstance(follow_up, tuple | list) and len(follow_up) == 2):
                raise InputError(
                    f"follow_up must be a pair of times (n,) and a horizon, got {shown(follow_up)}"
                )
            check_order(p, follow_up=follow_up[0])
            self.codes, followed_share = self._matured(*follow_up)
            self.weight = self.weight * followed_share
        self.groups = encode_groups(groups, p)
        self.is_counted = self.weight > 0
        self._keep(self.is_counted)

    def _columns(self, p: ArrayLike) -> FloatArray:
        """Return probabilities (n, k), or (n, 2) of the one class that ``pos_label`` names."""
        k, is_event = len(self.labels), self._pos_label is not None and np.ndim(p) == 1
        named = None if is_event else self._named
        ordered = in_class_order(p, self.labels, name="p", named=named)
        estimates = check_probabilities(ordered)
        if estimates.ndim == 2 and estimates.shape[1] == k:
            return estimates
        if estimates.ndim == 2 or self.positive is None:
            raise ValueError(
                f"p must have a column for each of {k} classes, got {estimates.shape}: "
                + (
                    "name classes that are missing from y with classes="
                    if estimates.ndim == 2
                    else "or name the class whose probability it is with pos_label="
                )
            )
        columns = [1 - estimates, estimates]
        is_of_event = k > 2 or self.positive == 1 or ordered is not p  # a column with a name
        return np.column_stack(columns if is_of_event else columns[::-1])

    def versus(self, p: ArrayLike | ClassEstimates) -> FloatArray:
        """Return other probabilities (n, k) of the same rows, to be compared with ``self.p``."""
        columns = p.p if isinstance(p, ClassEstimates) else self._columns(p)
        if len(columns) == len(self.is_counted):
            columns = columns[self.is_counted]
        if columns.shape != self.p.shape:
            shape = (len(self.is_counted), self.p.shape[1])
            raise InputError(f"versus must have the rows of p, {shape}, got shape {columns.shape}")
        return columns

    def _matured(self, duration: ArrayLike, horizon: float) -> tuple[IntArray, FloatArray]:
        """Return the labels at a horizon, and the weights of rows by the time they were followed.

        A row is known if it was followed up to the horizon or the event came before. Its weight is
        1 / Ĝ(min(T, horizon)⁻), Ĝ the Kaplan-Meier estimate of being followed; others have 0.
        """
        if self.positive is None or self.p.shape[1] > 2:
            raise InputError("follow_up must be used with two classes, got more")
        time = as_numbers(duration, "follow_up")
        if time.shape != self.codes.shape:
            rule = f"follow_up must have a time for each of {len(self.codes)} rows"
            raise InputError(f"{rule}, got shape {time.shape}")
        if (wrong := ~(time >= 0)).any():
            raise ScoreError("follow_up must have times of 0 or more", f"{time[wrong][0]}", wrong)
        if not (isinstance(horizon, Real) and 0 < horizon < np.inf):
            raise InputError(f"horizon must be a finite number above 0, got {shown(horizon)}")
        happened = self.codes == self.positive
        moments, at = np.unique(time, return_inverse=True)
        n_left = np.bincount(at, ~happened)
        # Of the same moment events come first, so they are no longer at risk of being lost.
        at_risk = np.bincount(at)[::-1].cumsum()[::-1] - np.bincount(at, happened)
        factors = 1 - n_left / np.maximum(at_risk, 1)
        before = np.append(1.0, np.cumprod(factors))[
            np.searchsorted(moments, np.minimum(time, horizon))
        ]
        is_event = happened & (time <= horizon)
        is_known = (is_event | (time >= horizon)) & (before > 0)
        if not (is_known.all() or (time >= horizon).any()):
            raise InputError(
                f"follow_up must reach the horizon {horizon:g} in a row, got {time.max():g} at most"
            )
        codes = np.where(is_event, self.positive, 1 - self.positive).astype(np.intp)
        return codes, np.divide(is_known, before, out=np.zeros(len(time)), where=is_known)

    def _keep(self, rows: Any) -> None:
        for cached in ("main", "units"):
            self.__dict__.pop(cached, None)
        self.codes, self.p, self.weight = self.codes[rows], self.p[rows], self.weight[rows]
        self.groups = None if self.groups is None else recoded(self.groups[rows])

    def take(self, rows: Any) -> Self:
        """Return the estimates of some rows."""
        part = copy.copy(self)
        part._keep(rows)
        part.is_counted = np.ones(len(part.codes), dtype=bool)
        return part

    def of_column(self, j: int) -> EventEstimates:
        """Return the two-class problem of class j against the rest."""
        column = np.ascontiguousarray(self.p[:, j])
        outcome = (self.codes == j).astype(np.float64)
        return EventEstimates(outcome, column, self.weight, self.groups)

    def one_vs_rest(self) -> Iterator[EventEstimates]:
        """Yield the two-class problem of every class against the rest."""
        return (self.of_column(j) for j in range(self.p.shape[1]))

    def of_predicted(self) -> EventEstimates:
        """Return the estimates of the event that the predicted label is correct.

        The predicted label is that of the largest estimate, the first one of a tie.
        """
        predicted = self.p.argmax(axis=1)
        right = (predicted == self.codes).astype(np.float64)
        p = self.p[np.arange(len(right)), predicted]
        return EventEstimates(right, p, self.weight, self.groups)

    @cached_property
    def main(self) -> EventEstimates:
        """The problem of the positive class if there is one, else of the predicted label."""
        return self.of_predicted() if self.positive is None else self.of_column(self.positive)

    def of_event(self) -> EventEstimates:
        """Return the problem of the positive class; raise an error if there is none."""
        if self.positive is None:
            raise ValueError(f"pos_label must name one of {len(self.labels)} classes, got None")
        return self.main


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


Strategy = Literal["uniform", "quantile"]
"""Bins of equal width, or of equal count."""


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


def binned(
    problem: EventEstimates, bins: int, strategy: Strategy
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weight n_k, mean estimate r_k and observed share φ_k of the b non-empty bins, (b,).

    Bins are in increasing order of the estimates.
    """
    codes = bin_codes(problem.p, bins, strategy, problem.weight)
    total: FloatArray = np.bincount(codes, weights=problem.weight).astype(np.float64)
    filled = total > 0
    estimate, observed = (
        np.bincount(codes, weights=problem.weight * values)[filled] / total[filled]
        for values in (problem.p, problem.outcome)
    )
    return total[filled], estimate, observed
