"""Forests whose trees are grown on one partition each; every row is scored by those of others."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from vennforest._validation import IntArray, check_array, check_option, number, require
from vennforest.forest import FORESTS, Membership
from vennforest.forest.mixed import MixedForestClassifier
from vennforest.sources import SampledScores, Subforest, TrainingData
from vennforest.sources.out_of_bag import EnsembleScorer
from vennforest.sources.row_hashes import draw_examples, hash_rows


class Crew(NamedTuple):
    """Trees that are grown together on one partition."""

    partition: int
    n_trees: int
    seed: int


def check_forest(estimator: Any) -> None:
    """Refuse anything but a plain forest of scikit-learn."""
    if type(estimator) not in (*FORESTS, MixedForestClassifier):
        raise ValueError(
            "estimator must be a RandomForestClassifier or an ExtraTreesClassifier to be grown on "
            f"partitions, got {type(estimator).__name__}: transform the features beforehand"
        )


def plan_crews(estimator: Any, n_partitions: int) -> list[Crew]:
    """Divide the trees of a forest among partitions, by the forest's ``random_state``.

    Each partition has a crew of trees; with fewer trees than partitions each tree is a crew, and
    some partitions, drawn at random, grow none.
    """
    n_trees = int(estimator.n_estimators)
    n_crews = min(n_partitions, n_trees)
    if n_crews < 2:
        raise ValueError(
            "n_estimators must be large enough that no partition is in every tree's bag, got "
            f"{n_trees} with {n_partitions} partitions"
        )
    random_state = check_random_state(estimator.random_state)
    order = random_state.permutation(n_partitions)
    seeds = random_state.randint(2**31 - 1, size=n_crews)
    return [
        Crew(int(order[crew]), n_trees // n_crews + (crew < n_trees % n_crews), int(seeds[crew]))
        for crew in range(n_crews)
    ]


def grow_crew(estimator: Any, data: TrainingData, crew: Crew) -> Any:
    """Return a forest of the crew's trees, fitted to the rows of its partition.

    Its trees know all classes, also those that the partition lacks: a row of weight zero stands
    for each of them, which scikit-learn's trees leave out.
    """
    missing = np.setdiff1d(np.arange(len(data.classes)), data.codes)
    X, y, weight = data.X, data.y, data.weight
    if len(missing):
        n = len(data)
        X = _safe_indexing(X, np.concatenate([np.arange(n), np.zeros(len(missing), np.intp)]))
        y = np.concatenate([y, data.classes[missing]])
        weight = np.ones(n) if weight is None else weight
        weight = np.concatenate([weight, np.zeros(len(missing))])
    forest = clone(estimator).set_params(
        n_estimators=crew.n_trees, random_state=crew.seed, oob_score=False, warm_start=False
    )
    return forest.fit(X, y, sample_weight=weight)


def join_forests(forests: Sequence[Any]) -> Any:
    """Return one forest of the trees of several that know the same classes and features.

    It does not tell its bags: none of its trees drew from all rows.
    """
    joined = copy.copy(forests[0])
    joined.estimators_ = [tree for forest in forests for tree in forest.estimators_]
    joined.n_estimators = len(joined.estimators_)
    for name in ("_n_samples", "_n_samples_bootstrap", "_sample_weight"):
        joined.__dict__.pop(name, None)
    return joined


def bags_of(crews: Sequence[Crew], n_partitions: int) -> Membership:
    """Return which tree may score the rows of which partition, with partitions as examples."""
    may_score = np.ones((len(crews), n_partitions), bool)
    may_score[np.arange(len(crews)), [crew.partition for crew in crews]] = False
    return Membership.from_dense(np.repeat(may_score, [crew.n_trees for crew in crews], axis=0))


@attrs.frozen(eq=False, slots=False)
class PartitionScorer(EnsembleScorer):
    """Scores new objects with the trees of all partitions, or of all but one.

    ``membership`` says which tree may score the rows of which partition; ``homes`` (m,) are the
    partitions of the first m calibration examples, those that may be left out.
    """

    transformer: Any = attrs.field(default=None, kw_only=True)
    membership: Membership = attrs.field(validator=attrs.validators.instance_of(Membership))
    homes: IntArray = attrs.field()
    subforest: Subforest = attrs.field()
    seed: int = attrs.field(validator=number(0, 2**32, integer=True))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        membership, trees = self.membership, self.answers.n_trees
        require(len(membership) == trees, f"membership must be of {trees} trees")
        scored = membership.counts().min() > 0
        require(scored, "every partition must have a tree that may score")
        check_array(self.homes, "homes", (None,), "i", 0, membership.n - 1)
        check_option(self.subforest, Subforest, "subforest")
        sound = self.subforest == "all" or len(self.homes)
        require(sound, "homes must be of one example or more")

    small_ensemble = False

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the scores of the rows of X; every sample has the same weight."""
        rows = self._rows(X)
        if self.subforest == "all":
            yield SampledScores(self.answers.mean(rows), None, 1)
            return
        hashes = hash_rows(self.answers.table(rows))
        left_out = draw_examples(hashes, self.seed, len(self.homes))
        scores = self.answers.mean(rows, self.membership, self.homes[left_out])
        yield SampledScores(scores, left_out, 1)


def bottom_sample(keys: NDArray[np.uint64], size: int) -> IntArray:
    """Return where the ``size`` smallest keys are, in their order: a sample that adds up.

    Of keys drawn at random the smallest of all are among the smallest of each part.
    """
    if len(keys) > size:
        smallest = np.argpartition(keys, size)[:size]
        return smallest[np.argsort(keys[smallest], kind="stable")]
    return np.argsort(keys, kind="stable")
