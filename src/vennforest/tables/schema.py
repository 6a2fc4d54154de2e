"""What the columns of a table contain: inferred once or declared, then applied to other tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Self, cast, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vennforest._files import one_line, read_json
from vennforest._messages import listed, nearest
from vennforest._validation import (
    InputError,
    check_option,
    is_frame,
    refuse_equal_names,
    require,
)
from vennforest.tables.read import (
    ISO,
    MAX_NUMBER,
    ZONED,
    ZONES_OF_ALL,
    CellColumn,
    CellKind,
    are_dates,
    is_text,
    text_as_floats,
    without_decimal_points,
    words_of,
)

N_CELLS_TRIED_FIRST = 1000
"""Number of cells of text that are parsed before the whole column is."""

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

DROP = "drop"
DECLARABLE = ("number", "date", "text", "category", "boolean", DROP)
"""Types that can be declared; a category is text."""

TYPES_FORM = (
    'columns and what they contain, such as {"seen": "date %d.%m.%Y", "ward": "category", '
    '"remark": "drop"}'
)


@dataclass(frozen=True)
class ColumnSchema:
    """What a column contains.

    ``date_format`` is the format of dates written as text, `ZONED` for times with a time zone, and
    None for other columns. ``has_codes`` says of text that a cell is a number with leading zeros.
    """

    kind: CellKind
    date_format: str | None = None
    has_codes: bool = False

    def __str__(self) -> str:
        """Return the column's type as it is declared."""
        kind = DROP if self.kind == "empty" else self.kind
        return f"{kind} {self.date_format or ''}".rstrip()


def infer(column: CellColumn, dates: bool = True) -> ColumnSchema:
    """Return what a column contains; without ``dates``, dates written as text are text.

    Numbers with leading zeros are text: 01234 and 1234 are different codes.
    """
    cells = column.array.drop_null()
    if not len(cells):
        return ColumnSchema("empty")
    if column.is_categorical:
        return ColumnSchema("text")
    if not is_text(cells.type):
        if pa.types.is_timestamp(cells.type):
            return ColumnSchema("date", date_format_of(column))
        return ColumnSchema("boolean" if pa.types.is_boolean(cells.type) else "number")
    if _all_cells(lambda part: set(words_of(part)) <= {"true", "false"}, cells):
        return ColumnSchema("boolean")
    has_codes = bool(pc.any(pc.match_substring_regex(cells, CODE)).as_py())
    if are_numbers(cells):
        return ColumnSchema("text", has_codes=True) if has_codes else ColumnSchema("number")
    date_format = date_format_of(column) if dates else None
    kind: CellKind = "text" if date_format is None else "date"
    return ColumnSchema(kind, date_format, has_codes)


def date_format_of(column: CellColumn) -> str | None:
    """Return the format of dates written as text, `ZONED` for times with a time zone.

    It is the first of `DATE_FORMATS` that fits all cells, None if none does. For example,
    05/06/2020 is the fifth of June if another cell of the column has a day above 12.
    """
    cells = column.array.drop_null()
    if not is_text(cells.type):
        return ZONED if column.has_zone else None
    if not DATE_LIKE.match(cells[0].as_py()):
        return None
    formats = (name for name in DATE_FORMATS if _all_cells(partial(are_dates, name), cells))
    date_format = next(formats, None)
    if date_format == ISO and (zoned := column.zoned_rows()).any():
        column.refuse_any(column.is_present & ~zoned, ZONES_OF_ALL)
        return ZONED
    return date_format


def are_numbers(cells: pa.Array) -> bool:
    """Return whether all cells of text are numbers, codes included."""
    return _all_cells(lambda part: text_as_floats(part) is not None, cells)


def _all_cells(test: Callable[[pa.Array], bool], cells: pa.Array) -> bool:
    """Return whether all cells pass a test; the first cells are tested alone to save time."""
    return all(test(cells.slice(0, n)) for n in (1, N_CELLS_TRIED_FIRST, len(cells)))


# --- declared types ------------------------------------------------------------------------------


def read_types(source: Path | str) -> dict[str, str]:
    """Return declared column types from JSON text or a JSON file; see `TableColumns`."""
    return check_types(read_json(source, "types", f"JSON of {TYPES_FORM}"))


def check_types(types: Any) -> dict[str, str]:
    """Return declared types as a dict; raise an `InputError` if they are not valid."""
    if not isinstance(types, Mapping):
        raise InputError(f"types must be {TYPES_FORM}, got {str(types)[:60]}")
    for name, declared in types.items():
        parse_type(declared, name)
    return dict(types)


def texts_of(types: Mapping[str, str]) -> list[str]:
    """Return the declared columns other than numbers, whose text is kept as it is."""
    return [name for name, declared in types.items() if parse_type(declared, name)[0] != "number"]


def parse_type(declared: Any, name: str) -> tuple[str, str | None]:
    """Return the kind that a column is declared as (or drop), and the format of its dates."""
    kind, _, date_format = str(declared).strip().partition(" ")
    if kind not in DECLARABLE or (date_format and kind != "date"):
        raise InputError(
            f"the type of column {name!r} must be number, date, date and a format, date zoned, "
            f"category, text, boolean or drop, got {declared!r}"
        )
    try:
        if date_format not in ("", ZONED):
            pd.to_datetime([""], format=date_format)
    except (ValueError, re.error) as error:
        raise InputError(
            f"the type of column {name!r} must be date and a format such as %d.%m.%Y, got "
            f"{declared!r}: {one_line(error)}"
        ) from None
    return "text" if kind == "category" else kind, date_format or None


def read_declared(column: CellColumn, declared: str) -> tuple[ColumnSchema, NDArray[Any]]:
    """Return the schema and values of a declared column; raise an error for cells of other kinds.

    The format of dates is inferred unless it is declared.
    """
    kind, date_format = parse_type(declared, column.name)
    if not column.is_present.any():
        kind = "empty"
    elif kind == "date" and date_format is None:
        date_format = date_format_of(column)
    schema = ColumnSchema(cast(CellKind, kind), date_format if kind == "date" else None)
    return schema, column.read(schema.kind, schema.date_format)


def with_declared(X: pd.DataFrame, types: Mapping[str, str]) -> pd.DataFrame:
    """Return a table in which the declared columns are read as such."""
    columns = {}
    for name, declared in types.items():
        cells = read_declared(CellColumn(X[name], name), declared)[1]
        columns[name] = pd.Series(cells, index=X.index)
    return X.assign(**columns)


def infer_columns(
    X: pd.DataFrame, types: Mapping[str, str], markers: Sequence[str] = (), decimal: str = "."
) -> dict[str, ColumnSchema]:
    """Return the schema of each column (n,) by name, without those declared to be dropped.

    ``decimal`` is the sign of the file: with a comma, text with a point is no number.
    """
    names = [str(name) for name in X.columns]
    find_names(names, types)
    refuse_equal_names(names)
    numbers = {} if markers else _plain_numbers(X)
    columns: dict[str, ColumnSchema] = {}
    for i, name in enumerate(names):
        declared = types.get(name)
        if i in numbers and declared in (None, "number"):
            columns[name] = ColumnSchema("number")
        elif declared != DROP:
            column = CellColumn(X.iloc[:, i], name, markers)
            if decimal == "," and is_text(column.array.type):
                column.array = without_decimal_points(column.array)
            columns[name] = read_declared(column, declared)[0] if declared else infer(column)
            if columns[name].kind == "number" and not declared:
                column.read("number")  # refuses numbers that are too large for a tree
    return columns


# --- names of columns ----------------------------------------------------------------------------


def find_name(names: Iterable[str], name: str, noun: str = "column", where: str = "") -> str:
    """Return a name if it is among ``names``; else raise an error that suggests the closest."""
    names = list(names)
    if name in names:
        return name
    hint = nearest(name, names) or f": there are {listed(names, 8)}"
    raise InputError(f"there is no {noun} {name!r}{where}{hint}")


def find_names(names: Iterable[str], wanted: Iterable[str], where: str = "") -> None:
    """Raise the error of `find_name` for the first wanted name that is not among ``names``."""
    names = dict.fromkeys(names)
    for name in wanted:
        if name not in names:
            find_name(names, name, where=where)


def check_names(names: Iterable[str], trained: list[str]) -> None:
    """Raise an error if a column of training is not among the names."""
    present = dict.fromkeys(names)
    missing = [name for name in trained if name not in present]
    if missing:
        noun = "column" if len(missing) == 1 else "columns"
        hint = nearest(missing[0], present)
        raise InputError(f"the table lacks the {noun} {listed(missing, 5)} of training{hint}")


# --- the transformer -----------------------------------------------------------------------------


class TableTransformer(TransformerMixin, BaseEstimator):
    """A transformer of tables with text and missing cells."""

    def __sklearn_tags__(self) -> Tags:
        """Return tags that accept text and missing cells."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


class TableColumns(OneToOneFeatureMixin, TableTransformer):
    """Convert the columns of a table to the types inferred in training.

    The conversion of a cell does not depend on other rows, so a table can be read in parts.
    Columns that were not in training are left out.

    A column of text contains numbers, booleans or dates if every cell is a number, is true or
    false, or is a date in one common format; cells that are blank or say NA, N/A, #N/A, <NA>, NaN,
    -NaN, n/a, nan, -nan, null or NULL are missing. A column of categories is text, and durations
    are numbers of seconds.

    Parameters
    ----------
    types : dict of str to str, optional
        Declared types of columns, by name; the types of other columns are inferred:

        - ``"number"``: cells that are not numbers raise an error.
        - ``"date"``, or ``"date %d.%m.%Y"`` with a format, or ``"date zoned"`` for times that all
          have a time zone.
        - ``"category"`` or ``"text"``: cells are kept as text, numbers too.
        - ``"boolean"``: true, false, yes, no, y, n, t, f, 1, 0, 1.0, 0.0, in either case.
        - ``"drop"``: the column is left out.
    missing : list of str, optional
        Cells that stand for missing values, in all columns: text such as ``"n.d."``, with or
        without spaces around it, and numbers such as ``"-999"``, which are compared as numbers.
    decimal : {".", ","}, optional
        Decimal sign in CSV files with semicolons, for the commands; text in data frames has a
        point.

    Attributes
    ----------
    feature_names_in_ : ndarray of str, shape (d,)
    kinds_ : list of str
        For each column: number, boolean, date, text or empty.
    formats_ : list of str or None
        The format of each column of dates that were text, ``"zoned"`` for times with a time zone,
        None for other columns.
    """

    kinds_: list[CellKind]
    formats_: list[str | None]
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        types: dict[str, str] | None = None,
        missing: list[str] | None = None,
        decimal: str | None = None,
    ) -> None:
        self.types = types
        self.missing = missing
        self.decimal = decimal

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Infer what each column of a pandas or polars data frame (n, d) contains.

        Raises
        ------
        InputError
            If X is not a data frame, has two columns of the same name or only empty columns; if
            ``types`` names an unknown column, a cell is not of the declared type, or ``decimal`` is
            another sign.
        """
        X = as_pandas(X)
        types = check_types(self.types or {})
        check_option(self.decimal or ".", (".", ","), "decimal")
        # The letters of a text would be markers.
        if isinstance(self.missing, str) or {*map(type, self.missing or ())} - {str}:
            raise InputError(f"missing must be a list of text, got {self.missing!r}")
        columns = infer_columns(X, types, self.missing or ())
        if all(schema.kind == "empty" for schema in columns.values()):
            raise InputError("X must have a column with values, got empty ones only")
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        self.n_features_in_ = len(columns)
        self.kinds_ = [schema.kind for schema in columns.values()]
        self.formats_ = [schema.date_format for schema in columns.values()]
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of training, in their order, as a pandas data frame (m, d).

        Columns have the type float64 (booleans are 0 and 1), datetime64[us] in universal time, or
        object (str and None).

        Raises
        ------
        InputError
            If a column is missing, or a cell is of another kind than its column in training.
        """
        check_is_fitted(self, "kinds_")
        X = as_pandas(X)
        names = [str(name) for name in X.columns]
        check_names(names, self.feature_names_in_.tolist())
        refuse_equal_names(names)
        indices = {name: i for i, name in enumerate(names)}
        markers = self.missing or ()
        numbers = {} if markers else _plain_numbers(X)
        columns: dict[str, Any] = {}
        for name, kind, date_format in self._learnt():
            index = indices[name]
            if kind == "number" and index in numbers:
                columns[name] = numbers[index]
            else:
                cells = CellColumn(X.iloc[:, index], name, markers).read(kind, date_format)
                columns[name] = pd.Series(cells, index=X.index, dtype=cells.dtype)
        return pd.DataFrame(columns, index=X.index)

    def _learnt(self) -> Iterable[tuple[str, CellKind, str | None]]:
        return zip(self.feature_names_in_.tolist(), self.kinds_, self.formats_, strict=True)

    def as_types(self) -> dict[str, str]:
        """Return the type of each column, in the form of ``types``."""
        return {name: str(ColumnSchema(kind, form)) for name, kind, form in self._learnt()}

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers."""
        return [name for name, kind, _ in self._learnt() if kind == "number"]

    def _check_state(self) -> None:
        check_types(self.types or {})
        require(all(isinstance(text, str) for text in self.missing or []), "missing must be text")
        require(self.decimal in (None, ".", ","), "decimal must be a point or a comma")
        names, kinds, formats = self.feature_names_in_, self.kinds_, self.formats_
        sizes = {self.n_features_in_, len(names), len(kinds), len(formats)}
        require(len(sizes) == 1, "kinds must be of the columns")
        require(all(isinstance(name, str) for name in names.tolist()), "names must be text")
        require(len(set(names.tolist())) == len(names), "columns must have different names")
        require(set(kinds) <= set(get_args(CellKind)), "kinds must be known")
        require(all(isinstance(f, str | None) for f in formats), "formats must be text")


def as_pandas(X: Any) -> pd.DataFrame:
    """Convert a data frame of pandas or polars, or an Arrow table, to pandas."""
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    if not is_frame(frame):
        raise InputError(f"X must be a pandas or polars DataFrame, got {type(X).__name__}")
    return cast(pd.DataFrame, frame)


def _plain_numbers(X: pd.DataFrame) -> dict[int, NDArray[np.float64]]:
    """Return the columns of numpy numbers that are in range and not all missing, by index.

    They are read together, because a table may have tens of thousands of them.
    """
    is_plain = [isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in X.dtypes]
    indices = np.flatnonzero(is_plain)
    values = X.iloc[:, indices].to_numpy(dtype=np.float64)
    missing = np.isnan(values)
    in_range = ~missing.all(axis=0) & (missing | (np.abs(values) <= MAX_NUMBER)).all(axis=0)
    return {int(indices[i]): values[:, i] for i in np.flatnonzero(in_range)}
