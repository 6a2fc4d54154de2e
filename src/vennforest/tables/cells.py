"""Cells of a column: inferring what they contain, and reading each of them as that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import InputError
from vennforest.tables.formats import date_format

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "boolean", "date", "duration", "text", "category", "empty"]
"""What the cells of a column contain; a category is text that was declared, of whatever cells."""

PLURAL: dict[str, str] = {
    "number": "numbers",
    "boolean": "booleans",
    "date": "dates",
    "duration": "durations",
    "text": "text",
    "category": "text",
    "empty": "no values",
}

LARGEST = float(np.finfo(np.float32).max)
"""Forests compare numbers in 32 bits."""

# pandas's own list without "None", which is a category more often than a missing cell.
MISSING = ["", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "-NaN", "-nan"]
"""Text that stands for a missing cell, with or without white space around it."""

WORDS = {"true": 1.0, "false": 0.0}
"""What every cell of a text column of booleans says."""

BOOLEANS = {
    **WORDS,
    **dict.fromkeys(("1", "1.0", "yes", "y", "t"), 1.0),
    **dict.fromkeys(("0", "0.0", "no", "n", "f"), 0.0),
}
"""What is read as a boolean once per column is known to contain booleans."""

FIRST = 1000
"""Cells that are tried one by one before all are converted at once."""


def without_markers(X: pd.DataFrame, markers: Sequence[str]) -> pd.DataFrame:
    """Return a table in which cells that stand for missing values are missing.

    Markers are text, compared without spaces around it; in columns of numbers those count that are
    numbers.
    """
    if not len(markers):
        return X
    texts = {marker.strip() for marker in markers}
    values = [value for value in map(number, texts) if value is not None]
    columns: dict[Any, Any] = {}
    for place in range(X.shape[1]):
        cells = X.iloc[:, place]
        if _kind_letter(cells) in "iuf":
            found = cells.isin(values).to_numpy()
        elif _kind_letter(cells) == "O":
            found = np.array(
                [isinstance(cell, str) and cell.strip() in texts for cell in cells.tolist()], bool
            )
        else:
            continue
        if found.any():
            columns[place] = cells.where(~found)
    if not columns:
        return X
    import pandas as pd

    parts = [columns.get(place, X.iloc[:, place]) for place in range(X.shape[1])]
    table: pd.DataFrame = pd.concat(parts, axis=1)
    return table


class Column:
    """The cells of a column; bytes are taken for text in UTF-8.

    Those that are not missing are ``present``, where they are is ``there``, and ``declared`` is
    what the user says that it contains, while that is compared with it.
    """

    def __init__(self, cells: pd.Series[Any], name: str) -> None:
        import pandas as pd

        self.categorical = isinstance(cells.dtype, pd.CategoricalDtype)
        self.cells = cells.astype(object) if self.categorical else cells
        self.name = name
        self.declared: str | None = None
        self.there: NDArray[np.bool_] = cells.notna().to_numpy(dtype=bool)
        if _kind_letter(self.cells) == "O":
            self._clean()
        self.present = self.cells[self.there]

    def _clean(self) -> None:
        """Turn bytes into text, and text that says so into missing cells."""
        values = self.cells.tolist()
        if any(isinstance(value, bytes) for value in values):
            values = [self._decoded(i, value) for i, value in enumerate(values)]
            self.cells = self.cells.astype(object)
            self.cells[:] = values
        missing = set(MISSING)
        self.there = self.there & np.fromiter(
            (not (isinstance(value, str) and value.strip() in missing) for value in values),
            dtype=bool,
            count=len(values),
        )

    def _decoded(self, place: int, value: Any) -> Any:
        try:
            return value.decode("utf-8") if isinstance(value, bytes) else value
        except UnicodeDecodeError:
            raise InputError(
                f"column {self.name!r} must contain numbers, dates or text, got bytes that are not "
                f"UTF-8 in {self._row(place)}: leave it out, or write it as text"
            ) from None

    def learn(self) -> tuple[Kind, str | None]:
        """Return what the cells contain, and the format of dates written as text (else None)."""
        kind = self._learn_kind()
        if kind != "text" or self.categorical or not self._is_text():
            return kind, None
        kind = self.learn_from_text()
        if kind != "text":
            return kind, None
        written = date_format(self.present.astype(str))
        return ("text", None) if written is None else ("date", written)

    def learn_from_text(self) -> Literal["number", "boolean", "text", "empty"]:
        """Return what a column of text contains; dates are text here."""
        cells = self.present.tolist()
        if not cells:
            return "empty"
        if all(cell.strip().lower() in WORDS for cell in cells):
            return "boolean"
        if any(number(cell) is None for cell in cells[:FIRST]) or numbers(cells) is None:
            return "text"
        return "number"

    def learn_dates(self, written: str | None) -> str | None:
        """Return the format of a column declared as dates: as declared, else that of all cells."""
        if written is not None or not self._is_text():
            return written
        dates = self.present.astype(str)
        written = date_format(dates)
        if written is None:
            raise InputError(
                f"column {self.name!r} is declared as date and its cells share no format "
                f"({_shown(dates.iloc[0])} in {self._row(self._place(0))}): declare it with "
                'one, such as "date %d.%m.%Y", and leave cells empty that are not dates'
            )
        return written

    def _is_text(self) -> bool:
        import pandas as pd

        return bool(pd.api.types.infer_dtype(self.present, skipna=True) == "string")

    def _learn_kind(self) -> Kind:
        """Return the kind that the dtype, or the type of the objects, implies."""
        import pandas as pd

        if not self.there.any():
            return "empty"
        if self.categorical:
            return "text"
        found = pd.api.types.infer_dtype(self.present, skipna=True)
        if found == "complex":
            raise InputError(f"column {self.name!r} must contain real numbers, got complex ones")
        inferred: dict[str, Kind] = {
            "boolean": "boolean",
            "decimal": "number",
            "integer": "number",
            "floating": "number",
            "mixed-integer-float": "number",
            "date": "date",
            "datetime": "date",
            "datetime64": "date",
            "timedelta": "duration",
            "timedelta64": "duration",
        }
        return inferred.get(found, "text")

    def read(self, kind: Kind, written: str | None = None) -> pd.Series[Any]:
        """Return the cells as float64, datetime64[us] or objects of str and None.

        ``written`` is the format of dates that are text; None: ISO 8601.
        """
        import pandas as pd

        assert kind in get_args(Kind)
        if kind == "empty":
            values: Any = np.full(len(self.cells), np.nan)
        elif kind in ("text", "category"):
            values = self._text(kind)
        elif kind == "date":
            values = self._dates(written)
        else:
            values = self._numbers(kind)
        read: pd.Series[Any] = pd.Series(values, index=self.cells.index, dtype=values.dtype)
        return read

    def _text(self, kind: Kind) -> NDArray[Any]:
        values = np.full(len(self.cells), None, dtype=object)
        if kind == "text" and self.there.any() and _kind_letter(self.cells) in "biufMm":
            self._refuse(kind, 0)
        written = str if kind == "text" else _as_written
        values[self.there] = [written(cell) for cell in self.present.tolist()]
        return values

    def _dates(self, written: str | None) -> NDArray[Any]:
        import pandas as pd

        values = np.full(len(self.cells), np.datetime64("NaT", "us"), dtype="datetime64[us]")
        present = self.present
        if not len(present):
            return values
        if _kind_letter(present) in "iuf" and written is not None:  # 20211231
            present = present.map(_as_written)
        if _kind_letter(present) in "biufm":
            self._refuse("date", 0)
        text = np.array([isinstance(cell, str) for cell in present.tolist()])
        if text.any() and _kind_letter(present) != "M":
            how = "ISO8601" if written is None else written
            dates = pd.to_datetime(present.astype(str), format=how, errors="coerce", utc=True)
        else:
            dates = pd.to_datetime(present, errors="coerce", utc=True)
        wrong = dates.isna().to_numpy()
        if wrong.any():
            self._refuse("date", int(wrong.argmax()), written)
        values[self.there] = dates.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
        return values

    def _numbers(self, kind: Kind) -> NDArray[np.float64]:
        values = np.full(len(self.cells), np.nan)
        present = self.present
        if not len(present):
            return values
        letter = _kind_letter(present)
        if kind == "duration" and letter == "m":
            values[self.there] = present.dt.total_seconds().to_numpy(dtype=np.float64)
        elif letter in "biuf" and kind != "duration":
            values[self.there] = present.to_numpy(dtype=np.float64)
        elif letter in "Mm":
            self._refuse(kind, 0)
        else:
            values[self.there] = self._from_cells(present.tolist(), kind)
        if kind == "boolean":
            wrong = ~np.isin(values, (0, 1)) & self.there
            if wrong.any():
                self._refuse(kind, int(wrong[self.there].argmax()))
        wrong = (np.abs(values) > LARGEST) & self.there
        if wrong.any():
            at = int(wrong.argmax())
            size = "an infinite number" if np.isinf(values[at]) else f"{values[at]:.3g}"
            raise InputError(
                f"column {self.name!r} must contain numbers up to {LARGEST:.2g}, got {size} in "
                f"{self._row(at)}: leave such cells empty, or drop the column"
            )
        return values

    def _from_cells(self, cells: list[Any], kind: Kind) -> Any:
        if kind == "number" and (fast := numbers(cells)) is not None:
            return fast
        read = []
        for at, cell in enumerate(cells):
            if kind == "duration":
                value = cell.total_seconds() if hasattr(cell, "total_seconds") else None
            elif kind == "boolean" and isinstance(cell, str):
                value = BOOLEANS.get(cell.strip().lower())
            else:
                value = number(cell)
            if value is None:
                self._refuse(kind, at)
            else:
                read.append(value)
        return read

    def _refuse(self, kind: Kind, at: int, written: str | None = None) -> None:
        """Raise the error that names the cell, counted among those that are there."""
        place = self._place(at)
        cell = _shown(self.cells.iloc[place])
        if self.declared is not None:
            first = _shown(self.present.iloc[0])
            other = f", which is none or written otherwise than {first}" if first != cell else ""
            raise InputError(
                f"column {self.name!r} is declared as {self.declared} and contains {cell} in "
                f"{self._row(place)}{other}: correct such cells or leave them empty, or declare "
                "the column as category"
            )
        how = f" written like {written}" if written else ""
        raise InputError(
            f"column {self.name!r} held {PLURAL[kind]}{how} in training and now contains {cell} in "
            f"{self._row(place)}"
        )

    def _place(self, at: int) -> int:
        return int(np.flatnonzero(self.there)[at])

    def _row(self, place: int) -> str:
        label = self.cells.index[place]
        return f"row {label + 1:,}" if isinstance(label, int | np.integer) else f"row {label!r}"


def _shown(value: Any) -> str:
    cell = repr(value) if isinstance(value, str) else str(value)
    return cell if len(cell) <= 60 else cell[:59] + "…"


def _as_written(cell: Any) -> str:
    """Return a cell as text; whole numbers have no fraction, as a gap among them would give."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def number(cell: Any) -> float | None:
    """Return a cell as the nearest float, None where it is not a number."""
    if isinstance(cell, str) and "_" in cell:  # Python takes 1_000 for a number
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def numbers(cells: list[Any]) -> NDArray[np.float64] | None:
    """Return cells as the nearest floats, shape (n,); None where one is not a number."""
    fast = _arrow_numbers(cells)
    if fast is not None:
        return fast
    values = []
    for cell in cells:
        value = number(cell)
        if value is None:
            return None
        values.append(value)
    return np.array(values, dtype=np.float64)


def _arrow_numbers(cells: list[Any]) -> NDArray[np.float64] | None:
    """Return what pyarrow converts at once, ten times as fast; None if it refuses a cell."""
    try:
        import pyarrow as pa
        from pyarrow import compute
    except ImportError:
        return None
    try:
        text = compute.utf8_trim_whitespace(pa.array(cells, pa.string()))
        read = compute.cast(text, pa.float64())
    except (pa.ArrowException, TypeError, UnicodeError):
        return None
    values: NDArray[np.float64] = read.to_numpy(zero_copy_only=False)
    return values


def _kind_letter(column: pd.Series[Any]) -> str:
    """Return numpy's letter for the type of a column, O for text and objects."""
    letter: str = getattr(column.dtype, "kind", "O")
    return letter
