"""Venn taxonomies: which category an example falls in, from its scores alone.

A Venn predictor is valid for every taxonomy that treats the calibration examples and the new one
alike (Vovk & Petej 2014, section 2). A fixed function of the scores does, exactly. Taxonomies with
edges learnt from the calibration scores (equal-count bins, neighbouring cells) do so only nearly,
since the new score has no part in the edges; none of them sees a label. `TransductiveClassifier`
learns the edges from all scores, the new one's included, and is exact again.

References
----------
Johansson, Linusson, Löfström & Boström (2018), Efficient Venn predictors using random forests:
the label taxonomy. Papadopoulos (2013), Reliable probabilistic classification with neural networks,
Neurocomputing 107, 59-68, and Lambrou, Nouretdinov & Papadopoulos (2015), Inductive Venn
prediction, Annals of Mathematics and Artificial Intelligence 74, 181-201: the label (V1), split
once more by the largest output (V2), the second largest (V3), or their difference (V4).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from vennforest._state import (
    check_array,
    check_increasing,
    check_number,
    require,
    stored,
)
from vennforest._validation import FloatArray, IntArray, check_count
from vennforest.calibrators.core.formula import Term, Terms, after
from vennforest.calibrators.venn.cells import CellTree, cell_of, check_tree, cut_cells
from vennforest.calibrators.venn.taxonomy import (
    Taxonomy,
    inner_quantiles,
    largest_two,
    predicted_class,
    predicted_formulas,
)


@stored("label-taxonomy")
class LabelTaxonomy(Taxonomy):
    """One category per predicted label: the class with the largest score, the first of equals.

    Johansson et al. (2018), section 4.

    Parameters
    ----------
    boundary : float, default=0.5
        With one column of scores the second class is predicted above it: 0.5 for probabilities,
        0 for decision values.
    """

    def __init__(self, boundary: float = 0.5) -> None:
        self.boundary = boundary

    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Note the number of classes; nothing is learnt from the scores."""
        self.n_categories_ = n_classes
        return self

    def check_classes(self, n_classes: int) -> None:
        """Refuse a taxonomy that was fitted to scores of another number of classes."""
        check_number(self.boundary, "boundary")
        self._check_count(n_classes)

    def __call__(self, scores: FloatArray) -> IntArray:
        """Return the predicted class of each score, shape (n,)."""
        return predicted_class(scores, self.boundary)

    def starts(self) -> FloatArray:
        """Return the scores of two classes at which the category may change."""
        return self._starts_around(float(self.boundary))

    def formula(self, scores: Terms) -> Term:
        """Return the predicted class as a formula of columns of scores."""
        return predicted_formulas(scores)[0]


class _SplitLabel(Taxonomy):
    """The predicted label, split in two by a threshold."""

    threshold: float

    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Note the number of classes; nothing is learnt from the scores.

        Raises
        ------
        ValueError
            If the threshold is not a number from 0 to 1.
        """
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must lie in [0, 1], got {self.threshold!r}")
        self.n_categories_ = 2 * n_classes
        return self

    def check_classes(self, n_classes: int) -> None:
        """Refuse a taxonomy that was fitted to scores of another number of classes."""
        check_number(self.threshold, "threshold", 0, 1)
        self._check_count(2 * n_classes)

    def __call__(self, scores: FloatArray) -> IntArray:
        """Return twice the predicted class, plus 1 where the measure exceeds the threshold."""
        return 2 * predicted_class(scores) + (self._measure(scores) > self.threshold)

    def starts(self) -> FloatArray:
        """Return the scores of two classes at which the category may change."""
        return self._starts_around(0.5)

    def formula(self, scores: Terms) -> Term:
        """Return the category as a formula of columns of scores."""
        label, largest, second = predicted_formulas(scores)
        measure = self._measure_formula(largest, second)
        return 2.0 * label + measure.unless_above(self.threshold, 0.0, 1.0)

    @abstractmethod
    def _measure(self, scores: FloatArray) -> FloatArray:
        """Return what is compared with the threshold, shape (n,)."""

    @abstractmethod
    def _measure_formula(self, largest: Term, second: Term) -> Term:
        """Return it as a formula of the two largest scores."""


@stored("largest-probability-taxonomy")
class LargestProbability(_SplitLabel):
    """The predicted label, split by whether the largest probability exceeds a threshold (V2).

    Parameters
    ----------
    threshold : float, default=0.75
        In [0, 1]. For two classes the defaults of V2, V3 and V4 cut at the same place.
    """

    def __init__(self, threshold: float = 0.75) -> None:
        self.threshold = threshold

    def _measure(self, scores: FloatArray) -> FloatArray:
        return largest_two(scores)[0]

    def _measure_formula(self, largest: Term, second: Term) -> Term:
        return largest


@stored("second-probability-taxonomy")
class SecondProbability(_SplitLabel):
    """The predicted label, split by whether the second largest probability exceeds a threshold.

    V3 of Papadopoulos (2013).

    Parameters
    ----------
    threshold : float, default=0.25
        In [0, 1].
    """

    def __init__(self, threshold: float = 0.25) -> None:
        self.threshold = threshold

    def _measure(self, scores: FloatArray) -> FloatArray:
        return largest_two(scores)[1]

    def _measure_formula(self, largest: Term, second: Term) -> Term:
        return second


@stored("margin-taxonomy")
class Margin(_SplitLabel):
    """The predicted label, split by whether the margin exceeds a threshold.

    The margin is the largest probability minus the second largest: V4 of Papadopoulos (2013).

    Parameters
    ----------
    threshold : float, default=0.5
        In [0, 1].
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def _measure(self, scores: FloatArray) -> FloatArray:
        largest, second = largest_two(scores)
        # Halved, so that the difference of two huge scores stays finite.
        return 2 * np.minimum(largest / 2 - second / 2, 1.0)

    def _measure_formula(self, largest: Term, second: Term) -> Term:
        return 2.0 * (largest / 2.0 - second / 2.0).min(1.0)


@stored("confidence-bins-taxonomy")
class ConfidenceBins(Taxonomy):
    """Bins of the largest probability within each predicted label.

    Parameters
    ----------
    bins : int, default=10
        Bins a label.
    equal : {"width", "count"}, default="width"
        ``"width"`` cuts [1/k, 1], where the largest of k probabilities lies, into equal parts;
        larger or smaller scores fall in the outer bins. Bin b holds
        ``b <= bins * (c - 1/k) / (1 - 1/k) < b + 1``, and the last one also c = 1.
        ``"count"`` cuts where each bin gets the same weight of calibration examples with that
        predicted label, equal scores staying together: edge j is the smallest calibration value
        with at least j/bins of the weight at or below it, and belongs to the bin below.
        A label that is predicted for no calibration example is one bin.

    Attributes
    ----------
    edges_ : list of ndarray
        With ``"count"``: the inner edges of each predicted label, increasing.
    """

    edges_: list[FloatArray]
    _learns = ("n_categories_", "_n_classes", "edges_")

    def __init__(self, bins: int = 10, equal: Literal["width", "count"] = "width") -> None:
        self.bins = bins
        self.equal = equal

    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Find the bins; only ``"count"`` looks at the scores.

        Raises
        ------
        ValueError
            If ``bins`` is not a positive integer, or ``equal`` is neither of the two.
        """
        check_count(self.bins, "bins")
        if self.equal not in ("width", "count"):
            raise ValueError(f'equal must be "width" or "count", got {self.equal!r}')
        self.n_categories_ = n_classes * self.bins
        self._n_classes = n_classes
        if self.equal == "count":
            label, confidence = predicted_class(scores), largest_two(scores)[0]
            weight = np.ones(len(confidence)) if sample_weight is None else sample_weight
            self.edges_ = [
                inner_quantiles(confidence[label == j], weight[label == j], self.bins)
                for j in range(n_classes)
            ]
        return self

    def check_classes(self, n_classes: int) -> None:
        """Refuse a taxonomy that was fitted to scores of another number of classes."""
        check_number(self.bins, "bins", 1, integer=True)
        require(self._n_classes == n_classes, f"_n_classes must be {n_classes}")
        self._check_count(n_classes * self.bins)
        require(self.equal in ("width", "count"), "equal must be width or count")
        if self.equal == "count":
            require(len(self.edges_) == n_classes, f"edges_ must be of {n_classes} labels")
            for edges in self.edges_:
                check_array(edges, "edges_", (None,))
                check_increasing(edges, "edges_")
                require(len(edges) < self.bins, f"edges_ must part {self.bins} bins")

    def __call__(self, scores: FloatArray) -> IntArray:
        """Return ``bins`` times the predicted class plus the bin, shape (n,)."""
        label, confidence = predicted_class(scores), largest_two(scores)[0]
        if self.equal == "width":
            lowest = 1 / self._n_classes
            place = (np.clip(confidence, lowest, 1) - lowest) / (1 - lowest) * self.bins
            within = np.minimum(place.astype(np.intp), self.bins - 1)
        else:
            within = np.zeros(len(label), np.intp)
            for j, edges in enumerate(self.edges_):
                here = label == j
                within[here] = np.searchsorted(edges, confidence[here])
        return self.bins * label + within

    def starts(self) -> FloatArray:
        """Return the scores of two classes at which the category may change."""
        return self._starts_around(0.5)

    def formula(self, scores: Terms) -> Term:
        """Return the category as a formula of columns of scores."""
        label, confidence, _ = predicted_formulas(scores)
        if self.equal == "width":
            lowest = 1 / self._n_classes
            share = (confidence.clip(lowest, 1.0) - lowest) / (1 - lowest)
            return float(self.bins) * label + (share * float(self.bins)).floor().min(self.bins - 1)
        within = [
            confidence.look_up(after(edges), {"bin": np.arange(len(edges) + 1.0)})["bin"]
            for edges in self.edges_
        ]
        chosen = within[-1]
        for j in reversed(range(len(within) - 1)):
            chosen = label.unless_above(float(j), within[j], chosen)
        return float(self.bins) * label + chosen


@stored("nearest-taxonomy")
class NeighbourCells(Taxonomy):
    """Cells of near neighbours in the space of scores.

    "The k nearest calibration scores of the new object" would be no taxonomy: that the first is a
    neighbour of the second does not make the second a neighbour of the first, so the examples do
    not fall into categories. Here the space of scores is cut into cells that hold (nearly) the same
    number of calibration examples, across the coordinate in which a part spreads widest, as in a
    k-d tree; near neighbours share a cell, and every point belongs to exactly one.

    Parameters
    ----------
    cells : int, default=10
        How many, at most; fewer where calibration scores are equal.

    Notes
    -----
    A part that is to become c cells is cut into one for ``c // 2`` cells and one for the rest, at
    the smallest calibration value with that share of the weight at or below it, or, where nothing
    would lie above, at the largest value that leaves something. A value equal to the cut goes
    below.
    """

    _learns = ("n_categories_", "_coordinate", "_cut_at", "_below", "_above", "_cell")

    def __init__(self, cells: int = 10) -> None:
        self.cells = cells

    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Cut the space of scores.

        Raises
        ------
        ValueError
            If ``cells`` is not a positive integer.
        """
        check_count(self.cells, "cells")
        points = scores[:, None] if scores.ndim == 1 else scores
        weight = np.ones(len(points)) if sample_weight is None else sample_weight
        tree = cut_cells(points, weight, self.cells)
        self._coordinate, self._cut_at, self._below, self._above, self._cell = tree
        self.n_categories_ = int(tree.cell.max()) + 1
        return self

    @property
    def _tree(self) -> CellTree:
        return CellTree(self._coordinate, self._cut_at, self._below, self._above, self._cell)

    def check_classes(self, n_classes: int) -> None:
        """Refuse cells that are no tree over the scores of so many classes."""
        check_tree(self._tree, self.n_categories_, 1 if n_classes == 2 else n_classes)

    def __call__(self, scores: FloatArray) -> IntArray:
        """Return the cell of each score, shape (n,)."""
        return cell_of(self._tree, scores[:, None] if scores.ndim == 1 else scores)

    def starts(self) -> FloatArray:
        """Return the scores of two classes at which the category may change."""
        return np.sort(after(self._cut_at[self._cell < 0]))  # those of nodes that are not leaves

    def formula(self, scores: Terms) -> Term:
        """Return the cell as a formula of columns of scores."""
        cells: list[Term | float] = self._cell.astype(np.float64).tolist()
        for node in np.flatnonzero(self._cell < 0)[::-1].tolist():  # children come after parents
            score, cut = scores[self._coordinate[node]], float(self._cut_at[node])
            below, above = cells[self._below[node]], cells[self._above[node]]
            cells[node] = score.unless_above(cut, below, above)
        root = cells[0]
        return root if isinstance(root, Term) else 0.0 * scores[0]


@stored("callable-taxonomy")
class CallableTaxonomy(Taxonomy):
    """A user's own function from scores to categories of any hashable values.

    Parameters
    ----------
    function : callable
        Takes scores of shape (n,) (two classes) or (n, k), and returns n categories. It must
        give a score the same category whatever other scores it is called with.

    Attributes
    ----------
    codes_ : dict
        The number of each category met in ``fit``.
    """

    codes_: dict[Any, int]
    _learns = ("n_categories_", "codes_")

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self.function = function

    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Note which categories occur.

        Raises
        ------
        ValueError
            If the function does not return n categories, or one is NaN.
        """
        values, _ = self._distinct(scores)
        self.codes_ = {value: code for code, value in enumerate(values)}
        self.n_categories_ = len(values)
        return self

    def __call__(self, scores: FloatArray) -> IntArray:
        """Return the number of each score's category, shape (n,); -1 where ``fit`` met none."""
        values, inverse = self._distinct(scores)
        codes = np.array([self.codes_.get(value, -1) for value in values], np.intp)
        return codes[inverse]

    def check_classes(self, n_classes: int) -> None:
        """Refuse another number of categories than there are codes."""
        require(callable(self.function), "function must be callable")
        self._check_count(len(self.codes_))

    def to_state(self) -> dict[str, Any]:
        """Give the categories as a list: a file's dictionaries have keys of text and numbers."""
        state = super().to_state()
        if "codes_" in state["fitted"]:
            state["fitted"]["codes_"] = list(self.codes_)
        return state

    @classmethod
    def from_state(cls, parameters: dict[str, Any], fitted: dict[str, Any]) -> Self:
        """Take such a list, and number its categories again."""
        made = super().from_state(parameters, fitted)
        if "codes_" in fitted:
            made.codes_ = {value: code for code, value in enumerate(fitted["codes_"])}
        return made

    def _distinct(self, scores: FloatArray) -> tuple[list[Any], IntArray]:
        """Return the distinct categories of these scores, and which of them each score has."""
        categories: NDArray[Any] = np.asarray(self.function(scores))
        if categories.shape != (len(scores),):
            raise ValueError(
                f"taxonomy must return {len(scores)} categories for as many scores, "
                f"got shape {categories.shape}"
            )
        if categories.dtype.kind != "O":
            distinct, inverse = np.unique(categories, return_inverse=True)
            values: list[Any] = distinct.tolist()
        else:  # values of any kind need not be sortable
            seen: dict[Any, int] = {}
            inverse = np.array([seen.setdefault(c, len(seen)) for c in categories.tolist()], int)
            values = list(seen)
        if any(value != value for value in values):
            raise ValueError("taxonomy must return categories that equal themselves, got NaN")
        return values, inverse.astype(np.intp)


NAMED: dict[str, Callable[[], Taxonomy]] = {
    "label": LabelTaxonomy,
    "confidence-bins": ConfidenceBins,
    "confidence-quantiles": lambda: ConfidenceBins(equal="count"),
    "largest-probability": LargestProbability,
    "second-probability": SecondProbability,
    "margin": Margin,
    "nearest": NeighbourCells,
}
"""The taxonomies that have a name, with their default parameters."""


def resolve(taxonomy: str | Taxonomy | Callable[[FloatArray], Any]) -> Taxonomy:
    """Return a new, unfitted taxonomy from a name, a `Taxonomy`, or a callable.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(taxonomy, str) and taxonomy in NAMED:
        return NAMED[taxonomy]()
    if isinstance(taxonomy, Taxonomy):
        unfitted: Taxonomy = clone(taxonomy)  # fitting must not change what the user holds
        return unfitted
    if callable(taxonomy) and not isinstance(taxonomy, type):
        return CallableTaxonomy(taxonomy)
    raise ValueError(
        f"taxonomy must be one of {list(NAMED)}, a Taxonomy, or a callable, got {taxonomy!r}"
    )
