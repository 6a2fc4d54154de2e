"""Spark: data frames counted by a GROUP BY, predicted batch by batch, forests over partitions."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vennforest._answers import need_pyarrow
from vennforest._messages import needed
from vennforest._validation import InputError
from vennforest.batch import BatchPredictor, check_number, find_column
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.scores import HigherIs
from vennforest.classifier import CalibratedClassifier
from vennforest.engines._counting import Counting, Grid, Statement, fitted_to, quoted
from vennforest.engines._forest import CrewTask, PartitionTask, fit_partitions
from vennforest.engines._workers import Predicting, Shipment

if TYPE_CHECKING:
    import pyarrow as pa

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
    grid: Grid = "auto",
    higher_is: HigherIs = "likelier",
) -> Calibrator:
    """Fit a calibrator to scores and labels, by a GROUP BY of which only the result is collected.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    score, target, method, weight, classes, grid, higher_is
        See `vennforest.engines.duckdb.calibrate`.

    Returns
    -------
    Calibrator
        Fitted.

    Raises
    ------
    InputError
        If a column is missing or of another kind, a score is not finite or outside the grid, or a
        label is missing; naming the partition and the row, from 1.
    ImportError
        If pyspark or pyarrow is not installed.
    """
    counting = Counting.of(score, target, weight, method, grid, classes)
    schema = _arrow_schema(frame)
    for name in counting.columns:
        find_column(name, schema.names, "the data frame")
        if name != target:
            check_number(name, schema.field(name).type, "the data frame")
    import pyarrow as pa

    whole = weight is None or bool(pa.types.is_integer(schema.field(weight).type))
    floats = pa.types.is_floating(schema.field(target).type)
    statement = Statement(counting, "`", whole, floats)
    spark = frame.sparkSession
    with said_in_a_sentence():
        groups = [
            spark.sql(query, source=frame).toArrow() for query in statement.groups("{source}")
        ]
        if any(group["label"].null_count for group in groups):
            some = frame.select(*[quoted(name, "`") for name in counting.columns])
            _Backend(some).each(counting.check_partition)
            raise InputError("the data frame must stay as it is while it is read: persist it")
    if not any(len(group) for group in groups):
        raise InputError("the data frame must contain at least one row, got none")
    return fitted_to(method, counting.of_groups(groups), higher_is)


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

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    model : CalibratedClassifier or calibrator
        Fitted; broadcast, so sent once to each worker.
    columns, carried, answers, level
        See `vennforest.engines.duckdb.predict`; ``carried=None``: all columns.

    Returns
    -------
    pyspark.sql.DataFrame
        Not computed yet. Errors name the partition.

    Raises
    ------
    InputError
        If a column is missing or contains no numbers.
    ImportError
        If pyspark or pyarrow is not installed.
    """
    schema = _arrow_schema(frame)
    from pyspark.sql.pandas.types import from_arrow_schema

    carried = list(frame.columns) if carried is None else list(carried)
    options: dict[str, Any] = {
        "columns": columns,
        "carried": carried,
        "answers": answers,
        "level": level,
    }
    predictor = BatchPredictor(model, schema, **options)
    wanted = list(dict.fromkeys([*predictor.columns, *carried]))
    options["columns"] = predictor.columns
    task = sent(frame, Predicting(Shipment(model), schema, options))
    some = frame.select(*[quoted(name, "`") for name in wanted])
    return some.mapInArrow(_Predict(task), from_arrow_schema(predictor.schema))


def fit(
    model: CalibratedClassifier,
    frame: Any,
    *,
    target: str,
    features: Sequence[str] | None = None,
) -> CalibratedClassifier:
    """Fit a forest over the partitions of a data frame, calibrated out of bag.

    Parameters
    ----------
    model, target, features
        See `vennforest.engines.dask.fit`.
    frame : pyspark.sql.DataFrame
        Columns of numbers, and the target. Partitions without rows are left out.

    Returns
    -------
    CalibratedClassifier
        A fitted clone, as of `vennforest.engines.dask.fit`.

    Raises
    ------
    InputError
        If a partition is not what the others are, or changed; naming it.
    ImportError
        If pyspark or pyarrow is not installed.
    """
    schema = _arrow_schema(frame)
    if features is None:
        features = [name for name in schema.names if name != target]
    for name in [*features, target]:
        find_column(name, schema.names, "the data frame")
    some = frame.select(*[quoted(name, "`") for name in [*features, target]])
    with said_in_a_sentence():
        return fit_partitions(model, _Backend(some), features, target)


@dataclass(frozen=True)
class _Backend:
    """Runs tasks where the partitions of a Spark data frame are."""

    frame: Any

    def each(self, task: PartitionTask) -> dict[int, Any]:
        rows = self.frame.mapInArrow(_Each(sent(self.frame, task)), ANSWER).collect()
        return {row["number"]: pickle.loads(row["answer"]) for row in rows}

    def crews(self, task: CrewTask, held: Sequence[tuple[int, ...]]) -> list[Any]:
        shipped = sent(self.frame, task)
        if all(len(some) == 1 for some in held):
            crew_of = {some[0]: crew for crew, some in enumerate(held)}
            done = self.frame.mapInArrow(_OneCrew(shipped, crew_of), ANSWER)
        else:
            crews_of: dict[int, list[int]] = {}
            for crew, some in enumerate(held):
                for number in some:
                    crews_of.setdefault(number, []).append(crew)
            kinds = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in self.frame.schema)
            tagged = self.frame.mapInArrow(
                _Tag(crews_of), f"{kinds}, _crew int, _partition int, _row bigint"
            )
            grow = _SomeCrew(shipped)
            # Spark looks at the annotations of what it is given, and knows fewer than Python.
            done = tagged.groupBy("_crew").applyInArrow(lambda table: grow(table), ANSWER)
        rows = done.collect()
        found = {row["number"]: pickle.loads(row["answer"]) for row in rows}
        return [found[crew] for crew in range(len(held))]


@dataclass(frozen=True)
class _Predict:
    task: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from received(self.task).predictor()(batches, f"partition {partition_number()}")


@dataclass(frozen=True)
class _Each:
    task: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = partition_number()
        yield _answer(number, received(self.task)(batches, number))


@dataclass(frozen=True)
class _OneCrew:
    task: Any
    crew_of: dict[int, int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = partition_number()
        if number in self.crew_of:
            crew = self.crew_of[number]
            yield _answer(crew, received(self.task)([(number, batches)], crew))


@dataclass(frozen=True)
class _Tag:
    """Sends every row to the crews that are grown on its partition, with its place."""

    crews_of: dict[int, list[int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow as pa

        number, done = partition_number(), 0
        for batch in batches:
            n = batch.num_rows
            rows = pa.array(np.arange(done, done + n))
            for crew in self.crews_of.get(number, []):
                tags = [np.full(n, crew, np.int32), np.full(n, number, np.int32)]
                yield pa.RecordBatch.from_arrays(
                    [*batch.columns, *(pa.array(tag) for tag in tags), rows],
                    names=[*batch.schema.names, "_crew", "_partition", "_row"],
                )
            done += n


@dataclass(frozen=True)
class _SomeCrew:
    task: Any

    def __call__(self, table: pa.Table) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        crew = table["_crew"][0].as_py()
        table = table.sort_by([("_partition", "ascending"), ("_row", "ascending")])
        parts = []
        for number in sorted(pc.unique(table["_partition"]).to_pylist()):
            some = table.filter(pc.equal(table["_partition"], number))
            parts.append((number, some.to_batches()))
        return pa.Table.from_batches([_answer(crew, received(self.task)(parts, crew))])


def _answer(number: int, answer: Any) -> pa.RecordBatch:
    import pyarrow as pa

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
    need_pyarrow()
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
