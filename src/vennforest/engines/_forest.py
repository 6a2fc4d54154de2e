"""Forests grown on partitions, in which each row is scored by the trees of other partitions.

There are three passes over the partitions: read the labels and hash the rows; grow the trees of
each partition; score its rows by the trees of the others. Only trees and counts leave a partition.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from vennforest._messages import shown, warn
from vennforest._validation import FloatArray, InputError
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.parameters import check_parameters, named_estimators
from vennforest.classifier.prediction import FittedClassifier
from vennforest.counts import MAX_SCORES, ScoreCounts
from vennforest.engines._tasks import Batches, Run, classes_of, labels_of, sum_of
from vennforest.forest import FORESTS, Members, MixedForestClassifier
from vennforest.sources import Fold, with_seed
from vennforest.sources.row_hashes import hash_rows
from vennforest.tables.read import as_floats
from vennforest.tables.target import LeftOut, is_valid


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionFold(Fold):
    """A forest grown on partitions, with each row scored by the trees of other partitions."""

    members: Members

    def score(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X by all trees, (m,) or (m, k)."""
        return self.members.mean(self.members.check(X))


def fit_partitions(
    model: CalibratedClassifier, run: Run, features: Sequence[str], target: str
) -> CalibratedClassifier:
    """Return a fitted clone of a classifier, with a forest grown on the partitions of an engine."""
    estimator = with_seed(_forest_of(model), check_random_state(model.random_state))
    columns, votes = [*features, target], model.votes

    # 1. The labels of each partition, and a checksum that ignores the order of rows.
    def look(batches: Batches, number: int) -> tuple[NDArray[Any], int, LeftOut]:
        _, y, checksum, left_out = _read_examples(columns, batches)
        return np.unique(y), checksum, left_out

    contents = run(columns, look)
    numbers = sorted(number for number, (labels, *_) in contents.items() if len(labels))
    for note in sum((left_out for *_, left_out in contents.values()), LeftOut()).notes(target):
        warn(note.rstrip("."))
    if len(numbers) < 2:
        raise InputError(
            f"the data must have at least two partitions with rows, got {len(numbers)}: "
            "repartition it, or fit a CalibratedClassifier to it as one table"
        )
    classes = classes_of([contents[number][0] for number in numbers], target)
    if len(classes) < 2:
        raise InputError(
            f"{target!r} must contain two classes or more, got {shown(classes.tolist())}"
        )
    checksums = {number: checksum for number, (_, checksum, _) in contents.items()}
    crews = plan_crews(estimator, numbers)

    def read(batches: Batches, number: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
        X, y, checksum, _ = _read_examples(columns, batches)
        if checksums[number] != checksum:
            raise InputError(
                "the rows must be the same each time that they are read, got others: store or "
                "persist the data before fitting"
            )
        return X, y.astype(classes.dtype)

    # 2. The trees of each partition that has some.
    def grow(batches: Batches, number: int) -> Any:
        if number not in crews:
            return None
        return grow_crew(crews[number], *read(batches, number), classes)

    grown = run(columns, grow)
    forests = {number: grown[number] for number in crews}

    # 3. Counts of the labels of each partition at its scores by the trees of the others.
    def score_rows(batches: Batches, number: int) -> ScoreCounts:
        X, y = read(batches, number)
        scores = np.empty(0)
        if len(y):
            forest = join_forests(forest for home, forest in forests.items() if home != number)
            members = Members(forest, votes, n_jobs=1)
            scores = members.mean(members.check(X))
        counts = ScoreCounts.from_scores(scores, y, classes=classes)
        return counts.coarsen(MAX_SCORES)

    parts = run(columns, score_rows)
    counts = sum_of([*parts.values()]).coarsen(MAX_SCORES)
    score, codes = np.nonzero(counts.weights)
    weight: FloatArray | None = counts.weights[score, codes]
    if counts.total <= MAX_SCORES:  # examples are repeated as often as they were counted
        n_times = counts.weights[score, codes].astype(np.intp)
        score, codes, weight = np.repeat(score, n_times), np.repeat(codes, n_times), None
    forest = join_forests(forests.values())
    forest.feature_names_in_ = np.array(features, dtype=object)
    members = Members(forest, votes, model.n_jobs)
    fold = PartitionFold(
        forest, counts.scores[score], codes, weight, classes=classes, members=members
    )
    reason = f"the forest is grown on {len(numbers)} partitions where they are"
    fitted: CalibratedClassifier = clone(model)
    return fitted._calibrate(FittedClassifier(classes, [fold], "partitions", reason))


def _forest_of(model: CalibratedClassifier) -> Any:
    """Return the forest of a classifier; refuse parameters that do not work on partitions."""
    if not isinstance(model, CalibratedClassifier):
        raise InputError(f"model must be a CalibratedClassifier, got {type(model).__name__}")
    check_parameters(model)
    allowed = {"by": (None,), "calibrate_on": ("auto", "oob"), "subforest": ("all",)}
    for name, values in allowed.items():
        value = getattr(model, name)
        if not isinstance(value, str | None) or value not in values:
            raise InputError(
                f"{name} must be {' or '.join(map(repr, values))} where trees are grown on "
                f"partitions of an engine, got {shown(value)}"
            )
    estimators = list(named_estimators(model.estimator, model.n_jobs).values())
    names = " and ".join(type(estimator).__name__ for estimator in estimators)
    if len(estimators) > 1 or type(estimators[0]) not in (*FORESTS, MixedForestClassifier):
        raise InputError(
            "estimator must be a RandomForestClassifier or an ExtraTreesClassifier to be grown on "
            f"partitions, got {names}: transform the features beforehand"
        )
    return estimators[0]


def plan_crews(estimator: Any, numbers: Sequence[int]) -> dict[int, Any]:
    """Divide the trees of a forest at random among partitions.

    Returns an unfitted forest by number of the partition. With fewer trees than partitions, each
    forest has one tree, and partitions drawn by ``random_state`` have none.
    """
    n_trees = int(estimator.n_estimators)
    n_crews = min(len(numbers), n_trees)
    if n_crews < 2:
        raise InputError(
            "n_estimators must be large enough that no partition is in every tree's bag, got "
            f"{n_trees} with {len(numbers)} partitions"
        )
    random_state = check_random_state(estimator.random_state)
    order = random_state.permutation(len(numbers))[:n_crews]
    seeds = random_state.randint(2**31 - 1, size=n_crews)
    crews = {}
    for i, index in enumerate(order):
        size = n_trees // n_crews + (i < n_trees % n_crews)
        crew = clone(estimator).set_params(oob_score=False, warm_start=False)
        crews[numbers[index]] = crew.set_params(n_estimators=size, random_state=int(seeds[i]))
    return crews


def _read_examples(
    columns: Sequence[str], batches: Batches
) -> tuple[NDArray[np.float32], NDArray[Any], int, LeftOut]:
    """Return the features (n, d) and labels (n,) of a partition, a checksum, and the rows left out.

    Rows without a label are left out. The target is the last of the columns.
    """
    *features, target = columns
    left_out = LeftOut()
    tables, labels, n_rows = [np.empty((0, len(features)), np.float32)], [np.empty(0)], 0
    for batch in batches:
        cells = [as_floats(batch.column(n), n, "the partition", n_rows) for n in features]
        with np.errstate(over="ignore"):  # the forest refuses infinite numbers
            table = np.column_stack(cells).astype(np.float32)
        tables.append(table[is_valid(batch, [target]).to_numpy(zero_copy_only=False)])
        labels += [labels_of(part, target) for part in left_out.drop([batch], target, [])]
        n_rows += batch.num_rows
    X, y = np.concatenate(tables), np.concatenate([p for p in labels if len(p)] or labels)
    checksum = 0
    if len(y):
        hashes = hash_rows(X) ^ (hash_rows(y[:, None]) * np.uint64(0x9E3779B97F4A7C15))
        checksum = int(hashes.sum(dtype=np.uint64))
    return X, y, checksum, left_out


def grow_crew(forest: Any, X: NDArray[np.float32], y: NDArray[Any], classes: NDArray[Any]) -> Any:
    """Fit a forest to the rows of its partition, with all classes.

    For each class that the partition lacks, a row of weight zero is added: scikit-learn's trees
    ignore the row but have a column for its class.
    """
    missing, weight = np.setdiff1d(classes, y), None
    if len(missing):
        X = np.concatenate([X, np.repeat(X[:1], len(missing), axis=0)])
        weight = np.repeat([1.0, 0.0], [len(y), len(missing)])
        y = np.concatenate([y, missing])
    return forest.fit(X, y, sample_weight=weight)


def join_forests(forests: Iterable[Any]) -> Any:
    """Join forests with the same classes and features into one.

    The attributes from which bags are drawn again are removed, since no tree drew from all rows.
    """
    forests = list(forests)
    joined = copy.copy(forests[0])
    joined.estimators_ = [tree for forest in forests for tree in forest.estimators_]
    joined.n_estimators = len(joined.estimators_)
    for name in ("_n_samples", "_n_samples_bootstrap", "_sample_weight"):
        joined.__dict__.pop(name, None)
    return joined
