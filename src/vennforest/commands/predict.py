"""The command ``predict``: a table in, probabilities with their bounds out, part by part."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from vennforest import persistence
from vennforest._files import check_output, one_line, refuse_special, written_whole
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator
from vennforest.commands.terminal import print_json, progress_bar, say
from vennforest.prediction import predict_once
from vennforest.tables.columns import TableColumns, unknown_names
from vennforest.tables.stream import Batch, TableFile
from vennforest.tables.write import all_as_text, output_format, table_writer

ROWS_AT_ONCE = 20_000
"""Rows that are predicted together; the predictions do not depend on it."""

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Predicted:
    """Summary of what ``predict_file`` did.

    Attributes
    ----------
    n_rows : int
    counts : dict of str to int
        How many rows got each label.
    columns : list of str
        Of the output.
    ignored : list of str
        Columns of the table that the model does not know.
    mean_width : float or None
        Of the bounds of the predicted labels; None without bounds or rows.
    seconds : float
    """

    n_rows: int
    counts: dict[str, int]
    columns: list[str]
    ignored: list[str]
    mean_width: float | None
    seconds: float


def run(model: Path, data: Path, output: Path, *, as_json: bool, **options: Any) -> None:
    """Predict, write the predictions, and say how many.

    Parameters
    ----------
    model, data, output, **options
        Of `predict_file`.
    as_json : bool
        Print a summary.

    Raises
    ------
    InputError
        If a file or option is not what it should be.
    """
    notes: list[str] = []
    with progress_bar("Rows") as progress:
        done = predict_file(model, data, output, note=notes.append, progress=progress, **options)
    for note in notes:
        say(f"Note: {note}")
    if as_json:
        print_json({**asdict(done), "output": str(output), "notes": notes})
    elif sys.stderr.isatty():
        say(f"Wrote {output}: {done.n_rows:,} rows ({done.seconds:.0f} s)")


def predict_file(
    model_path: Path,
    data: Path,
    output: Path,
    *,
    carried: Sequence[str] = (),
    trusted: Sequence[str] = (),
    rows_at_once: int = ROWS_AT_ONCE,
    no_formulas: bool = False,
    note: Callable[[str], None] = lambda _: None,
    progress: Progress | None = None,
) -> Predicted:
    """Predict every row of a table, and write a table of predictions in the same order.

    Parameters
    ----------
    model_path, data, output : Path
        The output is written whole or not at all; its suffix decides the format.
    carried : sequence of str
        Columns of the table that the output begins with.
    trusted : sequence of str
        Types beyond the known ones that the model file may hold, see ``vennforest.load``.
    rows_at_once : int
        Above zero; makes no difference to the output.
    no_formulas : bool
        Whether text that a spreadsheet program would take for a formula gets an apostrophe.
    note : callable
        Takes sentences for the user.
    progress : callable, optional
        Called with the rows done and, where known, all of them.

    Raises
    ------
    InputError
        If a file is not what it should be, or a column is missing or of another kind than in
        training.
    """
    start = time.perf_counter()
    how = output_format(output)
    if no_formulas and how != "csv":
        raise InputError(f"--no-formulas is for outputs that end in .csv, got {output.name!r}")
    check_output(output, {"model": model_path, "table": data})
    refuse_special(model_path)
    if not model_path.is_file():
        raise InputError(f"there is no model file {model_path}")
    try:
        model = persistence.load(model_path, trusted=trusted)
    except OSError as error:
        raise InputError(f"{model_path} cannot be read: {one_line(error)}") from error
    if isinstance(model, Calibrator):
        raise InputError(
            f"{model_path} holds a {type(model).__name__}, which takes scores and no table: "
            "use vennforest.load in Python"
        )
    table = TableFile(data)
    for name in carried:
        if name not in table.names:
            close = get_close_matches(name, table.names, n=1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise InputError(f"there is no column {name!r} in {data} to carry along{hint}")
    reader = _reader(model, table, carried)
    target = persistence.read_header(model_path).get("target")
    ignored = [name for name in reader.ignored if name not in carried]
    others = [name for name in ignored if name != target]
    if others:
        shown = ", ".join(map(repr, others[:5]))
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        what = "The column" if len(others) == 1 else "The columns"
        was = "was" if len(others) == 1 else "were"
        note(f"{what} {shown}{more} {was} not in the training data: ignored.")
    answers = _Answers(model, model_path, list(zip(carried, table.types(carried), strict=True)))
    done, shown = 0, all_as_text if no_formulas else (lambda table: table)
    schema = shown(answers.schema.empty_table()).schema
    with written_whole(output) as part, table_writer(part, how, schema) as writer:
        for batch in table.batches(reader.columns, carried, rows_at_once, reader.numbers):
            if len(batch.rows):
                writer.write_table(shown(answers.of(reader.read(batch.rows), batch)))
            done += len(batch.rows)
            if progress is not None:
                progress(done, table.n_rows)
    width = answers.width / done if done and answers.bounded else None
    counts = dict(zip(answers.labels, answers.counts.tolist(), strict=True))
    seconds = time.perf_counter() - start
    return Predicted(done, counts, list(schema.names), ignored, width, seconds)


class _Answers:
    """A model's predictions for rows, as a table.

    Columns: those carried along, ``label``, ``probability``, ``lower`` and ``upper`` (of that
    label, where the method has bounds), then ``p(c)`` for each class c.
    """

    def __init__(self, model: Any, path: Path, carried: list[tuple[str, pa.DataType]]) -> None:
        self.model, self.path = model, path
        self.bounded = hasattr(model, "predict_multiprobability")
        self.labels = [str(label) for label in model.classes_.tolist()]
        self.counts = np.zeros(len(self.labels), np.int64)
        self.width = 0.0
        types = {"i": pa.int64(), "u": pa.uint64(), "b": pa.bool_(), "f": pa.float64()}
        label = types.get(model.classes_.dtype.kind, pa.string())
        self.classes: NDArray[Any] = (
            np.array(self.labels, dtype=object) if label == pa.string() else model.classes_
        )
        numbers = ["probability", *(["lower", "upper"] if self.bounded else [])]
        numbers += [f"p({name})" for name in self.labels]
        for name, _ in carried:
            if name in ("label", *numbers):
                raise InputError(
                    f"the column {name!r} cannot be carried along, since the output has one of "
                    "that name: rename it"
                )
        self.schema = pa.schema(
            [*carried, ("label", label), *((name, pa.float64()) for name in numbers)]
        )

    def of(self, X: Any, batch: Batch) -> pa.Table:
        """Return the predictions for some rows."""
        lower, upper, p = self._predict(X)
        best = p.argmax(axis=1)
        rows = np.arange(len(p))
        self.counts += np.bincount(best, minlength=len(self.counts))
        columns = [p[rows, best]]
        if lower is not None and upper is not None:
            columns += [lower[rows, best], upper[rows, best]]
            self.width += float((columns[2] - columns[1]).sum())
        columns += list(p.T)
        label = pa.array(self.classes[best], self.schema.field("label").type)
        arrays = [*batch.carried, label, *(pa.array(column) for column in columns)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _predict(self, X: Any) -> tuple[FloatArray | None, FloatArray | None, FloatArray]:
        try:
            bounds, p = predict_once(self.model, X)
        except (InputError, MemoryError):
            raise
        except ValueError as error:  # what the model's own checks say of the rows
            raise InputError(f"the model refuses the table: {one_line(error)}") from error
        except Exception as error:  # whatever a model of another package or version may do
            raise InputError(
                f"the model in {self.path} fails on this table, with {type(error).__name__}: "
                f"{one_line(error)}; with --debug it shows where"
            ) from error
        return (None, None, p) if bounds is None else (bounds.lower, bounds.upper, p)


class _Reader:
    """The columns a model takes, and how rows are passed to it."""

    def __init__(
        self,
        columns: list[str],
        numbers: list[str],
        ignored: list[str],
        as_array: bool = False,
        text: bool = False,
    ) -> None:
        self.columns, self.numbers, self.ignored = columns, numbers, ignored
        self._as_array, self._text = as_array, text

    def read(self, rows: pd.DataFrame) -> Any:
        """Return rows as the model takes them."""
        if self._text:
            try:
                rows = rows.astype(np.float64)
            except ValueError as error:
                raise InputError(
                    f"the model file does not say how text is to be read: {one_line(error)}; "
                    "give the table as Parquet, or fit the model with vennforest fit"
                ) from error
        return rows.to_numpy() if self._as_array else rows


def _reader(model: Any, table: TableFile, carried: Sequence[str]) -> _Reader:
    known = _table_columns(model)
    if known is not None:
        ignored = known.check_names(table.names)
        columns = known.feature_names_in_.tolist()
        kinds = zip(columns, known.kinds_, strict=True)
        return _Reader(columns, [name for name, kind in kinds if kind == "number"], ignored)
    names = getattr(model, "feature_names_in_", None)
    text = table.text is not None
    if names is not None:
        columns = [str(name) for name in names]
        return _Reader(columns, columns, unknown_names(table.names, columns), text=text)
    columns = [name for name in table.names if name not in carried]
    if len(columns) != model.n_features_in_:
        raise InputError(
            f"the model was fitted to {model.n_features_in_} columns without names, and "
            f"{table.path} has {len(columns)}"
        )
    return _Reader(columns, columns, [], as_array=True, text=text)


def _table_columns(model: Any) -> TableColumns | None:
    """Return the first step of a model's pipeline that reads the columns of a table."""
    fitted = getattr(model, "estimators_", None) or [getattr(model, "estimator_", None)]
    first = fitted[0]
    if isinstance(first, Pipeline) and isinstance(first[0], TableColumns):
        return first[0]
    return None
