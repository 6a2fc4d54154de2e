"""Spark: data frames counted by a GROUP BY, predicted batch by batch, forests over partitions."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vennforest._answers import need_pyarrow
from vennforest._validation import InputError
from vennforest.batch import BatchPredictor, check_number, find_column
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.scores import HigherIs
from vennforest.classifier import CalibratedClassifier
from vennforest.engines._counting import Counting, Grid, fitted_to
from vennforest.engines._forest import CrewTask, PartitionTask, fit_partitions
from vennforest.engines._sql import Statement, quoted
from vennforest.engines._workers import Shipment

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
    score : str or sequence of str
        The column of the second of two classes' scores, or a column per class in sorted order of
        the labels.
    target : str
        The column of the labels: numbers, booleans or text.
    method : str or calibrator, default="venn-abers"
        As of `CalibratedClassifier`.
    weight : str, optional
        A column of weights, not below zero; integers count so many examples.
    classes : sequence, optional
        Every class, when some may be missing from the data.
    grid : ScoreGrid, "auto" or None, default="auto"
        On which scores are counted, and new ones put. "auto": 2**20 cells from 0 to 1; none for
        methods that need all scores of an example together. None: every distinct score, of which
        there may be as many as rows.
    higher_is : {"likelier", "safer", "auto"}, default="likelier"
        What a higher score says of the second of two classes; "auto": what the data show.

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
    with _said_in_a_sentence():
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
    columns : str or sequence of str, optional
        The columns of features in the order of training, or of scores; None: by their names in
        training.
    carried : sequence of str, optional
        Columns that the result begins with; None: all.
    answers, level
        What is written of each class: see ``vennforest.BatchPredictor``.

    Returns
    -------
    pyspark.sql.DataFrame
        With the columns carried along, ``label``, and for each class c what ``answers``
        says. Nothing is computed yet; what a partition is
        refused for, its error names.

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
    task = _sent(frame, _Predicting(Shipment(model), schema, options))
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

    Each tree is grown on one partition (or on ``per_tree`` of them) where it lies, and every row
    is scored by the trees of the other partitions; see `vennforest.sources.Partitions`. A
    partition must fit into the memory of its worker, the forest into that of each. The frame is
    read three times and must be the same each time, which is verified: persist it, or read it from
    files.

    Parameters
    ----------
    model : CalibratedClassifier
        Not fitted, over a random forest or extra trees. ``calibrate_on`` is "auto" or
        ``Partitions(per_tree=..., subforest=...)``.
    frame : pyspark.sql.DataFrame
        Columns of numbers, and the target. Partitions without rows are left out.
    target : str
        The column of the labels.
    features : sequence of str, optional
        None: all columns but the target.

    Returns
    -------
    CalibratedClassifier
        A fitted clone: what ``fit`` returns for the same rows in one table with
        ``Partitions(partition of every row)``. Of more than 131,072 rows counts calibrate two
        classes, and 1,048,576 rows drawn at random more classes.

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
    with _said_in_a_sentence():
        return fit_partitions(model, _Backend(some), features, target)


@dataclass(frozen=True)
class _Backend:
    """Runs tasks where the partitions of a Spark data frame are."""

    frame: Any

    def each(self, task: PartitionTask) -> dict[int, Any]:
        rows = self.frame.mapInArrow(_Each(_sent(self.frame, task)), ANSWER).collect()
        return {row["number"]: pickle.loads(row["answer"]) for row in rows}

    def crews(self, task: CrewTask, held: Sequence[tuple[int, ...]]) -> list[Any]:
        sent = _sent(self.frame, task)
        if all(len(some) == 1 for some in held):
            crew_of = {some[0]: crew for crew, some in enumerate(held)}
            done = self.frame.mapInArrow(_OneCrew(sent, crew_of), ANSWER)
        else:
            crews_of: dict[int, list[int]] = {}
            for crew, some in enumerate(held):
                for number in some:
                    crews_of.setdefault(number, []).append(crew)
            kinds = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in self.frame.schema)
            tagged = self.frame.mapInArrow(
                _Tag(crews_of), f"{kinds}, _crew int, _partition int, _row bigint"
            )
            grow = _SomeCrew(sent)
            # Spark looks at the annotations of what it is given, and knows fewer than Python.
            done = tagged.groupBy("_crew").applyInArrow(lambda table: grow(table), ANSWER)
        rows = done.collect()
        found = {row["number"]: pickle.loads(row["answer"]) for row in rows}
        return [found[crew] for crew in range(len(held))]


@dataclass(frozen=True)
class _Predicting:
    shipped: Shipment
    schema: Any
    options: dict[str, Any]


@dataclass(frozen=True)
class _Predict:
    task: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _received(self.task)
        predictor = BatchPredictor(task.shipped.open(), task.schema, **task.options)
        yield from predictor(batches, f"partition {_number()}")


@dataclass(frozen=True)
class _Each:
    task: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = _number()
        yield _answer(number, _received(self.task)(batches, number))


@dataclass(frozen=True)
class _OneCrew:
    task: Any
    crew_of: dict[int, int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = _number()
        if number in self.crew_of:
            crew = self.crew_of[number]
            yield _answer(crew, _received(self.task)([(number, batches)], crew))


@dataclass(frozen=True)
class _Tag:
    """Sends every row to the crews that are grown on its partition, with its place."""

    crews_of: dict[int, list[int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow as pa

        number, done = _number(), 0
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
        return pa.Table.from_batches([_answer(crew, _received(self.task)(parts, crew))])


def _answer(number: int, answer: Any) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([pickle.dumps(answer)], pa.binary())],
        names=["number", "answer"],
    )


def _number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _sent(frame: Any, task: Any) -> Any:
    """Return a task as it travels: broadcast, or with Spark Connect, which has none, as it is."""
    context = getattr(frame.sparkSession, "_sc", None)
    return task if context is None else context.broadcast(task)


def _received(task: Any) -> Any:
    return getattr(task, "value", task)


def _arrow_schema(frame: Any) -> pa.Schema:
    """Return the columns of a Spark data frame as Arrow has them."""
    need_pyspark()
    if not hasattr(frame, "mapInArrow"):
        raise InputError(f"frame must be a Spark DataFrame, got {type(frame).__name__}")
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)


SENTENCE = re.compile(rf"{re.escape(InputError.__module__)}\.{InputError.__name__}: (.*)")


@contextmanager
def _said_in_a_sentence() -> Iterator[None]:
    """Say what a worker said, without Spark's report around it."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        found = SENTENCE.search(str(error))
        if found is None:
            raise
        raise InputError(found.group(1).strip()) from error


def need_pyspark() -> Any:
    """Return pyspark.

    Raises
    ------
    ImportError
        Saying what to install.
    """
    need_pyarrow()
    try:
        import pyspark
    except ImportError as missing:
        raise ImportError(
            "vennforest.engines.spark needs PySpark: install it with "
            "pip install 'vennforest[spark]'"
        ) from missing
    return pyspark
