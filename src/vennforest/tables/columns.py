"""Conversion of the columns of a table to the types that they had in training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import listed, nearest
from vennforest._validation import (
    InputError,
    check_option,
    is_frame,
    refuse_equal_names,
    require,
)
from vennforest.tables.cells import MAX_NUMBER, CellColumn, CellKind
from vennforest.tables.files import find_names
from vennforest.tables.types import DROP, check_types, infer_declared


class TableTransformer(TransformerMixin, BaseEstimator):
    """A transformer of tables with text and missing cells."""

    def __sklearn_tags__(self) -> Tags:
        """Return tags that accept text and missing cells."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


class TableColumns(TableTransformer):
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
        if isinstance(self.missing, str):  # whose letters would be markers
            raise InputError(f"missing must be a list of cells, got {self.missing!r}")
        names = [str(name) for name in X.columns]
        find_names(names, types)
        refuse_equal_names(names)
        markers = self.missing or ()
        numbers = {} if markers else _plain_numbers(X)
        columns: dict[str, tuple[CellKind, str | None]] = {}
        for i, name in enumerate(names):
            if name not in types:
                columns[name] = "number", None
                if i not in numbers:
                    columns[name] = CellColumn(X.iloc[:, i], name, markers).infer()
            elif types[name] != DROP:
                column = CellColumn(X.iloc[:, i], name, markers)
                columns[name] = infer_declared(column, types[name])
        if all(kind == "empty" for kind, _ in columns.values()):
            raise InputError("X must have a column with values, got empty ones only")
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        self.kinds_ = [kind for kind, _ in columns.values()]
        self.formats_ = [date_format for _, date_format in columns.values()]
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self.feature_names_in_)

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
        return {
            name: DROP if kind == "empty" else f"{kind} {date_format or ''}".rstrip()
            for name, kind, date_format in self._learnt()
        }

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers."""
        return [name for name, kind, _ in self._learnt() if kind == "number"]

    def _check_state(self) -> None:
        check_types(self.types or {})
        require(all(isinstance(text, str) for text in self.missing or []), "missing must be text")
        require(self.decimal in (None, ".", ","), "decimal must be a point or a comma")
        names, kinds, formats = self.feature_names_in_, self.kinds_, self.formats_
        require(len(names) == len(kinds) == len(formats), "kinds must be of the columns")
        require(all(isinstance(name, str) for name in names.tolist()), "names must be text")
        require(len(set(names.tolist())) == len(names), "columns must have different names")
        require(set(kinds) <= set(get_args(CellKind)), "kinds must be known")
        require(all(isinstance(f, str | None) for f in formats), "formats must be text")

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns, shape (d,)."""
        check_is_fitted(self, "kinds_")
        return self.feature_names_in_


def check_names(names: Iterable[str], trained: list[str]) -> None:
    """Raise an error if a column of training is not among the names."""
    present = dict.fromkeys(names)
    missing = [name for name in trained if name not in present]
    if missing:
        noun = "column" if len(missing) == 1 else "columns"
        hint = nearest(missing[0], present)
        raise InputError(f"the table lacks the {noun} {listed(missing, 5)} of training{hint}")


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
