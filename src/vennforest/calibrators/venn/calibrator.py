"""Venn predictors: the frequencies of the labels in the new object's category."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.bounded import BoundedCalibrator
from vennforest.calibrators.venn.taxonomies import resolve
from vennforest.calibrators.venn.taxonomy import Taxonomy
from vennforest.calibrators.venn_abers.calibrator import VennAbers
from vennforest.multiprobability import Merge, Multiprobability


class Venn(BoundedCalibrator):
    """Inductive Venn predictor: lower and upper probabilities from counts of labels by category.

    With N calibration examples in the new object's category, c_j of them of label j, the bounds
    are ``L_j = c_j / (N + 1)`` and ``U_j = (c_j + 1) / (N + 1)`` (Johansson et al. 2018, eqs. 3
    and 4); an empty category gives [0, 1] for every class. Any number of classes.

    Parameters
    ----------
    taxonomy : str, Taxonomy or callable, default="label"
        What puts examples into categories: ``"label"`` (the class with the largest score),
        ``"confidence-bins"``, ``"confidence-quantiles"``, ``"largest-probability"``,
        ``"second-probability"``, ``"margin"``, ``"nearest"``; a `Taxonomy` with parameters of its
        own; or a function ``scores -> categories`` of any hashable values.
    merge : {"midpoint", "log", "brier", "smooth"}, default="midpoint"
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.
        ``"smooth"`` clips the smooth estimates of `VennAbers` on the same scores into them.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    taxonomy_ : Taxonomy
        The taxonomy fitted to the calibration scores.
    counts_ : ndarray of shape (n_categories, k)
        Weight of the calibration examples of each label in each category.

    Notes
    -----
    The bounds are valid where calibration examples and new ones are exchangeable and the taxonomy
    treats them alike (Vovk & Petej 2014, Theorem 1): exactly for taxonomies that are fixed
    functions of the scores, nearly for ``"confidence-quantiles"`` and ``"nearest"``, which take
    their edges from the calibration scores. For exactness fit such a taxonomy to other scores
    and hand over what it does: ``Venn(NeighbourCells().fit(other_scores, k).__call__)``.

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

    taxonomy_: Taxonomy
    counts_: FloatArray

    def __init__(
        self,
        taxonomy: str | Taxonomy | Callable[[FloatArray], Any] = "label",
        merge: Merge = "midpoint",
    ) -> None:
        self.taxonomy = taxonomy
        self.merge = merge

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        self._fit_merge()
        k = len(self.classes_)
        self.taxonomy_ = resolve(self.taxonomy).fit(scores, k, weight)
        # Which (category, label) each calibration example counts in, as one number.
        self._cell = self.taxonomy_(scores) * k + codes
        self._weight = weight
        n_cells = self.taxonomy_.n_categories_ * k
        counts = np.bincount(self._cell, weights=weight, minlength=n_cells)
        self.counts_ = counts.astype(np.float64).reshape(-1, k)
        if weight is not None:
            # Taking a weight w off a sum loses all precision where w is nearly all of it. Only the
            # heaviest example of a cell can be, so its remainder is summed apart.
            order = np.lexsort((weight, self._cell))
            last = np.append(np.diff(self._cell[order]) > 0, True)
            heaviest = order[last]
            without = weight.copy()
            without[heaviest] = 0.0
            self._heaviest = np.full(n_cells, -1, np.intp)
            self._heaviest[self._cell[heaviest]] = heaviest
            self._remainder = np.bincount(self._cell, weights=without, minlength=n_cells)
        lower, upper = _bounds(self.counts_)
        # The last row is read for categories that no calibration example is in (number -1).
        self._lower = np.vstack([lower, np.zeros(k)])
        self._upper = np.vstack([upper, np.ones(k)])
        self._smoother: VennAbers | None = None
        if self.merge == "smooth":
            labels = self.classes_
            self._smoother = VennAbers("smooth").fit(
                scores, labels[codes], sample_weight=weight, classes=labels
            )

    def predict_multiprobability(
        self, scores: ArrayLike, left_out: ArrayLike | None = None
    ) -> Multiprobability:
        """Return lower and upper probabilities of every class.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.
        left_out : array-like of int of shape (m,), optional
            For each new score the calibration example, numbered as given to ``fit``, whose whole
            weight leaves the counts of its category; -1: none. The categories stay as they were
            fitted, also where their edges were learnt from scores.

        Returns
        -------
        Multiprobability
            Bounds of shape (m, k), in [0, 1]: Johansson et al. (2018), eqs. 3 and 4, after the
            subtraction of their section 3.2.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If scores are NaN or infinite or have another number of columns than in ``fit``, or
            ``left_out`` does not hold m numbers from -1 to n - 1.
        """
        new = self._check_new(scores)
        rows = self._left_out_rows(left_out, len(new))
        category = self.taxonomy_(new)
        lower, upper = self._lower[category], self._upper[category]
        if rows is not None:
            k = len(self.classes_)
            affected = np.flatnonzero((rows >= 0) & (category == self._cell[rows] // k))
            counts = self.counts_[category[affected]]
            gone = rows[affected]
            label = self._cell[gone] % k
            counts[np.arange(len(gone)), label] = self._count_without(gone)
            lower[affected], upper[affected] = _bounds(counts)
        return Multiprobability(lower, upper, self.classes_)

    def _count_without(self, rows: IntArray) -> FloatArray:
        """Return the count of each example's own category and label without that example."""
        cell = self._cell[rows]
        weight = 1.0 if self._weight is None else self._weight[rows]
        counts: FloatArray = self.counts_.ravel()[cell] - weight
        if self._weight is None:
            return counts
        return np.where(self._heaviest[cell] == rows, self._remainder[cell], counts)

    def predict_smooth(self, scores: ArrayLike) -> FloatArray:
        """Return the smooth estimates that ``merge="smooth"`` clips into the bounds.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.

        Returns
        -------
        ndarray of shape (m, k)
            Platt estimates in [0, 1], as `VennAbers.predict_smooth`; rows sum to 1.

        Raises
        ------
        ValueError
            If ``merge`` was not ``"smooth"`` at ``fit``.
        """
        new = self._check_new(scores)
        if self._smoother is None:
            raise ValueError(f'merge must be "smooth" for smooth estimates, got {self.merge!r}')
        return self._smoother.predict_smooth(new)


def _bounds(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return L and U (n, k) from counts (n, k): Johansson et al. (2018), eqs. 3 and 4."""
    total = counts.sum(axis=1, keepdims=True) + 1
    return counts / total, (counts + 1) / total
