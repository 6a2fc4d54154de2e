"""Tasks on partitions: models sent once to each process, labelled rows, and counts of scores."""

from __future__ import annotations

import hashlib
import importlib
import pickle
import platform
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vennforest._files import refused_as
from vennforest._program import __version__
from vennforest._validation import InputError, warn_of_small_weights
from vennforest.batch import BatchPredictor, check_number, matrix_of
from vennforest.calibrators import Calibrator, make_calibrator
from vennforest.calibrators.base import Increasing
from vennforest.counts import ScoreCounts
from vennforest.sources.row_hashes import HashArray, hash_rows
from vennforest.tables.cells import Column, row_name
from vennforest.tables.read import find_name

MAX_OPEN_MODELS = 4
"""Models that a worker keeps unpacked."""

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches, int], Any]
"""What runs on a partition: takes its batches and its number."""
Run = Callable[[Task], dict[int, Any]]
"""What an engine does with a task: returns the result of each partition by its number."""

_open: dict[str, Any] = {}
_lock = threading.Lock()


class Shipment:
    """An object on its way to workers, unpacked once in each process.

    Workers must have the same versions of this library and of scikit-learn; others are refused
    before anything is unpacked.
    """

    def __init__(self, content: Any) -> None:
        self._packed = _packed(content)
        self.versions = _versions()
        self.key = hashlib.sha256(self._packed).hexdigest()

    def open(self) -> Any:
        """Return the object, unpacked unless this process has done so."""
        with _lock:
            if self.key not in _open:
                installed = _versions()
                for name, needed_version in self.versions.items():
                    if installed[name] != needed_version:
                        raise InputError(
                            f"workers must have {name} {needed_version}, as the model has, got "
                            f"{installed[name]} on {platform.node()}: install the same version "
                            "there"
                        )
                while len(_open) >= MAX_OPEN_MODELS:
                    _open.pop(next(iter(_open)))
                _open[self.key] = pickle.loads(self._packed)
            return _open[self.key]


def ship_predictor(
    model: Any, schema: pa.Schema, options: dict[str, Any]
) -> tuple[BatchPredictor, Shipment]:
    """Return a predictor, and what workers make the same predictor of."""
    predictor = BatchPredictor(model, schema, **options)
    return predictor, Shipment((model, schema, {**options, "columns": predictor.columns}))


def open_predictor(shipment: Shipment) -> BatchPredictor:
    """Return the predictor, on a worker."""
    model, schema, options = shipment.open()
    return BatchPredictor(model, schema, **options)


def _packed(content: Any) -> bytes:
    """Return an object as bytes, by the engine's pickler, which packs a user's classes by value."""
    for name in ("cloudpickle", "pyspark.cloudpickle"):
        try:
            packed: bytes = importlib.import_module(name).dumps(content)
        except ImportError:
            continue
        return packed
    return pickle.dumps(content)


def _versions() -> dict[str, str]:
    return {"vennforest": __version__, "scikit-learn": version("scikit-learn")}


def calibrate_partitions(
    run: Run,
    score: str | Sequence[str],
    target: str,
    method: str | Calibrator,
    weight: str | None,
    classes: Sequence[Any] | None,
    increasing: Increasing,
) -> Calibrator:
    """Return a calibrator fitted to the sum of the partitions' counts."""
    scores = score_columns(score)
    names = [*scores, target, *([] if weight is None else [weight])]
    if len(set(names)) < len(names) or not scores:
        raise InputError(f"score, target and weight must be different columns, got {names}")
    calibrator = make_calibrator(method)
    if classes is None:
        labels = run(partial(_distinct_labels, target))
        classes = classes_of(labels, target).tolist()
    n_classes = max(2, len(scores))
    if len(set(classes)) != n_classes:
        raise InputError(
            f"column {target!r} must contain {n_classes} classes for {len(scores)} columns of "
            f"scores, got {len(set(classes))}: {list(classes)[:10]} (classes= names those that are "
            "missing)"
        )
    parts = run(partial(_count, scores, target, weight, sorted(classes)))
    counts = sum_of([part for part in parts.values() if part is not None])
    if counts is None or not len(counts):
        raise InputError("the data must contain at least one row of weight above zero, got none")
    warn_of_small_weights(float(counts.total), len(counts))
    fitted: Calibrator = calibrator.fit_counts(counts, increasing=increasing)
    return fitted


def score_columns(score: str | Sequence[str]) -> list[str]:
    """Return the columns of scores, of two columns the second."""
    scores = [score] if isinstance(score, str) else list(score)
    return scores[1:] if len(scores) == 2 else scores


def sum_of(parts: list[ScoreCounts]) -> ScoreCounts | None:
    """Return the sum of counts, pair by pair, so that no part is merged more than log n times."""
    while len(parts) > 1:
        parts = [sum(parts[i : i + 2], start=0) for i in range(0, len(parts), 2)]  # type: ignore[misc]
    return parts[0] if parts else None


def _distinct_labels(target: str, batches: Batches, number: int) -> NDArray[Any]:
    where = f"partition {number}"
    labels = [np.unique(y) for _, y, _ in _labelled_batches(batches, [], target, where)]
    return np.unique(np.concatenate(labels)) if labels else np.empty(0)


def _count(
    scores: list[str],
    target: str,
    weight: str | None,
    classes: list[Any],
    batches: Batches,
    number: int,
) -> ScoreCounts | None:
    """Return the counts of a partition, None of an empty one."""
    where = f"partition {number}"
    numbers = [*scores, *([] if weight is None else [weight])]

    def checked() -> Iterable[pa.RecordBatch]:
        for batch, y, n_before in _labelled_batches(batches, numbers, target, where):
            values = matrix_of({name: batch[name] for name in numbers}, where, n_before)
            values = values.astype(np.float64)
            for name, column in zip(numbers, values.T, strict=True):
                check_finite(column, name, where, n_before, is_weight=name == weight)
            unknown = np.flatnonzero(~np.isin(y, classes))
            if len(unknown):
                raise InputError(
                    f"column {target!r} must contain labels of classes {classes}, got "
                    f"{y[unknown[0]].item()!r} in {row_name(n_before + int(unknown[0]), where)}"
                )
            labels = Column(batch[target], target).array
            yield pa.RecordBatch.from_arrays(
                [*map(pa.array, values.T), labels], names=[*numbers, target]
            )

    return ScoreCounts.from_batches(
        checked(),
        score=scores[0] if len(scores) == 1 else scores,
        target=target,
        weight=weight,
        classes=classes,
    )


def check_finite(
    values: NDArray[Any], name: str, where: str, n_before: int, *, is_weight: bool = False
) -> None:
    """Refuse scores that are not finite, and weights that are negative, with their row."""
    wrong = ~np.isfinite(values)
    if is_weight:
        wrong |= values < 0
    if wrong.any():
        row = int(wrong.argmax())
        rule = "weights that are not negative" if is_weight else "scores"
        value = "NaN or nothing" if np.isnan(values[row]) else f"{values[row]:g}"
        raise InputError(
            f"column {name!r} must contain finite {rule}, got {value} in "
            f"{row_name(n_before + row, where)}"
        )


class Labelled(NamedTuple):
    """Rows of one partition: features (n, d) as float32, and labels (n,)."""

    X: NDArray[np.float32]
    y: NDArray[Any]

    def hashes(self) -> HashArray:
        """Return a hash of each row with its label, (n,)."""
        labels, codes = np.unique(self.y, return_inverse=True)
        column = labels.astype(object if labels.dtype.kind == "U" else np.float64)
        label_hashes = hash_rows(column.reshape(-1, 1))[codes]
        return hash_rows(self.X) ^ (label_hashes * np.uint64(0x9E3779B97F4A7C15))


def read_labelled(features: Sequence[str], target: str, batches: Batches, number: int) -> Labelled:
    """Return the rows of a partition; refuse features that are infinite in 32 bits."""
    where = f"partition {number}"
    tables, labels = [np.empty((0, len(features)), np.float32)], []
    for batch, y, n_before in _labelled_batches(batches, features, target, where):
        rows = matrix_of({name: batch[name] for name in features}, where, n_before)
        with np.errstate(over="ignore"):
            table = rows.astype(np.float32)
        if np.isinf(table).any():
            row, column = np.argwhere(np.isinf(table))[0].tolist()
            raise InputError(
                f"column {features[column]!r} must contain finite numbers of 32 bits, got "
                f"{rows[row, column]:g} in {row_name(n_before + row, where)}"
            )
        tables.append(table)
        labels.append(y)
    y = np.concatenate(labels) if labels else np.empty(0)
    return Labelled(np.concatenate(tables), y)


def _labelled_batches(
    batches: Batches, numbers: Sequence[str], target: str, where: str
) -> Iterable[tuple[pa.RecordBatch, NDArray[Any], int]]:
    """Yield batches that have rows, with their labels (n,) and how many rows came before each."""
    n_rows = 0
    kinds: set[str] = set()
    for batch in batches:
        for name in [*numbers, target]:
            find_name(batch.schema.names, name, where=f" in {where}")
        for name in numbers:
            check_number(name, batch.schema.field(name).type, where)
        if batch.num_rows:
            column = Column(batch[target], target)
            if not column.is_present.all():
                row = row_name(n_rows + int((~column.is_present).argmax()), where)
                raise InputError(
                    f"column {target!r} must contain a label in every row, got none in {row}"
                )
            if pa.types.is_timestamp(column.array.type):
                raise InputError(f"column {target!r} must contain labels, got dates in {where}")
            labels = column.array.to_numpy(zero_copy_only=False)
            labels = labels.astype(str) if labels.dtype == object else labels
            kinds.add(label_kind(labels))
            if len(kinds) > 1:
                raise InputError(
                    f"column {target!r} must contain labels of one kind, got "
                    f"{' and '.join(sorted(kinds))} in {where}"
                )
            yield batch, labels, n_rows
        n_rows += batch.num_rows


def classes_of(labels: dict[int, NDArray[Any]], target: str) -> NDArray[Any]:
    """Return the distinct labels of all partitions, sorted; refuse labels of several kinds."""
    parts = [(number, part) for number, part in sorted(labels.items()) if len(part)]
    if not parts:
        raise InputError("the data must contain at least one row, got none")
    first, expected = parts[0][0], label_kind(parts[0][1])
    for number, part in parts[1:]:
        if label_kind(part) != expected:
            raise InputError(
                f"column {target!r} must contain labels of one kind, got {expected} in "
                f"partition {first} and {label_kind(part)} in partition {number}"
            )
    classes: NDArray[Any] = np.unique(np.concatenate([part for _, part in parts]))
    return classes


def label_kind(y: NDArray[Any]) -> str:
    """Return the kind of labels: booleans, text or numbers."""
    return {"b": "booleans", "U": "text"}.get(y.dtype.kind, "numbers")


def run_task(task: Task, batches: Batches, number: int) -> Any:
    """Run a task on a partition; its errors are one sentence with the partition's number."""
    with refused_as(f"partition {number}"):
        return task(batches, number)
