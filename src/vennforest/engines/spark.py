"""Calibration, prediction and forests on Spark data frames, without moving their rows."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from vennforest._class_columns import ScoreNames
from vennforest._messages import needed
from vennforest._validation import InputError
from vennforest.batch import BatchPredictor
from vennforest.calibrators import Calibrator
from vennforest.classifier import CalibratedClassifier
from vennforest.engines._forest import fit_partitions
from vennforest.engines._tasks import Task, calibrate_partitions, run_task
from vennforest.tables.schema import find_names

__all__ = ["calibrate", "fit", "predict"]

RESULT = "number int, result binary"
"""Schema of the results of tasks: the number of the partition and a pickled object."""

MAX_UNPACKED = 4
"""Number of unpickled models that a worker keeps in memory."""


def calibrate(frame: Any, *, score: ScoreNames, target: str, **options: Any) -> Calibrator:
    """Fit a calibrator to a column of scores and a column of labels.

    Only counts leave the partitions. Arguments, result and errors are those of
    `vennforest.engines.dask.calibrate`; ``frame`` is a ``pyspark.sql.DataFrame``.
    """
    return calibrate_partitions(partial(_spark_results, frame), score, target, **options)


def predict(frame: Any, model: Any, *, carried: Sequence[str] | None = None, **options: Any) -> Any:
    """Return the predictions of a fitted model for every row.

    Arguments and errors are those of `vennforest.engines.dask.predict`. The result is a lazy Spark
    data frame. The model is sent once to each worker.
    """
    schema = _arrow_schema(frame)
    from pyspark.sql.pandas.types import from_arrow_schema

    carried = list(frame.columns) if carried is None else list(carried)
    predictor = BatchPredictor(model, schema, carried=carried, **options)
    rows = _select(frame, [*predictor.columns, *carried])
    run = partial(_predict_in_spark, _packed_bytes(predictor))
    return rows.mapInArrow(run, from_arrow_schema(predictor.schema))


def fit(
    model: CalibratedClassifier, frame: Any, *, target: str, features: Sequence[str] | None = None
) -> CalibratedClassifier:
    """Fit a forest over the partitions of a data frame, calibrated out of bag.

    Arguments, result and errors are those of `vennforest.engines.dask.fit`.
    """
    if features is None:
        features = [name for name in _arrow_schema(frame).names if name != target]
    return fit_partitions(model, partial(_spark_results, frame), features, target)


def _spark_results(frame: Any, columns: Sequence[str], task: Task) -> dict[int, Any]:
    """Run a task on some columns of each partition; return the results by partition number.

    Raises the `InputError` of the first partition, by number, in which the task failed.
    """
    find_names(_arrow_schema(frame).names, columns, " in the data frame")
    run = partial(_run_in_spark, _packed_bytes(task))
    rows = _select(frame, columns).mapInArrow(run, RESULT).collect()
    results = {row["number"]: pickle.loads(row["result"]) for row in rows}
    for number in sorted(results):
        if isinstance(results[number], InputError):
            raise results[number]
    return results


def _run_in_spark(packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the result of a task, or its error: Spark would retry a task that raises one."""
    number = _partition_number()
    try:
        result = run_task(_unpacked(packed), batches, number)
    except InputError as error:
        result = error
    columns = [pa.array([number], pa.int32()), pa.array([pickle.dumps(result)], pa.binary())]
    yield pa.RecordBatch.from_arrays(columns, names=["number", "result"])


def _predict_in_spark(packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from _unpacked(packed)(batches, f"partition {_partition_number()}")


def _packed_bytes(content: Any) -> bytes:
    """Pickle a task or predictor, with classes of the user's ``__main__`` by value."""
    from pyspark import cloudpickle

    return bytes(cloudpickle.dumps(content))


@lru_cache(MAX_UNPACKED)
def _unpacked(packed: bytes) -> Any:
    """Return the unpickled object, one and the same for all partitions of a process."""
    return pickle.loads(packed)


def _partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _select(frame: Any, columns: Sequence[str]) -> Any:
    quoted = [f"`{name.replace('`', '``')}`" for name in dict.fromkeys(columns)]
    return frame.select(*quoted)


def _arrow_schema(frame: Any) -> pa.Schema:
    """Return the Arrow schema of a Spark data frame."""
    needed("pyspark", "data frames of Spark")
    if not hasattr(frame, "mapInArrow"):
        raise InputError(f"frame must be a Spark DataFrame, got {type(frame).__name__}")
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)
