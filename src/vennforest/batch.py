"""Predictions batch by batch: Arrow record batches in, Arrow record batches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._answers import Answers, first_refused
from vennforest._files import one_line
from vennforest._messages import needed
from vennforest._validation import InputError, check_count
from vennforest.calibrators import Calibrator
from vennforest.classifier.intervals import Known
from vennforest.forest import is_ensemble
from vennforest.tables.read import find_name
from vennforest.tables.refusals import bad_score, row_of

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow", "record batches")

__all__ = ["BatchPredictor"]

ROWS_AT_ONCE = 1 << 16
"""Rows that are predicted together; the predictions do not depend on it."""


class BatchPredictor:
    """A fitted model that takes Arrow record batches of features, or of scores.

    What comes out are record batches of as many rows in the same order, with the columns that
    ``schema`` names: those copied, ``label`` (the most probable one), and for each class c
    ``p(c)``, where the model has bounds ``lower(c)`` and ``upper(c)``, and where it has confidence
    intervals their ends ``low95(c)`` and ``high95(c)``. They are what
    ``predict_proba``, ``predict_multiprobability`` and ``predict_confidence`` return, however the
    rows are cut into batches: to the last bit for calibrators and forests, and for other models as
    far as their own scores do not depend on which rows come together, as those of matrix products
    do in the last bits. Memory is bounded by ``rows_at_once`` rows.

    Numbers go from Arrow to the model as one array. Pipelines and models of other packages that
    were fitted to a data frame are given one, made of the rows at hand.

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
        What is written of each class, of ``"p"``, ``"bounds"`` and ``"confidence"``; None: all that
        the model gives.
    level : float, default=0.95
        Of the confidence intervals, in (0, 1); with .9 the columns are ``low90(c)`` and
        ``high90(c)``.
    rows_at_once : int
        Above zero; makes no difference to the output.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the output.
    columns : list of str
        The columns that are read.

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
        rows_at_once: int = ROWS_AT_ONCE,
    ) -> None:
        check_count(rows_at_once, "rows_at_once")
        self.model, self.carried, self.rows_at_once = model, list(carried), int(rows_at_once)
        self.columns = _columns_of(model, schema, columns, self.carried)
        for name in [*self.columns, *self.carried]:
            find_column(name, schema.names)
        self._frame = _takes_frame(model)
        self._named = getattr(model, "feature_names_in_", None) is not None
        if not self._frame:
            for name in self.columns:
                check_number(name, schema.field(name).type)
        self._types = {name: schema.field(name).type for name in [*self.columns, *self.carried]}
        self._answers = Answers(model, answers, level=level)
        names = {field.name for field in self._answers.fields}
        for name in self.carried:
            if name in names or self.carried.count(name) > 1:
                raise InputError(
                    f"carried must name columns apart from those of the output, got {name!r}: "
                    "rename it"
                )
        self.schema = pa.schema(
            [
                *(pa.field(name, self._types[name]) for name in self.carried),
                *self._answers.fields,
            ]
        )

    def __call__(
        self, batches: Iterable[pa.RecordBatch], where: str = "the table"
    ) -> Iterator[pa.RecordBatch]:
        """Yield the predictions for one batch after another.

        They have the columns that ``schema`` named, of these types or of others that can be cast to
        them without loss; empty ones are fine. ``where`` is what an error message calls the rows,
        such as ``"partition 3"``.

        Raises
        ------
        InputError
            If a column is missing or of another kind, a score is not finite, or the model refuses
            rows; with the number of the row, from 1, and ``where``.
        """
        done = 0
        for batch in batches:
            yield from self._parts(batch, where, done)
            done += batch.num_rows

    def predict(self, batch: pa.RecordBatch, where: str = "the table") -> pa.RecordBatch:
        """Return the predictions for one batch, whole."""
        table = pa.Table.from_batches(list(self._parts(batch, where, 0)), self.schema)
        whole = table.combine_chunks().to_batches()
        return whole[0] if whole else pa.RecordBatch.from_pylist([], self.schema)

    def _parts(self, batch: pa.RecordBatch, where: str, done: int) -> Iterator[pa.RecordBatch]:
        for name in self._types:
            find_column(name, batch.schema.names, where)
        for start in range(0, batch.num_rows, self.rows_at_once):
            some = batch.slice(start, self.rows_at_once)
            read = {name: self._column(some, name, where) for name in self._types}
            answers = self._answers.arrays(
                self._predict({name: read[name] for name in self.columns}, where, done + start)
            )
            carried = [read[name] for name in self.carried]
            yield pa.RecordBatch.from_arrays([*carried, *answers], schema=self.schema)

    def _column(self, batch: pa.RecordBatch, name: str, where: str) -> pa.Array:
        column, wanted = batch.column(name), self._types[name]
        if column.type == wanted:
            return column
        try:
            return column.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"column {name!r} must be of type {wanted}, got {column.type} in {where} "
                f"({one_line(error)})"
            ) from error

    def _predict(self, read: dict[str, pa.Array], where: str, first: int) -> Known:
        n = len(next(iter(read.values())))
        if isinstance(self.model, Calibrator):
            scores = matrix_of(read)
            _check_finite(scores, read, where, first)
            given = scores[:, 0] if len(read) == 1 else scores
            try:
                return self._answers.predict(given)
            except ValueError as error:  # scores of another kind than it was fitted to
                row = first + first_refused(self.model, given) + 1
                raise InputError(
                    f"{' and '.join(map(repr, read))} in row {row:,} of {where}: {one_line(error)}"
                ) from error
        try:
            return self._answers.predict(self._rows(read))
        except InputError as error:
            raise InputError(f"{one_line(error)} (in {where})") from error
        except ValueError as error:  # what the model's own checks say of the rows
            raise InputError(
                f"the model refuses rows {first + 1:,} to {first + n:,} of {where}: "
                f"{one_line(error)}"
            ) from error

    def _rows(self, read: dict[str, pa.Array]) -> Any:
        if self._frame:
            return pa.Table.from_pydict(read).to_pandas(ignore_metadata=True)
        matrix = matrix_of(read)
        if not self._named:
            return matrix
        # scikit-learn reads the names of an Arrow table, and compares them with those of training.
        return pa.Table.from_arrays([pa.array(column) for column in matrix.T], names=list(read))


def _columns_of(
    model: Any, schema: pa.Schema, columns: str | Sequence[str] | None, carried: list[str]
) -> list[str]:
    """Return the columns that a model reads, as many as it takes."""
    names = getattr(model, "feature_names_in_", None)
    given = None if columns is None else [columns] if isinstance(columns, str) else list(columns)
    if isinstance(model, Calibrator):
        k = len(model.classes_)
        if given is None:
            raise InputError(
                f"columns must name the scores that a {type(model).__name__} takes, got None"
            )
        if len(given) != k and (k > 2 or len(given) != 1):
            raise InputError(f"columns must name a column for each of {k} classes, got {given}")
        return given
    if names is not None:
        known = [str(name) for name in names]
        if given is not None and given != known:
            raise InputError(
                f"columns must be those of training in their order, {known}, got {given}: leave "
                "them out"
            )
        return known
    if given is None:
        given = [name for name in schema.names if name not in carried]
    n = getattr(model, "n_features_in_", len(given))
    if len(given) != n:
        raise InputError(
            f"columns must name the {n} features of training, which had no names, got {len(given)}"
        )
    return given


def _takes_frame(model: Any) -> bool:
    """Tell whether a model was fitted to a data frame, and needs one."""
    if isinstance(model, Calibrator) or getattr(model, "feature_names_in_", None) is None:
        return False
    fitted = getattr(model, "estimators_", None) or [None]
    return not is_ensemble(fitted[0])


def find_column(name: str, names: Sequence[str], where: str = "the table") -> None:
    """Refuse a name that is none of a table's columns, with the closest ones."""
    find_name(list(names), name, where=f" in {where}")


def check_number(name: str, kind: pa.DataType, where: str = "the table") -> None:
    """Refuse a type that is none of numbers or booleans."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (number or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
        raise InputError(f"column {name!r} must contain numbers, got {kind} in {where}")


def matrix_of(read: dict[str, pa.Array]) -> NDArray[Any]:
    """Return columns of numbers as one array (n, d), missing ones as NaN, in their common type."""
    columns = [_numbers(column) for column in read.values()]
    matrix: NDArray[Any] = np.column_stack(columns)
    return matrix


def _numbers(column: pa.Array) -> NDArray[Any]:
    kind = column.type
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _check_finite(scores: NDArray[Any], read: dict[str, pa.Array], where: str, first: int) -> None:
    finite = np.isfinite(scores)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        name = list(read)[column]
        raise bad_score(name, read[name][row].as_py(), row_of(first + row, where))
