"""Bags by partition: trees grown on whole partitions, each example scored by those of others."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, Unpack

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from vennforest._state import stored
from vennforest._validation import (
    InputError,
    IntArray,
    check_array,
    check_count,
    check_option,
    number,
    require,
)
from vennforest.forest import Members, Membership
from vennforest.forest.mixed import MixedForestClassifier
from vennforest.forest.packed import FORESTS, Votes
from vennforest.sources.base import Drawn, Fold, SampledScores, TrainingData
from vennforest.sources.out_of_bag import EnsembleScorer
from vennforest.sources.row_hashes import draw_examples, hash_rows

PartitionSubforest = Literal["all", "exchangeable"]
"""Which trees score a new object."""


@stored("partitions")
@attrs.frozen(eq=False)
class Partitions:
    """Grow each tree on whole partitions; score each example by the trees of other partitions.

    A value of ``calibrate_on`` for random forests and extra trees, and what
    ``vennforest.engines`` does where the partitions lie on many machines. The bag of a tree is
    drawn within its own partitions, so every example of the others is out of bag for it. The bounds
    are guaranteed as those of ``calibrate_on="oob"`` are, for partitions that rows fall into by
    chance, or that whole groups do. Where partitions differ (a hospital each, a day each) a
    calibration score tells how the forest does on a partition that it has not seen, while new
    objects of the same partitions are scored by all trees: too cautious, and nothing is proved.

    Parameters
    ----------
    of : int or array-like of shape (n,)
        How many partitions to draw, of nearly equal size (of whole groups where ``groups`` are
        given), or the partition of every row. None, the default: those that an engine has.
    per_tree : int, default=1
        How many partitions a tree is grown on; below the number of partitions.
    subforest : {"all", "exchangeable"}, default="all"
        ``"all"``: every tree scores a new object; ``"exchangeable"``: the trees that are grown on
        other partitions than that of a random calibration example, which then leaves the
        calibration set (Johansson et al. 2018, eqs. 10, 11). With few partitions the first is too
        cautious, since new objects are scored by more trees than calibration examples were.
    votes, n_draws
        As of `CalibratedClassifier`; ``n_draws`` is a number.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(calibrate_on=Partitions(4), random_state=0)
    >>> model.fit(X[:400], y[:400]).predict_proba(X[400:402]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    of: int | ArrayLike | None = None
    per_tree: int = 1
    subforest: PartitionSubforest = "all"
    votes: Votes = "soft"
    n_draws: int = 1

    def __attrs_post_init__(self) -> None:
        check_count(self.per_tree, "per_tree")
        check_count(self.n_draws, "n_draws")
        check_option(self.subforest, PartitionSubforest, "subforest")
        check_option(self.votes, Votes, "votes")

    def folds(self, estimator: Any, data: TrainingData, **given: Unpack[Drawn]) -> list[Fold]:
        """Return one fold."""
        check_forest(estimator)
        every, data = data, data.present()
        home = self._home(data, given["random_state"], every)
        crews = plan(estimator, int(home.max()) + 1, self.per_tree)
        grown = []
        for crew in crews:
            rows = np.concatenate([np.flatnonzero(home == p) for p in crew.partitions])
            grown.append(grow(estimator, data.rows(rows), crew))
        forest = join_forests(grown)
        membership = bags_of(crews, int(home.max()) + 1)
        members = Members(forest, self.votes, given["n_jobs"])
        answers = members.answers
        scores = answers.mean(answers.check(data.X), membership, home)
        scorer = PartitionScorer(
            members, membership, home, self.subforest, self.n_draws, given["seed"]
        )
        return [data.fold(forest, scores, scorer, groups=data.groups)]

    def _home(
        self, data: TrainingData, random_state: np.random.RandomState, every: TrainingData
    ) -> IntArray:
        """Return the partition of each row of data, numbered from 0; ``of`` is of every row."""
        groups = data.groups
        if self.of is None:
            raise InputError(
                "of must be a number of partitions, or the partition of every row, got None, which "
                "is for vennforest.engines"
            )
        if isinstance(self.of, Integral):
            check_count(self.of, "of", 2)
            wanted = int(self.of)
            unit = np.arange(len(data)) if groups is None else groups
            units = int(unit.max(initial=-1)) + 1
            if units < wanted:
                what = "examples" if groups is None else "groups"
                raise ValueError(f"of must be at most {units}, the number of {what}, got {self.of}")
            return (random_state.permutation(units) % wanted).astype(np.intp)[unit]
        given = np.asarray(self.of)
        if given.shape != (len(every),):
            raise ValueError(
                f"of must be a number of partitions or have shape ({len(every)},), the partition "
                f"of every row, got {given.shape}"
            )
        if len(data) < len(every) and every.weight is not None:
            given = given[every.weight > 0]
        home: IntArray = np.unique(given, return_inverse=True)[1].astype(np.intp)
        if home.max(initial=0) < 1:
            raise ValueError("of must name two partitions or more, got one")
        if groups is not None:
            pairs = np.unique(np.column_stack([groups, home]), axis=0)
            if len(pairs) > groups.max() + 1:
                raise ValueError("of must keep every group in one partition, got one that parts it")
        return home


class Crew(NamedTuple):
    """Trees that are grown together: on which partitions, how many, and from which seed."""

    partitions: tuple[int, ...]
    n_trees: int
    seed: int


def check_forest(estimator: Any) -> None:
    """Refuse anything but a plain forest of scikit-learn."""
    if type(estimator) not in (*FORESTS, MixedForestClassifier):
        raise ValueError(
            "estimator must be a RandomForestClassifier or an ExtraTreesClassifier to be grown on "
            f"partitions, got {type(estimator).__name__}: transform the features beforehand"
        )


def plan(estimator: Any, n_partitions: int, per_tree: int) -> list[Crew]:
    """Share the trees of a forest out over partitions, by the forest's ``random_state``.

    There is a crew of trees for each partition (for each tree, where there are fewer), whose trees
    are grown on ``per_tree`` partitions that follow each other in a random order: every partition
    is in the bags of as many crews as any other, or of one more.
    """
    if per_tree >= n_partitions:
        raise ValueError(
            f"per_tree must be below the number of partitions, {n_partitions}, so examples "
            f"are out of bag, got {per_tree}"
        )
    n_trees = int(estimator.n_estimators)
    n_crews = min(n_partitions, n_trees)
    drawn = check_random_state(estimator.random_state)
    order = drawn.permutation(n_partitions)
    seeds = drawn.randint(2**31 - 1, size=n_crews)
    held = [
        tuple(sorted(int(p) for p in np.roll(order, -crew)[:per_tree])) for crew in range(n_crews)
    ]
    always = set(held[0]).intersection(*held[1:])
    if always:
        raise ValueError(
            f"n_estimators must be large enough that no partition is in every tree's bag, got "
            f"{n_trees} with {n_partitions} partitions, {per_tree} a tree"
        )
    return [
        Crew(partitions, n_trees // n_crews + (crew < n_trees % n_crews), int(seed))
        for crew, (partitions, seed) in enumerate(zip(held, seeds, strict=True))
    ]


def grow(estimator: Any, data: TrainingData, crew: Crew) -> Any:
    """Return a forest of the crew's trees, fitted to the rows of its partitions, in their order.

    Its trees know all classes, also those that these partitions lack: a row of weight zero stands
    for each of them, which scikit-learn's trees leave out.
    """
    missing = np.setdiff1d(np.arange(len(data.classes)), data.codes)
    weight = data.weight
    if len(missing):
        n = len(data)
        index = np.concatenate([np.arange(n), np.zeros(len(missing), np.intp)])
        weight = np.ones(n) if weight is None else weight
        weight = np.concatenate([weight, np.zeros(len(missing))])
        y = np.concatenate([data.y, data.classes[missing]])
        X = _safe_indexing(data.X, index)
    else:
        X, y = data.X, data.y
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
    """Return which tree may score the rows of which partition, in the place of examples."""
    free = np.ones((len(crews), n_partitions), bool)
    for row, crew in zip(free, crews, strict=True):
        row[list(crew.partitions)] = False
    return Membership.from_dense(np.repeat(free, [crew.n_trees for crew in crews], axis=0))


@stored("partition-scorer")
@attrs.frozen(eq=False, slots=False)
class PartitionScorer(EnsembleScorer):
    """Scores new objects with the trees of all partitions, or of all but one.

    ``membership`` says which tree may score the rows of which partition; ``homes`` (m,) are the
    partitions of the first m calibration examples, those that may be left out.
    """

    transformer: Any = attrs.field(default=None, kw_only=True)
    membership: Membership = attrs.field(validator=attrs.validators.instance_of(Membership))
    homes: IntArray = attrs.field()
    subforest: PartitionSubforest = attrs.field()
    n_draws: int = attrs.field(validator=number(1, 10_000, integer=True))
    seed: int = attrs.field(validator=number(0, 2**32, integer=True))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        membership, trees = self.membership, self.answers.n_trees
        require(len(membership) == trees, f"membership must be of {trees} trees")
        scored = membership.counts().min() > 0
        require(scored, "every partition must have a tree that may score")
        check_array(self.homes, "homes", (None,), "i", 0, membership.n - 1)
        check_option(self.subforest, PartitionSubforest, "subforest")
        chosen = self.subforest == "all" or len(self.homes)
        require(chosen, "homes must be of one example or more")

    small_ensemble = False

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the scores of the rows of X; every sample has the same weight."""
        rows = self._rows(X)
        if self.subforest == "all":
            yield SampledScores(self.answers.mean(rows), None, 1)
            return
        hashes = hash_rows(self.answers.table(rows))
        for left_out in draw_examples(hashes, self.seed, self.n_draws, len(self.homes)):
            scores = self.answers.mean(rows, self.membership, self.homes[left_out])
            yield SampledScores(scores, left_out, 1)


def bottom_sample(keys: NDArray[np.uint64], size: int) -> IntArray:
    """Return where the ``size`` smallest keys are, in their order: a sample that adds up.

    Of keys drawn at random the smallest of all are among the smallest of each part.
    """
    if len(keys) > size:
        some = np.argpartition(keys, size)[:size]
        return some[np.argsort(keys[some], kind="stable")]
    return np.argsort(keys, kind="stable")
