"""Spark: data frames counted by a GROUP BY, predicted batch by batch, forests over partitions."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vennforest._messages import needed
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.calibrators.base import Increasing
from vennforest.classifier import CalibratedClassifier
from vennforest.engines._counting import Counting, Statement, fitted_to, quoted
from vennforest.engines._forest import CrewTask, PartitionTask, fit_partitions
from vennforest.engines._workers import open_predictor, shipped_predictor
from vennforest.tables.read import find_name

__all__ = ["calibrate", "fit", "predict"]

ANSWER = "number int, answer binary"
"""What tasks return: the partition or crew, and a pickled answer."""


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
    """Fit a calibrator to scores and labels, by a GROUP BY of which only the result is collected.

    Arguments, result and errors are those of `vennforest.engines.dask.calibrate`; ``frame`` is a
    ``pyspark.sql.DataFrame``.
    """
    counting = Counting.of(score, target, weight, classes)
    statement = Statement.of(counting, _arrow_schema(frame), "`", "the data frame")
    spark = frame.sparkSession

    def check() -> None:
        some = frame.select(*[quoted(name, "`") for name in counting.columns])
        _Backend(some).each(counting.check)

    with said_in_a_sentence():
        groups = spark.sql(statement.groups("{source}"), source=frame).toArrow()
        counts = counting.of_groups(groups, "the data frame", check)
    return fitted_to(method, counts, increasing)


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
    predictor, shipment = shipped_predictor(model, schema, options)
    wanted = list(dict.fromkeys([*predictor.columns, *carried]))
    some = frame.select(*[quoted(name, "`") for name in wanted])
    task = partial(_predict, sent(frame, shipment))
    return some.mapInArrow(task, from_arrow_schema(predictor.schema))


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
    schema = _arrow_schema(frame)
    if features is None:
        features = [name for name in schema.names if name != target]
    for name in [*features, target]:
        find_name(schema.names, name, where=" in the data frame")
    some = frame.select(*[quoted(name, "`") for name in [*features, target]])
    with said_in_a_sentence():
        return fit_partitions(model, _Backend(some), features, target)


@dataclass(frozen=True)
class _Backend:
    """Runs tasks where the partitions of a Spark data frame are."""

    frame: Any

    def each(self, task: PartitionTask) -> dict[int, Any]:
        return _collected(self.frame.mapInArrow(partial(_each, sent(self.frame, task)), ANSWER))

    def crews(self, task: CrewTask, held: Sequence[tuple[int, ...]]) -> list[Any]:
        shipped = sent(self.frame, task)
        crews_of: dict[int, list[int]] = {}
        for crew, some in enumerate(held):
            for number in some:
                crews_of.setdefault(number, []).append(crew)
        if all(len(some) == 1 for some in held):
            done = self.frame.mapInArrow(partial(_crews, shipped, crews_of), ANSWER)
        else:
            kinds = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in self.frame.schema)
            tagged = self.frame.mapInArrow(
                partial(_tagged, crews_of), f"{kinds}, _crew int, _partition int, _row bigint"
            )
            # Spark looks at the annotations of what it is given, and knows fewer than Python.
            done = tagged.groupBy("_crew").applyInArrow(
                lambda table: _crew_of_several(shipped, table), ANSWER
            )
        found = _collected(done)
        return [found[crew] for crew in range(len(held))]


Rows = Iterator["pa.RecordBatch"]


def _predict(shipped: Any, batches: Rows) -> Rows:
    yield from open_predictor(received(shipped))(batches, f"partition {partition_number()}")


def _each(task: Any, batches: Rows) -> Rows:
    number = partition_number()
    yield _answer(number, received(task)(batches, number))


def _crews(task: Any, crews_of: dict[int, list[int]], batches: Rows) -> Rows:
    """Yield the answer of the crew that is grown on one partition alone, if there is one."""
    number = partition_number()
    for crew in crews_of.get(number, []):
        yield _answer(crew, received(task)([(number, batches)], crew))


def _tagged(crews_of: dict[int, list[int]], batches: Rows) -> Rows:
    """Send every row to the crews that are grown on its partition, with its place."""
    import numpy as np

    number, done = partition_number(), 0
    for batch in batches:
        n = batch.num_rows
        rows = pa.array(np.arange(done, done + n))
        for crew in crews_of.get(number, []):
            tags = [pa.array(np.full(n, tag, np.int32)) for tag in (crew, number)]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *tags, rows],
                names=[*batch.schema.names, "_crew", "_partition", "_row"],
            )
        done += n


def _crew_of_several(task: Any, table: pa.Table) -> pa.Table:
    crew = table["_crew"][0].as_py()
    table = table.sort_by([("_partition", "ascending"), ("_row", "ascending")])
    parts = []
    for number in sorted(pc.unique(table["_partition"]).to_pylist()):
        some = table.filter(pc.equal(table["_partition"], number))
        parts.append((number, some.to_batches()))
    return pa.Table.from_batches([_answer(crew, received(task)(parts, crew))])


def _collected(frame: Any) -> dict[int, Any]:
    return {row["number"]: pickle.loads(row["answer"]) for row in frame.collect()}


def _answer(number: int, answer: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([pickle.dumps(answer)], pa.binary())],
        names=["number", "answer"],
    )


def partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def sent(frame: Any, task: Any) -> Any:
    """Return a task as it travels: broadcast, or with Spark Connect, which has none, as it is."""
    context = getattr(frame.sparkSession, "_sc", None)
    return task if context is None else context.broadcast(task)


def received(task: Any) -> Any:
    return getattr(task, "value", task)


def _arrow_schema(frame: Any) -> pa.Schema:
    """Return the columns of a Spark data frame as Arrow has them."""
    needed("pyspark", "data frames of Spark", "spark")
    if not hasattr(frame, "mapInArrow"):
        raise InputError(f"frame must be a Spark DataFrame, got {type(frame).__name__}")
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)


SENTENCE = re.compile(rf"{re.escape(InputError.__module__)}\.{InputError.__name__}: (.*)")


@contextmanager
def said_in_a_sentence() -> Iterator[None]:
    """Say what a worker said, without Spark's report around it."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        found = SENTENCE.search(str(error))
        if found is None:
            raise
        raise InputError(found.group(1).strip()) from error
