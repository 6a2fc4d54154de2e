"""Scores of rows by the members of an ensemble: forests as flat arrays, others one by one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.ensemble import BaggingClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import validate_data

from vennforest._validation import FloatArray, InputError, IntArray, check_option, require
from vennforest.forest.bags import FORESTS, Membership
from vennforest.forest.packed import PackedForest, Votes
from vennforest.scores import check_scores, round_scores


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
        return validate_data(
            self.ensemble,
            X,
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite=False,
            reset=False,
        )

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
        columns = self.ensemble.estimators_features_[number]
        if len(columns) < self.ensemble.n_features_in_ or (np.diff(columns) != 1).any():
            rows = _safe_indexing(rows, columns, axis=1)
        member, k = self.ensemble.estimators_[number], len(self.ensemble.classes_)
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
