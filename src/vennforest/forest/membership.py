"""Which examples each tree was trained on: verified, and kept in bits."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from vennforest._state import stored
from vennforest._validation import (
    CodeArray,
    FloatArray,
    InputError,
    IntArray,
    check_array,
    number,
    require,
)

INDICES_AT_ONCE = 1 << 23
"""Training indices of a forest that are held at once, at least those of one tree."""


@stored("membership")
@attrs.frozen(eq=False)
class Membership:
    """Which examples are out of bag for which tree of an ensemble.

    Parameters
    ----------
    bits : ndarray of shape (n_trees, ceil(n / 64)), uint64
        Bit i % 64 of word i // 64 is set where the tree did not see example i in training, so
        that it may score it. Bits from n on are zero.
    n : int
        Number of examples.

    Examples
    --------
    >>> membership = Membership.from_samples([[0, 0, 1], [2, 1, 1]], 3)
    >>> membership.dense()
    array([[False, False,  True],
           [ True, False, False]])
    >>> membership.counts()
    array([1, 0, 1])
    """

    bits: NDArray[np.uint64] = attrs.field()
    n: int = attrs.field(validator=number(0, integer=True))

    def __attrs_post_init__(self) -> None:
        check_array(self.bits, "bits", (None, -(-self.n // 64)), "u")
        require(self.bits.dtype == np.uint64, "bits must be of type uint64")
        if self.n % 64:
            beyond = self.bits[:, -1] >> np.uint64(self.n % 64)
            require(not beyond.any(), f"bits from {self.n} on must be zero")

    @classmethod
    def from_forest(cls, ensemble: Any, n: int) -> Self:
        """Read ``estimators_samples_`` of a forest or bagging ensemble fitted to n examples."""
        check_is_fitted(ensemble)
        return cls.from_samples(samples_of(ensemble, n), n, len(ensemble.estimators_))

    @classmethod
    def from_samples(
        cls,
        samples: Iterable[ArrayLike],
        n: int,
        n_trees: int | None = None,
        groups: IntArray | None = None,
    ) -> Self:
        """Take each tree's training examples from an array (n_drawn,) of their indices in [0, n).

        Indices may be repeated; ``n_trees`` is the number of arrays, where ``samples`` has no
        length. With ``groups`` (n,), numbered from 0, a tree that saw one of a group saw all.
        """
        if n_trees is None:
            samples = list(samples)
            n_trees = len(samples)
        bits = np.empty((n_trees, -(-n // 64)), np.uint64)
        free = np.zeros(64 * bits.shape[1], bool)
        for row, drawn in zip(bits, samples, strict=True):
            indices = np.asarray(drawn, dtype=np.intp)
            if indices.size and not (indices.min() >= 0 and indices.max() < n):
                wrong = indices[(indices < 0) | (indices >= n)][0]
                raise ValueError(f"samples must be indices of {n} examples, got {wrong}")
            free[:n] = True
            free[indices] = False
            if groups is not None:
                seen = np.bincount(groups[indices], minlength=int(groups.max(initial=-1)) + 1) > 0
                free[:n] = ~seen[groups]
            row[:] = np.packbits(free, bitorder="little").view("<u8")
        return cls(bits, n)

    @classmethod
    def from_dense(cls, may_score: ArrayLike) -> Self:
        """Take one boolean per tree and example.

        True, in an array (n_trees, n), where the tree may score the example.
        """
        dense = np.asarray(may_score)
        if dense.dtype != bool or dense.ndim != 2:
            raise ValueError(
                "may_score must be boolean of shape (n_trees, n), "
                f"got {dense.dtype} of shape {dense.shape}"
            )
        return cls(_pack(dense), dense.shape[1])

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.bits)

    def counts(self) -> IntArray:
        """Return for each example the number of trees that may score it, shape (n,)."""
        counts = np.zeros(self.n, np.intp)
        for row in self.bits.astype("<u8", copy=False).view(np.uint8):
            counts += np.unpackbits(row, count=self.n, bitorder="little")
        return counts

    def dense(self) -> NDArray[np.bool_]:
        """Return one boolean per tree and example, shape (n_trees, n)."""
        octets = self.bits.astype("<u8", copy=False).view(np.uint8)
        unpacked = np.unpackbits(octets, axis=1, count=self.n, bitorder="little")
        return unpacked.astype(bool)


def _pack(dense: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return booleans (rows, n) as bits (rows, ceil(n / 64))."""
    octets = np.packbits(dense, axis=1, bitorder="little")
    padded = np.zeros((len(dense), -(-dense.shape[1] // 64) * 8), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view("<u8").astype(np.uint64, copy=False)


def samples_of(ensemble: Any, n: int) -> Iterable[NDArray[Any]]:
    """Yield the training indices of each estimator.

    The property draws those of all estimators again and returns them in one list, 4 n bytes an
    estimator. A copy of the ensemble that has a few of the estimators returns theirs alone;
    where it does not (bagging keeps the seeds apart) the whole list has to do.
    """
    estimators = ensemble.estimators_
    at_once = max(1, INDICES_AT_ONCE // max(n, 1))
    if at_once < len(estimators):
        part = copy.copy(ensemble)
        part.estimators_ = estimators[:1]
        if len(part.estimators_samples_) == 1:
            for first in range(0, len(estimators), at_once):
                part.estimators_ = estimators[first : first + at_once]
                yield from part.estimators_samples_
            return
    yield from ensemble.estimators_samples_


TOLERANCE = 1e-6
"""Relative difference of weights that is rounding: sums of thousands of weights in one leaf."""


class BagsError(InputError):
    """Scores of an ensemble's examples out of bag cannot calibrate it: ``reason``, in a clause."""

    def __init__(
        self,
        message: str,
        reason: str = "the bags of its trees are not the rows that the ensemble names",
    ) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Bag:
    """A member that is a tree, fitted, and the examples that it claims to be trained on.

    ``drawn`` (n_drawn,) are indices of examples, as often as each was drawn; ``columns`` the
    features that the tree sees, None: all. It was grown with the ``class_weight`` and
    ``monotonic_cst`` of ``owner``, whose keys stand for ``classes`` (k,).
    """

    tree: Any
    drawn: IntArray
    columns: IntArray | None
    owner: Any
    classes: NDArray[Any]


def verify_bag(bag: Bag, rows: Any, codes: CodeArray, weight: FloatArray | None) -> None:
    """Fill the leaves of a tree from its claimed bag, and refuse it where they are others.

    The rows (n, d), float32, class numbers (n,) and weights (n,) are what the ensemble was
    trained on.
    """
    seen = rows if bag.columns is None else rows[:, bag.columns]
    if not _leaves_agree(bag, seen, codes, weight):
        raise BagsError(
            f"estimator must be trained on the bags that its estimators_samples_ gives, got "
            f"{type(bag.owner).__name__} with a tree whose leaves contain other examples, so "
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
        first = np.unique(bag.drawn, return_index=True)[1]
        of_drawn = compute_sample_weight(by_code, codes[bag.drawn])[first]
        of_all = counts * compute_sample_weight(by_code, codes)[some]
        yield from (of_all, counts * of_drawn)
        counts = of_all
    if weight is not None:
        yield counts * weight[some]


def _same(bag: Bag, leaf: IntArray, leaves: IntArray, place: IntArray, weight: FloatArray) -> bool:
    """Tell whether every leaf contains the same weight of each class."""
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
