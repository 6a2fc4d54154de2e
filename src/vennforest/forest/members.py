"""Scores of rows by the members of an ensemble: forests as flat arrays, others one by one."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Self

import joblib
import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.ensemble import BaggingClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import validate_data

from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_option,
    check_rows,
    require,
)
from vennforest.forest import walk_kernels
from vennforest.forest.bags import FORESTS, Membership
from vennforest.scores import check_scores, round_scores

Votes = Literal["soft", "hard"]
"""Whether a tree scores by the class distribution of its leaf or by one vote."""

ROWS_PER_BLOCK = 16384
"""Maximum number of rows that are walked together."""

MIN_ROWS_PER_BLOCK = 64
"""Minimum number of rows that are walked together, whatever their number of features."""

CELLS_PER_BLOCK = 1 << 18
"""Numbers in the rows that are walked together: with a tree they fill the second-level cache."""

STEPS_BEFORE_FIRST_CHECK = 10
"""Steps before the kernel first checks which rows have reached a leaf."""

MAX_NODES = (1 << 30) - 1
"""Maximum number of nodes of a forest: the positions of their words are uint32 numbers."""

MIN_WALKS_PER_THREAD = 1 << 16
"""Minimum number of walks from a root to a leaf per thread."""


@dataclass(frozen=True, eq=False)
class PackedForest:
    """A fitted forest of classification trees, 16 bytes per node.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes, 4), uint32
        Threshold, feature, position of the first child and value of each node, tree after tree and
        breadth-first in each, as ``vennforest.forest.walk_kernels`` describes.
    roots : ndarray of shape (n_trees,), uint32
        Position of each tree's root in the flattened ``nodes``.
    distributions : ndarray of shape (n_distinct, k)
        The distinct class distributions of the leaves.
    classes_ : ndarray of shape (k,)
        The label of each column.
    depth : int
        The depth of the deepest tree.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> packed = PackedForest.from_forest(forest)
    >>> rows = packed.check_rows(X)
    >>> bool((packed.scores(rows) == forest.predict_proba(X)[:, 1]).all())
    True
    >>> membership = Membership.from_forest(forest, len(X))
    >>> packed.scores(rows[:3], membership, [0, 1, 2]).round(2)  # out-of-bag scores
    array([0.06, 0.03, 0.  ])
    """

    nodes: NDArray[np.uint32]
    roots: NDArray[np.uint32]
    distributions: FloatArray
    classes_: NDArray[Any]
    depth: int
    without_trees: Any
    """The forest without its trees, used to validate rows."""
    allow_nan: bool

    @classmethod
    def from_forest(cls, forest: Any) -> Self:
        """Pack a fitted random forest or extra trees with one output and fewer than 2**30 nodes."""
        trees = [estimator.tree_ for estimator in forest.estimators_]
        first = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])])
        if first[-1] > MAX_NODES:
            raise ValueError(f"forest must have at most {MAX_NODES} nodes, got {first[-1]}")
        nodes = np.empty((first[-1], 4), dtype=np.uint32)
        n_distinct, distributions = 0, np.empty((256, len(forest.classes_)), np.uint64)
        slots = np.zeros(512, np.int64)  # of a hash table, at least half of them empty
        for tree, offset in zip(trees, first[:-1], strict=True):
            n_at_most = n_distinct + tree.node_count // 2 + 1
            if n_at_most > len(distributions):
                n_added = (1 << int(n_at_most - 1).bit_length() + 1) - len(distributions)
                distributions = np.pad(distributions, ((0, n_added), (0, 0)))
                slots = np.zeros(2 * len(distributions), np.int64)
                walk_kernels.fill_slots(distributions, n_distinct, slots)
            n_distinct = walk_kernels.pack_tree(
                tree.children_left,
                tree.children_right,
                tree.feature,
                tree.threshold,
                tree.missing_go_to_left,
                np.ascontiguousarray(tree.value[:, 0]).view(np.uint64),
                int(offset),
                nodes.reshape(-1),
                distributions,
                slots,
                n_distinct,
            )
        # Before scikit-learn 1.9 trees with constraints took no missing values, whatever tags say.
        tree = forest.estimators_[0]
        is_new = parse_version(sklearn.__version__) >= parse_version("1.9")
        allows_missing = get_tags(tree).input_tags.allow_nan
        takes_missing = bool(allows_missing and (is_new or tree.monotonic_cst is None))
        without_trees = copy.copy(forest)
        without_trees.estimators_ = []
        return cls(
            nodes,
            (4 * first[:-1]).astype(np.uint32),
            distributions[:n_distinct].view(np.float64).copy(),
            forest.classes_,
            max(tree.max_depth for tree in trees),
            without_trees,
            takes_missing,
        )

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.roots)

    def scores(
        self,
        rows: Any,
        membership: Membership | None = None,
        examples: ArrayLike | None = None,
        *,
        votes: Votes = "soft",
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Return the mean score of each row by all trees, or by the out-of-bag trees of an example.

        Scores are in [0, 1]: those of the second of two classes, (m,), else one per class, (m, k),
        and NaN for rows that no tree may score. With all trees and soft votes they equal the
        forest's ``predict_proba`` to the last bit.

        Parameters
        ----------
        rows : float32 array or CSR array of shape (m, n_features)
            As `check_rows` returns them.
        membership : Membership, optional
            Which tree may score which of n examples.
        examples : array-like of shape (m,), int, optional
            Indices in [-1, n): row i is scored by the trees that may score example
            ``examples[i]``, or by all trees for -1. Required with ``membership``.
        votes : {"soft", "hard"}
            Whether to average the class distributions of the leaves, or to count the trees whose
            leaf has the class as its most frequent one (Boström 2008, section 2.1).
        n_jobs : int, optional
            Number of threads; the result does not depend on it.
        """
        table = self._soft_scores if votes == "soft" else self._hard_scores
        bits, example_of_row = np.zeros((len(self), 1), np.uint64), np.full(rows.shape[0], -1)
        if membership is not None:
            bits, example_of_row = membership.bits, np.require(examples, np.int64, ["C", "W"])
        n = rows.shape[0]
        means = np.zeros((n, table.shape[1]))
        block = min(ROWS_PER_BLOCK, max(MIN_ROWS_PER_BLOCK, CELLS_PER_BLOCK // rows.shape[1]))
        nodes, steps = self.nodes.reshape(-1), min(STEPS_BEFORE_FIRST_CHECK, self.depth)
        is_sparse: bool = issparse(rows)

        def walk_part(start: int, stop: int) -> None:
            for first in range(start, stop, block):
                part = slice(first, min(first + block, stop))
                dense = rows[part].toarray() if is_sparse else rows[part]
                numbers = np.require(dense, np.float32, ["C", "W"]).view(np.uint32)
                walk_kernels.walk_rows(
                    nodes,
                    self.roots,
                    numbers,
                    bits,
                    example_of_row[part],
                    table,
                    steps,
                    means[part],
                )

        n_parts = n * len(self.roots) // MIN_WALKS_PER_THREAD
        if n_jobs != 1 and n_parts > 1:  # joblib is asked for threads only where they are worth it
            n_parts = min(joblib.effective_n_jobs(n_jobs), n_parts)
        if n_jobs == 1 or n_parts < 2:
            walk_part(0, n)
        else:
            edges = [n * part // n_parts for part in range(n_parts + 1)]
            joblib.Parallel(n_jobs=n_parts, require="sharedmem")(
                joblib.delayed(walk_part)(start, stop) for start, stop in pairwise(edges)
            )
        return means[:, 0] if len(self.classes_) == 2 else means

    @cached_property
    def _soft_scores(self) -> FloatArray:
        """The score of each distribution, shape (n_distinct, 1) or (n_distinct, k)."""
        first = 1 if len(self.classes_) == 2 else 0
        return np.ascontiguousarray(self.distributions[:, first:])

    @cached_property
    def _hard_scores(self) -> FloatArray:
        first, k = (1 if len(self.classes_) == 2 else 0), len(self.classes_)
        return np.ascontiguousarray(np.eye(k)[self.distributions.argmax(axis=1), first:])

    def check_rows(self, X: Any) -> Any:
        """Return rows as a float32 array or CSR array, or raise the forest's own error."""
        return check_rows(self.without_trees, X, np.float32, self.allow_nan)


@dataclass(frozen=True, eq=False)
class Members:
    """The members of a fitted ensemble, as a source of scores.

    Forests are scored in packed form; the members of other ensembles predict one after another.
    Members are in ``estimators_`` and trained on class indices, as in scikit-learn's ensembles.

    Parameters
    ----------
    ensemble : classifier
        A fitted random forest, extra trees or bagging ensemble.
    votes : {"soft", "hard"}
        How members score, as in `PackedForest.scores`.
    n_jobs : int or None
        Number of threads, for forests only.
    """

    ensemble: Any
    votes: Votes = "soft"
    n_jobs: int | None = None

    @cached_property
    def packed(self) -> PackedForest | None:
        """The trees of a forest in flat arrays, None for other ensembles."""
        is_forest = isinstance(self.ensemble, FORESTS)
        return PackedForest.from_forest(self.ensemble) if is_forest else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the packed forest, which can be rebuilt from the ensemble."""
        return {name: value for name, value in self.__dict__.items() if name != "packed"}

    def _check_state(self) -> None:
        check_option(self.votes, Votes, "votes")
        is_valid = self.n_jobs is None or (
            isinstance(self.n_jobs, int | np.integer) and self.n_jobs
        )
        require(is_valid, "n_jobs must be an integer other than 0, or None")
        is_valid = isinstance(self.ensemble, (*FORESTS, BaggingClassifier))
        require(is_valid, "ensemble must be a forest or a bagging ensemble")
        require(len(self.ensemble.estimators_) > 0, "ensemble must have members")

    def check(self, X: Any) -> Any:
        """Validate rows and convert them for the members; raise the ensemble's own errors."""
        if self.packed is not None:
            return self.packed.check_rows(X)
        options = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
        return validate_data(self.ensemble, X, reset=False, **options)

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return the mean score of checked rows, rounded, (m,) for two classes or (m, k).

        With a membership, row i is scored by the members that did not see example ``examples[i]``,
        or by all for -1.
        """
        if self.packed is not None:
            scores = self.packed.scores(
                rows, membership, examples, votes=self.votes, n_jobs=self.n_jobs
            )
            return round_scores(scores)
        n_rows, k = rows.shape[0], len(self.ensemble.classes_)
        total, count = np.zeros((n_rows, k)), np.zeros(n_rows)
        for number in range(len(self.ensemble.estimators_)):
            index = np.arange(n_rows)
            if membership is not None and examples is not None:
                may_score = membership.select(number)
                index = np.flatnonzero(may_score[examples] | (examples < 0))
            if len(index):
                part = rows if len(index) == n_rows else _safe_indexing(rows, index)
                total[index] += self._member_scores(number, part)
                count[index] += 1
        means = total / count[:, None]
        return round_scores(check_scores(means[:, 1] if k == 2 else means))

    def per_member(self, rows: Any) -> FloatArray:
        """Return each member's scores of checked rows, (m, n_members) or (m, n_members, k)."""
        k, trees = len(self.ensemble.classes_), self.ensemble.estimators_
        if self.packed is None:
            scores = np.stack([self._member_scores(i, rows) for i in range(len(trees))], axis=1)
        else:
            scores = np.stack([tree.tree_.predict(rows) for tree in trees], axis=1)
            scores = scores if self.votes == "soft" else np.eye(k)[scores.argmax(axis=2)]
        return scores[:, :, 1] if k == 2 else scores

    def _member_scores(self, number: int, rows: Any) -> FloatArray:
        """Return the class probabilities or votes (m, k) of one member of a bagging ensemble."""
        member, k = self.ensemble.estimators_[number], len(self.ensemble.classes_)
        columns = self.ensemble.estimators_features_[number]
        is_part = len(columns) < self.ensemble.n_features_in_ or (np.diff(columns) != 1).any()
        # Members other than trees may change their rows in place, and have a copy as in predict.
        if is_part or not isinstance(member, DecisionTreeClassifier):
            rows = _safe_indexing(rows, columns, axis=1)
        if not hasattr(member, "predict_proba"):
            return np.eye(k)[np.asarray(member.predict(rows), dtype=np.intp)]
        scores, p = np.zeros((rows.shape[0], k)), np.asarray(member.predict_proba(rows))
        if p.shape != (shape := (len(scores), len(member.classes_))):
            raise InputError(
                f"estimator must have members that give scores of shape {shape}, a column for each "
                f"of their classes, got {p.shape} of {type(member).__name__}"
            )
        scores[:, member.classes_] = p
        return scores if self.votes == "soft" else np.eye(k)[scores.argmax(axis=1)]
