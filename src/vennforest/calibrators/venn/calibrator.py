"""Venn predictors: the frequencies of the labels in the new object's category."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vennforest._state import stored
from vennforest._validation import FloatArray, IntArray, check_array, check_option, require
from vennforest.calibrators.base import BoundedCalibrator, LeftOut
from vennforest.calibrators.formula import Terms
from vennforest.calibrators.venn.taxonomies import Taxonomy, resolve
from vennforest.counts import ScoreCounts
from vennforest.multiprobability import Merge, Multiprobability

LARGEST_COUNT = 1e300
"""Largest weight in a category: sums of them stay finite."""

MOST_EMPTY = 100_000
"""Categories that a taxonomy may have, however few examples there are."""


@stored("venn-predictor")
class Venn(BoundedCalibrator):
    """Inductive Venn predictor: lower and upper probabilities from counts of labels by category.

    With N calibration examples in the new object's category, c_j of them of label j, the bounds
    are ``L_j = c_j / (N + 1)`` and ``U_j = (c_j + 1) / (N + 1)`` (Johansson et al. 2018, eqs. 3
    and 4); an empty category gives [0, 1] for every class. Any number of classes.

    Parameters
    ----------
    taxonomy : str, Taxonomy or callable, default="label"
        What puts examples into categories: ``"label"`` (the class with the largest score),
        ``"confidence-bins"``, ``"margin"``, ``"nearest"``; a `Taxonomy` with parameters of its own;
        or a function ``scores -> categories`` of any hashable values.
    merge : {"midpoint", "log", "brier"}, default="midpoint"
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.

    Notes
    -----
    The bounds are valid where calibration examples and new ones are exchangeable and the taxonomy
    treats them in the same way (Vovk & Petej 2014, Theorem 1): exactly for taxonomies that are
    fixed functions of the scores, nearly for ``"nearest"``, which takes its edges from the
    calibration scores. For exactness fit it to other scores and hand over what it does:
    ``Venn(NeighbourCells().fit(other_scores, k).__call__)``.

    A weight counts as so many observations, and the new object as one.

    Examples
    --------
    >>> import numpy as np
    >>> scores, y = np.array([0.1, 0.3, 0.4, 0.8, 0.9]), np.array([0, 0, 1, 1, 1])
    >>> m = Venn().fit(scores, y).predict_multiprobability([0.2, 0.7])
    >>> m.lower
    array([[0.5       , 0.25      ],
           [0.        , 0.66666667]])
    >>> m.upper
    array([[0.75      , 0.5       ],
           [0.33333333, 1.        ]])
    """

    title = "Venn"
    taxonomy_: Taxonomy
    """The taxonomy fitted to the calibration scores."""
    counts_: FloatArray
    """Weight of the calibration examples of each label in each category, (n_categories, k)."""
    cells_: IntArray | None
    """Category times k plus class number of each example, (n,); None where none are known."""
    example_weight_: FloatArray | None
    """Weight of each example, (n,); None: each counts once."""

    def __init__(
        self,
        taxonomy: str | Taxonomy | Callable[[FloatArray], Any] = "label",
        merge: Merge = "midpoint",
    ) -> None:
        self.taxonomy = taxonomy
        self.merge = merge

    def _fit(self, counts: ScoreCounts) -> None:
        check_option(self.merge, Merge, "merge")
        k = len(counts.classes)
        self.taxonomy_ = resolve(self.taxonomy).fit(counts.scores, k, counts.weights.sum(axis=1))
        category = self.taxonomy_(counts.scores)
        self.counts_ = np.column_stack(
            [
                np.bincount(category, weight, self.taxonomy_.n_categories_).astype(np.float64)
                for weight in counts.weights.T
            ]
        )
        self.cells_ = self.example_weight_ = None

    def _remember(
        self,
        scores: FloatArray,
        codes: IntArray,
        weight: FloatArray | None,
        positive: NDArray[np.bool_] | None,
    ) -> None:
        super()._remember(scores, codes, weight, positive)
        self.cells_ = self.taxonomy_(scores) * len(self.classes_) + codes
        self.example_weight_ = weight

    def _without_examples(self) -> Self:
        calibrator = super()._without_examples()
        calibrator.cells_ = calibrator.example_weight_ = None
        return calibrator

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return L and U of every category, and of one that no example is in (number -1)."""
        k = self.counts_.shape[1]
        lower, upper = _bounds(self.counts_)
        return np.vstack([lower, np.zeros(k)]), np.vstack([upper, np.ones(k)])

    def _others(self) -> FloatArray:
        """Return the weight of the others in each example's cell, (n,)."""
        assert self.cells_ is not None and self.example_weight_ is not None
        order = np.argsort(self.cells_, kind="stable")
        others = np.empty(len(self.example_weight_))
        others[order] = _sums_of_others(self.cells_[order], self.example_weight_[order])
        return others

    def _check_state(self) -> None:
        super()._check_state()
        m, k = self.taxonomy_.n_categories_, len(self.classes_)
        require(isinstance(self.taxonomy_, Taxonomy), "taxonomy_ must be a Taxonomy")
        self.taxonomy_.check_classes(k)
        check_array(self.counts_, "counts_", (m, k), low=0, high=LARGEST_COUNT)
        if self.cells_ is not None:
            n = len(self.cells_)
            require(m <= max(MOST_EMPTY, n * k), f"n_categories_ must not be above {n * k}")
            check_array(self.cells_, "cells_", (n,), "i", 0, m * k - 1)
            if self.example_weight_ is not None:
                check_array(self.example_weight_, "example_weight_", (n,), low=0)

    def _multiprobability(self, new: FloatArray, absent: LeftOut | None = None) -> Multiprobability:
        category = self.taxonomy_(new)
        lower, upper = (bounds[category] for bounds in self._bounds())
        if absent is not None:
            affected, counts = self._counts_without(absent, category)
            lower[affected], upper[affected] = _bounds(counts)
        return Multiprobability(lower, upper, self.classes_, distributions=True)

    def _counts_without(self, absent: LeftOut, category: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the new scores whose category's counts (affected, k) change, and those counts."""
        rows, k = absent.rows, len(self.classes_)
        known = (rows >= 0) & (category >= 0)
        if absent.groups is None:
            affected = np.flatnonzero(known & (category == self.cells_[rows] // k))
            counts = self.counts_[category[affected]]
            gone = rows[affected]
            cell = self.cells_[gone]
            left = (
                self.counts_.ravel()[cell] - 1
                if self.example_weight_ is None
                else self._others()[gone]
            )
            counts[np.arange(len(gone)), cell % k] = left
            return affected, counts
        # Every pair of a cell and a group that has somebody in it, and the cell without the group.
        n_groups = 1 + max(int(absent.groups.max()), int(rows.max(initial=0)))
        pairs, pair_of = np.unique(self.cells_ * n_groups + absent.groups, return_inverse=True)
        weight = np.bincount(pair_of, self.example_weight_).astype(np.float64)
        without = _sums_of_others(pairs // n_groups, weight)
        affected = np.flatnonzero(known)
        cells = category[affected, None] * k + np.arange(k)
        wanted = cells * n_groups + rows[affected, None]
        at = np.searchsorted(pairs, wanted).clip(max=len(pairs) - 1)
        counts = np.where(pairs[at] == wanted, without[at], self.counts_[category[affected]])
        return affected, counts

    def _starts(self) -> FloatArray:
        return self.taxonomy_.starts()

    def _formulas_of_many(self, scores: Terms) -> dict[str, Terms]:
        category, k = self.taxonomy_.formula(scores), len(scores)
        lower, upper = (bounds[:-1] for bounds in self._bounds())
        p = Multiprobability(lower, upper, self.classes_).merge(self.merge)
        columns = {"p0": lower, "p1": upper, "p": p}
        found = category.look_up(
            np.arange(1.0, len(lower)),
            {f"{name}_{j}": column[:, j] for name, column in columns.items() for j in range(k)},
        )
        return {name: tuple(found[f"{name}_{j}"] for j in range(k)) for name in columns}


def _bounds(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return L and U (n, k) from counts (n, k): Johansson et al. (2018), eqs. 3 and 4."""
    total = counts.sum(axis=1, keepdims=True) + 1
    return counts / total, (counts + 1) / total


def _sums_of_others(cell: IntArray, weight: FloatArray) -> FloatArray:
    """Return for each entry (n,) the sum of the weights of the others in its cell.

    Cells must be sorted. The sums of those before and of those after it are added: taking a weight
    off the whole would lose all digits where it is nearly the whole.
    """
    others = np.zeros(len(cell))
    for begin, stop in pairwise([0, *(np.flatnonzero(np.diff(cell)) + 1), len(cell)]):
        within = weight[begin:stop]
        others[begin + 1 : stop] = np.cumsum(within[:-1])
        others[begin : stop - 1] += np.cumsum(within[:0:-1])[::-1]
    return others
