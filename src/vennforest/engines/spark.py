"""Spark: data frames counted and predicted batch by batch, and forests over partitions."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from vennforest._messages import needed
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.calibrators.base import Increasing
from vennforest.classifier import CalibratedClassifier
from vennforest.engines._forest import fit_partitions
from vennforest.engines._workers import (
    Run,
    Task,
    calibrate_partitions,
    open_predictor,
    run_task,
    score_columns,
    ship_predictor,
)
from vennforest.tables.read import find_name

__all__ = ["calibrate", "fit", "predict"]

RESULT = "number int, result binary"
"""Columns of what tasks return: the number of the partition, and a pickled result."""


def calibrate(
    frame: Any,
    *,
    score: str | Sequence[str],
    target: str,
    method: str | Calibrator = "venn-abers",
    weight: str | None = None,
    classes: Sequence[Any] | None = None,
    increasing: Increasing = True,
) -> Calibrator:
    """Fit a calibrator to scores and labels, of which only counts leave the partitions.

    Arguments, result and errors are those of `vennforest.engines.dask.calibrate`; ``frame`` is a
    ``pyspark.sql.DataFrame``.
    """
    columns = [*score_columns(score), target, *([] if weight is None else [weight])]
    run = _runner(frame, columns)
    return calibrate_partitions(run, score, target, method, weight, classes, increasing)


def predict(
    frame: Any,
    model: Any,
    *,
    columns: str | Sequence[str] | None = None,
    carried: Sequence[str] | None = None,
    answers: str | Sequence[str] | None = None,
    level: float = 0.95,
) -> Any:
    """Return the predictions of a fitted model for every row.

    Arguments and errors are those of `vennforest.engines.dask.predict`, the result is a data frame
    of Spark that is not computed yet. The model is broadcast, so sent once to each worker.
    """
    schema = _arrow_schema(frame)
    from pyspark.sql.pandas.types import from_arrow_schema

    carried = list(frame.columns) if carried is None else list(carried)
    options = {"columns": columns, "carried": carried, "answers": answers, "level": level}
    predictor, shipment = ship_predictor(model, schema, options)
    task = partial(_predict, _broadcast(frame, shipment))
    rows = _select(frame, [*predictor.columns, *carried])
    return rows.mapInArrow(task, from_arrow_schema(predictor.schema))


def fit(
    model: CalibratedClassifier,
    frame: Any,
    *,
    target: str,
    features: Sequence[str] | None = None,
) -> CalibratedClassifier:
    """Fit a forest over the partitions of a data frame, calibrated out of bag.

    Arguments, result and errors are those of `vennforest.engines.dask.fit`.
    """
    if features is None:
        features = [name for name in _arrow_schema(frame).names if name != target]
    features = list(features)
    return fit_partitions(model, _runner(frame, [*features, target]), features, target)


def _runner(frame: Any, columns: Sequence[str]) -> Run:
    """Return what runs tasks on the partitions of a frame, of which it reads some columns."""
    names = _arrow_schema(frame).names
    for name in columns:
        find_name(names, name, where=" in the data frame")
    rows = _select(frame, columns)

    def run(task: Task) -> dict[int, Any]:
        rows_of_results = rows.mapInArrow(partial(_run, _broadcast(frame, task)), RESULT).collect()
        results = {row["number"]: pickle.loads(row["result"]) for row in rows_of_results}
        for number in sorted(results):
            if isinstance(results[number], InputError):
                raise results[number]
        return results

    return run


def _run(task: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the result of a task, or its error, which Spark would try three times more."""
    number = _partition_number()
    try:
        result = pickle.dumps(run_task(_received(task), batches, number))
    except InputError as error:
        result = pickle.dumps(InputError(str(error)))
    yield pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([result], pa.binary())],
        names=["number", "result"],
    )


def _predict(shipment: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from open_predictor(_received(shipment))(batches, f"partition {_partition_number()}")


def _partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _broadcast(frame: Any, task: Any) -> Any:
    """Return a task as a broadcast; Spark Connect has none, and sends it as it is."""
    context = getattr(frame.sparkSession, "_sc", None)
    return task if context is None else context.broadcast(task)


def _received(task: Any) -> Any:
    return getattr(task, "value", task)


def _select(frame: Any, columns: Sequence[str]) -> Any:
    quoted = [f"`{name.replace('`', '``')}`" for name in dict.fromkeys(columns)]
    return frame.select(*quoted)


def _arrow_schema(frame: Any) -> pa.Schema:
    """Return the columns of a Spark data frame as Arrow has them."""
    needed("pyspark", "data frames of Spark", "spark")
    if not hasattr(frame, "mapInArrow"):
        raise InputError(f"frame must be a Spark DataFrame, got {type(frame).__name__}")
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)
