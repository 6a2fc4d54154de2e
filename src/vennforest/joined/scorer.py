"""Out of bag with the new object in the bags: every example is treated as the object is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import attrs
import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils.class_weight import compute_class_weight

from vennforest._state import stored
from vennforest._validation import CodeArray, FloatArray, IntArray, array, number, require
from vennforest.forest import BagsError, Members, Membership, kind_of
from vennforest.forest.leaves import LeafIndex
from vennforest.forest.membership import samples_of
from vennforest.forest.packed import ForestAnswers
from vennforest.joined import join_kernels
from vennforest.joined.bounds import JoinedBlock
from vennforest.sources.base import SampledScores, TrainingData, last_step
from vennforest.sources.out_of_bag import (
    MOST_DRAWS,
    OWN_SCORERS,
    EnsembleScorer,
    OwnScorer,
    typical,
)
from vennforest.sources.row_hashes import HashArray, hash_rows

Result = TypeVar("Result")


@dataclass(frozen=True)
class Bags:
    """What the bags of a forest contain, and what a further object's would.

    ``example_weight`` (n,): what one draw of an example weighs in every tree's leaves; None: 1;
    ``units`` (n_trees, k): what one of a further object weighs, by its label; ``rates`` (k,): the
    probability that one of the ``n_drawn`` draws of a bag takes it.
    """

    forest: Any
    codes: CodeArray
    example_weight: FloatArray | None
    units: FloatArray
    rates: FloatArray
    n_drawn: int

    @classmethod
    def read(cls, forest: Any, data: TrainingData) -> Bags:
        """Read the bags of a forest that was fitted to the data.

        scikit-learn draws in proportion to sample and class weights from version 1.9 on; before,
        every example is drawn in the same way, and the leaves contain the weights.
        """
        n, k = len(data), len(data.classes)
        subsample = forest.class_weight == "balanced_subsample"
        units = np.ones((len(forest.estimators_), k))
        drawn, n_drawn = True, 0
        for t, samples in enumerate(samples_of(forest, n)):
            counts = np.bincount(samples, minlength=n)
            n_drawn = len(samples)
            if subsample:
                units[t] = _balanced(counts, data.codes, k)
            tree = forest.estimators_[t].tree_
            held = tree.weighted_n_node_samples[0] * tree.value[0, 0]
            of_draws = np.bincount(data.codes, counts, k) * units[t]
            drawn = drawn and bool(np.allclose(held, of_draws, rtol=1e-6))
        of_object = _class_weights(forest, data, data.weight if drawn else None)
        weight = of_object[data.codes]
        weight = weight if data.weight is None else weight * data.weight
        if drawn:
            # As any example of its weight is drawn: n + 1 places for n draws would be farther off.
            return cls(forest, data.codes, None, units, of_object / weight.sum(), n_drawn)
        return cls(forest, data.codes, weight, units * of_object, np.full(k, 1 / n), n_drawn)

    def weights(self) -> Iterator[FloatArray]:
        """Yield for each tree what each example weighs in its leaves, (n,)."""
        n = len(self.codes)
        subsample = self.forest.class_weight == "balanced_subsample"
        for samples in samples_of(self.forest, n):
            counts = np.bincount(samples, minlength=n)
            weight = counts.astype(np.float64)
            if self.example_weight is not None:
                weight *= self.example_weight
            if subsample:
                weight *= _balanced(counts, self.codes, self.units.shape[1])[self.codes]
            yield weight

    def thresholds(self) -> NDArray[np.uint64]:
        """Return the distribution of an object's draws, as ``draw_bag`` wants it."""
        rates = self.rates[:1] if (self.rates == self.rates[0]).all() else self.rates
        return binomial_thresholds(self.n_drawn, rates)


def binomial_thresholds(n: int, rates: FloatArray) -> NDArray[np.uint64]:
    """Return 2**64 times the probabilities of at most 0, 1, ... successes, (len(rates), m)."""
    mean = n * rates.max()
    most = min(n, int(mean + 12 * np.sqrt(mean)) + 40)
    below: FloatArray = np.asarray(stats.binom.cdf(np.arange(most + 1), n, rates[:, None]))
    return thresholds_of(below)


def thresholds_of(below: FloatArray) -> NDArray[np.uint64]:
    """Return probabilities of at most 0, 1, ... as ``draw_bag`` wants them."""
    below = below[:, : int((below < 1).any(axis=0).sum())] if (below < 1).any() else below[:, :1]
    return (np.minimum(below, 1 - 2.0**-53) * 2.0**64).astype(np.uint64)


def _class_weights(forest: Any, data: TrainingData, weight: FloatArray | None) -> FloatArray:
    """Return the weight of each class, (k,), as far as it is the same for all trees."""
    kind = None if forest.class_weight == "balanced_subsample" else forest.class_weight
    counted = {} if weight is None else {"sample_weight": weight}
    weights: FloatArray = compute_class_weight(kind, classes=data.classes, y=data.y, **counted)
    return weights


def _balanced(counts: IntArray, codes: CodeArray, k: int) -> FloatArray:
    """Return the class weights of ``balanced_subsample`` for a bag of these counts.

    A class that is not in the bag gets what it would have if it were, once.
    """
    drawn = np.bincount(codes, weights=counts, minlength=k)
    weights: FloatArray = counts.sum() / ((drawn > 0).sum() * np.maximum(drawn, 1))
    return weights


UNITS = (math.lcm(*range(1, 31)), math.lcm(*range(1, 29)))
"""Answers of trees are whole multiples of one part in 2.3e12, or in 8e10 with many trees.

So those of leaves with up to 30 (28) observations are exact, and so are their sums: scores that are
equal as fractions are equal, from whichever leaves they come.
"""

OBJECTS = 128
"""New objects that one thread takes at once."""

ROOM = 1 << 18
"""Changed scores that are held at once, at least those of one object."""


@stored("joined-scorer")
@attrs.frozen(eq=False, slots=False)
class JoinedScorer(EnsembleScorer):
    """Scores new objects that are in the bags of some trees, as every calibration example is.

    ``thresholds`` (1, n) or (k, n): 2**64 times the probability that a bag contains an object at
    most 0, 1, ... times, for all labels or for each; ``units`` as of `Bags`.
    """

    index: LeafIndex = attrs.field(validator=attrs.validators.instance_of(LeafIndex))
    thresholds: NDArray[np.uint64] = attrs.field(validator=array(None, None, kinds="u"))
    units: FloatArray = attrs.field(validator=array(None, None, low=0))
    n_calibration: int = attrs.field(validator=number(1, 2**31 - 1, integer=True))
    n_draws: int = attrs.field(validator=number(1, MOST_DRAWS, integer=True))
    seed: int = attrs.field(validator=number(0, 2**32, integer=True))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        require(isinstance(self.answers, ForestAnswers), "members must be of a forest")
        forest, index, n = self.members.ensemble, self.index, self.n_calibration
        trees = [tree.tree_ for tree in forest.estimators_]
        nodes, k = sum(tree.node_count for tree in trees), len(forest.classes_)
        require(len(index.totals) == nodes, f"index must be of {nodes} nodes")
        seen = np.bincount(index.examples, minlength=n)
        require(len(seen) == n, f"index must be of {n} examples")
        require(seen.min() > 0, "index must leave a tree to every example")
        thresholds = self.thresholds
        require(len(thresholds) in (1, k), f"thresholds must be of {k} labels")
        require(thresholds.dtype == np.uint64, "thresholds must be of type uint64")
        require(thresholds.shape[1], "thresholds must have one or more columns")
        require((thresholds[:, 1:] >= thresholds[:, :-1]).all(), "thresholds must not decrease")
        require(self.units.shape == (len(trees), k), f"units must be of {len(trees)} trees")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}

    @property
    def answers(self) -> ForestAnswers:
        """The trees."""
        return cast("ForestAnswers", self.members.answers)

    @property
    def n_examples(self) -> int:
        """Number of calibration examples."""
        return self.n_calibration

    @property
    def _unit(self) -> float:
        return float(UNITS[0] if UNITS[0] * self.answers.n_trees < 2**53 else UNITS[1])

    @property
    def _hard(self) -> bool:
        return bool(self.answers.votes == "hard")

    @cached_property
    def _table(self) -> FloatArray:
        """What each distribution answers, (n_distinct, c), in units."""
        packed = self.answers.packed
        n, k = packed.distributions.shape
        table = np.empty((n, 1 if k == 2 else k))
        join_kernels.tabulate(packed.distributions, self._hard, self._unit, table)
        return table

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Sums of out-of-bag answers (n, c) of the calibration examples, and their number (n,)."""
        table, n = self._table, self.n_calibration
        sums, counts = np.zeros((n, table.shape[1])), np.zeros(n)
        join_kernels.sum_answers(
            self.answers.packed.nodes,
            table,
            self.index.begins,
            self.index.examples,
            sums,
            counts,
        )
        return sums, counts

    subforest = "joined"

    @cached_property
    def _typical(self) -> Membership:
        examples = self.index.examples
        free = np.zeros((self.answers.n_trees, self.n_calibration), np.bool_)
        nodes = np.searchsorted(self.index.begins, np.arange(len(examples)), "right") - 1
        sizes = [tree.tree_.node_count for tree in self.answers.ensemble.estimators_]
        free[np.searchsorted(np.cumsum(sizes), nodes, "right"), examples] = True
        return Membership.from_dense(free[:, typical(self.n_calibration)])

    def calibration_scores(self) -> FloatArray:
        """Return the out-of-bag scores of the calibration examples, (n,) or (n, k)."""
        sums, counts = self._sums
        scores: FloatArray = sums / (counts * self._unit)[:, None]
        return scores[:, 0].copy() if scores.shape[1] == 1 else scores

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the scores of the rows of X; every sample has the same weight."""
        rows = self._rows(X)
        hashes = hash_rows(self.answers.table(rows))
        for draw in range(self.n_draws):
            joined = partial(self._map, rows, hashes, draw)
            # Where weights of classes decide how often an object is drawn, so do the tentative
            # labels: then its score is the mean over these.
            means = joined(lambda block: block.scores.mean(axis=1), alone=True)
            yield SampledScores(np.concatenate(means), None, 1, joined)

    def _map(
        self,
        rows: Any,
        hashes: HashArray,
        draw: int,
        function: Callable[[JoinedBlock], Result],
        alone: bool = False,
    ) -> list[Result]:
        """Return what a function says of each block of new objects, in their order.

        All that they change would not fit into memory. ``alone``: the blocks contain the scores of
        the objects and nothing that they change.
        """

        def part(start: int) -> list[Result]:
            some = slice(start, start + OBJECTS)
            blocks = self.blocks(type(rows)(rows.table[some]), hashes[some], draw, alone)
            return [function(block) for block in blocks]

        starts = range(0, len(hashes), OBJECTS)
        n_jobs = min(joblib.effective_n_jobs(self.answers.n_jobs), len(starts))
        if n_jobs <= 1:
            return [made for start in starts for made in part(start)]
        work = joblib.Parallel(n_jobs=n_jobs, require="sharedmem")
        return [made for some in work(map(joblib.delayed(part), starts)) for made in some]

    def blocks(
        self, rows: Any, hashes: HashArray, draw: int, alone: bool = False
    ) -> Iterator[JoinedBlock]:
        """Yield the rows, all together or in pieces, with what their joining changes."""
        packed, index, table = self.answers.packed, self.index, self._table
        leaves = packed.leaves(rows, n_jobs=1)
        m, k, c = len(leaves), len(packed.classes_), table.shape[1]
        sums, counts = self._sums
        capacity = 0 if alone else max(ROOM, k * self.n_calibration)
        slots = np.full(self.n_calibration, -1, np.int64)
        start = 0
        while start < m:
            scores, offsets = np.empty((m * k, c)), np.empty(m * k + 1, np.int64)
            examples, changed = np.empty(capacity, np.int32), np.empty((capacity, c))
            stop = join_kernels.join(
                (leaves, hashes),
                (np.uint64(self.seed), draw, self.thresholds, self.units),
                (packed.nodes, packed.distributions, table),
                (index.totals, index.begins, index.examples),
                (sums, counts),
                (self._hard, self._unit, alone),
                start,
                slots,
                scores,
                offsets,
                (examples, changed),
            )
            used = offsets[stop * k]
            own = scores[start * k : stop * k].reshape(stop - start, k, c)
            yield JoinedBlock(
                own[:, :, 0].copy() if c == 1 else own,
                offsets[start * k : stop * k + 1],
                examples[:used].copy(),
                changed[:used, 0].copy() if c == 1 else changed[:used].copy(),
            )
            start = stop


def check_joins(estimator: Any, data: TrainingData) -> None:
    """Refuse what new objects cannot join."""
    last, way_out = last_step(estimator), 'use subforest="exchangeable"'
    kind = kind_of(last)
    if kind is None or not kind.joins:
        raise ValueError(
            'estimator must be a random forest or extra trees for subforest="joined", since the '
            f"new object joins the leaves of their trees, got {type(last).__name__}: {way_out}"
        )
    if last.monotonic_cst is not None:
        raise ValueError(
            'estimator must have no monotonic_cst for subforest="joined", since the leaves of such '
            f"trees do not contain class frequencies, got {last.monotonic_cst!r}: {way_out}"
        )
    if data.groups is not None:
        raise ValueError(
            'groups must be None for subforest="joined", since the new object joins the bags '
            f"alone, got an array: {way_out}"
        )


def joined_scorer(
    transformer: Any,
    members: Members,
    data: TrainingData,
    rows: Any,
    membership: Membership,
    kept: IntArray,
    n_draws: int,
    seed: int,
) -> JoinedScorer:
    """Return the scorer of a forest fitted to data, whose calibration examples are ``kept``."""
    answers = cast("ForestAnswers", members.answers)
    bags = Bags.read(answers.ensemble, data)
    numbers = np.full(len(data), -1, np.intp)
    numbers[kept] = np.arange(len(kept))
    try:
        index = LeafIndex.build(
            answers.packed, rows, data.codes, bags.weights(), membership, numbers, answers.n_jobs
        )
    except ValueError as error:
        raise BagsError(str(error)) from error
    return JoinedScorer(
        transformer, members, index, bags.thresholds(), bags.units, len(kept), n_draws, seed
    )


OWN_SCORERS["joined"] = OwnScorer(check_joins, joined_scorer)
