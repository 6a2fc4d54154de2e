"""Whether a fitted ensemble's bags are what it says they are: leaves are filled again and compared.

The public ``estimators_samples_`` draws the bags anew from the seeds of the members. A forest that
draws its samples by other means, or reorders rows before it draws, inherits the property and with
it bags that it never used; examples would then calibrate by trees that have seen their labels. So
the examples of a tree's claimed bag are sent down the tree, and what arrives in every leaf must be
what the tree says is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from vennforest._validation import CodeArray, FloatArray, InputError, IntArray

TOLERANCE = 1e-6
"""Relative difference of weights that is rounding: sums of thousands of weights in one leaf."""


class BagsError(InputError):
    """Scores of an ensemble's examples out of bag cannot calibrate it.

    Attributes
    ----------
    reason : str
        Why, in a clause.
    """

    def __init__(
        self,
        message: str,
        reason: str = "the bags of its trees are not the rows that the ensemble names",
    ) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Bag:
    """A member that is a tree, and the examples that it claims to be trained on.

    Attributes
    ----------
    tree : DecisionTreeClassifier
        Fitted.
    drawn : ndarray of shape (n_drawn,)
        Indices of examples, as often as each was drawn.
    columns : ndarray or None
        The features that the tree sees; None: all.
    owner : estimator
        Whose ``class_weight`` and ``monotonic_cst`` the tree was grown with.
    classes : ndarray of shape (k,)
        The labels that the keys of a ``class_weight`` stand for.
    """

    tree: Any
    drawn: IntArray
    columns: IntArray | None
    owner: Any
    classes: NDArray[Any]


def verify_bag(bag: Bag, rows: Any, codes: CodeArray, weight: FloatArray | None) -> None:
    """Fill the leaves of a tree from its claimed bag and compare.

    Parameters
    ----------
    bag : Bag
    rows : ndarray or CSR array of shape (n, d), float32
        What the ensemble was trained on.
    codes : ndarray of shape (n,)
        Class numbers.
    weight : ndarray of shape (n,) or None
        Weights given to the ensemble's ``fit``.

    Raises
    ------
    BagsError
        If a leaf holds other examples, or other labels, than the tree says.
    """
    seen = rows if bag.columns is None else rows[:, bag.columns]
    if not _leaves_agree(bag, seen, codes, weight):
        raise BagsError(
            f"estimator must be trained on the bags that its estimators_samples_ tells, got "
            f"{type(bag.owner).__name__} with a tree whose leaves hold other examples, so that "
            'no example can be known to be out of bag: use calibrate_on="cv"'
        )


def _leaves_agree(bag: Bag, rows: Any, codes: CodeArray, weight: FloatArray | None) -> bool:
    """Tell whether the examples of a bag fill the leaves of a tree as they are filled."""
    tree = bag.tree.tree_
    counts = np.bincount(bag.drawn, minlength=len(codes))
    some = np.flatnonzero(counts)
    times = counts[some]
    known = np.asarray(bag.tree.classes_).astype(np.intp)
    place = np.searchsorted(known, codes[some]).clip(max=len(known) - 1)
    if not len(some) or (known[place] != codes[some]).any():
        return False  # an example of a class that the tree has never seen
    leaf = tree.apply(rows[some])
    leaves = np.flatnonzero(tree.children_left < 0)
    return any(
        _same(bag, leaf, leaves, place, heavy)
        for heavy in _weights(bag, some, times, codes, weight)
    )


def _weights(
    bag: Bag,
    some: IntArray,
    times: NDArray[np.intp],
    codes: CodeArray,
    weight: FloatArray | None,
) -> Iterator[FloatArray]:
    """Yield what each example of a bag may weigh in its tree.

    Versions of scikit-learn differ: weights multiply how often an example was drawn (to 1.8), or
    decide how often it is drawn (from 1.9).
    """
    counts = times.astype(np.float64)
    class_weight = getattr(bag.owner, "class_weight", None)
    if class_weight == "balanced_subsample":
        counts = counts * compute_sample_weight("balanced", codes, indices=bag.drawn)[some]
        class_weight = None
    yield counts
    if class_weight is not None:
        by_code = class_weight
        if isinstance(class_weight, dict):
            code = {label: number for number, label in enumerate(bag.classes.tolist())}
            by_code = {code[key]: value for key, value in class_weight.items() if key in code}
        yield counts * compute_sample_weight(by_code, codes)[some]
        yield (
            counts
            * compute_sample_weight(by_code, codes[bag.drawn])[
                np.unique(bag.drawn, return_index=True)[1]
            ]
        )
        counts = counts * compute_sample_weight(by_code, codes)[some]
    if weight is not None:
        yield counts * weight[some]


def _same(bag: Bag, leaf: IntArray, leaves: IntArray, place: IntArray, weight: FloatArray) -> bool:
    """Tell whether every leaf holds the same weight of each class."""
    tree = bag.tree.tree_
    n, k = tree.node_count, tree.value.shape[2]
    cells = np.bincount(leaf.astype(np.intp) * k + place, weight, n * k)
    filled = cells.astype(np.float64).reshape(-1, k)[leaves]
    total = filled.sum(axis=1, keepdims=True)
    if not np.allclose(total[:, 0], tree.weighted_n_node_samples[leaves], rtol=TOLERANCE, atol=0):
        return False
    if not (total > 0).all():
        return False
    shares = filled / total
    if getattr(bag.owner, "monotonic_cst", None) is not None and k == 2:
        shares = _into_monotone_bounds(bag, filled, leaves)
    return bool((np.abs(shares - tree.value[leaves, 0]) <= TOLERANCE).all())


def _into_monotone_bounds(bag: Bag, filled: FloatArray, leaves: IntArray) -> FloatArray:
    """Return the class shares of leaves as monotone trees have them: moved into their bounds.

    A split on a constrained feature bounds what lies below it by the mean of the two sides' shares
    of the first class (scikit-learn's ``middle_value``); what a split bounds reaches every leaf.
    """
    tree = bag.tree.tree_
    n = tree.node_count
    signs = np.asarray(bag.owner.monotonic_cst)  # of the features that the tree sees
    held = np.zeros((n, 2))
    held[leaves] = filled
    left, right = tree.children_left, tree.children_right
    inner = np.flatnonzero(left >= 0)
    for node in inner[::-1]:  # children come after their parent
        held[node] = held[left[node]] + held[right[node]]
    first = held[:, 0] / held.sum(axis=1)
    low, high = np.zeros(n), np.ones(n)
    for node in inner:
        below, above = left[node], right[node]
        low[[below, above]], high[[below, above]] = low[node], high[node]
        sign = signs[tree.feature[node]]
        if sign:
            middle = (first[below] + first[above]) / 2
            # Where the second class's share rises with the feature, the first one's falls.
            smaller, larger = (above, below) if sign > 0 else (below, above)
            high[smaller] = low[larger] = middle
    share = np.clip(first, low, high)[leaves]
    return np.column_stack([share, 1 - share])
