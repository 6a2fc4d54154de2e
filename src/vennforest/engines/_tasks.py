"""Tasks on single partitions and calibration by the sum of their counts, for Dask and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vennforest._class_columns import ScoreNames, class_columns, column_names
from vennforest._files import one_line
from vennforest._messages import warn
from vennforest._validation import InputError, WeightSums, check_option
from vennforest.calibrators import Calibrator, make_calibrator
from vennforest.calibrators.direction import Increasing
from vennforest.counts import ScoreCounts
from vennforest.tables.target import LeftOut

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches, int], Any]
"""A function of the batches and the number of a partition."""
Run = Callable[[Sequence[str], Task], dict[int, Any]]
"""A function that runs a task on some columns and returns the results by partition number."""


def run_task(task: Task, batches: Batches, number: int) -> Any:
    """Run a task on a partition; errors become an `InputError` that names the partition."""
    try:
        return task(batches, number)
    except ValueError as error:
        raise InputError(f"partition {number}: {one_line(error)}") from error


def calibrate_partitions(
    run: Run,
    score: ScoreNames,
    target: str,
    method: str | Calibrator = "venn-abers",
    weight: str | None = None,
    classes: Sequence[Any] | None = None,
    increasing: Increasing = True,
    missing_scores: str = "refuse",
) -> Calibrator:
    """Return a calibrator fitted to the sum of the partitions' counts.

    ``run`` runs a task on every partition; ``score``, ``target`` and ``weight`` name columns.
    """
    check_option(missing_scores, ("refuse", "drop"), "missing_scores")
    calibrator = make_calibrator(method)
    if classes is None:

        def distinct_labels(batches: Batches, number: int) -> NDArray[Any]:
            rows = LeftOut().drop(batches, target, [])
            labels = [np.unique(labels_of(batch, target)) for batch in rows if batch.num_rows]
            return np.unique(np.concatenate(labels)) if labels else np.empty(0)

        labels = run([target], distinct_labels)
        classes = classes_of(labels.values(), target).tolist()
    labels_in_order = np.unique(np.asarray(classes)).tolist()
    of_classes = class_columns(score, labels_in_order, "score", column_names(score))
    scores = of_classes.by_label
    columns = [*of_classes.names, target, *([] if weight is None else [weight])]
    options = (scores, target, weight, classes, calibrator.on)
    required = [*scores.values()] if missing_scores == "drop" else []

    def count_scores(batches: Batches, number: int) -> tuple[ScoreCounts, LeftOut, WeightSums]:
        left_out = LeftOut()
        rows = left_out.drop(batches, target, required)
        counts, sums = ScoreCounts._with_weight_sums(rows, *options)
        return counts, left_out, sums

    parts, left_out, sums = zip(*run(columns, count_scores).values(), strict=True)
    counts = sum_of(parts)
    for note in sum(left_out, LeftOut()).notes(target):
        warn(note.rstrip("."))
    weight_sums = reduce(WeightSums.plus, sums)
    weight_sums.check(repr(weight))
    weight_sums.warn(repr(weight))
    if not len(counts):
        raise InputError("the data must contain at least one row of weight above zero, got none")
    return calibrator.fit_counts(counts, increasing=increasing)


def labels_of(batch: pa.RecordBatch, target: str) -> NDArray[Any]:
    """Return the labels (n,) of a batch without missing ones."""
    encoded = batch.column(target).dictionary_encode()
    return np.asarray(np.asarray(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()])


def classes_of(labels: Iterable[NDArray[Any]], target: str) -> NDArray[Any]:
    """Return the distinct labels of all partitions, sorted."""
    parts = [part for part in labels if len(part)]
    if not parts:
        raise InputError("the data must contain at least one row, got none")
    if len({part.dtype.kind == "U" for part in parts}) > 1:
        raise InputError(
            f"{target!r} must contain labels of one kind, got text in some partitions and numbers "
            "in others"
        )
    return np.unique(np.concatenate(parts))


def sum_of(parts: Sequence[ScoreCounts]) -> ScoreCounts:
    """Return the sum of n counts, added by halves so that none is merged more than log n times."""
    half = len(parts) // 2
    return parts[0] if len(parts) == 1 else sum_of(parts[:half]) + sum_of(parts[half:])
