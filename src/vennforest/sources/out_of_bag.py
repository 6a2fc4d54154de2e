"""Out-of-bag calibration: all data trains, all data calibrates (Johansson et al. 2018, 3.2)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import validate_data

from vennforest._validation import FloatArray, IntArray
from vennforest.forest import Membership, PackedForest
from vennforest.forest.packed import Votes
from vennforest.sources.base import Draw, Part, TrainingData
from vennforest.sources.draws import (
    HashArray,
    draw_examples,
    draw_subsets,
    hash_rows,
    mean_over_trees,
)

Subforest = Literal["exchangeable", "random", "all"]
"""Which trees score a new object."""

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)

SCORES_AT_ONCE = 1 << 20
"""Scores that ``n_draws="all"`` holds at once."""


def is_bagged(estimator: Any) -> bool:
    """Tell whether examples will be out of bag for some members of the estimator's ensemble."""
    if isinstance(estimator, Pipeline):
        return len(estimator.steps) > 0 and is_bagged(estimator.steps[-1][1])
    if isinstance(estimator, FORESTS):
        return bool(estimator.bootstrap)
    if isinstance(estimator, BaggingClassifier):
        return bool(estimator.bootstrap) or estimator.max_samples not in (None, 1.0)
    return False


def out_of_bag(
    estimator: Any,
    data: TrainingData,
    *,
    subforest: Subforest,
    votes: Votes,
    n_draws: int | Literal["all"],
    seed: int,
    n_jobs: int | None,
) -> list[Part]:
    """Train a bagged ensemble on all the data and score each example by those who did not see it.

    Parameters
    ----------
    estimator : forest, BaggingClassifier, or Pipeline that ends in one
    subforest : {"exchangeable", "random", "all"}
        ``"exchangeable"``: a new object is scored by the out-of-bag trees of a random calibration
        example, which leaves the calibration set for it (eqs. 10, 11); ``"random"``: by as many
        trees, picked at random; ``"all"``: by every tree (Boström 2008).
    votes : {"soft", "hard"}
    n_draws : int or "all"
        How many left-out examples an exchangeable answer is averaged over.
    seed : int
        Of the hash that draws examples.
    n_jobs : int or None
        Threads of the forest walk.

    Raises
    ------
    ValueError
        If the ensemble is not bagged, or no example is out of bag.
    """
    if not is_bagged(estimator):
        raise ValueError(
            'estimator must leave examples out of bag for calibrate_on="oob" (a forest with '
            "bootstrap=True, a BaggingClassifier with bootstrap=True or max_samples below 1, or a "
            f"Pipeline that ends in one), got {type(estimator).__name__} without: "
            'use calibrate_on="cv"'
        )
    model, transformer, ensemble, seen = _fit_ensemble(estimator, data)
    answers: Answers
    if isinstance(ensemble, FORESTS):
        answers = ForestAnswers(ensemble, votes, n_jobs)
    else:
        answers = BaggingAnswers(ensemble, votes)
    membership = Membership.from_forest(ensemble, len(data))
    counts = membership.counts()
    kept = np.flatnonzero(counts > 0)
    alone = int((counts == 0).sum())
    if not len(kept):
        raise ValueError(
            "estimator must leave examples out of bag, got none that is: "
            "grow more trees, or draw fewer samples for each"
        )
    if alone:
        warnings.warn(
            f"{alone} of {len(data)} examples are out of bag for no tree and do not calibrate: "
            "grow more trees",
            UserWarning,
            stacklevel=4,
        )
    everyone = len(kept) == len(data)
    chosen = data if everyone else data.rows(kept)
    rows = answers.check(seen if everyone else _safe_indexing(seen, kept))
    scores = answers.mean(rows, membership, kept)
    scorer = OutOfBagScorer(
        transformer, answers, membership, None if everyone else kept, subforest, n_draws, seed
    )
    return [Part(model, scores, chosen.codes, chosen.weight, scorer)]


def _fit_ensemble(estimator: Any, data: TrainingData) -> tuple[Any, Any, Any, Any]:
    """Return the fitted model, its transformers (or None), its ensemble, and what that saw.

    A pipeline's transformers are fitted first, by ``fit_transform`` as in ``Pipeline.fit``: what
    they make of the training rows may differ from ``transform`` (as with a target encoder).
    """
    if not isinstance(estimator, Pipeline):
        model = data.fit(estimator)
        return model, None, model, data.X
    pipeline = clone(estimator)
    name, last = pipeline.steps[-1]
    params = data.all_fit_params()
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(pipeline, "fit", **params)
        own = routed[name].fit
        others = {
            key: params[key]
            for step, _ in pipeline.steps[:-1]
            for method in ("fit", "fit_transform")
            for key in routed[step].get(method, {})
        }
    else:
        prefix = f"{name}__"
        own = {key.removeprefix(prefix): v for key, v in params.items() if key.startswith(prefix)}
        others = {key: v for key, v in params.items() if not key.startswith(prefix)}
    steps: list[Any] = []
    seen = data.X
    if len(pipeline.steps) > 1:
        transformers = pipeline[:-1]
        seen = transformers.fit_transform(data.X, data.y, **others)
        steps = transformers.steps
    rest = replace(data, X=seen, fit_params=own, weight_param=None)
    model, within, ensemble, seen = _fit_ensemble(last, rest)
    pipeline.steps = [*steps, (name, model)]
    steps = [*steps, (name, within)] if within is not None else steps
    return pipeline, Pipeline(steps) if steps else None, ensemble, seen


class Answers(Protocol):
    """What the members of a fitted ensemble say of rows."""

    @property
    def n_trees(self) -> int:
        """Number of members."""
        ...

    def check(self, X: Any) -> Any:
        """Return rows as the members see them."""
        ...

    def hashes(self, rows: Any) -> HashArray:
        """Return a hash of each row, (n,)."""
        ...

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return scores by all members, or by those for whom the row's example is out of bag."""
        ...

    def each(self, rows: Any) -> FloatArray:
        """Return what each member says, (n, n_trees) or (n, n_trees, k)."""
        ...


@dataclass(frozen=True)
class ForestAnswers:
    """The trees of a forest, walked in packed form."""

    forest: Any
    votes: Votes
    n_jobs: int | None

    @cached_property
    def packed(self) -> PackedForest:
        """The forest in flat arrays; made again where the object was saved and loaded."""
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

    def hashes(self, rows: Any) -> HashArray:
        """Return a hash of each row, (n,)."""
        return hash_rows(rows.table)

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return scores by all trees, or by those for whom the row's example is out of bag."""
        return self.packed.scores(rows, membership, examples, votes=self.votes, n_jobs=self.n_jobs)

    def each(self, rows: Any) -> FloatArray:
        """Return what each tree says, (n, n_trees) or (n, n_trees, k)."""
        return self.packed.tree_scores(rows, votes=self.votes, n_jobs=self.n_jobs)


@dataclass(frozen=True)
class BaggingAnswers:
    """The members of a bagging ensemble, asked one by one."""

    ensemble: BaggingClassifier
    votes: Votes

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

    def hashes(self, rows: Any) -> HashArray:
        """Return a hash of each row, (n,)."""
        return hash_rows(rows)

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
                total[index] += self._answer(member, chosen)
                count[index] += 1
        means = total / count[:, None]
        return np.ascontiguousarray(means[:, 1] if k == 2 else means)

    def each(self, rows: Any) -> FloatArray:
        """Return what each member says, (n, n_trees) or (n, n_trees, k)."""
        answers = np.stack([self._answer(m, rows) for m in range(self.n_trees)], axis=1)
        return np.ascontiguousarray(answers[:, :, 1]) if self._k == 2 else answers

    @property
    def _k(self) -> int:
        return len(self.ensemble.classes_)

    def _answer(self, member: int, rows: Any) -> FloatArray:
        """Return one member's class distribution or vote, (n, k).

        Members of a BaggingClassifier are trained on class numbers, and on columns of their own.
        """
        model = self.ensemble.estimators_[member]
        columns = self.ensemble.estimators_features_[member]
        if len(columns) < self.ensemble.n_features_in_ or (np.diff(columns) != 1).any():
            rows = _safe_indexing(rows, columns, axis=1)
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


def _bits_of(membership: Membership, member: int) -> NDArray[np.bool_]:
    octets = membership.bits[member].astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, count=membership.n, bitorder="little").astype(bool)


@dataclass(frozen=True)
class OutOfBagScorer:
    """Scores new objects with chosen members of a bagged ensemble.

    Attributes
    ----------
    transformer : Pipeline or None
        What comes before the ensemble.
    answers : Answers
    membership : Membership
        Of all training examples.
    kept : ndarray of shape (n_calibration,) or None
        Which of them are calibration examples; None: all.
    subforest, n_draws, seed
        See ``out_of_bag``.
    """

    transformer: Any
    answers: Answers
    membership: Membership
    kept: IntArray | None
    subforest: Subforest
    n_draws: int | Literal["all"]
    seed: int

    def draws(self, X: Any) -> Iterator[Draw]:
        """Yield the scores of the rows of X; every draw counts the same."""
        if self.transformer is not None:
            X = self.transformer.transform(X)
        rows = self.answers.check(X)
        if self.subforest == "all":
            yield Draw(self.answers.mean(rows), None, 1)
            return
        if self.subforest == "exchangeable" and self.n_draws == "all":
            yield from self._every_draw(rows)
            return
        n_draws = 1 if self.n_draws == "all" else self.n_draws
        n = self.membership.n if self.kept is None else len(self.kept)
        hashes = self.answers.hashes(rows)
        for draw, left_out in enumerate(draw_examples(hashes, self.seed, n_draws, n)):
            examples = left_out if self.kept is None else self.kept[left_out]
            if self.subforest == "exchangeable":
                yield Draw(self.answers.mean(rows, self.membership, examples), left_out, 1)
            else:
                sizes = self._counts[examples]
                subsets = draw_subsets(hashes, self.seed + 1 + draw, sizes, self.answers.n_trees)
                own = Membership.from_dense(np.ascontiguousarray(subsets.T))
                yield Draw(self.answers.mean(rows, own, np.arange(len(hashes))), None, 1)

    @cached_property
    def _counts(self) -> IntArray:
        """Number of members that did not see each training example."""
        return self.membership.counts()

    def _every_draw(self, rows: Any) -> Iterator[Draw]:
        """Yield the scores under every calibration example's members, without randomness."""
        answers = self.answers.each(rows)
        members = self.membership.dense()
        if self.kept is not None:
            members = members[:, self.kept]
        counts = members.sum(axis=0)
        m, n = len(answers), members.shape[1]
        at_once = max(1, SCORES_AT_ONCE // max(1, answers[:, 0].size))
        for first in range(0, n, at_once):
            some = np.arange(first, min(n, first + at_once))
            means = mean_over_trees(answers, members[:, some].astype(np.float64), counts[some])
            flat = means.reshape(len(some) * m, *means.shape[2:])
            yield Draw(flat, np.repeat(some, m), len(some))
