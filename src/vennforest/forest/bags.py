"""Which rows the members of bagged ensembles were trained on, verified by their leaves."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight

from vennforest._validation import (
    CodeArray,
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_number,
    require,
)

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
"""The forests of scikit-learn, including their subclasses."""

INDICES_AT_ONCE = 1 << 23
"""Maximum number of training indices in memory at once, unless one tree has more."""

BAG_WEIGHT_TOLERANCE = 1e-6
"""Relative tolerance for rounding in sums of thousands of weights in one leaf."""


def is_ensemble(estimator: Any) -> bool:
    """Return whether an estimator is a forest or bagging ensemble."""
    return isinstance(estimator, (*FORESTS, BaggingClassifier))


def leaves_rows_out(estimator: Any) -> bool:
    """Return whether each member of an ensemble will be trained on a part of the rows."""
    if isinstance(estimator, BaggingClassifier):
        return bool(estimator.bootstrap or estimator.max_samples not in (None, 1.0))
    return is_ensemble(estimator) and bool(estimator.bootstrap)


def training_rows(ensemble: Any, n: int) -> Iterator[IntArray]:
    """Yield the indices in [0, n) of each member's training rows, as often as they were drawn.

    ``estimators_samples_`` draws the bags of all members again, 4 n bytes each. To save memory, it
    is called on copies of the ensemble with a few members each. Bagging ensembles store seeds
    separately from members, so their bags are drawn all at once.
    """
    estimators = ensemble.estimators_
    n_at_once = max(1, INDICES_AT_ONCE // max(n, 1))
    if n_at_once < len(estimators):
        part = copy.copy(ensemble)
        part.estimators_ = estimators[:1]
        if len(part.estimators_samples_) == 1:
            for first in range(0, len(estimators), n_at_once):
                part.estimators_ = estimators[first : first + n_at_once]
                yield from part.estimators_samples_
            return
    yield from ensemble.estimators_samples_


@dataclass(frozen=True, eq=False)
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

    bits: NDArray[np.uint64]
    n: int

    def _check_state(self) -> None:
        check_number(self.n, "n", 0, integer=True)
        check_array(self.bits, "bits", (None, -(-self.n // 64)), "u")
        require(self.bits.dtype == np.uint64, "bits must be of type uint64")
        if self.n % 64:
            excess = self.bits[:, -1] >> np.uint64(self.n % 64)
            require(not excess.any(), f"bits from {self.n} on must be zero")

    @classmethod
    def from_forest(cls, ensemble: Any, n: int) -> Self:
        """Read the bags of a forest or bagging ensemble fitted to n examples."""
        return cls.from_samples(training_rows(ensemble, n), n)

    @classmethod
    def from_samples(
        cls, samples: Iterable[ArrayLike], n: int, groups: IntArray | None = None
    ) -> Self:
        """Build the membership from the indices of each tree's training examples.

        Parameters
        ----------
        samples : iterable of array-like of shape (n_drawn,), int
            For each tree indices in [0, n), as often as the example was drawn.
        n : int
            Number of examples.
        groups : ndarray of shape (n,), int, optional
            A tree that saw an example of a group, numbered from 0, counts as having seen all.
        """
        rows = []
        for sample in samples:
            indices = np.asarray(sample, dtype=np.intp)
            if indices.size and not (indices.min() >= 0 and indices.max() < n):
                wrong = indices[(indices < 0) | (indices >= n)][0]
                raise ValueError(f"samples must be indices of {n} examples, got {wrong}")
            may_score = np.ones(n, bool)
            may_score[indices] = False
            if groups is not None:
                is_seen = np.bincount(groups[indices], minlength=int(groups.max()) + 1) > 0
                may_score = ~is_seen[groups]
            rows.append(_packed(may_score[None])[0])
        return cls(np.array(rows), n)

    @classmethod
    def from_dense(cls, may_score: NDArray[np.bool_]) -> Self:
        """Build the membership from booleans (n_trees, n), True where a tree may score."""
        return cls(_packed(may_score), may_score.shape[1])

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.bits)

    def select(self, tree: int) -> NDArray[np.bool_]:
        """Return which examples a tree may score, shape (n,)."""
        octets = self.bits[tree].astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(octets, count=self.n, bitorder="little").view(bool)

    def counts(self) -> IntArray:
        """Return for each example the number of trees that may score it, shape (n,)."""
        counts = np.zeros(self.n, np.intp)
        for tree in range(len(self)):
            counts += self.select(tree)
        return counts

    def dense(self) -> NDArray[np.bool_]:
        """Return one boolean per tree and example, shape (n_trees, n)."""
        octets = self.bits.astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(octets, axis=1, count=self.n, bitorder="little").view(bool)


def _packed(may_score: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return booleans (n_trees, n) as bits, (n_trees, ceil(n / 64))."""
    n_trees, n = may_score.shape
    padded = np.zeros((n_trees, -(-n // 64) * 64), dtype=bool)
    padded[:, :n] = may_score
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


class BagsError(InputError):
    """Error of an ensemble that cannot be calibrated out of bag; ``reason`` is a clause on why."""

    def __init__(
        self,
        message: str,
        reason: str = "the bags of its trees are not the rows that the ensemble names",
    ) -> None:
        super().__init__(message)
        self.reason = reason


def bags_can_be_verified(ensemble: Any) -> bool:
    """Return whether the members of a fitted ensemble are trees, so that bags can be verified."""
    return is_ensemble(ensemble) and isinstance(ensemble.estimators_[0], DecisionTreeClassifier)


def verify_member(
    ensemble: Any,
    number: int,
    sample: IntArray,
    rows: Any,
    codes: CodeArray,
    weight: FloatArray | None,
) -> None:
    """Raise a BagsError unless a member was trained on the examples of a sample.

    The ensemble was trained on ``rows`` (n, d), float32, with class indices ``codes`` (n,) and
    ``weight`` (n,). Members other than trees pass if scikit-learn or imbalanced-learn drew their
    bags.
    """
    member, is_bagging = ensemble.estimators_[number], isinstance(ensemble, BaggingClassifier)
    if not isinstance(member, DecisionTreeClassifier):
        if is_bagging and type(ensemble).__module__.split(".")[0] in ("sklearn", "imblearn"):
            return
        raise BagsError(
            "estimator must be an ensemble whose bags can be verified, got "
            f"{type(ensemble).__name__} over members that are not trees: "
            'use calibrate_on="cv"',
            "the members are not trees, so their rows cannot be verified",
        )
    owner = ensemble
    if is_bagging:
        owner, rows = member, rows[:, ensemble.estimators_features_[number]]
    if not _leaves_agree(member, owner, np.asarray(sample), rows, codes, weight):
        raise BagsError(
            f"estimator must be trained on the bags that its estimators_samples_ gives, got "
            f"{type(owner).__name__} with a tree whose leaves contain other examples, so "
            'no example can be known to be out of bag: use calibrate_on="cv"'
        )


def _leaves_agree(
    member: Any,
    owner: Any,
    sample: IntArray,
    rows: Any,
    codes: CodeArray,
    weight: FloatArray | None,
) -> bool:
    """Return whether the examples of a bag give every leaf its weight and class frequencies.

    The tree was grown with the ``class_weight`` and ``monotonic_cst`` of its ``owner``: the forest,
    or in a bagging ensemble the tree itself.
    """
    tree = member.tree_
    counts = np.bincount(sample, minlength=len(codes))
    examples = np.flatnonzero(counts)
    tree_classes = np.asarray(member.classes_).astype(np.intp)
    column = np.searchsorted(tree_classes, codes[examples]).clip(max=len(tree_classes) - 1)
    if not len(examples) or (tree_classes[column] != codes[examples]).any():
        return False  # an example of a class that the tree has never seen
    leaf = tree.apply(rows[examples])
    weights = _possible_weights(owner, sample, examples, counts[examples], codes, weight)
    return any(_leaves_have_weights(tree, owner, leaf, column, part) for part in weights)


def _possible_weights(
    owner: Any,
    sample: IntArray,
    examples: IntArray,
    n_times: NDArray[np.intp],
    codes: CodeArray,
    weight: FloatArray | None,
) -> Iterator[FloatArray]:
    """Yield possible weights of the examples of a bag in its tree.

    Up to scikit-learn 1.8, sample weights multiply the number of times that an example was drawn;
    from 1.9 on, they are the probabilities of drawing it.
    """
    counts = n_times.astype(np.float64)
    class_weight = getattr(owner, "class_weight", None)
    if class_weight == "balanced_subsample":
        counts = counts * compute_sample_weight("balanced", codes, indices=sample)[examples]
        class_weight = None
    yield counts
    if class_weight is not None:
        by_code = class_weight
        if isinstance(class_weight, dict):
            code = {
                label: number for number, label in enumerate(np.asarray(owner.classes_).tolist())
            }
            by_code = {code[key]: value for key, value in class_weight.items() if key in code}
        first = np.unique(sample, return_index=True)[1]
        balanced_in_bag = compute_sample_weight(by_code, codes[sample])[first]
        balanced_in_all = counts * compute_sample_weight(by_code, codes)[examples]
        yield from (balanced_in_all, counts * balanced_in_bag)
        counts = balanced_in_all
    if weight is not None:
        yield counts * weight[examples]


def _leaves_have_weights(
    tree: Any, owner: Any, leaf: IntArray, column: IntArray, weight: FloatArray
) -> bool:
    """Return whether the weights of the examples in every leaf are those stored in the tree."""
    leaves = np.flatnonzero(tree.children_left < 0)
    n, k = tree.node_count, tree.value.shape[2]
    cells = np.bincount(leaf.astype(np.intp) * k + column, weight, n * k)
    class_weights = cells.astype(np.float64).reshape(-1, k)[leaves]
    total = class_weights.sum(axis=1, keepdims=True)
    in_tree = tree.weighted_n_node_samples[leaves]
    if not np.allclose(total[:, 0], in_tree, rtol=BAG_WEIGHT_TOLERANCE, atol=0):
        return False
    shares = class_weights / total
    signs = getattr(owner, "monotonic_cst", None)  # of the features that the tree sees
    if signs is not None and k == 2:
        shares = _clip_to_monotone_bounds(tree, np.asarray(signs), class_weights, leaves)
    return bool((np.abs(shares - tree.value[leaves, 0]) <= BAG_WEIGHT_TOLERANCE).all())


def _clip_to_monotone_bounds(
    tree: Any, signs: NDArray[Any], class_weights: FloatArray, leaves: IntArray
) -> FloatArray:
    """Return the class shares of the leaves of a monotone tree, clipped to their bounds.

    A split on a constrained feature bounds the shares of the first class below it by the mean of
    its two children's shares (scikit-learn's ``middle_value``). Bounds are inherited by all leaves.
    """
    n = tree.node_count
    node_weights = np.zeros((n, 2))
    node_weights[leaves] = class_weights
    left, right = tree.children_left, tree.children_right
    inner = np.flatnonzero(left >= 0)
    for node in inner[::-1]:  # children come after their parent
        node_weights[node] = node_weights[left[node]] + node_weights[right[node]]
    share = node_weights[:, 0] / node_weights.sum(axis=1)
    low, high = np.zeros(n), np.ones(n)
    for node in inner:
        children = left[node], right[node]
        low[[*children]], high[[*children]] = low[node], high[node]
        sign = signs[tree.feature[node]]
        if sign:
            middle = (share[children[0]] + share[children[1]]) / 2
            # Where the second class's share rises with the feature, the first one's falls.
            smaller, larger = children[::-1] if sign > 0 else children
            high[smaller] = low[larger] = middle
    clipped = np.clip(share, low, high)[leaves]
    return np.column_stack([clipped, 1 - clipped])
