"""Inference of the kind of a column's cells, and their conversion.

All readers of tables convert cells here, so CSV, Parquet, Arrow and data frames with the same rows
give the same values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vennforest._validation import InputError
from vennforest.tables.text import with_decimal_point

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

N_CELLS_TRIED_FIRST = 1000
"""Number of cells of text that are parsed before the whole column is."""

ISO = "ISO8601"
"""pandas's name of the format 2021-12-31, perhaps with a time and a time zone."""

ZONED = "zoned"
"""Format of dates as `ISO` or timestamps, all with a time zone."""

ZONES_OF_ALL = "times that all have a time zone, or none"
"""The rule for a column of times, in errors."""

ISO_ZONE = r"\s*\d{4}\S+[tT ]\s*\d\d.*([zZ]|[+-]\d\d(:?\d\d)?)\s*$"
"""Dates and times in ISO 8601 with a time zone."""

FIRST_DAYS_OF_QUARTERS = {1: "01-01", 2: "04-01", 3: "07-01", 4: "10-01"}
"""Month and day as which a quarter, such as 2021Q1 or 2021-Q1, is read."""

ISO_START = r"\s*\d{4}\D"
"""Start of dates in ISO 8601, for which pandas also takes words such as "today"."""

TIME_OF_DAY = r"^(\d\d:\d\d:\d\d(?:\.\d*[1-9])?)\.?0+$"
"""Times of day with zeros at the end of the fraction, which libraries write or not."""

CODE = r"^\s*[-+]?0\d+\s*$"
"""Whole numbers with leading zeros: codes, among which 01 and 1 differ."""

DAYS = (
    "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%Y",
    "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
DATE_LIKE = re.compile(r"\s*(\d{1,4}[-/. qQ]\S|[A-Za-z]{3,9} \d{1,2}, \d).{,40}$")
DATE_FORMATS = (ISO, *(day + time for day, time in product(DAYS, TIMES)))
"""Recognised date formats; the first one that fits all cells of a column is used."""


def number(cell: Any) -> float | None:
    """Return a cell as the nearest float, None if it is not a number."""
    if isinstance(cell, str) and "_" in cell:  # Python takes 1_000 for a number
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


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
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which cells are read: number, boolean, timestamp or text."""
    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_decimal(kind) or types.is_float16(kind):
        return pa.float64()
    if types.is_date(kind) or types.is_timestamp(kind):
        return pa.timestamp("us")  # in universal time
    is_bytes = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    if is_bytes or types.is_fixed_size_binary(kind) or types.is_string_view(kind):
        return pa.string()
    return pa.string() if types.is_time(kind) else kind


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
    kind = pa.float64() if pa.types.is_null(array.type) else plain_type(array.type)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if pa.types.is_decimal(array.type):  # whose cast to float64 misses the last digit
        array = array.cast(pa.string())
    is_plain = is_number or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind)
    try:
        if not is_plain and not is_text(kind):
            raise pa.ArrowInvalid(f"got {kind}")
        array = array.cast(kind, safe=not pa.types.is_timestamp(kind))
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
    pairs = zip(cells.tolist(), cells.isna().tolist(), strict=True)
    texts = [None if is_missing else _as_text(cell) for cell, is_missing in pairs]
    return pa.array(texts, pa.string())


def _as_text(cell: Any) -> str:
    """Return a cell as text; a float that is a whole number has no fraction."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


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
    texts = [*MISSING_MARKERS, *markers]
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


def words_of(cells: pa.Array) -> list[Any]:
    """Return text in lower case without white space around it."""
    words: list[Any] = pc.utf8_lower(pc.utf8_trim_whitespace(cells)).to_pylist()
    return words


def _parse_dates(cells: pa.Array, date_format: str) -> pd.Series[Any]:
    """Return text as dates in universal time, NaT where a cell is in another format."""
    if date_format == ISO:
        for number, first_day in FIRST_DAYS_OF_QUARTERS.items():
            quarter = rf"^\s*(\d{{4}})[- ]?[qQ]{number}\s*$"
            cells = pc.replace_substring_regex(cells, quarter, rf"\1-{first_day}")
    text: pd.Series[Any] = cells.to_pandas().astype(object)
    dates: pd.Series[Any] = pd.to_datetime(text, format=date_format, errors="coerce", utc=True)
    return dates.where(text.str.match(ISO_START)) if date_format == ISO else dates


def are_dates(date_format: str, cells: pa.Array) -> bool:
    """Return whether all cells of text are dates in a format."""
    return bool(_parse_dates(cells, date_format).notna().all())


def _all_cells(test: Callable[[pa.Array], bool], cells: pa.Array) -> bool:
    """Return whether all cells pass a test; the first cells are tested alone to save time."""
    return all(test(cells.slice(0, n)) for n in (1, N_CELLS_TRIED_FIRST, len(cells)))


def date_format_of(cells: pa.Array) -> str | None:
    """Return the first of `DATE_FORMATS` that fits all cells of text, None if none does.

    For example, 05/06/2020 is the fifth of June if another cell of the column has a day above 12.
    """
    if not DATE_LIKE.match(cells[0].as_py()):
        return None
    formats = (name for name in DATE_FORMATS if _all_cells(partial(are_dates, name), cells))
    return next(formats, None)


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
    if not markers and (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)):
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
        self._has_zone = getattr(cells.type, "tz", None) is not None
        array = plain_array(cells, name)
        if is_text(array.type):  # as in CSV, white space before a cell is no part of it
            array = pc.utf8_ltrim_whitespace(array)
            if pc.any(pc.match_substring(array, ":")).as_py():  # much faster than the replacement
                array = pc.replace_substring_regex(array, TIME_OF_DAY, r"\1")
        missing = _is_missing(array, markers)
        self.array = pc.if_else(missing, pa.scalar(None, array.type), array)
        self.is_present: NDArray[np.bool_] = ~missing.to_numpy(zero_copy_only=False)

    def infer(self) -> tuple[CellKind, str | None]:
        """Return the kind of the cells, and the format of dates written as text (else None)."""
        if not self.is_present.any():
            return "empty", None
        if self.is_categorical:
            return "text", None
        if not is_text(self.array.type):
            if pa.types.is_boolean(self.array.type):
                return "boolean", None
            if pa.types.is_timestamp(self.array.type):
                return "date", self.date_format()
            return "number", None
        kind = self.infer_text()
        date_format = self.date_format() if kind == "text" else None
        return (kind, None) if date_format is None else ("date", date_format)

    def date_format(self) -> str | None:
        """Return the format of dates written as text, `ZONED` for times with a time zone."""
        if not is_text(self.array.type):
            return ZONED if self._has_zone else None
        date_format = date_format_of(self.array.drop_null())
        if date_format == ISO and (zoned := self._zoned_rows()).any():
            self._refuse_any(self.is_present & ~zoned, ZONES_OF_ALL)
            return ZONED
        return date_format

    def _zoned_rows(self) -> NDArray[np.bool_]:
        """Return a mask (n,) of the cells of text that are times in ISO 8601 with a time zone."""
        is_zoned = pc.match_substring_regex(self.array, f"^{ISO_ZONE}").fill_null(False)
        mask: NDArray[np.bool_] = is_zoned.to_numpy(zero_copy_only=False)
        return mask

    def infer_text(self) -> CellKind:
        """Return the kind of cells of text: number, boolean or text (dates are text here).

        Numbers with leading zeros are text: 01234 and 1234 are different codes.
        """
        cells = self.array.drop_null()
        if not len(cells):
            return "empty"
        if _all_cells(lambda part: set(words_of(part)) <= {"true", "false"}, cells):
            return "boolean"
        return "number" if self.are_numbers() and not self.are_codes() else "text"

    def are_numbers(self) -> bool:
        """Return whether all cells of text that are not missing are numbers, codes included."""
        cells = self.array.drop_null()
        return _all_cells(lambda part: text_as_floats(part) is not None, cells)

    def are_codes(self) -> bool:
        """Return whether a cell of text is a whole number with leading zeros."""
        return bool(pc.any(pc.match_substring_regex(self.array, CODE)).as_py())

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
        if kind == "boolean":
            return self._booleans()
        if kind == "empty":
            return np.full(len(self.array), np.nan)
        values = self.floats()
        with np.errstate(invalid="ignore"):
            too_large = np.abs(values) > MAX_NUMBER
        self._refuse_any(too_large, f"numbers up to {MAX_NUMBER:.2g}")
        return values

    def floats(self) -> NDArray[np.float64]:
        """Return numbers of any size, NaN where missing, shape (n,)."""
        array = self.array
        if pa.types.is_timestamp(array.type):
            self._refuse_any(self.is_present, "numbers")
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

    def _booleans(self) -> NDArray[np.float64]:
        if is_text(self.array.type):
            values = np.array([BOOLEANS.get(word, np.nan) for word in words_of(self.array)])
        else:
            values = self.floats()
        self._refuse_any(~np.isin(values, (0, 1)) & self.is_present, "booleans")
        return values

    def _texts(self) -> NDArray[Any]:
        if is_text(self.array.type):
            text: NDArray[Any] = self.array.to_numpy(zero_copy_only=False)
            return text
        cells = [None if cell is None else _as_text(cell) for cell in self.array.to_pylist()]
        return np.array(cells, dtype=object)

    def _dates(self, date_format: str) -> NDArray[Any]:
        is_zoned = date_format == ZONED or "%z" in date_format.lower()
        is_timestamp, wrong = pa.types.is_timestamp(self.array.type), np.zeros(0, bool)
        if is_timestamp:
            wrong = self.is_present & (self._has_zone != is_zoned)
        elif date_format in (ISO, ZONED) and is_text(self.array.type):
            wrong = self.is_present & (self._zoned_rows() != is_zoned)
        if wrong.any() and (is_timestamp or are_dates(ISO, self.array.slice(wrong.argmax(), 1))):
            rule = "with a time zone" if is_zoned else "without a time zone"
            self._refuse(f"times {rule}, as in training", int(wrong.argmax()))
        if is_timestamp:
            dates: NDArray[Any] = self.array.to_numpy(zero_copy_only=False)
            return dates.astype("datetime64[us]")
        date_format = ISO if date_format == ZONED else date_format
        values = np.full(len(self.array), np.datetime64("NaT", "us"), dtype="datetime64[us]")
        rows = np.flatnonzero(self.is_present)
        if not len(rows):
            return values
        parsed = _parse_dates(pa.array(self._texts()[rows], pa.string()), date_format)
        if parsed.isna().any():
            format_name = "2021-12-31" if date_format == ISO else date_format
            self._refuse(f"dates written like {format_name}", int(rows[parsed.isna().argmax()]))
        values[rows] = parsed.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
        return values

    def _refuse_any(self, is_wrong: NDArray[np.bool_], rule: str) -> None:
        """Raise the `InputError` for the first cell of a mask (n,), if there is one."""
        if is_wrong.any():
            self._refuse(rule, int(is_wrong.argmax()))

    def _refuse(self, rule: str, row: int) -> NoReturn:
        """Raise the `InputError` for the cell in a row, which is not what ``rule`` says."""
        if self._table is not None:
            row_text = row_name(self._first_row + row, self._table)
        else:
            label = row if self._index is None else self._index[row]
            is_number = isinstance(label, int | np.integer)
            row_text = f"row {label + 1:,}" if is_number else f"row {label!r}"
        refuse_cell(self.name, rule, self.array[row].as_py(), row_text)
