"""Dask: data frames in partitions, counted, calibrated and predicted where they lie.

A forest, folds or an experiment need nothing of this: within ``joblib.parallel_config("dask")``
whatever has ``n_jobs`` runs on the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vennforest._messages import needed
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.calibrators.base import Increasing
from vennforest.classifier import CalibratedClassifier
from vennforest.counts import ScoreCounts
from vennforest.engines._counting import Counting, fitted_to
from vennforest.engines._forest import CrewTask, PartitionTask, fit_partitions
from vennforest.engines._workers import (
    Shipment,
    labels_of_all,
    open_predictor,
    shipped_predictor,
)

if TYPE_CHECKING:
    import pandas as pd
from vennforest.tables.read import find_name

__all__ = ["calibrate", "fit", "predict"]


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

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
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
    increasing : bool or "auto", default=True
        As of ``fit`` of every calibrator.

    Returns
    -------
    Calibrator
        Fitted, equal to a fit to all rows; more than 1,048,576 distinct scores are coarsened first:
        see `ScoreCounts.coarsen`.

    Raises
    ------
    InputError
        If a column is missing or contains no numbers, a score is not finite, or a label
        is missing; with the partition and the row in it, from 1.
    """
    counting = Counting.of(score, target, weight, classes)
    parts = _delayed_parts(frame, counting.columns)
    with _names_what_is_missing(frame, counting.columns):
        if counting.classes is None:
            labels = _computed([_run(counting.labels, *one) for one in parts])
            counting = counting.with_classes(labels_of_all(enumerate(labels), target))
        sums = [_run(counting.count, *one) for one in parts]
        while len(sums) > 1:
            sums = [_dask().delayed(_add)(sums[i : i + 2]) for i in range(0, len(sums), 2)]
        counts: ScoreCounts = _computed(sums)[0]
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

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    model : CalibratedClassifier or calibrator
        Fitted; sent once to each worker.
    columns, carried, answers, level
        As of `vennforest.BatchPredictor`; ``carried=None``: all columns.

    Returns
    -------
    dask.dataframe.DataFrame
        With the partitions and index of ``frame``, not computed yet. Errors are those of
        `vennforest.BatchPredictor`, and name the partition.
    """
    dask = _dask()
    carried = [str(name) for name in frame.columns] if carried is None else list(carried)
    empty = frame._meta.iloc[:0]
    schema = pa.Schema.from_pandas(empty, preserve_index=False)
    options = {"columns": columns, "carried": carried, "answers": answers, "level": level}
    predictor, shipment = shipped_predictor(model, schema, options)
    meta = _frame_of(predictor.schema.empty_table(), carried, empty)
    shipped = dask.delayed(shipment)
    parts = [
        dask.delayed(_predict)(shipped, carried, part, number)
        for number, part in enumerate(frame.to_delayed())
    ]
    import dask.dataframe as dd

    return dd.from_delayed(parts, meta=meta, divisions=frame.divisions, verify_meta=False)


def fit(
    model: CalibratedClassifier,
    frame: Any,
    *,
    target: str,
    features: Sequence[str] | None = None,
) -> CalibratedClassifier:
    """Fit a forest over the partitions of a data frame, calibrated out of bag.

    Each tree is grown on one partition where it lies, and every row is scored by the trees of the
    other partitions. Bounds are those of ``calibrate_on="oob"`` for partitions that rows fall into
    at random. Where partitions differ (a hospital each, a day each), calibration scores are those
    of a partition that the trees have not seen, while new objects are scored by all trees: too
    cautious, and nothing is proved.

    A partition must fit into the memory of its worker, the forest into that of each. The frame is
    read three times and must be the same each time, which is verified: persist it, or read it from
    files.

    Parameters
    ----------
    model : CalibratedClassifier
        Not fitted, over a random forest or extra trees. ``calibrate_on`` is "auto" or
        "oob"; ``subforest`` and ``votes`` count as out of bag.
    frame : dask.dataframe.DataFrame
        Columns of numbers, and the target. Partitions without rows are left out.
    target : str
        The column of the labels.
    features : sequence of str, optional
        None: all columns but the target.

    Returns
    -------
    CalibratedClassifier
        A fitted clone. Of more than 131,072 rows counts calibrate two
        classes, and 1,048,576 rows drawn at random more classes.

    Raises
    ------
    InputError
        If a partition is not what the others are, or changed; naming it.
    """
    _dask()
    if features is None:
        features = [str(name) for name in frame.columns if name != target]
    columns = [*features, target]
    with _names_what_is_missing(frame, columns):
        return fit_partitions(model, _Backend(frame, columns), features, target)


@dataclass(frozen=True)
class _Backend:
    """Runs tasks where the partitions of a Dask data frame are."""

    frame: Any
    columns: list[str]

    def each(self, task: PartitionTask) -> dict[int, Any]:
        shipped = _dask().delayed(task)
        parts = _delayed_parts(self.frame, self.columns)
        return dict(enumerate(_computed([_run(shipped, *one) for one in parts])))

    def crews(self, task: CrewTask, held: Sequence[tuple[int, ...]]) -> list[Any]:
        shipped = _dask().delayed(task)
        parts = [part for part, _ in _delayed_parts(self.frame, self.columns)]
        jobs = [
            _dask().delayed(_call_crew)(shipped, [parts[p] for p in some], some, crew)
            for crew, some in enumerate(held)
        ]
        return list(_computed(jobs))


def _predict(
    shipped: Shipment, carried: list[str], part: pd.DataFrame, number: int
) -> pd.DataFrame:
    """Return the predictions for one partition, with its index."""
    predictor = open_predictor(shipped)
    found = list(predictor(_batches(part), f"partition {number}"))
    return _frame_of(pa.Table.from_batches(found, predictor.schema), carried, part)


def _frame_of(table: Any, carried: list[str], part: pd.DataFrame) -> pd.DataFrame:
    """Return predictions as a pandas data frame; what was carried along is as it came."""
    found: pd.DataFrame = table.drop_columns(carried).to_pandas()
    found.index = part.index
    return type(part)({**part[carried], **found}, index=part.index)


def _run(task: Any, part: Any, number: int) -> Any:
    return _dask().delayed(_call)(task, part, number)


def _call(task: Any, part: pd.DataFrame, number: int) -> Any:
    return task(_batches(part), number)


def _call_crew(task: CrewTask, parts: list[Any], numbers: tuple[int, ...], crew: int) -> Any:
    return task([(n, _batches(part)) for n, part in zip(numbers, parts, strict=True)], crew)


def _batches(part: pd.DataFrame) -> Any:
    return pa.Table.from_pandas(part, preserve_index=False).to_batches()


def _add(parts: list[ScoreCounts]) -> ScoreCounts:
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _delayed_parts(frame: Any, columns: Sequence[str]) -> list[tuple[Any, int]]:
    """Return the partitions of a frame, of these columns where they can be read alone."""
    _dask()
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise InputError(f"frame must be a Dask DataFrame, got {type(frame).__name__}")
    for name in columns:
        find_name([str(one) for one in frame.columns], name, where=" in the data frame")
    some = frame[list(dict.fromkeys(columns))]
    return [(part, number) for number, part in enumerate(some.to_delayed())]


@contextmanager
def _names_what_is_missing(frame: Any, columns: Sequence[str]) -> Iterator[None]:
    """Say which partition lacks a column, where reading some columns alone fails for that."""
    try:
        yield
    except KeyError:
        named = [_dask().delayed(_names)(part) for part in frame.to_delayed()]
        for number, names in enumerate(_computed(named)):
            for name in columns:
                find_name(names, name, where=f" in partition {number}")
        raise


def _names(part: pd.DataFrame) -> list[str]:
    return [str(name) for name in part.columns]


def _computed(jobs: Sequence[Any]) -> tuple[Any, ...]:
    found: tuple[Any, ...] = _dask().compute(*jobs)
    return found


def _dask() -> Any:
    needed("dask.dataframe", "data frames of Dask", "dask")
    return needed("dask", "data frames of Dask", "dask")
