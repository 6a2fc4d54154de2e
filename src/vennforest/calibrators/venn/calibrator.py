"""Venn predictors: the frequencies of the labels in the new object's category."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import attrs
import numpy as np
from attrs.validators import instance_of, optional

from vennforest._state import stored
from vennforest._validation import FloatArray, IntArray, array, check_array, check_option, require
from vennforest.calibrators.core.formula import Terms
from vennforest.calibrators.core.interface import BoundedCalibrator, Learnt, LeftOut
from vennforest.calibrators.core.scores import SMALLEST
from vennforest.calibrators.venn.taxonomies import Taxonomy, resolve
from vennforest.calibrators.venn_abers.calibrator import VennAbers
from vennforest.multiprobability import Merge, Multiprobability

LARGEST_COUNT = 1e300
"""Largest weight in a category: sums of them stay finite."""

MOST_EMPTY = 100_000
"""Categories that a taxonomy may have, however few examples there are."""


@stored("venn")
@attrs.frozen(eq=False, slots=False)
class Categories(Learnt):
    """The taxonomy, and the weight of each label in each of its categories."""

    taxonomy: Taxonomy = attrs.field(validator=instance_of(Taxonomy))  # type: ignore[type-abstract]
    counts: FloatArray = attrs.field(validator=array(None, None, low=0, high=LARGEST_COUNT))
    cell: IntArray | None = None
    """The category and label, as one number, of each example (n,); None: no examples are known."""
    weight: FloatArray | None = attrs.field(
        default=None, validator=optional(array(None, low=SMALLEST))
    )
    smoother: VennAbers | None = attrs.field(
        default=None, validator=optional(instance_of(VennAbers))
    )

    def __attrs_post_init__(self) -> None:
        """Refuse counts that are not those of the examples or of the taxonomy."""
        m, k = self.counts.shape
        require(self.taxonomy.n_categories_ == m, f"counts must be of {m} categories")
        if self.cell is None:
            require(self.weight is None, "weight must be None without cell")
            return
        n = len(self.cell)
        require(m <= max(MOST_EMPTY, n * k), f"n_categories_ must not be above {n * k}")
        check_array(self.cell, "cell", (n,), "i", 0, m * k - 1)
        require(self.weight is None or len(self.weight) == n, f"weight must have shape ({n},)")
        counts = np.bincount(self.cell, weights=self.weight, minlength=m * k).reshape(-1, k)
        require(np.array_equal(counts, self.counts), "counts must be those of the examples")

    def check_classes(self, k: int) -> None:
        """Refuse a taxonomy, counts or smooth estimates of other classes."""
        self.taxonomy.check_classes(k)
        require(self.counts.shape[1] == k, f"counts must be of {k} classes")
        smoother = self.smoother
        require(smoother is None or len(smoother.classes_) == k, f"smoother must be of {k} classes")

    @property
    def n_examples(self) -> int:
        """How many calibration examples are known."""
        return 0 if self.cell is None else len(self.cell)

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """L and U of every category, and of one that no example is in (number -1)."""
        k = self.counts.shape[1]
        lower, upper = _bounds(self.counts)
        return np.vstack([lower, np.zeros(k)]), np.vstack([upper, np.ones(k)])

    @cached_property
    def others(self) -> FloatArray:
        """The weight of the others in each example's cell, (n,)."""
        assert self.cell is not None and self.weight is not None
        order = np.argsort(self.cell, kind="stable")
        others = np.empty(len(self.weight))
        others[order] = _sums_of_others(self.cell[order], self.weight[order])
        return others

    def written(self) -> Self:
        """Return the same without examples."""
        return attrs.evolve(self, cell=None, weight=None)


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
    merge : {"midpoint", "log", "brier", "smooth"}, default="midpoint"
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.
        ``"smooth"`` clips the smooth estimates of `VennAbers` on the same scores into them.

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

    _learns = Categories
    _learnt: Categories

    def __init__(
        self,
        taxonomy: str | Taxonomy | Callable[[FloatArray], Any] = "label",
        merge: Merge = "midpoint",
    ) -> None:
        self.taxonomy = taxonomy
        self.merge = merge

    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> Categories:
        check_option(self.merge, Merge, "merge")
        taxonomy = resolve(self.taxonomy).fit(scores, k, weight)
        cell = taxonomy(scores) * k + codes
        n_cells = taxonomy.n_categories_ * k
        counts = np.bincount(cell, weights=weight, minlength=n_cells)
        smoother = None
        if self.merge == "smooth":
            smoother = VennAbers("smooth")._fit_checked(scores, codes, weight, k)
        return Categories(
            taxonomy, counts.astype(np.float64).reshape(-1, k), cell, weight, smoother
        )

    @property
    def taxonomy_(self) -> Taxonomy:
        """The taxonomy fitted to the calibration scores."""
        return self._learnt.taxonomy

    @property
    def counts_(self) -> FloatArray:
        """Weight of the calibration examples of each label in each category, (n_categories, k)."""
        return self._learnt.counts

    @property
    def cell_of_examples(self) -> Any:
        """Category times k plus class number of each example, (n,); None where none are known."""
        return self._learnt.cell

    @property
    def weight_of_examples(self) -> FloatArray | None:
        """Weight of each example that reached ``_fit``, (n,); None: each counts once."""
        return self._learnt.weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require(
            self.merge != "smooth" or self._learnt.smoother is not None,
            "smoother must not be None",
        )

    def _multiprobability(self, new: FloatArray, absent: LeftOut | None = None) -> Multiprobability:
        category = self.taxonomy_(new)
        lower, upper = (one[category] for one in self._learnt.bounds)
        if absent is not None:
            affected, counts = self._counts_without(absent, category)
            lower[affected], upper[affected] = _bounds(counts)
        return Multiprobability(lower, upper, self.classes_, distributions=True)

    def _counts_without(self, absent: LeftOut, category: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the new scores whose category's counts (affected, k) change, and those counts."""
        rows, k = absent.rows, len(self.classes_)
        known = (rows >= 0) & (category >= 0)
        if absent.groups is None:
            affected = np.flatnonzero(known & (category == self.cell_of_examples[rows] // k))
            counts = self.counts_[category[affected]]
            gone = rows[affected]
            cell = self.cell_of_examples[gone]
            left = (
                self.counts_.ravel()[cell] - 1
                if self.weight_of_examples is None
                else self._learnt.others[gone]
            )
            counts[np.arange(len(gone)), cell % k] = left
            return affected, counts
        # Every pair of a cell and a group that has somebody in it, and the cell without the group.
        n_groups = 1 + max(int(absent.groups.max()), int(rows.max(initial=0)))
        pairs, pair_of = np.unique(
            self.cell_of_examples * n_groups + absent.groups, return_inverse=True
        )
        weight = np.bincount(pair_of, self.weight_of_examples).astype(np.float64)
        without = _sums_of_others(pairs // n_groups, weight)
        affected = np.flatnonzero(known)
        cells = category[affected, None] * k + np.arange(k)
        wanted = cells * n_groups + rows[affected, None]
        at = np.searchsorted(pairs, wanted).clip(max=len(pairs) - 1)
        counts = np.where(pairs[at] == wanted, without[at], self.counts_[category[affected]])
        return affected, counts

    def _smooth(self, scores: FloatArray) -> FloatArray:
        smoother = self._learnt.smoother
        if smoother is None:
            raise ValueError(f'merge must be "smooth" for smooth estimates, got {self.merge!r}')
        return smoother._smooth(scores)

    def _starts(self) -> FloatArray:
        return self.taxonomy_.starts()

    def _formulas_of_many(self, scores: Terms) -> dict[str, Terms]:
        category, k = self.taxonomy_.formula(scores), len(scores)
        lower, upper = (one[:-1] for one in self._learnt.bounds)
        columns = {"p0": lower, "p1": upper}
        if self.merge != "smooth":
            columns["p"] = Multiprobability(lower, upper, self.classes_).merge(self.merge)
        found = category.look_up(
            np.arange(1.0, len(lower)),
            {f"{name}_{j}": column[:, j] for name, column in columns.items() for j in range(k)},
        )
        return {name: tuple(found[f"{name}_{j}"] for j in range(k)) for name in columns}

    def _smooth_formulas(self, scores: Terms) -> Terms:
        assert self._learnt.smoother is not None
        return self._learnt.smoother._smooth_formulas(scores)


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
