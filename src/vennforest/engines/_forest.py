"""A forest over the partitions of a data set that stay where they are, calibrated out of bag.

Three passes. Each partition says what it contains; crews of trees are grown, each where its
partitions are; then every partition scores its rows by the trees of the others. Trees travel, and
counts of classes at scores, and drawn examples for leaving out; rows do not, unless a tree is grown
on several partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from vennforest._validation import FloatArray, InputError, IntArray
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.settings import Settings, resolve_estimator
from vennforest.counts import ScoreCounts
from vennforest.engines._partitions import (
    Crew,
    PartitionScorer,
    bags_of,
    bottom_sample,
    check_forest,
    grow_crew,
    join_forests,
    plan_crews,
)
from vennforest.engines._workers import Labelled, Shipment, labels_of_all, read_labelled
from vennforest.forest import Members
from vennforest.sources import Fold, TrainingData, with_seed
from vennforest.sources.row_hashes import HashArray

MOST_SCORES = 1 << 20
"""Distinct scores up to which the counts that calibrate two classes are exact."""

MOST_DRAWN = 1 << 17
"""Examples that travel by themselves: all where there are no more, else those for leaving out."""

MOST_VECTORS = 1 << 20
"""Rows that calibrate more than two classes: all, or so many of them drawn at random."""

Batches = Iterable["pa.RecordBatch"]
Read = Callable[[Batches, int], Labelled]
PartitionTask = Callable[[Batches, int], Any]
CrewTask = Callable[[Sequence[tuple[int, Batches]], int], Any]


class Backend(Protocol):
    """What an engine does: runs a function where partitions are."""

    def each(self, task: PartitionTask) -> dict[int, Any]:
        """Return what a function says of each partition, by the partition's number."""
        ...

    def crews(self, task: CrewTask, held: Sequence[tuple[int, ...]]) -> list[Any]:
        """Return what a function says of each list of partitions, in the order of the lists."""
        ...


class Seen(NamedTuple):
    """What a partition holds: rows, distinct labels, and the sum of the hashes of its rows."""

    n: int
    labels: NDArray[Any]
    checksum: int


class Tally(NamedTuple):
    """What a partition's out-of-bag scores come to, and rows drawn from it."""

    counts: ScoreCounts | None
    scores: FloatArray
    codes: IntArray
    rows: IntArray
    keys: HashArray


def fit_partitions(
    model: CalibratedClassifier, backend: Backend, features: Sequence[str], target: str
) -> CalibratedClassifier:
    """Return a fitted clone of a classifier, its forest grown on the partitions of an engine.

    The model is not fitted, over a random forest, extra trees or a mixed forest, and
    ``calibrate_on`` is "auto" or "oob"; features are columns of numbers.
    """
    _check_model(model)
    fitted: CalibratedClassifier = clone(model)
    random_state = check_random_state(model.random_state)
    estimator = with_seed(resolve_estimator(model.estimator, model.n_jobs), random_state)
    check_forest(estimator)
    seed = int(random_state.randint(2**31 - 1))
    read: Read = partial(read_labelled, list(features), target)
    seen: dict[int, Seen] = backend.each(partial(_look, read))
    numbers = sorted(number for number, one in seen.items() if one.n)
    if len(numbers) < 2:
        raise InputError(
            f"the data must have two partitions with rows or more, got {len(numbers)}: repartition "
            "it, or fit a CalibratedClassifier to it as one table"
        )
    classes = labels_of_all(((number, seen[number].labels) for number in numbers), target)
    if len(classes) < 2:
        raise InputError(
            f"column {target!r} must contain two classes or more, got {classes.tolist()}"
        )
    crews = plan_crews(estimator, len(numbers))
    held = [(numbers[crew.partition],) for crew in crews]
    forest = join_forests(
        backend.crews(partial(_grow, read, seen, estimator, classes, crews), held)
    )
    forest.feature_names_in_ = np.array(features, dtype=object)
    membership = bags_of(crews, len(numbers))
    members = Members(forest, model.votes, model.n_jobs)
    # Workers score one partition each: threads would be in each other's way.
    shipped = Shipment((Members(forest, model.votes, 1), membership))
    homes_of = {number: home for home, number in enumerate(numbers)}
    found = backend.each(partial(_tally, read, seen, shipped, classes, homes_of, MOST_DRAWN, seed))
    tallies: list[Tally] = [found[number] for number in numbers]
    leaves_out = model.subforest == "exchangeable"
    scores, codes, weight, homes = _examples(tallies, len(classes), leaves_out)
    scorer = PartitionScorer(members, membership, homes, model.subforest, seed)
    part = Fold(forest, scores, codes, weight, scorer)
    why = f"the forest is grown on {len(numbers)} partitions where they are"
    return fitted._calibrate(classes, [part], "partitions", why)


def _check_model(model: CalibratedClassifier) -> None:
    if not isinstance(model, CalibratedClassifier):
        raise InputError(f"model must be a CalibratedClassifier, got {type(model).__name__}")
    Settings.of(model)
    if model.by is not None:
        raise InputError("by must be left out where trees are grown on partitions of an engine")
    if model.calibrate_on not in ("auto", "oob"):
        raise InputError(
            'calibrate_on must be "auto" or "oob" where trees are grown on partitions of an '
            f"engine, got {model.calibrate_on!r}"
        )


def _look(read: Read, batches: Batches, number: int) -> Seen:
    """Return what a partition holds, whatever the order of its rows."""
    return _seen(read(batches, number))


def _seen(rows: Labelled) -> Seen:
    total = int(rows.hashes().sum(dtype=np.uint64)) if len(rows.y) else 0
    return Seen(len(rows.y), np.unique(rows.y), total)


def _checked(read: Read, before: Seen, batches: Batches, number: int) -> Labelled:
    """Return the rows of a partition, if they are those that were there before."""
    rows = read(batches, number)
    now = _seen(rows)
    if (now.n, now.checksum) != (before.n, before.checksum):
        raise InputError(
            f"partition {number} must contain the same rows each time that it is read, so it is "
            f"known which are out of bag, got {before.n} rows and then {now.n} rows, or others: "
            "store or persist the data before fitting"
        )
    return rows


def _grow(
    read: Read,
    seen: dict[int, Seen],
    estimator: Any,
    classes: NDArray[Any],
    planned: Sequence[Crew],
    partitions: Sequence[tuple[int, Batches]],
    crew: int,
) -> Any:
    """Return the forest of one crew, grown on its partitions."""
    parts = [
        _checked(read, seen[number], batches, number)
        for number, batches in sorted(partitions, key=lambda one: one[0])
    ]
    y = np.concatenate([part.y for part in parts]).astype(classes.dtype)
    X = np.concatenate([part.X for part in parts])
    return grow_crew(
        estimator, TrainingData(X, y, np.searchsorted(classes, y), classes), planned[crew]
    )


def _tally(
    read: Read,
    seen: dict[int, Seen],
    shipped: Shipment,
    classes: NDArray[Any],
    homes: dict[int, int],
    draws: int,
    seed: int,
    batches: Batches,
    number: int,
) -> Tally | None:
    """Return what a partition's scores by the trees of others come to; None of an empty one."""
    before = seen[number]
    if not before.n:
        return None
    rows = _checked(read, before, batches, number)
    answers, membership = shipped.open()
    X = answers.check(_named(rows.X, answers.ensemble.feature_names_in_.tolist()))
    scores = answers.mean(X, membership, np.full(before.n, homes[number]))
    codes = np.searchsorted(classes, rows.y.astype(classes.dtype))
    counts, size = None, draws
    if len(classes) == 2:
        counts = ScoreCounts.from_scores(scores, codes, classes=[0, 1])
    else:
        size = MOST_VECTORS
    drawn = np.random.default_rng((seed, number))
    keys = drawn.integers(0, 2**64, before.n, dtype=np.uint64)
    some = bottom_sample(keys, size)
    return Tally(counts, scores[some], codes[some], some, keys[some])


def _named(X: NDArray[np.float32], features: list[str]) -> Any:
    """Return rows with names, as the forest was told them."""
    return pa.Table.from_arrays([pa.array(column) for column in X.T], names=features)


def _examples(
    tallies: Sequence[Tally], k: int, leaves_out: bool
) -> tuple[FloatArray, IntArray, FloatArray | None, IntArray]:
    """Return calibration examples with their weights, and the homes of those that may be left out.

    Drawn examples come first, each by itself; the others are counted.
    """
    size = MOST_DRAWN if k == 2 else MOST_VECTORS
    keys = np.concatenate([tally.keys for tally in tallies])
    chosen = bottom_sample(keys, size)
    homes = np.repeat(np.arange(len(tallies)), [len(tally.keys) for tally in tallies])[chosen]
    rows = np.concatenate([tally.rows for tally in tallies])[chosen]
    scores = np.concatenate([tally.scores for tally in tallies])[chosen]
    codes = np.concatenate([tally.codes for tally in tallies])[chosen]
    order = np.lexsort([rows, homes])  # as they lie
    homes, scores, codes = homes[order], scores[order], codes[order]
    if k > 2:
        return scores, codes, None, homes
    counts = _summed([tally.counts for tally in tallies if tally.counts is not None])
    if len(homes) == counts.total:
        return scores, codes, None, homes
    if not leaves_out:
        homes, scores, codes = homes[:0], scores[:0], codes[:0]
    else:
        drawn = ScoreCounts.from_scores(scores, codes, classes=[0, 1])
        counts = _without(counts, drawn)
    if len(counts) > MOST_SCORES:
        counts = counts.coarsen(MOST_SCORES)
    row, code = np.nonzero(counts.weights)
    x, weight = counts.scores[row], counts.weights[row, code]
    return (
        np.concatenate([scores, x]),
        np.concatenate([codes, code]),
        np.concatenate([np.ones(len(homes)), weight]),
        homes,
    )


def _summed(parts: list[ScoreCounts]) -> ScoreCounts:
    """Return the sum of counts, pair by pair, so no part is merged more than log n times."""
    while len(parts) > 1:
        pairs = [sum(parts[i : i + 2]) for i in range(0, len(parts), 2)]
        parts = [pair for pair in pairs if isinstance(pair, ScoreCounts)]
    return parts[0]


def _without(counts: ScoreCounts, drawn: ScoreCounts) -> ScoreCounts:
    """Return counts less those of some of the examples counted."""
    rest = counts.weights.copy()
    rest[np.searchsorted(counts.scores, drawn.scores)] -= drawn.weights
    rows = rest.any(axis=1)
    return ScoreCounts(counts.classes, counts.scores[rows], rest[rows])
