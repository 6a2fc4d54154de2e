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

N_MEMBERS_TO_VERIFY = 60
"""Number of members, equally spaced, whose bags are verified."""

INDICES_AT_ONCE = 1 << 23
"""Maximum number of training indices in memory at once, unless one tree has more."""


def is_ensemble(estimator: Any) -> bool:
    """Return whether an estimator is a forest or bagging ensemble."""
    return isinstance(estimator, (*FORESTS, BaggingClassifier))


def leaves_rows_out(estimator: Any) -> bool:
    """Return whether each member of an ensemble will be trained on a part of the rows."""
    if isinstance(estimator, BaggingClassifier):
        return bool(estimator.bootstrap or estimator.max_samples not in (None, 1.0))
    return isinstance(estimator, FORESTS) and bool(estimator.bootstrap)


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


def read_membership(
    ensemble: Any,
    rows: Any,
    codes: CodeArray,
    weight: FloatArray | None = None,
    groups: IntArray | None = None,
    verify: bool = True,
) -> Membership:
    """Return which training examples are out of bag for which member of an ensemble, verified.

    Members other than trees pass if scikit-learn or imbalanced-learn drew their bags.

    Parameters
    ----------
    ensemble : classifier
        A fitted random forest, extra trees or bagging ensemble.
    rows : array or CSR array of shape (n, d)
        The training rows, as the members take them.
    codes : ndarray of shape (n,)
        Class indices of the rows.
    weight : ndarray of shape (n,), optional
        Weights that the ensemble was trained with.
    groups : ndarray of shape (n,), optional
        A member that saw an example of a group counts as having seen all.
    verify : bool, default=True
        Whether the leaves of some trees are compared with their bags.

    Raises
    ------
    BagsError
        If the ensemble does not give its members' training rows, or gives wrong ones.
    """
    n, members = len(codes), ensemble.estimators_
    if (n_trained_on := getattr(ensemble, "_n_samples", n)) != n:
        raise BagsError(f"it was trained on {n_trained_on} examples")
    bags: dict[int, IntArray] = {}
    verified = set(np.linspace(0, len(members) - 1, N_MEMBERS_TO_VERIFY).astype(int))

    def samples() -> Iterator[IntArray]:
        for number, sample in enumerate(training_rows(ensemble, n)):
            if verify and number in verified:
                bags[number] = np.asarray(sample)
            yield sample

    try:
        membership = Membership.from_samples(samples(), n, groups)
    except (AttributeError, NotImplementedError, ValueError) as error:
        raise BagsError(
            f"estimator must tell which examples its members were trained on, and "
            f'{type(ensemble).__name__} does not ({error}): use calibrate_on="cv"',
            "the ensemble does not name the rows that its members were trained on",
        ) from error
    is_bagging = isinstance(ensemble, BaggingClassifier)
    is_known = is_bagging and type(ensemble).__module__.split(".")[0] in ("sklearn", "imblearn")
    if rows.dtype.kind in "fiub":  # members over text are no trees
        rows = rows.astype(np.float32, copy=False)
    for number, sample in bags.items():
        if not isinstance(members[number], DecisionTreeClassifier):
            if is_known:
                continue
            raise BagsError(
                "estimator must be an ensemble whose bags can be verified, got "
                f"{type(ensemble).__name__} over members that are not trees: "
                'use calibrate_on="cv"',
                "the members are not trees, so their rows cannot be verified",
            )
        columns = ensemble.estimators_features_[number] if is_bagging else slice(None)
        parts = [sample]
        if weight is not None:  # rows of weight 0, which scikit-learn 1.8 draws, are in no tree
            parts.append(sample[weight[sample] > 0])
        if not any(_leaves_agree(members[number], part, rows, columns, codes) for part in parts):
            raise BagsError(
                "estimator must be trained on the bags that its estimators_samples_ gives, got "
                f"{type(members[number] if is_bagging else ensemble).__name__} with a tree whose "
                "leaves contain other examples, so no example can be known to be out of bag: use "
                'calibrate_on="cv"'
            )
    return membership


def _leaves_agree(
    tree_model: Any, sample: IntArray, rows: Any, columns: Any, codes: CodeArray
) -> bool:
    """Return whether the examples of a bag give every leaf its number of examples and its classes.

    Numbers and classes are compared, and no shares of classes: these depend on weights, of classes
    too, and on monotonic constraints.
    """
    tree = tree_model.tree_
    examples, n_times = np.unique(sample, return_counts=True)
    tree_classes = np.asarray(tree_model.classes_).astype(np.intp)
    column = np.searchsorted(tree_classes, codes[examples]).clip(max=len(tree_classes) - 1)
    if not len(examples) or (tree_classes[column] != codes[examples]).any():
        return False  # an example of a class that the tree has never seen
    leaf = tree.apply(rows[examples][:, columns])
    leaves = np.flatnonzero(tree.children_left < 0)
    # An example that was drawn twice is one with a weight of 2, or two rows.
    if not any(
        np.array_equal(
            np.bincount(leaf, times, tree.node_count)[leaves], tree.n_node_samples[leaves]
        )
        for times in (None, n_times)
    ):
        return False
    if tree_model.monotonic_cst is not None:  # which clips shares of classes, to 0 too
        return True
    occurs = np.zeros((tree.node_count, tree.value.shape[2]), bool)
    occurs[leaf, column] = True
    return bool((occurs[leaves] == (tree.value[leaves, 0] > 0)).all())
