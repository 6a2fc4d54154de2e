"""Venn taxonomies: which category an example falls in, from its scores alone.

A Venn predictor is valid for every taxonomy that treats the calibration examples and the new one
alike (Vovk & Petej 2014, section 2). A fixed function of the scores does, exactly. Taxonomies with
edges learnt from the calibration scores (neighbouring cells) do so only nearly, since the new score
has no part in the edges; none of them sees a label.

References
----------
Johansson, Linusson, Löfström & Boström (2018), Efficient Venn predictors using random forests:
the label taxonomy. Papadopoulos (2013), Reliable probabilistic classification with neural networks,
Neurocomputing 107, 59-68, and Lambrou, Nouretdinov & Papadopoulos (2015), Inductive Venn
prediction, Annals of Mathematics and Artificial Intelligence 74, 181-201: the label (V1), and the
label split once more by the difference of the two largest outputs (V4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from vennforest._messages import not_one_of
from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    IntArray,
    check_array,
    check_count,
    check_number,
    require,
)
from vennforest.calibrators.formula import LOWEST, Term, Terms, after, first_where, no_formula


class Taxonomy(BaseEstimator, ABC):
    """Base of all taxonomies: from scores to categories."""

    n_categories_: int
    """Categories are 0 to ``n_categories_ - 1``."""
    _learns: ClassVar[tuple[str, ...]] = ("n_categories_",)
    """The attributes that ``fit`` sets."""

    @abstractmethod
    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Learn the categories from scores (n,) of two classes, or (n, n_classes).

        Weights (n,) are above zero; a weight of 2 is the score twice.
        """

    def to_state(self) -> dict[str, Any]:
        """Return what a model file contains of the taxonomy: the arguments of ``from_state``."""
        fitted = {name: vars(self)[name] for name in self._learns if name in vars(self)}
        return {"parameters": self.get_params(deep=False), "fitted": fitted}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], fitted: dict[str, Any]) -> Self:
        """Return the taxonomy that ``to_state`` describes; whoever uses it checks its classes."""
        made = cls(**parameters)
        require(fitted.keys() <= set(cls._learns), f"a {cls.__name__} has other parts")
        made.__dict__.update(fitted)
        if fitted:
            check_number(made.n_categories_, "n_categories_", 1, integer=True)
        return made

    def _check_count(self, n: int) -> None:
        """Refuse another number of categories."""
        require(self.n_categories_ == n, f"n_categories_ must be {n}")

    def check_classes(self, n_classes: int) -> None:
        """Refuse a taxonomy that was fitted to scores of another number of classes."""

    @abstractmethod
    def __call__(self, scores: FloatArray) -> IntArray:
        """Return the category of each score, shape (n,); -1 is a category never met in ``fit``."""

    def starts(self) -> FloatArray:
        """Return the scores of two classes at which the category may change, increasing."""
        raise no_formula("taxonomy", self)

    def formula(self, scores: Terms) -> Term:
        """Return the category as a formula of the scores of several classes."""
        raise no_formula("taxonomy", self)


def predicted_class(scores: FloatArray, boundary: float = 0.5) -> IntArray:
    """Return the class with the largest score, shape (n,), the first of equals.

    Scores (n,) are those of the second of two classes, predicted where they exceed the boundary.
    """
    if scores.ndim == 1:
        return (scores > boundary).astype(np.intp)
    largest: IntArray = scores.argmax(axis=1)
    return largest


def largest_two(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest and the second largest score of each row, each of shape (n,).

    Scores (n,) are those of the second of two classes; the first has ``1 - s``.
    """
    if scores.ndim == 1:
        other = 1 - scores
        return np.maximum(scores, other), np.minimum(scores, other)
    k = scores.shape[1]
    top = np.partition(scores, (k - 2, k - 1), axis=1)
    return top[:, k - 1], top[:, k - 2]


def predicted_formulas(scores: Terms) -> tuple[Term, Term, Term]:
    """Return `predicted_class` and `largest_two` of columns of scores, as formulas."""
    label: Term | float = 0.0
    largest, second = scores[0], scores[0].min(scores[1])
    for j, score in enumerate(scores[1:], 1):
        if j > 1:
            second = second.max(score.min(largest))
        label = score.unless_above(largest, label, float(j))
        largest = largest.max(score)
    assert isinstance(label, Term)
    return label, largest, second


def quantile(values: FloatArray, weight: FloatArray, part: int, whole: int) -> float:
    """Return the smallest value with part/whole of the weight at or below it.

    Values (n,) have weights (n,) above zero, n > 0; ``1 <= part <= whole``.
    """
    order = np.argsort(values, kind="stable")
    # Scaled by a power of two, which rounds nothing, so the products below stay finite;
    # multiplied by whole numbers instead of divided, so counts compare exactly.
    scaled = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    reached = np.cumsum(scaled[order])
    place = int(np.searchsorted(reached * whole, part * reached[-1]))
    return float(values[order][min(place, len(values) - 1)])


_Node = tuple[int, float, int, int, int]
"""Coordinate, cut, children below and above, and cell, as `NeighbourCells` keeps them."""


def _cut(
    points: FloatArray, weight: FloatArray, cells: int, nodes: list[_Node], first: int
) -> tuple[int, int]:
    """Append the tree over points (n, d), with at most so many cells, numbered from ``first`` on.

    Returned is its root, and the first number that is no cell of it.
    """
    at = len(nodes)
    # Halved, so the spread of huge scores stays finite.
    spread = points.max(axis=0) / 2 - points.min(axis=0) / 2
    widest = int(spread.argmax())
    values = points[:, widest]
    if cells == 1 or values.min() == values.max():
        nodes.append((0, np.inf, at, at, first))
        return at, first + 1
    cut = quantile(values, weight, cells // 2, cells)
    if cut == values.max():
        cut = float(values[values < cut].max())
    nodes.append((widest, cut, 0, 0, -1))
    low = values <= cut
    below, first = _cut(points[low], weight[low], cells // 2, nodes, first)
    above, first = _cut(points[~low], weight[~low], cells - cells // 2, nodes, first)
    nodes[at] = (widest, cut, below, above, -1)
    return at, first


class OfLabel(Taxonomy):
    """Base of fixed functions of the scores: the predicted label, split into parts."""

    boundary: float = 0.5
    """With one column of scores the second class is predicted above it."""

    @property
    def _parts(self) -> int:
        """Return how many parts a label has; refuse parameters that have no such value."""
        return 1

    def _part(self, scores: FloatArray) -> IntArray | int:
        """Return the part of each score, (n,)."""
        return 0

    def _part_formula(self, k: int, largest: Term, second: Term) -> Term | None:
        """Return the part as a formula of the largest two of k scores; None: there is one part."""
        return None

    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Note the number of classes; nothing is learnt from the scores."""
        check_number(self.boundary, "boundary")
        self.n_categories_ = n_classes * self._parts
        return self

    def check_classes(self, n_classes: int) -> None:
        """Refuse a taxonomy that was fitted to scores of another number of classes."""
        check_number(self.boundary, "boundary")
        self._check_count(n_classes * self._parts)

    def __call__(self, scores: FloatArray) -> IntArray:
        """Return the predicted class times the number of parts, plus the part, shape (n,)."""
        return self._parts * predicted_class(scores, self.boundary) + self._part(scores)

    def starts(self) -> FloatArray:
        """Return the scores of two classes at which the category may change.

        Categories come in order below the boundary, and in order above it.
        """
        middle = float(self.boundary)
        first = float(np.nextafter(middle, np.inf))
        low, high = self._changes(LOWEST, middle), self._changes(first, -LOWEST)
        return np.unique(np.concatenate([low, [first], high]))

    def _changes(self, low: float, high: float) -> FloatArray:
        """Return where categories, which come in order from low to high, change."""
        first, last = self(np.array([low, high]))
        codes = np.arange(min(first, last), max(first, last))
        rising = first <= last
        return first_where(
            lambda s: self(s) > codes if rising else self(s) <= codes, low, high, len(codes)
        )

    def formula(self, scores: Terms) -> Term:
        """Return the category as a formula of columns of scores."""
        label, largest, second = predicted_formulas(scores)
        part = self._part_formula(len(scores), largest, second)
        return label if part is None else float(self._parts) * label + part


@stored("label-taxonomy")
class LabelTaxonomy(OfLabel):
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


@stored("margin-taxonomy")
class Margin(OfLabel):
    """The predicted label, split by whether the margin exceeds a threshold.

    The margin is the largest probability minus the second largest: V4 of Papadopoulos (2013).

    Parameters
    ----------
    threshold : float, default=0.5
        In [0, 1].
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    @property
    def _parts(self) -> int:
        if not (isinstance(self.threshold, Real) and 0 <= self.threshold <= 1):
            raise ValueError(f"threshold must lie in [0, 1], got {self.threshold!r}")
        return 2

    def _part(self, scores: FloatArray) -> IntArray:
        largest, second = largest_two(scores)
        # Halved, so the difference of two huge scores stays finite.
        margin = 2 * np.minimum(largest / 2 - second / 2, 1.0)
        return (margin > self.threshold).astype(np.intp)

    def _part_formula(self, k: int, largest: Term, second: Term) -> Term:
        margin = 2.0 * (largest / 2.0 - second / 2.0).min(1.0)
        return margin.unless_above(self.threshold, 0.0, 1.0)


@stored("confidence-bins-taxonomy")
class ConfidenceBins(OfLabel):
    """Bins of the largest probability within each predicted label.

    [1/k, 1], where the largest of k probabilities lies, is cut into equal parts; larger or smaller
    scores fall in the outer bins. Bin b contains ``b <= bins * (c - 1/k) / (1 - 1/k) < b + 1``, and
    the last one also c = 1.

    Parameters
    ----------
    bins : int, default=10
        Bins a label.
    """

    def __init__(self, bins: int = 10) -> None:
        self.bins = bins

    @property
    def _parts(self) -> int:
        check_count(self.bins, "bins")
        return self.bins

    def _part(self, scores: FloatArray) -> IntArray:
        lowest = 1 / (2 if scores.ndim == 1 else scores.shape[1])
        share = (np.clip(largest_two(scores)[0], lowest, 1) - lowest) / (1 - lowest)
        return np.minimum((share * self.bins).astype(np.intp), self.bins - 1)

    def _part_formula(self, k: int, largest: Term, second: Term) -> Term:
        share = (largest.clip(1 / k, 1.0) - 1 / k) / (1 - 1 / k)
        return (share * float(self.bins)).floor().min(self.bins - 1)


@stored("nearest-taxonomy")
class NeighbourCells(Taxonomy):
    """Cells of near neighbours in the space of scores.

    "The k nearest calibration scores of the new object" would be no taxonomy: that the first is a
    neighbour of the second does not make the second a neighbour of the first, so the examples do
    not fall into categories. Here the space of scores is cut into cells that contain (nearly) the
    same number of calibration examples, across the coordinate in which a part spreads widest, as in
    a k-d tree; near neighbours share a cell, and every point belongs to exactly one.

    Parameters
    ----------
    cells : int, default=10
        How many, at most; fewer where calibration scores are equal.

    Notes
    -----
    A part that is to become c cells is cut into one for ``c // 2`` cells and one for the rest, at
    the smallest calibration value with that share of the weight at or below it.
    """

    _learns = ("n_categories_", "_coordinate", "_cut_at", "_below", "_above", "_cell")
    # A tree whose leaves are cells, the root first; arrays of shape (n_nodes,).
    _coordinate: IntArray  # the column of scores that the node cuts; 0 in leaves
    _cut_at: FloatArray  # scores at or below it go below; inf in leaves
    _below: IntArray  # the child at or below the cut; of a leaf itself
    _above: IntArray  # the child above
    _cell: IntArray  # the leaf's cell, from 0; -1 in inner nodes

    def __init__(self, cells: int = 10) -> None:
        self.cells = cells

    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Cut the space of scores."""
        check_count(self.cells, "cells")
        points = scores[:, None] if scores.ndim == 1 else scores
        weight = np.ones(len(points)) if sample_weight is None else sample_weight
        nodes: list[_Node] = []
        _, self.n_categories_ = _cut(points, weight, self.cells, nodes, 0)
        coordinate, cut, *children, cell = zip(*nodes, strict=True)
        self._cut_at = np.array(cut)
        self._coordinate, self._below, self._above, self._cell = (
            np.array(one, np.intp) for one in (coordinate, *children, cell)
        )
        return self

    def check_classes(self, n_classes: int) -> None:
        """Refuse cells that are no tree over the scores of so many classes.

        Every node but the first is a child once, of a node before it, so there are no circles;
        every cell is that of one leaf.
        """
        n, columns = len(self._cell), 1 if n_classes == 2 else n_classes
        require(1 <= self.n_categories_ <= n, "n_categories_ must be that of the leaves")
        for name, low, high in (
            ("_coordinate", 0, columns - 1),
            ("_below", 0, n - 1),
            ("_above", 0, n - 1),
            ("_cell", -1, self.n_categories_ - 1),
        ):
            check_array(getattr(self, name), name, (n,), "i", low, high)
        require(self._cut_at.shape == (n,) and not np.isnan(self._cut_at).any(), "_cut_at is wrong")
        inner = np.flatnonzero(self._cell < 0)
        children = np.array([self._below[inner], self._above[inner]])
        require((children > inner).all(), "children must come after parents")
        require(
            np.array_equal(np.sort(children, axis=None), np.arange(1, n)),
            "every node must be a child once",
        )
        cells = np.sort(self._cell[self._cell >= 0])
        require(np.array_equal(cells, np.arange(self.n_categories_)), "cells must be leaves")

    def __call__(self, scores: FloatArray) -> IntArray:
        """Return the cell of each score, shape (n,)."""
        points = scores[:, None] if scores.ndim == 1 else scores
        rows, node = np.arange(len(points)), np.zeros(len(points), np.intp)
        while (self._cell[node] < 0).any():
            low = points[rows, self._coordinate[node]] <= self._cut_at[node]
            node = np.where(low, self._below[node], self._above[node])
        return self._cell[node]

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
    """

    codes_: list[Any]
    """The categories met in ``fit``, in the order of their numbers."""
    _learns = ("n_categories_", "codes_")

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self.function = function

    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Note which categories occur."""
        self.codes_, _ = self._distinct(scores)
        self.n_categories_ = len(self.codes_)
        return self

    def __call__(self, scores: FloatArray) -> IntArray:
        """Return the number of each score's category, shape (n,); -1 where ``fit`` met none."""
        values, inverse = self._distinct(scores)
        known = {value: code for code, value in enumerate(self.codes_)}
        codes = np.array([known.get(value, -1) for value in values], np.intp)
        return codes[inverse]

    def check_classes(self, n_classes: int) -> None:
        """Refuse another number of categories than there are codes."""
        require(callable(self.function), "function must be callable")
        self._check_count(len(self.codes_))

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


NAMED: dict[str, type[Taxonomy]] = {
    "label": LabelTaxonomy,
    "confidence-bins": ConfidenceBins,
    "margin": Margin,
    "nearest": NeighbourCells,
}
"""The taxonomies that have a name, with their default parameters."""


def resolve(taxonomy: str | Taxonomy | Callable[[FloatArray], Any]) -> Taxonomy:
    """Return a new, unfitted taxonomy from a name, a `Taxonomy`, or a callable."""
    if isinstance(taxonomy, str) and taxonomy in NAMED:
        return NAMED[taxonomy]()
    if isinstance(taxonomy, Taxonomy):
        unfitted: Taxonomy = clone(taxonomy)  # fitting must not change what the user holds
        return unfitted
    if callable(taxonomy) and not isinstance(taxonomy, type):
        return CallableTaxonomy(taxonomy)
    raise not_one_of("taxonomy", NAMED, taxonomy, ", a Taxonomy, or a callable")
