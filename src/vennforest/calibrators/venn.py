"""Venn predictors: the frequencies of the labels in the new object's category."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from vennforest._validation import (
    FloatArray,
    IntArray,
    check_array,
    check_number,
    check_option,
    require,
)
from vennforest.calibrators.bounded import BoundedCalibrator
from vennforest.counts import ScoreCounts
from vennforest.multiprobability import Merge, Multiprobability
from vennforest.scores import On

N_VENN_BINS = 10
"""Bins of the largest score within each label, with ``taxonomy="bins"``."""


class Venn(BoundedCalibrator):
    """Inductive Venn predictor: lower and upper probabilities from counts of labels by category.

    With N calibration examples in the new object's category, c_j of them of label j, the bounds
    are ``L_j = c_j / (N + 1)`` and ``U_j = (c_j + 1) / (N + 1)`` (Johansson et al. 2018, eqs. 3
    and 4); an empty category gives [0, 1] for every class. Any number of classes.

    Parameters
    ----------
    taxonomy : {"label", "bins"} or callable, default="label"
        Which category an example is in. ``"label"``: the class with the largest score; of two
        classes the second where its score exceeds .5, or 0 if some calibration score is outside of
        [0, 1]. ``"bins"``: the class with the largest probability, split by that probability into
        ten equal parts of [1/k, 1] (Lambrou et al. 2015). A function from scores (n,) (two classes)
        or (n, k) to n categories, numbers or text, which treats every score alone.
    merge : {"midpoint", "log", "brier"}, default="midpoint"
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.

    Attributes
    ----------
    counts_ : ndarray of shape (n_categories, k)
        Weight of the calibration examples of each label in each category.
    categories_ : ndarray of shape (n_categories,), or None
        With a function: the value of each category that occurs in ``fit``, sorted.
    boundary_ : float
        With ``"label"`` and two classes: the second one is predicted above it.

    Notes
    -----
    The bounds are valid where calibration examples and new ones are exchangeable (Vovk & Petej
    2014, Theorem 1). A weight counts as so many observations, and the new object as one.

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
    _is_monotone = False
    _reads = "order"
    counts_: FloatArray
    categories_: NDArray[Any] | None
    boundary_: float

    def __init__(
        self,
        taxonomy: str | Callable[[FloatArray], Any] = "label",
        merge: Merge = "midpoint",
        on: On = "auto",
    ) -> None:
        self.taxonomy = taxonomy
        self.merge = merge
        self.on = on

    def _fit(self, counts: ScoreCounts) -> None:
        self._check_taxonomy()
        check_option(self.merge, Merge, "merge")
        scores = counts.scores
        are_shares = self.on == "auto" and scores.min() >= 0 and scores.max() <= 1
        self.boundary_ = 0.5 if self.on_ == "probability" or are_shares else 0.0
        self.categories_ = None
        if callable(self.taxonomy):
            self.categories_ = np.unique(self._values_of(scores))
        category, n_categories = self._category_of(scores), self._n_categories()
        self.counts_ = np.column_stack(
            [np.bincount(category, weight, n_categories) for weight in counts.weights.T]
        )

    def _check_taxonomy(self) -> None:
        if not callable(self.taxonomy):
            check_option(self.taxonomy, ("label", "bins"), "taxonomy", " or a callable")

    def _n_categories(self) -> int:
        if self.categories_ is not None:
            return len(self.categories_)
        return len(self.classes_) * (N_VENN_BINS if self.taxonomy == "bins" else 1)

    def _category_of(self, scores: FloatArray) -> IntArray:
        """Return the category (n,) of scores (n,) or (n, k); -1 if ``fit`` did not see it."""
        if not callable(self.taxonomy):
            if self.taxonomy == "label":
                return label_of(scores, self.boundary_)
            if not self.boundary_:  # of log-odds or decision values
                is_table = scores.ndim == 2 and self.on_ == "score"
                scores = softmax(scores, axis=1) if is_table else expit(scores)
            return bins_of(scores)
        assert self.categories_ is not None
        values = self._values_of(scores)
        category = np.searchsorted(self.categories_, values).clip(max=len(self.categories_) - 1)
        return np.where(self.categories_[category] == values, category, -1)

    def _values_of(self, scores: FloatArray) -> NDArray[Any]:
        """Return the categories of scores by a user's function."""
        assert callable(self.taxonomy)
        values: NDArray[Any] = np.asarray(self.taxonomy(scores))
        if values.shape != (len(scores),):
            raise ValueError(f"taxonomy must return shape ({len(scores)},), got {values.shape}")
        return values

    def _check_state(self) -> None:
        super()._check_state()
        self._check_taxonomy()
        has_values = self.categories_ is not None
        require(callable(self.taxonomy) == has_values, "categories_ must be of a function")
        check_number(self.boundary_, "boundary_")
        check_array(self.counts_, "counts_", (self._n_categories(), len(self.classes_)), low=0)
        with np.errstate(over="ignore"):
            require(np.isfinite(self.counts_.sum()), "counts_ must have a finite sum")

    def _multiprobability(
        self, scores: FloatArray, left_out: IntArray | None = None
    ) -> Multiprobability:
        category = self._category_of(scores)
        # Category -1 is the empty one that is added at the end.
        counts = np.vstack([self.counts_, np.zeros(len(self.classes_))])[category]
        if left_out is not None:
            assert self.example_scores_ is not None and self.example_codes_ is not None
            example_category = self._category_of(self.example_scores_[left_out])
            rows = np.flatnonzero((left_out >= 0) & (example_category == category))
            examples, weights = left_out[rows], self.example_weights_
            cells = rows, self.example_codes_[examples]
            reduced = counts[cells] - (1 if weights is None else weights[examples])
            counts[cells] = np.maximum(reduced, 0)  # rounding
        total = counts.sum(axis=1, keepdims=True) + 1
        lower, upper = counts / total, (counts + 1) / total
        return Multiprobability(lower, upper, self.classes_, distributions=True)


def label_of(scores: FloatArray, boundary: float = 0.5) -> IntArray:
    """Return the class with the largest score, (n,), or of two the second above the boundary."""
    return (scores > boundary).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


def bins_of(scores: FloatArray) -> IntArray:
    """Return the bin of the largest score within its label, shape (n,), N_VENN_BINS per label."""
    label = label_of(scores)
    largest = np.maximum(scores, 1 - scores) if scores.ndim == 1 else scores.max(axis=1)
    lowest = 1 / (2 if scores.ndim == 1 else scores.shape[1])
    share = (np.clip(largest, lowest, 1) - lowest) / (1 - lowest)
    part = np.minimum((share * N_VENN_BINS).astype(np.intp), N_VENN_BINS - 1)
    if scores.ndim == 1:
        part = np.where(label == 0, N_VENN_BINS - 1 - part, part)  # as the second's score increases
    return label * N_VENN_BINS + part
