"""Cells of a column: infer what they contain, and convert them to it.

All readers of tables convert cells here, so CSV, Parquet, Arrow and data frames with the same rows
give the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vennforest._validation import InputError
from vennforest.tables.formats import date_format

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "boolean", "date", "text", "category", "empty"]
"""What a column contains; a category is text that was declared, whatever its cells are."""

PLURAL: dict[str, str] = {
    "number": "numbers",
    "boolean": "booleans",
    "date": "dates",
    "text": "text",
    "category": "text",
    "empty": "no values",
}

MAX_NUMBER = float(np.finfo(np.float32).max)
"""Forests compare numbers in 32 bits."""

# pandas's list without "None", which is more often a category than a missing cell.
MISSING = ["", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "-NaN", "-nan"]
"""Text that stands for a missing cell, with or without white space around it."""

WORDS = {"true": 1.0, "false": 0.0}
"""Text that is recognised as booleans."""

BOOLEANS = {
    **WORDS,
    **dict.fromkeys(("1", "1.0", "yes", "y", "t"), 1.0),
    **dict.fromkeys(("0", "0.0", "no", "n", "f"), 0.0),
}
"""Text that is read as a boolean in a column that is known to contain booleans."""

N_CELLS_TRIED_FIRST = 1000
"""Cells of a column of text that are parsed as numbers before all are."""


def number(cell: Any) -> float | None:
    """Return a cell as the nearest float, None where it is not a number."""
    if isinstance(cell, str) and "_" in cell:  # Python takes 1_000 for a number
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def row_name(row: int, table: str) -> str:
    """Return what error messages call a row, which is numbered from 0 and shown from 1."""
    return f"row {row + 1:,} of {table}"


def shown_cell(value: Any) -> str:
    """Return a cell as error messages show it, shortened to 60 characters."""
    if value is None or value != value:
        return "NaN or nothing"
    text = f"{value:g}" if isinstance(value, float) else repr(value)
    text = str(value) if not isinstance(value, str | float) else text
    return text if len(text) <= 60 else text[:59] + "…"


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is text of any layout."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values, text for views of text, other types unchanged."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    return pa.string() if pa.types.is_string_view(kind) else kind


def plain_array(cells: Any, name: str) -> pa.Array:
    """Return cells as numbers, booleans, timestamps in universal time, or text.

    ``cells`` is an Arrow array or a pandas series. Decimals become floats, durations seconds, bytes
    text in UTF-8, and cells of several types text. Missing cells are null.
    """
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if not isinstance(cells, pa.Array):
        cells = _from_pandas(cells)
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    kind = cells.type
    if pa.types.is_null(kind):
        return cells.cast(pa.float64())
    if pa.types.is_string_view(kind):
        return cells.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return _decoded(cells, name)
    if pa.types.is_fixed_size_binary(kind):
        return _decoded(cells.cast(pa.binary()), name)
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return cells.cast(pa.float64())
    if pa.types.is_duration(kind):
        microseconds = cells.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return pc.divide(microseconds.cast(pa.float64()), 1e6)
    if pa.types.is_date(kind):
        return cells.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(kind):  # in universal time
        return cells.cast(pa.timestamp("us"), safe=False)
    if pa.types.is_time(kind):
        return cells.cast(pa.string())
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_nan(cells), pa.scalar(None, kind), cells)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or is_text(kind):
        return cells
    raise InputError(f"column {name!r} must contain numbers, dates or text, got {kind}")


def _from_pandas(cells: pd.Series[Any]) -> pa.Array:
    """Return a pandas series as an Arrow array; cells of several types become text."""
    try:
        array = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError):
        if getattr(cells.dtype, "kind", "O") == "c":
            raise InputError(
                f"column {str(cells.name)!r} must contain real numbers, got complex ones"
            ) from None
        missing = cells.isna().to_numpy()
        array = pa.array(
            [None if m else _as_text(c) for c, m in zip(cells.tolist(), missing, strict=True)]
        )
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _as_text(cell: Any) -> str:
    """Return a cell as text; a float that is a whole number has no fraction."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _decoded(cells: pa.Array, name: str) -> pa.Array:
    try:
        return cells.cast(pa.string())
    except pa.ArrowInvalid:
        raise InputError(
            f"column {name!r} must contain numbers, dates or text, got bytes that are not UTF-8: "
            "leave it out, or write it as text"
        ) from None


def _is_missing(cells: pa.Array, markers: Sequence[str]) -> pa.Array:
    """Return a mask of the cells that stand for missing values.

    Markers that are numbers are compared as numbers, so "-999" is the marker of -999.0 too.
    """
    markers = [marker.strip() for marker in markers]
    values = [value for value in map(number, markers) if value is not None]
    if not is_text(cells.type):
        if not values or not (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)):
            return cells.is_null()
        is_marker = pc.is_in(cells.cast(pa.float64(), safe=False), pa.array(values))
        return pc.or_(cells.is_null(), is_marker)
    trimmed = pc.utf8_trim_whitespace(cells)
    texts = [*MISSING, *markers]
    if values:
        texts += [text for text in pc.unique(trimmed).to_pylist() if number(text) in values]
    is_marker = pc.is_in(trimmed, pa.array(texts, trimmed.type))
    return pc.or_(cells.is_null(), is_marker)


def text_as_floats(cells: pa.Array) -> pa.Array | None:
    """Return text as the nearest floats, None where a cell is not a number."""
    try:
        return pc.cast(pc.utf8_trim_whitespace(cells), pa.float64())
    except pa.ArrowInvalid:
        return None


def first_without_number(cells: pa.Array) -> int:
    """Return the first row of text that is not a number."""
    return next(i for i in range(len(cells)) if text_as_floats(cells.slice(i, 1)) is None)


def as_floats(
    cells: pa.Array, name: str, table: str, first_row: int = 0, markers: Sequence[str] = ()
) -> NDArray[Any]:
    """Return cells as floating-point numbers, NaN where missing, shape (n,); "5.1%" as 0.051.

    Raises
    ------
    InputError
        If a cell is not a number; with its row in ``table``, of which ``first_row`` is the first.
    """
    kind = cells.type
    if not markers and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        values: NDArray[Any] = cells.to_numpy(zero_copy_only=False)
        return values
    array = Column(cells, name, markers).array
    if pa.types.is_timestamp(array.type) and array.null_count < len(array):
        raise InputError(f"column {name!r} must contain numbers, got {kind} in {table}")
    floats = text_as_floats(array) if is_text(array.type) else array.cast(pa.float64(), safe=False)
    if floats is None and pc.all(pc.ends_with(array, "%")).as_py():
        percent = text_as_floats(pc.replace_substring(array, "%", ""))
        floats = None if percent is None else pc.divide(percent, 100)
    if floats is None:
        row = first_without_number(array)
        raise InputError(
            f"column {name!r} must contain numbers, got {shown_cell(array[row].as_py())} in "
            f"{row_name(first_row + row, table)}"
        )
    return np.asarray(floats.to_numpy(zero_copy_only=False))


class Column:
    """The cells of a column, as numbers, booleans, timestamps or text.

    Parameters
    ----------
    cells : pandas.Series or pyarrow.Array
    name : str
        What error messages call the column.
    markers : sequence of str
        Cells that stand for missing values besides `MISSING`.
    declared : str, optional
        The type that the user declared, for error messages.

    Attributes
    ----------
    array : pyarrow.Array
        Missing cells are null.
    is_present : ndarray of bool
        The cells that are not missing.
    is_categorical : bool
        Whether the cells came as categories.
    """

    def __init__(
        self, cells: Any, name: str, markers: Sequence[str] = (), declared: str | None = None
    ) -> None:
        self.name, self.declared = name, declared
        self._index = getattr(cells, "index", None)
        self.is_categorical = "dictionary" in str(getattr(cells, "type", "")) or (
            str(getattr(cells, "dtype", "")) == "category"
        )
        array = plain_array(cells, name)
        missing = _is_missing(array, markers)
        self.array = pc.if_else(missing, pa.scalar(None, array.type), array)
        self.is_present: NDArray[np.bool_] = ~missing.to_numpy(zero_copy_only=False)

    def infer(self) -> tuple[Kind, str | None]:
        """Return what the cells contain, and the format of dates written as text (else None)."""
        kind = self.array.type
        if not self.is_present.any():
            return "empty", None
        if is_text(kind):
            text_kind = "text" if self.is_categorical else self.infer_text()
            written = None
            if text_kind == "text" and not self.is_categorical:
                written = date_format(self.array.drop_null().to_pandas().astype(object))
            return (text_kind, None) if written is None else ("date", written)
        if self.is_categorical:
            return "text", None
        if pa.types.is_boolean(kind):
            return "boolean", None
        return ("date" if pa.types.is_timestamp(kind) else "number"), None

    def infer_text(self) -> Kind:
        """Return what cells of text contain: numbers, booleans or text (dates are text here)."""
        cells = self.array.drop_null()
        if not len(cells):
            return "empty"
        first = cells.slice(0, N_CELLS_TRIED_FIRST)
        for some in (first, cells):
            words = pc.utf8_lower(pc.utf8_trim_whitespace(some))
            if not pc.all(pc.is_in(words, pa.array(list(WORDS), words.type))).as_py():
                break
        else:
            return "boolean"
        is_number = text_as_floats(first) is not None and text_as_floats(cells) is not None
        return "number" if is_number else "text"

    def infer_dates(self, written: str | None) -> str | None:
        """Return the format of a column declared as dates: as declared, else that of all cells."""
        if written is not None or not is_text(self.array.type):
            return written
        written = date_format(self.array.drop_null().to_pandas().astype(object))
        if written is None:
            row = int(self.is_present.argmax())
            raise InputError(
                f"column {self.name!r} is declared as date and its cells share no format "
                f"({shown_cell(self.array[row].as_py())} in {self._row_name(row)}): declare it "
                'with one, such as "date %d.%m.%Y", and leave cells empty that are not dates'
            )
        return written

    def read(self, kind: Kind, written: str | None = None) -> NDArray[Any]:
        """Return the cells as float64, datetime64[us], or objects of str and None, shape (n,).

        ``written`` is the format of dates that are text; None: ISO 8601.

        Raises
        ------
        InputError
            If a cell is of another kind, with its row.
        """
        if kind == "empty":
            return np.full(len(self.array), np.nan)
        if kind in ("text", "category"):
            return self._read_text(kind)
        if kind == "date":
            return self._read_dates(written)
        return self._read_numbers(kind)

    def _read_text(self, kind: Kind) -> NDArray[Any]:
        if not is_text(self.array.type):
            if kind == "text" and self.is_present.any() and not self.is_categorical:
                self._refuse(kind, int(self.is_present.argmax()))
            cells = [None if c is None else _as_text(c) for c in self.array.to_pylist()]
            return np.array(cells, dtype=object)
        text: NDArray[Any] = self.array.to_numpy(zero_copy_only=False)
        return text

    def _read_dates(self, written: str | None) -> NDArray[Any]:
        import pandas as pd

        if pa.types.is_timestamp(self.array.type):
            dates: NDArray[Any] = self.array.to_numpy(zero_copy_only=False)
            return dates.astype("datetime64[us]")
        values = np.full(len(self.array), np.datetime64("NaT", "us"), dtype="datetime64[us]")
        present = self.array.drop_null()
        if not len(present):
            return values
        if not is_text(present.type):
            if written is None or pa.types.is_boolean(present.type):
                self._refuse("date", int(self.is_present.argmax()))
            present = pa.array([_as_text(cell) for cell in present.to_pylist()])  # 20211231
        how = "ISO8601" if written is None else written
        parsed = pd.to_datetime(
            present.to_pandas().astype(object), format=how, errors="coerce", utc=True
        )
        wrong = parsed.isna().to_numpy()
        if wrong.any():
            self._refuse("date", int(np.flatnonzero(self.is_present)[wrong.argmax()]), written)
        values[self.is_present] = parsed.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
        return values

    def _read_numbers(self, kind: Kind) -> NDArray[np.float64]:
        array = self.array
        if pa.types.is_timestamp(array.type):
            if self.is_present.any():
                self._refuse(kind, int(self.is_present.argmax()))
            return np.full(len(array), np.nan)
        if kind == "boolean" and is_text(array.type):
            cells = pc.utf8_lower(pc.utf8_trim_whitespace(array)).to_pylist()
            values = np.array([BOOLEANS.get(cell, np.nan) for cell in cells], dtype=np.float64)
        else:
            values = self._as_floats(array, kind)
        if kind == "boolean":
            wrong = ~np.isin(values, (0, 1)) & self.is_present
            if wrong.any():
                self._refuse(kind, int(wrong.argmax()))
        wrong = (np.abs(values) > MAX_NUMBER) & self.is_present
        if wrong.any():
            row = int(wrong.argmax())
            size = "an infinite number" if np.isinf(values[row]) else f"{values[row]:.3g}"
            raise InputError(
                f"column {self.name!r} must contain numbers up to {MAX_NUMBER:.2g}, got {size} in "
                f"{self._row_name(row)}: leave such cells empty, or drop the column"
            )
        return values

    def _as_floats(self, array: pa.Array, kind: Kind) -> NDArray[np.float64]:
        if is_text(array.type):
            floats: Any = text_as_floats(array)
            if floats is None:
                self._refuse(kind, first_without_number(array))
        else:
            floats = array.cast(pa.uint8()) if pa.types.is_boolean(array.type) else array
            floats = floats.cast(pa.float64(), safe=False)
        values: NDArray[np.float64] = floats.to_numpy(zero_copy_only=False)
        return values

    def _refuse(self, kind: Kind, row: int, written: str | None = None) -> None:
        """Raise the error that names the cell of a row."""
        cell = shown_cell(self.array[row].as_py())
        if self.declared is not None:
            first = shown_cell(self.array[int(self.is_present.argmax())].as_py())
            other = f", which is none or written otherwise than {first}" if first != cell else ""
            raise InputError(
                f"column {self.name!r} is declared as {self.declared} and contains {cell} in "
                f"{self._row_name(row)}{other}: correct such cells or leave them empty, or declare "
                "the column as category"
            )
        how = f" written like {written}" if written else ""
        raise InputError(
            f"column {self.name!r} held {PLURAL[kind]}{how} in training and now contains {cell} in "
            f"{self._row_name(row)}"
        )

    def _row_name(self, row: int) -> str:
        label = row if self._index is None else self._index[row]
        return f"row {label + 1:,}" if isinstance(label, int | np.integer) else f"row {label!r}"
