"""Calibration, prediction and forests on Dask data frames, without moving their rows.

Within ``joblib.parallel_config("dask")`` estimators with ``n_jobs`` run on the cluster too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["calibrate", "fit", "predict"]


def calibrate(frame: Any, *, score: ScoreNames, target: str, **options: Any) -> Calibrator:
    """Fit a calibrator to a column of scores and a column of labels.

    Only counts leave the partitions.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    score : str, sequence of str, or dict of label to str
        The column of scores of the second of two classes, or one column per class, as in
        `ScoreCounts.from_batches`.
    target : str
        The column of the labels: numbers, booleans or text.
    method : str or calibrator, default="venn-abers"
        The calibration method, as in `CalibratedClassifier`.
    weight : str, optional
        The column of non-negative weights.
    classes : sequence, optional
        All class labels; needed when some may be missing from the data.
    increasing : bool or "auto", default=True
        Whether a higher score means that the second class is more likely.
    missing_scores : {"refuse", "drop"}, default="refuse"
        Whether rows without a score raise an error or are left out. Rows without a label are
        always left out; a warning says how many.

    Returns
    -------
    Calibrator
        The fitted calibrator. It equals a fit to all rows if no partition has more than 1,048,576
        distinct scores; more are coarsened (see `ScoreCounts.coarsen`).

    Raises
    ------
    InputError
        If a column is missing or not numeric, or a score is not finite. The message names the
        partition.
    """
    return calibrate_partitions(partial(_dask_results, frame), score, target, **options)


def predict(frame: Any, model: Any, *, carried: Sequence[str] | None = None, **options: Any) -> Any:
    """Return the predictions of a fitted model for every row.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    model : CalibratedClassifier or calibrator
        A fitted model; it is sent once to each worker.
    carried : sequence of str, optional
        Columns copied to the output, by default all.
    **options
        ``columns``, ``answers``, ``level`` and ``missing_scores``, as in
        `vennforest.BatchPredictor`.

    Returns
    -------
    dask.dataframe.DataFrame
        Lazy predictions with the partitions and index of ``frame``. Errors are those of
        `vennforest.BatchPredictor`, and name the partition.
    """
    dask, columns_of_frame = _dask(), _check_frame(frame).columns
    import dask.dataframe as dd

    carried = [str(name) for name in columns_of_frame] if carried is None else list(carried)
    empty = frame._meta.iloc[:0]
    schema = pa.Schema.from_pandas(empty, preserve_index=False)
    predictor = BatchPredictor(model, schema, carried=carried, **options)
    meta = _with_index(predictor.schema.empty_table(), carried, empty)
    shipped = dask.delayed(predictor)
    run = dask.delayed(_predict_in_dask)
    parts = [run(shipped, part, number) for number, part in enumerate(frame.to_delayed())]
    return dd.from_delayed(parts, meta=meta, divisions=frame.divisions, verify_meta=False)


def fit(
    model: CalibratedClassifier, frame: Any, *, target: str, features: Sequence[str] | None = None
) -> CalibratedClassifier:
    """Fit a forest over the partitions of a data frame, calibrated out of bag.

    Each tree is grown on one partition, and every row is scored by the trees of the other
    partitions. If rows are assigned to partitions at random, the bounds are those of
    ``calibrate_on="oob"``. If partitions differ (one hospital or one day each), calibration scores
    come from trees that have not seen the partition, while new objects are scored by all trees:
    the bounds are then too wide, and their validity is not proved.

    Each partition must fit into the memory of its worker, and the forest into that of every worker.
    The frame is read three times and verified to be the same each time: persist it, or read it
    from files.

    Parameters
    ----------
    model : CalibratedClassifier
        An unfitted model whose estimator is a random forest, extra trees or a mixed forest, with
        ``subforest="all"`` and a ``calibrate_on`` of "auto" or "oob".
    frame : dask.dataframe.DataFrame
        Numeric columns, finite or missing, and the target. Empty partitions are ignored, and rows
        without a label are left out with a warning, as ``vennforest fit`` does.
    target : str
        The column of the labels.
    features : sequence of str, optional
        The columns of features; by default all columns except the target.

    Returns
    -------
    CalibratedClassifier
        A fitted clone. Above 1,048,576 rows, calibration scores are coarsened to at most as many.

    Raises
    ------
    InputError
        If a partition has an infinite feature or changed between two passes, or if fewer than two
        partitions have labelled rows.
    """
    if features is None:
        features = [str(name) for name in _check_frame(frame).columns if name != target]
    return fit_partitions(model, partial(_dask_results, frame), features, target)


def _dask_results(frame: Any, columns: Sequence[str], task: Task) -> dict[int, Any]:
    """Run a task on some columns of each partition; return the results by partition number."""
    dask = _dask()
    find_names(_check_frame(frame).columns, columns, " in the data frame")
    shipped = dask.delayed(task)
    parts = frame[list(dict.fromkeys(columns))].to_delayed()
    run = dask.delayed(_run_in_dask)
    results = dask.compute(*(run(shipped, part, number) for number, part in enumerate(parts)))
    return dict(enumerate(results))


def _check_frame(frame: Any) -> Any:
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise InputError(f"frame must be a Dask DataFrame, got {type(frame).__name__}")
    return frame


def _run_in_dask(task: Task, part: pd.DataFrame, number: int) -> Any:
    return run_task(task, _batches(part), number)


def _predict_in_dask(predictor: BatchPredictor, part: pd.DataFrame, number: int) -> pd.DataFrame:
    """Return the predictions for a partition, with the index of the partition."""
    batches = list(predictor(_batches(part), f"partition {number}"))
    table = pa.Table.from_batches(batches, predictor.schema)
    return _with_index(table, predictor.carried, part)


def _with_index(table: Any, carried: list[str], part: pd.DataFrame) -> pd.DataFrame:
    """Return predictions as a data frame with the carried columns and the index of a partition."""
    answers: pd.DataFrame = table.drop_columns(carried).to_pandas()
    answers.index = part.index
    return part[carried].join(answers)


def _batches(part: pd.DataFrame) -> Any:
    return pa.Table.from_pandas(part, preserve_index=False).to_batches()


def _dask() -> Any:
    needed("dask.dataframe", "data frames of Dask")
    return needed("dask", "data frames of Dask")
