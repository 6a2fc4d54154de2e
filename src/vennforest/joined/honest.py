"""Honest trees in Poisson bags: the source whose joined bounds are valid exactly."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, Unpack, cast

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from vennforest._state import stored
from vennforest._validation import FloatArray, check_count, check_option
from vennforest.forest import Members, Membership
from vennforest.forest.leaves import LeafIndex, class_weights
from vennforest.forest.packed import ForestAnswers, Votes
from vennforest.joined.scorer import JoinedScorer, check_joins, thresholds_of
from vennforest.sources.base import Drawn, Fold, TrainingData, taken_apart, transform_rows


@stored("honest-forest")
@attrs.frozen
class HonestForest:
    """Grow the trees on one part of the data; fill their leaves from the rest, which calibrates.

    A value of ``calibrate_on`` for random forests and extra trees. The splits of an honest tree
    know nothing of the examples in its leaves (Athey & Imbens 2016). Here each tree's leaves
    contain a bag in which every example of the rest is as often as a Poisson number of mean 1 says,
    drawn for each by itself; new objects join the bags as with ``subforest="joined"``. So
    calibration examples and new objects are treated the same in every detail, and Theorem 1 of Vovk
    & Petej (2014) is exact, for any size of the data (``docs/joined.md``). Steps of a pipeline
    before the forest are fitted to the part that the trees are grown on, and may use its labels.

    Parameters
    ----------
    grow_size : float, default=0.5
        Share of the examples that the trees are grown on, above 0 and below 1.
    votes, n_draws
        As of `CalibratedClassifier`; ``n_draws`` is a number. The theorem speaks of one draw.

    Notes
    -----
    ``estimator_`` is the forest with the refilled leaves. A leaf that a bag leaves empty keeps the
    class frequencies it was grown with. Leaves contain frequencies without class weights.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(calibrate_on=HonestForest(), random_state=0)
    >>> model.fit(X[:400], y[:400]).predict_proba(X[400:402]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    grow_size: float = 0.5
    votes: Votes = "soft"
    n_draws: int = 1

    def __attrs_post_init__(self) -> None:
        check_option(self.votes, Votes, "votes")
        check_count(self.n_draws, "n_draws")
        if not isinstance(self.grow_size, Real) or not 0 < self.grow_size < 1:
            raise ValueError(f"grow_size must lie between 0 and 1, got {self.grow_size!r}")

    def folds(self, estimator: Any, data: TrainingData, **given: Unpack[Drawn]) -> list[Fold]:
        """Return one fold, whose calibration examples are those that fill the leaves."""
        check_joins(estimator, data)
        random_state, n_jobs = given["random_state"], given["n_jobs"]
        data = data.present()
        order = random_state.permutation(len(data))
        grown = int(self.grow_size * len(data))
        # Not stratified: which examples fill the leaves must not depend on labels.
        first, rest = data.rows(np.sort(order[:grown])), data.rows(np.sort(order[grown:]))
        missing = np.setdiff1d(np.arange(len(data.classes)), first.codes)
        if len(missing) or not len(rest):
            raise ValueError(
                "y must contain every class among the examples that the trees are grown on, got "
                f"none of {data.classes[missing].tolist()} among {grown}: give more examples, "
                "or another grow_size or random_state"
            )
        # A clone: the leaves are written to.
        model = first.fit(estimator)
        transformer, forest = taken_apart(model)
        seen = transform_rows(transformer, rest.X)
        bags = [random_state.poisson(1.0, len(rest)).astype(np.uint16) for _ in forest.estimators_]
        _fill(forest, ForestAnswers(forest), seen, rest, bags)
        members = Members(forest, self.votes, n_jobs)  # packed after its leaves were filled
        answers = cast("ForestAnswers", members.answers)
        membership = Membership.from_dense(np.array([bag == 0 for bag in bags]))
        kept = np.flatnonzero(membership.counts() > 0)
        if not len(kept):
            raise ValueError("estimator must leave examples out of bag, got none: grow more trees")
        numbers = np.full(len(rest), -1, np.intp)
        numbers[kept] = np.arange(len(kept))
        index = LeafIndex.build(
            answers.packed,
            answers.check(seen),
            rest.codes,
            _weights(bags, rest.weight),
            membership,
            numbers,
            n_jobs,
        )
        scorer = JoinedScorer(
            transformer,
            members,
            index,
            thresholds_of(stats.poisson.cdf(np.arange(40), 1.0)[None]),
            np.ones((len(bags), len(data.classes))),
            len(kept),
            self.n_draws,
            given["seed"],
        )
        chosen = rest if len(kept) == len(rest) else rest.rows(kept)
        return [chosen.fold(model, scorer.calibration_scores(), scorer)]


def _weights(bags: list[NDArray[np.uint16]], weight: FloatArray | None) -> Iterator[FloatArray]:
    """Yield for each tree what each example weighs in its leaves."""
    for bag in bags:
        yield bag.astype(np.float64) if weight is None else bag * weight


def _fill(
    forest: Any,
    answers: ForestAnswers,
    seen: Any,
    rest: TrainingData,
    bags: list[NDArray[np.uint16]],
) -> None:
    """Put the class frequencies of the bags into the leaves of a forest's trees."""
    k = len(rest.classes)
    rows = answers.check(seen).table
    for model, weight in zip(forest.estimators_, _weights(bags, rest.weight), strict=True):
        tree = model.tree_
        nodes = tree.apply(rows).astype(np.intp)
        contents = class_weights(nodes, rest.codes, weight, tree.node_count, k)
        total = contents.sum(axis=1)
        filled = total > 0
        tree.value[filled, 0] = contents[filled] / total[filled, None]
        tree.weighted_n_node_samples[tree.children_left < 0] = total[tree.children_left < 0]
