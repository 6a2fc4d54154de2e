"""A forest over the partitions of a data set that stay where they are, calibrated out of bag.

Three passes over the partitions: count rows and labels; grow the trees of each partition; score
its rows by the trees of the others. Trees, counts of classes at scores, and drawn examples travel;
rows do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from vennforest._validation import FloatArray, InputError, IntArray
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.fitting import check_parameters, resolve_estimator
from vennforest.counts import MAX_SCORES, ScoreCounts
from vennforest.engines._partitions import (
    Crew,
    PartitionFold,
    bags_of,
    bottom_sample,
    check_forest,
    grow_crew,
    join_forests,
    plan_crews,
)
from vennforest.engines._workers import (
    Batches,
    Labelled,
    Run,
    Shipment,
    classes_of,
    read_labelled,
    sum_of,
)
from vennforest.forest import Members
from vennforest.sources import TrainingData, with_seed
from vennforest.sources.row_hashes import HashArray

MAX_DRAWN = 1 << 17
"""Examples that travel by themselves: all where there are no more, else those for leaving out."""

Read = Callable[[Batches, int], Labelled]


class Content(NamedTuple):
    """Number of rows of a partition, distinct labels, and the sum of the hashes of its rows."""

    n_rows: int
    labels: NDArray[Any]
    checksum: int


class Tally(NamedTuple):
    """Out-of-bag scores of a partition: those of drawn rows, with their keys, and counts."""

    scores: FloatArray
    codes: IntArray
    rows: IntArray
    keys: HashArray
    counts: ScoreCounts


def fit_partitions(
    model: CalibratedClassifier, run: Run, features: Sequence[str], target: str
) -> CalibratedClassifier:
    """Return a fitted clone of a classifier, with a forest grown on the partitions of an engine."""
    _check_model(model)
    fitted: CalibratedClassifier = clone(model)
    random_state = check_random_state(model.random_state)
    estimator = with_seed(resolve_estimator(model.estimator, model.n_jobs), random_state)
    check_forest(estimator)
    seed = int(random_state.randint(2**31 - 1))
    read: Read = partial(read_labelled, list(features), target)
    contents: dict[int, Content] = run(partial(_look, read))
    numbers = sorted(number for number, content in contents.items() if content.n_rows)
    if len(numbers) < 2:
        raise InputError(
            f"the data must have two partitions with rows or more, got {len(numbers)}: repartition "
            "it, or fit a CalibratedClassifier to it as one table"
        )
    classes = classes_of({number: contents[number].labels for number in numbers}, target)
    if len(classes) < 2:
        raise InputError(
            f"column {target!r} must contain two classes or more, got {classes.tolist()}"
        )
    crews = plan_crews(estimator, len(numbers))
    crew_of = {numbers[crew.partition]: crew for crew in crews}
    forests = run(partial(_grow, read, contents, estimator, classes, crew_of))
    forest = join_forests([forests[numbers[crew.partition]] for crew in crews])
    forest.feature_names_in_ = np.array(features, dtype=object)
    membership = bags_of(crews, len(numbers))
    # Workers score one partition each, with one thread.
    shipment = Shipment((Members(forest, model.votes, 1), membership))
    n_rows = sum(content.n_rows for content in contents.values())
    leaves_out = model.subforest == "exchangeable"
    n_drawn = MAX_DRAWN if leaves_out or n_rows <= MAX_DRAWN else 0
    home_of = {number: home for home, number in enumerate(numbers)}
    tallies = run(partial(_tally, read, contents, shipment, classes, home_of, n_drawn, seed))
    parts = [tallies[number] for number in numbers]
    scores, codes, weight, homes = _examples(parts, leaves_out or n_rows <= MAX_DRAWN)
    members = Members(forest, model.votes, model.n_jobs)
    fold = PartitionFold(
        model=forest,
        scores=scores,
        codes=codes,
        weight=weight,
        classes=classes,
        members=members,
        membership=membership,
        homes=homes,
        subforest=model.subforest,
        seed=seed,
    )
    reason = f"the forest is grown on {len(numbers)} partitions where they are"
    return fitted._calibrate(classes, [fold], "partitions", reason)


def _check_model(model: CalibratedClassifier) -> None:
    if not isinstance(model, CalibratedClassifier):
        raise InputError(f"model must be a CalibratedClassifier, got {type(model).__name__}")
    check_parameters(model)
    if model.by is not None:
        raise InputError("by must be left out where trees are grown on partitions of an engine")
    if model.calibrate_on not in ("auto", "oob"):
        raise InputError(
            'calibrate_on must be "auto" or "oob" where trees are grown on partitions of an '
            f"engine, got {model.calibrate_on!r}"
        )


def _look(read: Read, batches: Batches, number: int) -> Content:
    """Return what a partition contains, whatever the order of its rows."""
    return _content(read(batches, number))


def _content(rows: Labelled) -> Content:
    checksum = int(rows.hashes().sum(dtype=np.uint64)) if len(rows.y) else 0
    return Content(len(rows.y), np.unique(rows.y), checksum)


def _read_again(read: Read, expected: Content, batches: Batches, number: int) -> Labelled:
    """Return the rows of a partition; refuse rows that are not those of the first pass."""
    rows = read(batches, number)
    content = _content(rows)
    if (content.n_rows, content.checksum) != (expected.n_rows, expected.checksum):
        change = f"{expected.n_rows:,} rows and then {content.n_rows:,}"
        if content.n_rows == expected.n_rows:
            change = "rows with other values"
        raise InputError(
            f"partition {number} must contain the same rows each time that it is read, got "
            f"{change}: store or persist the data before fitting"
        )
    return rows


def _grow(
    read: Read,
    contents: dict[int, Content],
    estimator: Any,
    classes: NDArray[Any],
    crew_of: dict[int, Crew],
    batches: Batches,
    number: int,
) -> Any:
    """Return the trees of a partition, None of one without trees."""
    if number not in crew_of:
        return None
    rows = _read_again(read, contents[number], batches, number)
    y = rows.y.astype(classes.dtype)
    data = TrainingData(rows.X, np.searchsorted(classes, y), classes)
    return grow_crew(estimator, data, crew_of[number])


def _tally(
    read: Read,
    contents: dict[int, Content],
    shipment: Shipment,
    classes: NDArray[Any],
    home_of: dict[int, int],
    n_drawn: int,
    seed: int,
    batches: Batches,
    number: int,
) -> Tally | None:
    """Return the scores of a partition's rows by the trees of others, None of an empty one."""
    if number not in home_of:
        return None
    rows = _read_again(read, contents[number], batches, number)
    members, membership = shipment.open()
    features = members.ensemble.feature_names_in_.tolist()
    X = members.check(pa.Table.from_arrays([pa.array(x) for x in rows.X.T], names=features))
    scores = members.mean(X, membership, np.full(len(rows.y), home_of[number]))
    codes = np.searchsorted(classes, rows.y.astype(classes.dtype))
    keys = np.random.default_rng((seed, number)).integers(0, 2**64, len(codes), dtype=np.uint64)
    drawn = bottom_sample(keys, n_drawn)
    others = np.delete(np.arange(len(codes)), drawn)
    counts = _counted(scores[others], codes[others], len(classes))
    return Tally(scores[drawn], codes[drawn], drawn, keys[drawn], counts.coarsen(MAX_SCORES))


def _counted(scores: FloatArray, codes: IntArray, k: int) -> ScoreCounts:
    return ScoreCounts.from_scores(scores, codes, classes=np.arange(k))


def _examples(
    tallies: Sequence[Tally], are_drawn: bool
) -> tuple[FloatArray, IntArray, FloatArray | None, IntArray]:
    """Return calibration examples with their weights, and the homes of those that may be left out.

    Drawn examples come first, each by itself in the order of partitions and rows; the others are
    counted.
    """
    counts = sum_of([tally.counts for tally in tallies])
    assert counts is not None
    homes = np.repeat(np.arange(len(tallies)), [len(tally.keys) for tally in tallies])
    keys, rows, scores, codes = (
        np.concatenate([getattr(tally, name) for tally in tallies])
        for name in ("keys", "rows", "scores", "codes")
    )
    is_chosen = np.zeros(len(keys), bool)
    is_chosen[bottom_sample(keys, MAX_DRAWN if are_drawn else 0)] = True
    counts = counts + _counted(scores[~is_chosen], codes[~is_chosen], len(counts.classes))
    chosen = np.flatnonzero(is_chosen)
    chosen = chosen[np.lexsort([rows[chosen], homes[chosen]])]
    if not len(counts):
        return scores[chosen], codes[chosen], None, homes[chosen]
    counts = counts.coarsen(MAX_SCORES)
    score, code = np.nonzero(counts.weights)
    return (
        np.concatenate([scores[chosen], counts.scores[score]]),
        np.concatenate([codes[chosen], code]),
        np.concatenate([np.ones(len(chosen)), counts.weights[score, code]]),
        homes[chosen],
    )
