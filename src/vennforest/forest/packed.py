"""Every tree of a forest in one flat array, and the scores that chosen trees give to rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Self

import attrs
import joblib
import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import check_is_fitted, validate_data

from vennforest._validation import FloatArray, IntArray, check_option, require
from vennforest.forest import walk_kernels
from vennforest.forest.membership import Membership

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
"""The forests that can be packed, with those derived from them."""

Votes = Literal["soft", "hard"]
"""What a tree answers: its leaf's class distribution, or one vote."""

ROWS = 16384
"""Rows that are walked together; fewer of them where they are long, see ``CELLS``."""

CELLS = 1 << 18
"""Numbers in the rows that are walked together: with a tree they fill the second-level cache."""

FEWEST_ROWS = 64
"""Rows that are walked together however long they are."""

FIRST_STEPS = 10
"""Steps before the kernel first looks who is at a leaf."""

NODES_END = 1 << 30
"""A forest has fewer nodes than this, so the places of their words are uint32 numbers."""

WALKS_A_THREAD = 1 << 16
"""Fewer walks from a root to a leaf than this are not worth a thread."""


@dataclass(frozen=True)
class Rows:
    """Checked rows: float32, dense or CSR."""

    table: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        n, d = self.table.shape
        return n, d


@attrs.frozen(eq=False, slots=False)
class PackedForest:
    """A fitted forest of classification trees, 16 bytes a node.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes, 4), uint32
        Threshold, feature, place of the first child and value of every node, tree after tree and
        breadth-first in each, as ``vennforest.forest.walk_kernels`` describes.
    roots : ndarray of shape (n_trees,), uint32
        Where each tree begins in the flattened ``nodes``.
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
    >>> bool((packed.scores(X) == forest.predict_proba(X)[:, 1]).all())
    True
    >>> membership = Membership.from_forest(forest, len(X))
    >>> packed.scores(X[:3], membership, [0, 1, 2]).round(2)  # out-of-bag scores
    array([0.06, 0.03, 0.  ])
    """

    nodes: NDArray[np.uint32]
    roots: NDArray[np.uint32]
    distributions: FloatArray
    classes_: NDArray[Any]
    depth: int
    _unfitted: Any
    allow_nan: bool
    _tables: dict[str, FloatArray] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        """Refuse arrays of other shapes, and trees that begin nowhere."""
        require(self.nodes.shape == (len(self.nodes), 4), "nodes must be of four words each")
        shape = len(self.distributions), len(self.classes_)
        require(self.distributions.shape == shape, f"distributions must have shape {shape}")
        require(len(self.roots) and self.roots[-1] < self.nodes.size, "roots must be nodes")

    @classmethod
    def from_forest(cls, forest: Any) -> Self:
        """Pack a fitted random forest, or extra trees, of one output and less than 2**30 nodes.

        Raises
        ------
        ValueError
            For anything else.
        """
        if not isinstance(forest, FORESTS):
            raise ValueError(
                "forest must be a RandomForestClassifier or an ExtraTreesClassifier, "
                f"got {type(forest).__name__}"
            )
        check_is_fitted(forest)
        if forest.n_outputs_ != 1:
            raise ValueError(
                f"forest must have one output, got {forest.n_outputs_}: fit one forest per output"
            )
        trees = [estimator.tree_ for estimator in forest.estimators_]
        first = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])])
        if first[-1] >= NODES_END:
            raise ValueError(f"forest must have less than {NODES_END} nodes, got {first[-1]}")
        nodes = np.empty((first[-1], 4), dtype=np.uint32)
        table = _Table(len(forest.classes_))
        for tree, offset in zip(trees, first[:-1], strict=True):
            table.reserve(tree.node_count // 2 + 1)
            table.n = walk_kernels.pack_tree(
                tree.children_left,
                tree.children_right,
                tree.feature,
                tree.threshold,
                tree.missing_go_to_left,
                np.ascontiguousarray(tree.value[:, 0]).view(np.uint64),
                int(offset),
                nodes.reshape(-1),
                table.rows,
                table.slots,
                table.n,
            )
        unfitted = clone(forest)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(forest, name):
                setattr(unfitted, name, getattr(forest, name))
        return cls(
            nodes,
            (4 * first[:-1]).astype(np.uint32),
            table.rows[: table.n].view(np.float64).copy(),
            forest.classes_,
            max(tree.max_depth for tree in trees),
            unfitted,
            _takes_missing(forest.estimators_[0]),
        )

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.roots)

    def scores(
        self,
        X: Any,
        membership: Membership | None = None,
        examples: ArrayLike | None = None,
        *,
        votes: Votes = "soft",
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Return the mean answer of the trees, of all of them or of those an example allows.

        For two classes the second's score, (m,), else a column per class, (m, k); in [0, 1]. Rows
        that no tree may score are NaN. With all trees and soft votes it is the forest's
        ``predict_proba``, to the last bit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            Rows, as the forest's own ``predict_proba`` takes them.
        membership : Membership, optional
            Which tree may score which of n examples; goes with ``examples``.
        examples : array-like of shape (m,), int, optional
            In [-1, n): row i is scored by the trees that may score example ``examples[i]``; -1
            means all trees.
        votes : {"soft", "hard"}
            The mean of the leaves' class distributions, or the share of the trees whose leaf's most
            frequent class it is, the first of equals. Boström (2008), section 2.1.
        n_jobs : int, optional
            Threads; the result does not depend on it.
        """
        table = self._table(votes)
        rows = self.check_rows(X).table
        chosen = self._check_examples(membership, examples, rows.shape[0])
        bits = np.zeros((len(self), 1), np.uint64) if membership is None else membership.bits
        means = np.zeros((rows.shape[0], table.shape[1]))
        no_leaves = np.empty((0, 0), dtype=np.uint32)
        self._walk(rows, bits, chosen, table, means, no_leaves, n_jobs)
        return means[:, 0] if len(self.classes_) == 2 else means

    def tree_scores(
        self, X: Any, *, votes: Votes = "soft", n_jobs: int | None = None
    ) -> FloatArray:
        """Return each tree's answer, (m, n_trees) or (m, n_trees, k): arguments as of ``scores``.

        The second class's score for two classes, else one value per class; in [0, 1].
        """
        table = self._table(votes)
        answers: FloatArray = table[self.nodes[self.leaves(X, n_jobs=n_jobs), 3]]
        return answers[:, :, 0] if len(self.classes_) == 2 else answers

    def leaves(
        self, X: Any, trees: slice = slice(None), *, n_jobs: int | None = None
    ) -> NDArray[np.uint32]:
        """Return the leaf that each row falls into in each of some trees, (m, n_trees).

        Leaves are numbers of rows of ``nodes``; X and ``n_jobs`` as of ``scores``.
        """
        rows = self.check_rows(X).table
        roots = self.roots[trees]
        places = np.empty((rows.shape[0], len(roots)), dtype=np.uint32)
        if places.size:
            chosen = np.full(rows.shape[0], -1)
            bits = np.zeros((len(roots), 1), np.uint64)
            nothing = np.empty((0, 0))
            self._walk(rows, bits, chosen, nothing, nothing, places, n_jobs, roots)
        places >>= np.uint32(2)  # four words a node
        return places

    def _walk(
        self,
        rows: Any,
        bits: NDArray[np.uint64],
        examples: NDArray[np.int64],
        table: FloatArray,
        means: FloatArray,
        leaves: NDArray[np.uint32],
        n_jobs: int | None,
        roots: NDArray[np.uint32] | None = None,
    ) -> None:
        """Fill ``means`` or ``leaves``, whichever has columns, block by block."""
        size = min(ROWS, max(FEWEST_ROWS, CELLS // rows.shape[1]))
        nodes = self.nodes.reshape(-1)
        steps = min(FIRST_STEPS, self.depth)
        roots = self.roots if roots is None else roots
        sparse: bool = issparse(rows)

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, size):
                part = slice(first, min(first + size, stop))
                dense = rows[part].toarray() if sparse else rows[part]
                numbers = np.require(dense, np.float32, ["C", "W"]).view(np.uint32)
                walk_kernels.score_rows(
                    nodes,
                    roots,
                    numbers,
                    bits,
                    examples[part],
                    table,
                    steps,
                    means[part],
                    leaves[part],
                )

        n = rows.shape[0]
        most = max(1, n * len(roots) // WALKS_A_THREAD)
        parts = min(joblib.effective_n_jobs(n_jobs), most) if n_jobs != 1 else 1
        edges = [n * part // parts for part in range(parts + 1)]
        if parts == 1:
            work(0, n)
            return
        joblib.Parallel(n_jobs=parts, require="sharedmem")(
            joblib.delayed(work)(start, stop) for start, stop in pairwise(edges)
        )

    def _table(self, votes: Votes) -> FloatArray:
        """Return what each distribution answers, shape (n_distinct, 1) or (n_distinct, k)."""
        check_option(votes, Votes, "votes")
        if votes not in self._tables:
            answers = self.distributions
            if votes == "hard":
                answers = np.eye(answers.shape[1])[answers.argmax(axis=1)]
            columns = slice(1, None) if len(self.classes_) == 2 else slice(None)
            self._tables[votes] = np.ascontiguousarray(answers[:, columns])
        return self._tables[votes]

    def check_rows(self, X: Any) -> Rows:
        """Return rows as the trees see them, or refuse them as the forest would.

        What is returned is taken instead of ``X`` everywhere here, and not checked again.
        """
        if isinstance(X, Rows):
            return X
        plain = self._plain_rows(X)
        if plain is not None:
            return Rows(plain)
        return Rows(
            validate_data(
                self._unfitted,
                X,
                dtype=np.float32,
                accept_sparse="csr",
                reset=False,
                ensure_all_finite="allow-nan" if self.allow_nan and not issparse(X) else True,
            )
        )

    def _plain_rows(self, X: Any) -> NDArray[np.float32] | None:
        """Return float32 rows of an array that is sure to pass, None of anything else.

        For a single row scikit-learn's check takes twice as long as all the trees.
        """
        if (
            type(X) is not np.ndarray
            or X.dtype.char not in "fd"
            or X.ndim != 2
            or not len(X)
            or X.shape[1] != self._unfitted.n_features_in_
            or hasattr(self._unfitted, "feature_names_in_")
        ):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            rows = X.astype(np.float32, copy=False)
            return rows if np.isfinite(rows.sum()) else None

    def _check_examples(
        self, membership: Membership | None, examples: ArrayLike | None, m: int
    ) -> NDArray[np.int64]:
        """Return the example of every row, -1 for all trees."""
        if membership is None and examples is None:
            return np.full(m, -1)
        if membership is None or examples is None:
            missing = "membership" if membership is None else "examples"
            raise ValueError(
                f"{missing} must be given, got None: membership and examples go together"
            )
        if len(membership) != len(self):
            raise ValueError(
                f"membership must be of the forest's {len(self)} trees, got {len(membership)}"
            )
        chosen = np.asarray(examples)
        if chosen.shape != (m,) or chosen.dtype.kind not in "iu":
            raise ValueError(
                f"examples must be integers of shape ({m},), got {chosen.dtype} of {chosen.shape}"
            )
        outside = (chosen < -1) | (chosen >= membership.n)
        if outside.any():
            raise ValueError(f"examples must be in [-1, {membership.n}), got {chosen[outside][0]}")
        return np.require(chosen, np.int64, ["C", "W"])


class _Table:
    """Distinct rows of k float64 numbers, as uint64 bits, with the hash table that finds them."""

    def __init__(self, k: int) -> None:
        self.n = 0
        self.rows = np.empty((256, k), dtype=np.uint64)
        self.slots = np.zeros(512, dtype=np.int64)

    def reserve(self, n: int) -> None:
        """Make room for n more rows, and keep half of the slots empty."""
        if self.n + n <= len(self.rows):
            return
        capacity = 1 << int(self.n + n - 1).bit_length() + 1
        rows = np.empty((capacity, self.rows.shape[1]), dtype=np.uint64)
        rows[: self.n] = self.rows[: self.n]
        self.rows = rows
        self.slots = np.zeros(2 * capacity, dtype=np.int64)
        walk_kernels.fill_slots(self.rows, self.n, self.slots)


def _takes_missing(tree: Any) -> bool:
    """Tell whether a forest of such trees takes missing values.

    Before scikit-learn 1.9 those with monotonicity constraints did not, whatever their tags say.
    """
    late = parse_version(sklearn.__version__) >= parse_version("1.9")
    return bool(get_tags(tree).input_tags.allow_nan and (late or tree.monotonic_cst is None))


@dataclass(frozen=True)
class Answers:
    """What the members of a fitted ensemble answer for rows: they are asked one by one.

    They are in ``estimators_``, and trained on class numbers, as scikit-learn's are: the places of
    labels in the ensemble's ``classes_``.
    """

    ensemble: Any
    votes: Votes = "soft"
    n_jobs: int | None = None

    @property
    def n_trees(self) -> int:
        """Number of members."""
        return len(self.ensemble.estimators_)

    def check(self, X: Any) -> Any:
        """Return rows as the members see them, refused as the ensemble would refuse them."""
        return validate_data(
            self.ensemble,
            X,
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite=False,
            reset=False,
        )

    def table(self, rows: Any) -> Any:
        """Return checked rows as the table of numbers that draws are hashed from.

        Equal numbers in float32 and float64 have the same hash.
        """
        return rows.astype(np.float64) if rows.dtype == np.float32 else rows

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return scores by all members, or by those for whom the row's example is out of bag."""
        n, k = rows.shape[0], self._k
        total, count = np.zeros((n, k)), np.zeros(n)
        for member in range(self.n_trees):
            index = np.arange(n)
            if membership is not None and examples is not None:
                bits = Membership(membership.bits[member : member + 1], membership.n).dense()[0]
                index = np.flatnonzero(bits[examples] | (examples < 0))
            if len(index):
                chosen = rows if len(index) == n else _safe_indexing(rows, index)
                total[index] += self.answer(member, chosen)
                count[index] += 1
        means = total / count[:, None]
        return np.ascontiguousarray(means[:, 1] if k == 2 else means)

    def per_member(self, rows: Any) -> FloatArray:
        """Return each member's answers, (n, n_trees) or (n, n_trees, k)."""
        answers = np.stack([self.answer(m, rows) for m in range(self.n_trees)], axis=1)
        return np.ascontiguousarray(answers[:, :, 1]) if self._k == 2 else answers

    def answer(self, member: int, rows: Any) -> FloatArray:
        """Return one member's class distributions or votes, (n, k)."""
        model = self.ensemble.estimators_[member]
        known = np.asarray(model.classes_, dtype=np.intp)
        answer = np.zeros((rows.shape[0], self._k))
        if hasattr(model, "predict_proba"):
            answer[:, known] = model.predict_proba(rows)
            if self.votes == "soft":
                return answer
            winner = answer.argmax(axis=1)
        else:
            winner = np.asarray(model.predict(rows), dtype=np.intp)
        votes: FloatArray = np.eye(self._k)[winner]
        return votes

    @property
    def _k(self) -> int:
        return len(self.ensemble.classes_)


class ForestAnswers(Answers):
    """The trees of a forest, walked in packed form."""

    @cached_property
    def packed(self) -> PackedForest:
        """The forest in flat arrays."""
        return PackedForest.from_forest(self.ensemble)

    def check(self, X: Any) -> Any:
        """Return rows as float32, refused as the forest would refuse them."""
        return self.packed.check_rows(X)

    def table(self, rows: Any) -> Any:
        """Return the float32 table of checked rows."""
        return rows.table

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return scores by all trees, or by those for whom the row's example is out of bag."""
        return self.packed.scores(rows, membership, examples, votes=self.votes, n_jobs=self.n_jobs)

    def per_member(self, rows: Any) -> FloatArray:
        """Return each tree's answers, (n, n_trees) or (n, n_trees, k)."""
        return self.packed.tree_scores(rows, votes=self.votes, n_jobs=self.n_jobs)
