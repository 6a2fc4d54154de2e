"""Predictions batch by batch: Arrow record batches in, Arrow record batches out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from vennforest._class_columns import (
    ClassColumns,
    ScoreNames,
    class_columns,
    column_names,
    refuse_own_output,
)
from vennforest._files import one_line
from vennforest._messages import needed, shown
from vennforest._shown import OUTPUT_KINDS, names_of
from vennforest._validation import FloatArray, InputError, check_count, check_inside, check_option
from vennforest.calibrators import Calibrator
from vennforest.calibrators.bounded import has_bounds, merged
from vennforest.calibrators.direction import NewScores
from vennforest.calibrators.intervals import ConfidenceIntervals
from vennforest.classifier.prediction import Prediction, predict_confidence, predict_rows
from vennforest.forest import is_ensemble
from vennforest.multiprobability import Multiprobability
from vennforest.scores import ScoreKind, is_impossible, read_scores
from vennforest.sources.estimators import as_read, first_model
from vennforest.sources.training_columns import (
    ColumnDifference,
    NewColumns,
    TrainingColumns,
    columns_of_frame,
)
from vennforest.tables.open import TableFile
from vennforest.tables.read import as_floats, refuse_cell, row_name
from vennforest.tables.schema import TableColumns, check_names, find_names

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow", "record batches")

__all__ = ["BatchPredictor"]

RowPredictions = tuple[Prediction, ConfidenceIntervals | Multiprobability | None]
"""Bounds and probabilities, and confidence intervals if the model has them."""

ROWS_AT_ONCE = 1 << 16
"""Number of rows predicted at once; the predictions do not depend on it."""


class BatchPredictor:
    """Predict Arrow record batches of features, or of scores, with a fitted model.

    The output are record batches with the rows in the same order. Their columns are the carried
    ones, the most probable ``label``, and for each class c ``p(c)``, and if the model has them the
    bounds ``lower(c)`` and ``upper(c)`` and the ends of the confidence interval, ``low95(c)`` and
    ``high95(c)``. The numbers are those of ``predict_proba``,
    ``predict_multiprobability`` and ``predict_confidence``, however the rows are divided into
    batches. Memory is bounded by ``rows_at_once`` rows.

    To predict the rows of a file, call ``predictor.over(TableFile(path))``.

    Parameters
    ----------
    model : CalibratedClassifier or calibrator
        A fitted model.
    schema : pyarrow.Schema
        Schema of the batches to predict.
    columns : str, sequence of str, or dict of label to str, optional
        Columns of the features, in the order of training, by default those that the model was
        fitted to. For a calibrator, columns of scores as in `ScoreCounts.from_batches`: that of
        the second of two classes, or one per class, called like the labels or ``p(label)``, or
        given by label.
    carried : sequence of str
        Columns copied to the beginning of the output.
    answers : str or sequence of str, optional
        Kinds of columns of each class, of ``"p"``, ``"bounds"`` and ``"confidence"``; by default
        all that the model has.
    level : float, default=0.95
        Level of the confidence intervals, in (0, 1); with 0.9 the columns are ``low90(c)`` and
        ``high90(c)``.
    of_label : bool, default=False
        Whether ``probability``, ``lower``, ``upper``, ``low95`` and ``high95`` of the most probable
        label come before the columns of the classes.
    rows_at_once : int
        Number of rows predicted at once, at least 1; it does not change the output.
    missing_scores : {"refuse", "keep"}, default="refuse"
        What rows with a missing score are given by a calibrator: an error, or empty cells.
    calibrated_on : TrainingColumns, optional
        Summary of the scores that a calibrator was fitted to.

    Attributes
    ----------
    schema : pyarrow.Schema
        Schema of the output.
    columns : list of str
        The input columns of the model.

    Raises
    ------
    InputError
        If a column is missing, two columns of the output would have one name, or the scores of a
        calibrator seem to be its own output.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from vennforest import VennAbers
    >>> calibrator = VennAbers().fit([0.1, 0.4, 0.6, 0.9], ["no", "no", "yes", "yes"])
    >>> scores = pa.record_batch({"id": [1, 2], "s": [0.2, 0.8]})
    >>> predictor = BatchPredictor(calibrator, scores.schema, columns="s", carried=["id"])
    >>> [batch.to_pydict()["label"] for batch in predictor([scores])]
    [['no', 'yes']]
    >>> predictor.schema.names[:7]
    ['id', 'label', 'p(no)', 'lower(no)', 'upper(no)', 'low95(no)', 'high95(no)']
    """

    def __init__(
        self,
        model: Any,
        schema: pa.Schema,
        *,
        columns: ScoreNames | None = None,
        carried: Sequence[str] = (),
        answers: str | Sequence[str] | None = None,
        level: float = 0.95,
        of_label: bool = False,
        rows_at_once: int = ROWS_AT_ONCE,
        missing_scores: str = "refuse",
        calibrated_on: TrainingColumns | None = None,
    ) -> None:
        check_option(missing_scores, ("refuse", "keep"), "missing_scores")
        check_count(rows_at_once, "rows_at_once")
        level = check_inside(level, "level")
        self._keeps_missing = missing_scores == "keep" and isinstance(model, Calibrator)
        self.model, self.level, self.rows_at_once = model, level, int(rows_at_once)
        self._scores: ClassColumns | None = None
        self._expected: tuple[ScoreKind, FloatArray | None] = ("probability", None)
        self.carried = list(carried)
        if isinstance(model, Calibrator):
            classes = model.classes_.tolist()
            self.model = model._by_class()
            self.model._warns_of_new = False  # but of all batches together
            self._expected = model.on_, model.score_range_
            self._scores = class_columns(columns or (), classes, "columns", schema.names)
            self.columns = self._scores.names
            refuse_own_output(self.columns, schema.names, classes)
        else:
            self.columns = _features_of(model, schema, column_names(columns or ()))
        training = calibrated_on if self._scores else model._state.columns
        self._new = None if training is None else NewColumns(training)
        self.kinds, self._of_label = kinds_of(model, answers), of_label
        find_names(schema.names, [*self.columns, *self.carried], " in the table")
        carried_types = [(name, schema.field(name).type) for name in self.carried]
        self.schema = output_schema(carried_types, model.classes_, self.kinds, level, of_label)

    def over(self, table: TableFile) -> Iterator[pa.RecordBatch]:
        """Yield the predictions for the rows of a table in a file."""
        table.refuse_thousands(self._number_names())
        decimal = table.decimal if table.is_text else None
        return self(table.batches([*self.columns, *self.carried]), str(table.path), decimal)

    def column_differences(self) -> list[ColumnDifference]:
        """Return the columns of all rows predicted so far that differ from training."""
        return [] if self._new is None else list(self._new.differences())

    def __call__(
        self,
        batches: Iterable[pa.RecordBatch],
        where: str = "the table",
        decimal: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield a batch of predictions for each batch.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Batches with the columns of the input schema; they may be empty.
        where : str
            Name of the rows in error messages, such as ``"partition 3"``.
        decimal : {".", ","}, optional
            The decimal sign of numbers, if all cells are text.

        Raises
        ------
        InputError
            If a column is missing or of another type, a score is not finite, or the model raises
            an error. The message contains ``where`` and the number of the row, from 1.
        """
        n_rows, new_scores = 0, NewScores(*self._expected)
        for batch in batches:
            find_names(batch.schema.names, [*self.columns, *self.carried], f" in {where}")
            for start in range(0, batch.num_rows, self.rows_at_once):
                part, first_row = batch.slice(start, self.rows_at_once), n_rows + start
                features = {name: part.column(name) for name in self.columns}
                if decimal is not None:
                    features |= self._numbers(features, where, first_row, decimal)
                carried = [self._carried(part, name) for name in self.carried]
                all_rows = rows = self._rows(features, where, first_row)
                if self._keeps_missing:
                    has_score = ~np.isnan(all_rows).any(axis=1)
                    rows = all_rows[has_score]
                prediction = self._predict(rows, where, first_row, new_scores)
                if self._new is not None:
                    self._new.add(self._as_training(all_rows), len(all_rows))
                output = output_columns(self.model.classes_, self.kinds, prediction, self._of_label)
                if self._keeps_missing:
                    position = pa.array(np.cumsum(has_score) - 1, mask=~has_score)
                    output = [array.take(position) for array in output]
                yield pa.RecordBatch.from_arrays([*carried, *output], schema=self.schema)
            n_rows += batch.num_rows
        new_scores.warn()

    def _carried(self, rows: pa.RecordBatch, name: str) -> pa.Array:
        """Return the cells of a carried column, which are not read, in the type of the schema."""
        cells, kind = rows.column(name), self.schema.field(name).type
        try:
            return cells if cells.type == kind else cells.cast(kind)
        except pa.ArrowException as error:
            raise InputError(
                f"column {name!r} must be of the type {kind} in every batch, got {cells.type}: "
                f"{one_line(error)}"
            ) from error

    def _number_names(self) -> list[str]:
        table = table_columns(self.model)
        return self.columns if table is None else number_columns(self.model, table)

    def _numbers(
        self, cells: dict[str, pa.Array], where: str, first_row: int, decimal: str
    ) -> dict[str, pa.Array]:
        """Return the numeric input columns of the model, converted from text to numbers."""
        table, names = table_columns(self.model), self._number_names()
        markers = () if table is None else table.missing or ()
        floats = (as_floats(cells[n], n, where, first_row, markers, decimal) for n in names)
        return {n: pa.array(c, from_pandas=True) for n, c in zip(names, floats, strict=True)}

    def _as_training(self, rows: Any) -> list[tuple[str, NDArray[Any]]]:
        """Return input of the model as columns that are compared with those of training."""
        if self._scores is None:
            return columns_of_frame(as_read(rows, self.model._state.folds[0].model))
        columns, on = self._scores, self.model.on_
        is_present = ~np.isnan(rows).any(axis=1)
        if not is_present.any():
            return [(columns.names[-1], np.full(len(rows), np.nan))]
        scores = columns.scores_in(rows[is_present], on)
        if len(columns.classes) == 2:  # one column, as calibrators read them
            scores = read_scores(scores, 2, on).values
        scores = scores.reshape(len(scores), -1)
        cells = np.full((len(rows), scores.shape[1]), np.nan)
        cells[is_present] = scores
        return list(zip(columns.names[-scores.shape[1] :], cells.T, strict=True))

    def _predict(
        self, rows: Any, where: str, first_row: int, new_scores: NewScores
    ) -> RowPredictions:
        level = self.level if "confidence" in self.kinds else None
        try:
            if self._scores is not None:
                scores = self._scores.scores_in(rows, self.model.on_)
                if self.model.on_ != "probability":  # of which none is far, or read otherwise
                    new_scores.add(*self.model._read_new(scores))
                intervals = None
                if level is not None:
                    intervals = self.model.predict_confidence(scores, level)
                if not has_bounds(self.model):
                    return Prediction(None, self.model.predict_proba(scores)), intervals
                bounds = self.model.predict_multiprobability(scores)
                p = merged(self.model, bounds, np.ascontiguousarray(scores, np.float64))
                return Prediction(bounds, p), intervals
            if level is None:
                return predict_rows(self.model._state, rows), None
            return predict_confidence(self.model._state, rows, level)
        except InputError as error:
            raise InputError(f"{one_line(error)} (in {where})") from error
        except ValueError as error:
            last_row = first_row + _num_samples(rows)
            raise InputError(
                f"the model refuses rows {first_row + 1:,} to {last_row:,} of {where}: "
                f"{one_line(error)}"
            ) from error

    def _rows(self, columns: dict[str, pa.Array], where: str, first_row: int) -> Any:
        """Return columns as input of the model: a data frame, or an array, as of scores."""
        is_calibrator = isinstance(self.model, Calibrator)
        has_names = not is_calibrator and hasattr(self.model, "feature_names_in_")
        if has_names and not is_ensemble(self.model.estimators_[0]):
            frame = pa.Table.from_pydict(columns).to_pandas(ignore_metadata=True)
            frame.index += first_row  # error messages number the rows by it
            return frame
        arrays = [as_floats(column, name, where, first_row) for name, column in columns.items()]
        if has_names:  # scikit-learn compares those of an Arrow table with those of training
            return pa.Table.from_arrays(list(map(pa.array, arrays)), names=list(columns))
        table = np.column_stack(arrays)
        if not is_calibrator:
            return table
        is_wrong = is_impossible(table, self.model.on_, table.shape[1])
        if self._keeps_missing:
            is_wrong &= ~np.isnan(table)
        for row, column in np.argwhere(is_wrong)[:1].tolist():
            value, row_text = float(table[row, column]), row_name(first_row + row, where)
            refuse_cell(list(columns)[column], "finite scores", value, row_text)
        return table


def output_schema(
    carried: Sequence[tuple[str, pa.DataType]],
    classes: NDArray[Any],
    kinds: Sequence[str],
    level: float = 0.95,
    of_label: bool = False,
) -> pa.Schema:
    """Return the schema of carried columns and predictions; raise an error for equal names."""
    prefixes = [name for kind in kinds for name in names_of(kind, level)]
    numbers = ["probability" if name == "p" else name for name in prefixes if of_label]
    numbers += [f"{name}({label})" for label in classes.tolist() for name in prefixes]
    names = Counter(["label", *numbers, *(name for name, _ in carried)])
    for name, _ in carried:
        if names[name] > 1:
            raise InputError(
                f"carried must name columns once, apart from those of the output, got {name!r}: "
                "rename it, or name the columns to copy (--id, carried=)"
            )
    label = ("label", _arrow_labels(classes).type)
    return pa.schema([*carried, label, *((name, pa.float64()) for name in numbers)])


def output_columns(
    classes: NDArray[Any], kinds: Sequence[str], prediction: RowPredictions, of_label: bool = False
) -> list[pa.Array]:
    """Return predictions as columns of `output_schema`, from ``label`` on."""
    (bounds, p), intervals = prediction
    tables: dict[str, list[FloatArray]] = {"p": [p]}
    for kind, ends in (("bounds", bounds), ("confidence", intervals)):
        if ends is not None:
            tables[kind] = [ends.lower, ends.upper]
    parts = [table for kind in kinds for table in tables[kind]]
    best = p.argmax(axis=1)
    columns = [part[np.arange(len(p)), best] for part in parts if of_label]
    columns += [part[:, j] for j in range(p.shape[1]) for part in parts]
    return [_arrow_labels(classes).take(pa.array(best)), *map(pa.array, columns)]


def kinds_of(model: Any, kinds: str | Sequence[str] | None, name: str = "answers") -> list[str]:
    """Return the requested kinds of columns, by default all that a model has."""
    has_intervals = callable(getattr(model, "predict_confidence", None))
    missing = [] if has_bounds(model) else ["bounds"]
    missing += [] if has_intervals else ["confidence"]
    available = [kind for kind in OUTPUT_KINDS if kind not in missing]
    if kinds is None:
        return available
    requested = [k.strip() for k in (kinds.split(",") if isinstance(kinds, str) else kinds)]
    for kind in requested:
        if kind not in available:
            raise InputError(
                f"{name} must be some of {','.join(available)}, got {shown(kind)}: a "
                f"{type(model).__name__} has no others"
            )
    return [kind for kind in available if kind in requested]


def table_columns(model: Any) -> TableColumns | None:
    """Return the first step of a model's pipeline if it is a `TableColumns`, else None."""
    first = first_model((getattr(model, "estimators_", None) or [None])[0])
    if isinstance(first, Pipeline) and isinstance(first[0], TableColumns):
        return first[0]
    return None


def feature_names(model: Any) -> list[str] | None:
    """Return the names of a classifier's input columns, None if they had none in training."""
    table = table_columns(model)
    names = getattr(model if table is None else table, "feature_names_in_", None)
    return None if names is None else list(map(str, names))


def number_columns(model: Any, table: TableColumns) -> list[str]:
    """Return the columns of numbers, but for one whose text names the groups of a model."""
    groups = model._state.by_groups
    names_groups = groups is not None and groups.labels.dtype.kind == "U"
    return [name for name in table.numbers if not (names_groups and name == groups.by)]


def _arrow_labels(classes: NDArray[Any]) -> pa.Array:
    """Return the classes as an Arrow array of integers, booleans, floats or text."""
    if classes.dtype.kind in "iubf":
        return pa.array(classes)
    return pa.array(list(map(str, classes.tolist())), pa.string())


def _features_of(model: Any, schema: pa.Schema, named: list[str]) -> list[str]:
    """Return the names of a classifier's input columns; refuse ``named`` ones that are others."""
    trained = feature_names(model)
    if trained is None:
        if not named:
            raise InputError("columns must name the features, which had no names in training")
        return named
    if named and named != trained:
        raise InputError(
            f"columns must be those of training in their order, {shown(trained)}, got "
            f"{shown(named)}: leave them out"
        )
    check_names(schema.names, trained)
    return trained
