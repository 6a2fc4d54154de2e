"""Conversion of the cells of a column to numbers, booleans, dates or text.

All readers of tables convert cells here, so CSV, Parquet, Arrow and data frames with the same rows
give the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vennforest._validation import InputError

CellKind = Literal["number", "boolean", "date", "text", "empty"]
"""Kinds of columns."""

MAX_NUMBER = float(np.finfo(np.float32).max)
"""Largest accepted number, since forests compare numbers in single precision."""

# pandas's list without "None", which is more often a category than a missing cell.
MISSING_MARKERS = [
    "", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "-NaN", "-nan",
]  # fmt: skip
"""Text that stands for a missing cell, with or without white space around it."""

BOOLEANS = {
    **dict.fromkeys(("true", "1", "1.0", "yes", "y", "t"), 1.0),
    **dict.fromkeys(("false", "0", "0.0", "no", "n", "f"), 0.0),
}
"""Text read as booleans; a column is only inferred as boolean from true and false."""

ISO = "ISO8601"
"""pandas's name of the format 2021-12-31, perhaps with a time and a time zone."""

ZONED = "zoned"
"""Format of dates as `ISO` or timestamps, all with a time zone."""

ZONES_OF_ALL = "times that all have a time zone, or none"
"""The rule for a column of times, in errors."""

ISO_ZONE = r"^\s*\d{4}\S+[tT ]\s*\d\d.*([zZ]|[+-]\d\d(:?\d\d)?)\s*$"
"""Dates and times in ISO 8601 with a time zone."""

FIRST_DAYS_OF_QUARTERS = {1: "01-01", 2: "04-01", 3: "07-01", 4: "10-01"}
"""Month and day as which a quarter, such as 2021Q1 or 2021-Q1, is read."""

ISO_START = r"\s*\d{4}\D"
"""Start of dates in ISO 8601, for which pandas also takes words such as "today"."""

TIME_OF_DAY = r"^(\d\d:\d\d:\d\d(?:\.\d*[1-9])?)\.?0+$"
"""Times of day with zeros at the end of the fraction, which libraries write or not."""


DECIMAL_COMMA = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"
DECIMAL_POINT = r"^\s*([-+]?\d*\.\d*(?:[eE][-+]?\d+)?)\s*$"
"""Numbers with a decimal comma, and with a decimal point."""


def number(cell: Any) -> float | None:
    """Return a cell as the nearest float, None if it is not a number."""
    if isinstance(cell, str) and "_" in cell:  # Python takes 1_000 for a number
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def without_fraction(cell: Any) -> Any:
    """Return a cell, as an integer if it is a float that is a whole number."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def row_name(row: int, table: str) -> str:
    """Return the name of a row in error messages; ``row`` is counted from 0, shown from 1."""
    return f"row {row + 1:,} of {table}"


def refuse_cell(name: str, rule: str, value: Any, row: str) -> NoReturn:
    """Raise the error for a cell of a column, which is shortened to 60 characters."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    text = repr(value) if isinstance(value, str) else text
    text = "NaN or nothing" if value is None or value != value else text
    text = text if len(text) <= 60 else text[:59] + "…"
    raise InputError(f"column {name!r} must contain {rule}, got {text} in {row}")


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is any type of text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is of integers or floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which cells are read: number, boolean, timestamp or text."""
    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_decimal(kind) or types.is_float16(kind) or types.is_null(kind):
        return pa.float64()
    if types.is_date(kind) or types.is_timestamp(kind):
        return pa.timestamp("us")  # in universal time
    is_bytes = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    is_bytes = is_bytes or types.is_fixed_size_binary(kind)
    return pa.string() if is_bytes or types.is_string_view(kind) or types.is_time(kind) else kind


def plain_array(cells: Any, name: str) -> pa.Array:
    """Return an Arrow array or pandas series as numbers, booleans, timestamps or text.

    Durations become seconds; bytes, times and mixed types become text. Missing cells are null.
    """
    array = as_arrow(cells, name)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_duration(array.type):
        microseconds = array.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return pc.divide(microseconds.cast(pa.float64()), 1e6)
    kind = plain_type(array.type)
    is_time = pa.types.is_timestamp(kind)
    if pa.types.is_decimal(array.type):  # whose cast to float64 misses the last digit
        array = array.cast(pa.string())
    try:
        if not (is_number(kind) or is_time or pa.types.is_boolean(kind) or is_text(kind)):
            raise pa.ArrowInvalid(f"got {kind}")
        array = array.cast(kind, safe=not is_time)
    except pa.ArrowException as error:
        raise InputError(
            f"column {name!r} must contain numbers, dates or text, got {array.type}: leave it out, "
            "or write it as one of these"
        ) from error
    if pa.types.is_floating(kind):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, kind), array)
    return array


def as_arrow(cells: Any, name: str) -> pa.Array | pa.ChunkedArray:
    """Return an Arrow array or pandas series as an Arrow array.

    Cells of several types, and of types that are not Arrow's own, become text as CSV has it.
    """
    if isinstance(cells, pa.Array | pa.ChunkedArray):
        if not isinstance(cells.type, pa.BaseExtensionType):
            return cells
        cells = cells.to_pandas()
    with suppress(pa.ArrowException, OverflowError, TypeError):
        array = pa.array(cells, from_pandas=True)
        is_object = pa.types.is_timestamp(array.type) and cells.dtype == object
        times = cells.dropna() if is_object else ()
        if len({getattr(cell, "tzinfo", None) is None for cell in times}) > 1:
            raise InputError(f"column {name!r} must contain {ZONES_OF_ALL}, got both")
        if not isinstance(array.type, pa.BaseExtensionType):
            return array
    return pa.array(_as_texts(cells.tolist(), cells.isna().tolist()), pa.string())


def _as_texts(cells: list[Any], missing: list[bool]) -> list[str | None]:
    """Return cells as text, None where missing."""
    texts: list[str | None] = []
    for cell, is_missing in zip(cells, missing, strict=True):
        text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
        texts.append(None if is_missing else str(without_fraction(text)))
    return texts


def _is_missing(cells: pa.Array, markers: Sequence[str]) -> pa.Array:
    """Return a mask of the cells that stand for missing values.

    Markers that are numbers are compared as numbers, so "-999" is the marker of -999.0 too.
    """
    markers = [marker.strip() for marker in markers]
    values = [value for value in map(number, markers) if value is not None]
    if is_text(cells.type):
        cells, markers = pc.utf8_trim_whitespace(cells), [*MISSING_MARKERS, *markers]
        if values:
            markers += [text for text in pc.unique(cells).to_pylist() if number(text) in values]
        is_marker = pc.is_in(cells, pa.array(markers, cells.type))
    elif values and is_number(cells.type):
        is_marker = pc.is_in(cells.cast(pa.float64(), safe=False), pa.array(values))
    else:
        return cells.is_null()
    return pc.or_(cells.is_null(), is_marker)


def text_as_floats(cells: pa.Array) -> pa.Array | None:
    """Return text as the nearest floats, None where a cell is not a number."""
    try:
        return pc.cast(pc.utf8_trim_whitespace(cells), pa.float64())
    except pa.ArrowInvalid:
        return None


def words_of(cells: pa.Array) -> list[Any]:
    """Return text in lower case without white space around it."""
    words: list[Any] = pc.utf8_lower(pc.utf8_trim_whitespace(cells)).to_pylist()
    return words


def parse_dates(cells: pa.Array, date_format: str) -> pd.Series[Any]:
    """Return text as dates in universal time, NaT where a cell is in another format."""
    if date_format == ISO:
        for quarter, first_day in FIRST_DAYS_OF_QUARTERS.items():
            pattern = rf"^\s*(\d{{4}})[- ]?[qQ]{quarter}\s*$"
            cells = pc.replace_substring_regex(cells, pattern, rf"\1-{first_day}")
    text: pd.Series[Any] = cells.to_pandas().astype(object)
    dates: pd.Series[Any] = pd.to_datetime(text, format=date_format, errors="coerce", utc=True)
    return dates.where(text.str.match(ISO_START)) if date_format == ISO else dates


def are_dates(date_format: str, cells: pa.Array) -> bool:
    """Return whether all cells of text are dates in a format."""
    return bool(parse_dates(cells, date_format).notna().all())


def without_decimal_points(cells: pa.Array) -> pa.Array:
    """Turn numbers with a decimal point into other text; a file has one decimal sign."""
    return pc.replace_substring_regex(cells, DECIMAL_POINT, r"\1 with a decimal point")


def with_decimal_point(cells: pa.Array) -> pa.Array:
    """Replace the decimal comma of numbers by a point; see `without_decimal_points`."""
    return pc.replace_substring_regex(without_decimal_points(cells), DECIMAL_COMMA, r"\1.\2")


def as_floats(
    cells: pa.Array,
    name: str,
    table: str,
    first_row: int = 0,
    markers: Sequence[str] = (),
    decimal: str | None = None,
) -> NDArray[Any]:
    """Return cells (n,) as numbers, NaN where missing; see `CellColumn`.

    Numbers in text may have a decimal comma, if ``decimal`` is one.
    """
    if decimal == "," and is_text(cells.type):
        cells = with_decimal_point(cells)
    if not markers and is_number(cells.type):
        values: NDArray[Any] = cells.to_numpy(zero_copy_only=False)
        return values
    return CellColumn(cells, name, markers, table, first_row).floats()


class CellColumn:
    """The cells of a pandas series or Arrow array, as numbers, booleans, timestamps or text.

    ``markers`` are cells that stand for missing values besides `MISSING_MARKERS`; both are null in
    ``array``. Errors name the row in ``table``, counted from ``first_row``, or without a table the
    index of the row.
    """

    def __init__(
        self,
        cells: Any,
        name: str,
        markers: Sequence[str] = (),
        table: str | None = None,
        first_row: int = 0,
    ) -> None:
        self.name, self._table, self._first_row = name, table, first_row
        self._index = getattr(cells, "index", None)
        kind = str(getattr(cells, "dtype", None) or cells.type)
        self.is_categorical = kind == "category" or "dictionary" in kind
        cells = as_arrow(cells, name)
        self.has_zone = getattr(cells.type, "tz", None) is not None
        array = plain_array(cells, name)
        if is_text(array.type):  # as in CSV, white space before a cell is no part of it
            array = pc.utf8_ltrim_whitespace(array)
            if pc.any(pc.match_substring(array, ":")).as_py():  # much faster than the replacement
                array = pc.replace_substring_regex(array, TIME_OF_DAY, r"\1")
        missing = _is_missing(array, markers)
        self.array = pc.if_else(missing, pa.scalar(None, array.type), array)
        self.is_present: NDArray[np.bool_] = ~missing.to_numpy(zero_copy_only=False)

    def zoned_rows(self) -> NDArray[np.bool_]:
        """Return a mask (n,) of the cells of text that are times in ISO 8601 with a time zone."""
        is_zoned = pc.match_substring_regex(self.array, ISO_ZONE).fill_null(False)
        mask: NDArray[np.bool_] = is_zoned.to_numpy(zero_copy_only=False)
        return mask

    def read(self, kind: CellKind, date_format: str | None = None) -> NDArray[Any]:
        """Return the cells as float64, datetime64[us], or objects of str and None, shape (n,).

        ``date_format`` is the format of dates written as text, by default ISO 8601; with `ZONED`
        every date has a time zone, and with others none. An `InputError` names the first cell of
        another kind.
        """
        if kind == "text":
            return self._texts()
        if kind == "date":
            return self._dates(date_format or ISO)
        if kind == "empty":
            return np.full(len(self.array), np.nan)
        if kind == "boolean" and is_text(self.array.type):
            values = np.array([BOOLEANS.get(word, np.nan) for word in words_of(self.array)])
        else:
            values = self.floats()
        if kind == "boolean":
            self.refuse_any(~np.isin(values, (0, 1)) & self.is_present, "booleans")
        with np.errstate(invalid="ignore"):
            self.refuse_any(np.abs(values) > MAX_NUMBER, f"numbers up to {MAX_NUMBER:.2g}")
        return values

    def floats(self) -> NDArray[np.float64]:
        """Return numbers of any size, NaN where missing, shape (n,)."""
        array = self.array
        if pa.types.is_timestamp(array.type):
            self.refuse_any(self.is_present, "numbers")
            return np.full(len(array), np.nan)
        if is_text(array.type):
            floats = text_as_floats(array)
            if floats is None:  # among numbers true is 1, as it is in other formats than text
                digits = {"true": "1", "false": "0"}
                array = pa.array([digits.get(word, word) for word in words_of(array)], pa.string())
                floats = text_as_floats(array)
            if floats is None:
                parts = (array.slice(row, 1) for row in range(len(array)))
                self._refuse("numbers", [text_as_floats(part) for part in parts].index(None))
        else:
            floats = array.cast(pa.uint8()) if pa.types.is_boolean(array.type) else array
            floats = floats.cast(pa.float64(), safe=False)
        values: NDArray[np.float64] = floats.to_numpy(zero_copy_only=False)
        return values

    def _texts(self) -> NDArray[Any]:
        if is_text(self.array.type):
            text: NDArray[Any] = self.array.to_numpy(zero_copy_only=False)
            return text
        texts = _as_texts(self.array.to_pylist(), (~self.is_present).tolist())
        return np.array(texts, dtype=object)

    def _dates(self, date_format: str) -> NDArray[Any]:
        is_zoned = date_format == ZONED or "%z" in date_format.lower()
        is_timestamp, wrong = pa.types.is_timestamp(self.array.type), np.zeros(0, bool)
        if is_timestamp:
            wrong = self.is_present & (self.has_zone != is_zoned)
        elif date_format in (ISO, ZONED) and is_text(self.array.type):
            wrong = self.is_present & (self.zoned_rows() != is_zoned)
        if wrong.any() and (is_timestamp or are_dates(ISO, self.array.slice(wrong.argmax(), 1))):
            rule = "with a time zone" if is_zoned else "without a time zone"
            self.refuse_any(wrong, f"times {rule}, as in training")
        if is_timestamp:
            dates: NDArray[Any] = self.array.to_numpy(zero_copy_only=False)
            return dates.astype("datetime64[us]")
        date_format = ISO if date_format == ZONED else date_format
        parsed = parse_dates(pa.array(self._texts(), pa.string()), date_format)
        format_name = "2021-12-31" if date_format == ISO else date_format
        is_wrong = self.is_present & parsed.isna().to_numpy()
        self.refuse_any(is_wrong, f"dates written like {format_name}")
        values: NDArray[Any] = parsed.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
        return values

    def refuse_any(self, is_wrong: NDArray[np.bool_], rule: str) -> None:
        """Raise the `InputError` for the first cell of a mask (n,), if there is one."""
        if is_wrong.any():
            self._refuse(rule, int(is_wrong.argmax()))

    def _refuse(self, rule: str, row: int) -> NoReturn:
        """Raise the `InputError` for the cell in a row, which is not what ``rule`` says."""
        if self._table is not None:
            row_text = row_name(self._first_row + row, self._table)
        else:
            label = row if self._index is None else self._index[row]
            is_counted = isinstance(label, int | np.integer)
            row_text = f"row {label + 1:,}" if is_counted else f"row {label!r}"
        refuse_cell(self.name, rule, self.array[row].as_py(), row_text)
