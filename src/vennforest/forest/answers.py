"""What the members of a fitted ensemble answer: trees in packed form, or models one by one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import validate_data

from vennforest._validation import FloatArray, IntArray
from vennforest.forest.membership import Membership
from vennforest.forest.packed import PackedForest, Votes


class Answers(Protocol):
    """What the members of a fitted ensemble answer for rows."""

    @property
    def n_trees(self) -> int:
        """Number of members."""
        ...

    def check(self, X: Any) -> Any:
        """Return rows as the members see them, refused as the ensemble would refuse them."""
        ...

    def table(self, rows: Any) -> Any:
        """Return checked rows as the table of numbers that draws are hashed from."""
        ...

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return scores by all members, or by those for whom the row's example is out of bag."""
        ...

    def per_member(self, rows: Any) -> FloatArray:
        """Return each member's answers, (n, n_trees) or (n, n_trees, k)."""
        ...


@dataclass(frozen=True)
class ForestAnswers:
    """The trees of a forest, walked in packed form."""

    forest: Any
    votes: Votes = "soft"
    n_jobs: int | None = None

    @cached_property
    def packed(self) -> PackedForest:
        """The forest in flat arrays; packed again after pickling."""
        return PackedForest.from_forest(self.forest)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {name: value for name, value in self.__dict__.items() if name != "packed"}

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.forest.estimators_)

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


@dataclass(frozen=True)
class MemberAnswers:
    """The members of an ensemble, asked one by one.

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
        """Return rows as an array or CSR, refused as the ensemble would refuse them."""
        return validate_data(
            self.ensemble,
            X,
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite=False,
            reset=False,
        )

    def table(self, rows: Any) -> Any:
        """Return rows with which equal numbers in float32 and float64 have the same hash."""
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
                free = _bits_of(membership, member)[examples] | (examples < 0)
                index = np.flatnonzero(free)
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

    def columns(self, member: int, rows: Any) -> Any:
        """Return the columns of rows that a member was trained on: all of them."""
        return rows

    def answer(self, member: int, rows: Any) -> FloatArray:
        """Return one member's class distributions or votes, (n, k)."""
        model = self.ensemble.estimators_[member]
        rows = self.columns(member, rows)
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


class BaggingAnswers(MemberAnswers):
    """The members of a BaggingClassifier, each trained on columns of its own."""

    def columns(self, member: int, rows: Any) -> Any:
        """Return the columns of rows that a member was trained on."""
        columns = self.ensemble.estimators_features_[member]
        if len(columns) < self.ensemble.n_features_in_ or (np.diff(columns) != 1).any():
            return _safe_indexing(rows, columns, axis=1)
        return rows


def _bits_of(membership: Membership, member: int) -> NDArray[np.bool_]:
    octets = membership.bits[member].astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, count=membership.n, bitorder="little").astype(bool)
