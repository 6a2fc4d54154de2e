"""Predictions batch by batch: Arrow record batches in, Arrow record batches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from vennforest._files import one_line
from vennforest._messages import needed
from vennforest._shown import KINDS, columns_of, names_of
from vennforest._validation import FloatArray, InputError, check_count
from vennforest.calibrators import Calibrator
from vennforest.calibrators.base import has_bounds, merged
from vennforest.calibrators.intervals import ConfidenceIntervals, check_level
from vennforest.classifier.prediction import Prediction, predict, predict_confidence
from vennforest.forest import is_ensemble
from vennforest.tables.cells import as_floats, is_text, plain_type, row_name, shown_cell
from vennforest.tables.columns import TableColumns, unknown_names
from vennforest.tables.files import TableFile
from vennforest.tables.read import find_name
from vennforest.tables.text import with_decimal_point

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow", "record batches")

__all__ = ["BatchPredictor"]

Known = tuple[Prediction, ConfidenceIntervals | None]
"""Bounds and probabilities, and confidence intervals where the model gives them."""

ROWS_AT_ONCE = 1 << 16
"""Rows that are predicted together; the predictions do not depend on it."""


class BatchPredictor:
    """Predict Arrow record batches of features, or of scores, with a fitted model.

    The output are record batches of as many rows in the same order, with the columns that
    ``schema`` names: those carried along, ``label`` (the most probable one), and for each class c
    ``p(c)``, where the model has bounds ``lower(c)`` and ``upper(c)``, and where it has confidence
    intervals their ends ``low95(c)`` and ``high95(c)``. The numbers are those of
    ``predict_proba``, ``predict_multiprobability`` and ``predict_confidence`` and do not depend on
    how the rows are cut into batches (but in the last bits for models whose own scores do, such as
    matrix products). Memory is bounded by ``rows_at_once`` rows.

    Every command, Dask and Spark predict by it. A command that predicts a file is::

        table = TableFile(path)
        predictor = BatchPredictor(model, table.schema, carried=["id"])
        for batch in predictor.over(table):
            writer.write_batch(batch)

    Parameters
    ----------
    model : CalibratedClassifier or calibrator
        Fitted.
    schema : pyarrow.Schema
        Of the batches to come.
    columns : str or sequence of str, optional
        The columns of the features, in the order of training, or of the scores: one of the second
        of two classes, or one a class. None: those that the model was fitted to, by name.
    carried : sequence of str
        Columns that the output begins with.
    answers : str or sequence of str, optional
        Which columns of each class are written, of ``"p"``, ``"bounds"`` and ``"confidence"``;
        None: all that the model has.
    level : float, default=0.95
        Of the confidence intervals, in (0, 1); with .9 the columns are ``low90(c)`` and
        ``high90(c)``.
    of_label : bool, default=False
        Whether ``probability``, ``lower``, ``upper``, ``low95`` and ``high95`` of the most probable
        label come before the columns of the classes.
    rows_at_once : int
        Above zero; makes no difference to the output.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the output.
    columns : list of str
        The columns that are read.
    numbers : list of str
        Those of them that are numbers: in a text file, other cells are refused.
    missing : list of str
        Cells that stand for missing values, besides NA, NaN, null and nothing.

    Raises
    ------
    InputError
        If a column is missing or contains no numbers where the model takes numbers, or two columns
        of the output would have one name.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from vennforest import VennAbers
    >>> calibrator = VennAbers().fit([0.1, 0.4, 0.6, 0.9], ["no", "no", "yes", "yes"])
    >>> scores = pa.record_batch({"id": [1, 2], "s": [0.2, 0.8]})
    >>> predictor = BatchPredictor(calibrator, scores.schema, columns="s", carried=["id"])
    >>> predictor.predict(scores).to_pydict()["label"]
    ['no', 'yes']
    >>> predictor.schema.names[:7]
    ['id', 'label', 'p(no)', 'lower(no)', 'upper(no)', 'low95(no)', 'high95(no)']
    """

    def __init__(
        self,
        model: Any,
        schema: pa.Schema,
        *,
        columns: str | Sequence[str] | None = None,
        carried: Sequence[str] = (),
        answers: str | Sequence[str] | None = None,
        level: float = 0.95,
        of_label: bool = False,
        rows_at_once: int = ROWS_AT_ONCE,
    ) -> None:
        check_count(rows_at_once, "rows_at_once")
        self.model, self.carried, self.rows_at_once = model, list(carried), int(rows_at_once)
        self.columns = _columns_of(model, schema, columns, self.carried)
        for name in [*self.columns, *self.carried]:
            find_name(schema.names, name, where=" in the table")
        table = table_columns(model)
        self.numbers = self.columns if table is None else table.numbers
        self.missing = [] if table is None else list(table.missing or [])
        self._frame = _takes_frame(model)
        self._named = getattr(model, "feature_names_in_", None) is not None
        if not self._frame:
            for name in self.columns:
                check_number(name, schema.field(name).type)
        self._types = {name: schema.field(name).type for name in [*self.columns, *self.carried]}
        check_level(level)
        self.kinds, self.level = kinds_of(model, answers), float(level)
        self._of_label = of_label
        self._labels = _arrow_labels(model.classes_)
        fields = self._fields()
        for name in self.carried:
            if name in fields or self.carried.count(name) > 1:
                raise InputError(
                    f"carried must name columns apart from those of the output, got {name!r}: "
                    "rename it, or name the columns to copy"
                )
        carried_types = [(name, plain_type(self._types[name])) for name in self.carried]
        numbers = [(name, pa.float64()) for name in fields[1:]]
        self.schema = pa.schema([*carried_types, ("label", self._labels.type), *numbers])

    def over(self, table: TableFile) -> Iterator[pa.RecordBatch]:
        """Yield the predictions for the rows of a table in a file."""
        decimal = table.decimal if table.is_text else None
        batches = table.batches([*self.columns, *self.carried])
        return self._over(batches, str(table.path), decimal)

    def __call__(
        self, batches: Iterable[pa.RecordBatch], where: str = "the table"
    ) -> Iterator[pa.RecordBatch]:
        """Yield the predictions for one batch after another.

        The batches have the columns that ``schema`` named, of these types or of others that can be
        cast to them without loss; they may be empty. ``where`` is what error messages call the
        rows, such as ``"partition 3"``.

        Raises
        ------
        InputError
            If a column is missing or of another kind, a score is not finite, or the model refuses
            rows; with the number of the row, from 1, and ``where``.
        """
        return self._over(batches, where)

    def _over(
        self, batches: Iterable[pa.RecordBatch], where: str, decimal: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the predictions; ``decimal`` is the sign of a file in which all cells are text."""
        n_rows = 0
        for batch in batches:
            yield from self._parts(batch, where, n_rows, decimal)
            n_rows += batch.num_rows

    def predict(self, batch: pa.RecordBatch, where: str = "the table") -> pa.RecordBatch:
        """Return the predictions for one batch."""
        table = pa.Table.from_batches(list(self._parts(batch, where, 0)), self.schema)
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], self.schema)

    def _fields(self) -> list[str]:
        """Return the names of the columns of the output that are not carried along."""
        prefixes = [name for kind in self.kinds for name in names_of(kind, self.level)]
        of_label = ["probability" if name == "p" else name for name in prefixes]
        labels = self.model.classes_.tolist()
        of_classes = [
            name for label in labels for name in columns_of(label, self.kinds, self.level)
        ]
        return ["label", *(of_label if self._of_label else []), *of_classes]

    def _parts(
        self, batch: pa.RecordBatch, where: str, n_before: int, decimal: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        for name in self._types:
            find_name(batch.schema.names, name, where=f" in {where}")
        for start in range(0, batch.num_rows, self.rows_at_once):
            part = batch.slice(start, self.rows_at_once)
            cells = {name: self._column(part, name, where) for name in self._types}
            features = {name: cells[name] for name in self.columns}
            if decimal is not None:
                for name in self.numbers:
                    text = features[name]
                    text = with_decimal_point(text) if decimal == "," else text
                    floats = as_floats(text, name, where, n_before + start, self.missing)
                    features[name] = pa.array(floats, from_pandas=True)
            prediction = self._predict(features, where, n_before + start)
            carried = [cells[name].cast(self.schema.field(name).type) for name in self.carried]
            yield pa.RecordBatch.from_arrays(
                [*carried, *self._output(prediction)], schema=self.schema
            )

    def _column(self, batch: pa.RecordBatch, name: str, where: str) -> pa.Array:
        column, expected = batch.column(name), self._types[name]
        if column.type == expected:
            return column
        try:
            return column.cast(expected)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"column {name!r} must be of type {expected}, got {column.type} in {where} "
                f"({one_line(error)})"
            ) from error

    def _output(self, prediction: Known) -> list[pa.Array]:
        """Return the columns of the output that are not carried along."""
        (bounds, p), intervals = prediction
        tables: dict[str, list[FloatArray]] = {"p": [p]}
        for kind, ends in (("bounds", bounds), ("confidence", intervals)):
            if ends is not None:
                tables[kind] = [ends.lower, ends.upper]
        parts = [table for kind in self.kinds for table in tables[kind]]
        codes = p.argmax(axis=1)
        columns = [part[np.arange(len(p)), codes] for part in parts if self._of_label]
        columns += [part[:, j] for j in range(p.shape[1]) for part in parts]
        return [self._labels.take(pa.array(codes)), *map(pa.array, columns)]

    def _predict(self, columns: dict[str, pa.Array], where: str, first_row: int) -> Known:
        n = len(next(iter(columns.values())))
        has_intervals = "confidence" in self.kinds
        if isinstance(self.model, Calibrator):
            scores = matrix_of(columns, where, first_row)
            _check_finite(scores, columns, where, first_row)
            scores = scores[:, 0] if len(columns) == 1 else scores
            try:
                return _calibrated(self.model, scores, self.level if has_intervals else None)
            except ValueError as error:  # scores out of the range of the calibrator
                row = first_row + _first_refused(self.model, scores) + 1
                raise InputError(
                    f"{' and '.join(map(repr, columns))} in row {row:,} of {where}: "
                    f"{one_line(error)}"
                ) from error
        rows = self._rows(columns, where, first_row)
        try:
            if has_intervals:
                return predict_confidence(self.model._state, rows, self.level)
            return predict(self.model._state, rows), None
        except InputError as error:
            raise InputError(f"{one_line(error)} (in {where})") from error
        except ValueError as error:
            raise InputError(
                f"the model refuses rows {first_row + 1:,} to {first_row + n:,} of {where}: "
                f"{one_line(error)}"
            ) from error

    def _rows(self, columns: dict[str, pa.Array], where: str, first_row: int) -> Any:
        if self._frame:
            return pa.Table.from_pydict(columns).to_pandas(ignore_metadata=True)
        matrix = matrix_of(columns, where, first_row)
        if not self._named:
            return matrix
        # scikit-learn compares the names of an Arrow table with those of training.
        return pa.Table.from_arrays([pa.array(column) for column in matrix.T], names=list(columns))


def _calibrated(calibrator: Calibrator, scores: FloatArray, level: float | None) -> Known:
    """Return the bounds, probabilities and, at a level, confidence intervals of scores."""
    intervals = None if level is None else calibrator.predict_confidence(scores, level)
    if not has_bounds(calibrator):
        return (None, calibrator.predict_proba(scores)), intervals
    bounds = calibrator.predict_multiprobability(scores)
    p = merged(calibrator, bounds, np.ascontiguousarray(scores, np.float64))
    return (bounds, p), intervals


def _first_refused(calibrator: Calibrator, scores: FloatArray) -> int:
    """Return the first row of scores (n,) or (n, k) that a calibrator refuses; there is one."""
    low, high = 0, len(scores) - 1
    while low < high:
        middle = (low + high) // 2
        try:
            calibrator.predict_proba(scores[: middle + 1])
        except ValueError:
            high = middle
        else:
            low = middle + 1
    return low


def kinds_of(model: Any, kinds: str | Sequence[str] | None, name: str = "answers") -> list[str]:
    """Return the kinds of columns that are written of a model; None: all that it has."""
    available = ["p", *(["bounds"] if has_bounds(model) else [])]
    reason = no_confidence(model)
    if reason is None:
        available.append("confidence")
    if kinds is None:
        return available
    requested = [k.strip() for k in (kinds.split(",") if isinstance(kinds, str) else kinds)]
    for kind in requested:
        if kind not in KINDS:
            raise InputError(f"{name} must be some of {','.join(KINDS)}, got {kind!r}")
    if "confidence" in requested and reason is not None:
        raise InputError(f"{name} must leave out confidence: {reason}")
    shown = [kind for kind in available if kind in requested]
    if not shown:
        raise InputError(f"{name} must have p: the {type(model).__name__} gives no bounds")
    return shown


def no_confidence(model: Any) -> str | None:
    """Return why a model has no confidence intervals, None if it has."""
    if callable(getattr(model, "predict_confidence", None)):
        return None
    return (
        f"a {type(model).__name__} has no confidence intervals (a CalibratedClassifier and a "
        "VennAbers calibrator have)"
    )


def _arrow_labels(classes: NDArray[Any]) -> pa.Array:
    """Return the classes as an Arrow array of integers, booleans, floats or text."""
    types = {"i": pa.int64(), "u": pa.uint64(), "b": pa.bool_(), "f": pa.float64()}
    kind = types.get(classes.dtype.kind)
    if kind is None:
        return pa.array(list(map(str, classes.tolist())), pa.string())
    return pa.array(classes.tolist(), kind)


def table_columns(model: Any) -> TableColumns | None:
    """Return the first step of a model's pipeline if it reads the columns of a table."""
    fitted = getattr(model, "estimators_", None) or [getattr(model, "estimator_", None)]
    first = fitted[0]
    if isinstance(first, Pipeline) and isinstance(first[0], TableColumns):
        return first[0]
    return None


def _columns_of(
    model: Any, schema: pa.Schema, columns: str | Sequence[str] | None, carried: list[str]
) -> list[str]:
    """Return the columns that a model reads, as many as it takes."""
    names = getattr(model, "feature_names_in_", None)
    chosen = None if columns is None else [columns] if isinstance(columns, str) else list(columns)
    if isinstance(model, Calibrator):
        k = len(model.classes_)
        if chosen is None:
            raise InputError(
                f"columns must name the scores that a {type(model).__name__} takes, got None"
            )
        if len(chosen) != k and (k > 2 or len(chosen) != 1):
            raise InputError(f"columns must name a column for each of {k} classes, got {chosen}")
        return chosen
    table = table_columns(model)
    names = names if table is None else table.feature_names_in_
    if names is not None:
        trained = [str(name) for name in names]
        if chosen is not None and chosen != trained:
            raise InputError(
                f"columns must be those of training in their order, {trained}, got {chosen}: leave "
                "them out"
            )
        unknown_names(schema.names, trained)
        return trained
    if chosen is None:
        chosen = [name for name in schema.names if name not in carried]
    n = getattr(model, "n_features_in_", len(chosen))
    if len(chosen) != n:
        raise InputError(
            f"columns must name the {n} features of training, which had no names, got {len(chosen)}"
        )
    return chosen


def _takes_frame(model: Any) -> bool:
    """Tell whether a model was fitted to a data frame, and needs one."""
    if isinstance(model, Calibrator) or getattr(model, "feature_names_in_", None) is None:
        return False
    fitted = getattr(model, "estimators_", None) or [None]
    return not is_ensemble(fitted[0])


def check_number(name: str, kind: pa.DataType, where: str = "the table") -> None:
    """Refuse a type that is none of numbers, booleans or text (which may be numbers)."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    number = number or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    if not number and not is_text(plain_type(kind)):
        raise InputError(f"column {name!r} must contain numbers, got {kind} in {where}")


def matrix_of(
    columns: dict[str, pa.Array], where: str = "the table", first_row: int = 0
) -> NDArray[Any]:
    """Return columns of numbers as one array (n, d), missing ones as NaN, in their common type."""
    arrays = [as_floats(column, name, where, first_row) for name, column in columns.items()]
    matrix: NDArray[Any] = np.column_stack(arrays)
    return matrix


def _check_finite(
    scores: NDArray[Any], columns: dict[str, pa.Array], where: str, first_row: int
) -> None:
    finite = np.isfinite(scores)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        raise InputError(
            f"column {list(columns)[column]!r} must contain finite scores, got "
            f"{shown_cell(float(scores[row, column]))} in {row_name(first_row + row, where)}"
        )
