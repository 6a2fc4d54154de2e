"""The columns a model was trained on, and new tables read as those were."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vennforest._validation import InputError

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "truth value", "date", "duration", "text", "empty"]
"""What the cells of a column are."""

LARGEST = float(np.finfo(np.float32).max)
TRUTH = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
PLURAL: dict[str, str] = {
    "number": "numbers",
    "truth value": "truth values",
    "date": "dates",
    "duration": "durations",
    "text": "text",
    "empty": "nothing",
}


class TableColumns(TransformerMixin, BaseEstimator):
    """Reads every cell by what its column was in training, whatever else is in the same table.

    A cell means the same in every part of a table, so that a file can be read in parts: nothing
    is guessed from the rows at hand. Columns that training did not know are left out.

    Attributes
    ----------
    kinds_ : list of str
        For each column: number, truth value, date, duration, text or empty.
    formats_ : list of str or None
        How the dates of a column were written; None: as dates, or no dates.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns.
    n_features_in_ : int
        Their number.
    """

    kinds_: list[Kind]
    formats_: list[str | None]

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn the columns.

        Parameters
        ----------
        X : DataFrame of shape (n, d)
        y : ignored

        Raises
        ------
        InputError
            If it is no data frame, two columns share a name, or all are empty.
        """
        _check_frame(X)
        names = [str(name) for name in X.columns]
        if len(set(names)) < len(names):
            raise InputError("X must have columns of different names, got two alike")
        learnt = [_learn(X.iloc[:, i]) for i in range(len(names))]
        if all(kind == "empty" for kind, _ in learnt):
            raise InputError("X must have a column with values, got empty ones only")
        self.kinds_ = [kind for kind, _ in learnt]
        self.formats_ = [written for _, written in learnt]
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of training, in their order, as numbers, dates and text.

        Parameters
        ----------
        X : DataFrame of shape (m, any)

        Raises
        ------
        InputError
            If a column is missing, or a cell is not of the kind its column was in training.
        """
        check_is_fitted(self, "kinds_")
        _check_frame(X)
        self.check_names(str(name) for name in X.columns)
        given = {str(name): i for i, name in enumerate(X.columns)}
        columns = {
            name: _Column(X.iloc[:, given[name]], name).read(kind, written)
            for name, kind, written in zip(
                self.feature_names_in_, self.kinds_, self.formats_, strict=True
            )
        }
        return type(X)(columns, index=X.index)

    def check_names(self, names: Iterable[str]) -> list[str]:
        """Return the names that training did not know.

        Raises
        ------
        InputError
            If a column of training is not among them.
        """
        given = list(names)
        known = self.feature_names_in_.tolist()
        missing = [name for name in known if name not in set(given)]
        if missing:
            shown = ", ".join(map(repr, missing[:5]))
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            extra = [name for name in given if name not in set(known)]
            close = get_close_matches(missing[0], extra, n=1, cutoff=0.6)
            hint = f": is {close[0]!r} what {missing[0]!r} was?" if close else ""
            what = "column" if len(missing) == 1 else "columns"
            raise InputError(f"the table lacks the {what} {shown}{more} of training{hint}")
        return [name for name in given if name not in set(known)]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns, shape (d,)."""
        check_is_fitted(self, "kinds_")
        return self.feature_names_in_

    def __sklearn_tags__(self) -> Tags:
        """Take text and missing cells."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _check_frame(X: object) -> None:
    if not hasattr(X, "iloc"):
        raise InputError(f"X must be a pandas DataFrame, got {type(X).__name__}")


def _learn(column: pd.Series[Any]) -> tuple[Kind, str | None]:
    """Return what the cells of a column are, and how its dates are written."""
    import pandas as pd

    kind = _kind_of(column)
    if kind != "text" or isinstance(column.dtype, pd.CategoricalDtype):
        return kind, None
    cells = column.dropna()
    if pd.api.types.infer_dtype(cells, skipna=True) != "string":
        return "text", None
    if all(_number(cell) is not None for cell in cells.iloc[:1000]) and all(
        _number(cell) is not None for cell in cells
    ):
        return "number", None
    written = _date_format(cells)
    return ("text", None) if written is None else ("date", written)


def _kind_of(column: pd.Series[Any]) -> Kind:
    """Return what the type of a column, and of its objects, says."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return "text" if column.notna().any() else "empty"
    if not column.notna().any():
        return "empty"
    kinds: dict[str, Kind] = {
        "b": "truth value",
        "i": "number",
        "u": "number",
        "f": "number",
        "M": "date",
        "m": "duration",
    }
    kind = getattr(column.dtype, "kind", "O")
    if kind == "c":
        raise InputError(f"column {column.name!r} must hold real numbers, got complex ones")
    if kind in kinds:
        return kinds[kind]
    inferred: dict[str, Kind] = {
        "boolean": "truth value",
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
    return inferred.get(pd.api.types.infer_dtype(column, skipna=True), "text")


def _date_format(cells: pd.Series[Any]) -> str | None:
    """Return the one format in which all cells are dates, None where there is none."""
    from skrub import ToDatetime

    reader = ToDatetime()
    try:
        reader.fit_transform(cells.astype(str).reset_index(drop=True).rename("dates"))
    except ValueError:  # what skrub raises for a column of something else
        return None
    written: str | None = reader.format_
    return written


class _Column:
    """A column that is to be read as one of a kind."""

    def __init__(self, cells: pd.Series[Any], name: str) -> None:
        import pandas as pd

        if isinstance(cells.dtype, pd.CategoricalDtype):
            cells = cells.astype(object)
        self.cells, self.name = cells, name
        self.there = cells.notna().to_numpy()

    def read(self, kind: Kind, written: str | None) -> Any:
        """Return the cells as float64, datetime64[us] or objects of str and None."""
        import pandas as pd

        assert kind in get_args(Kind)
        if kind == "empty":
            return pd.Series(np.full(len(self.cells), np.nan), index=self.cells.index)
        if kind == "text":
            values: Any = self._text()
        elif kind == "date":
            values = self._dates(written)
        else:
            values = self._numbers(kind)
        return pd.Series(values, index=self.cells.index)

    def _text(self) -> NDArray[Any]:
        values = np.full(len(self.cells), None, dtype=object)
        if not self.there.any():
            return values
        if getattr(self.cells.dtype, "kind", "O") in "biufMm":
            self._refuse("text", 0)
        values[self.there] = [str(cell) for cell in self.cells[self.there]]
        return values

    def _dates(self, written: str | None) -> Any:
        import pandas as pd

        values = np.full(len(self.cells), np.datetime64("NaT", "us"), dtype="datetime64[us]")
        present = self.cells[self.there]
        if not len(present):
            return values
        if getattr(present.dtype, "kind", "O") in "biufm":
            self._refuse("date", 0)
        text = np.array([isinstance(cell, str) for cell in present.tolist()])
        if text.any() and getattr(present.dtype, "kind", "O") != "M":
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
        present = self.cells[self.there]
        if not len(present):
            return values
        type_ = getattr(present.dtype, "kind", "O")
        if kind == "duration" and type_ == "m":
            values[self.there] = present.dt.total_seconds().to_numpy(dtype=np.float64)
        elif type_ in "biuf" and kind != "duration":
            values[self.there] = present.to_numpy(dtype=np.float64)
        elif type_ in "Mm":
            self._refuse(kind, 0)
        else:
            values[self.there] = self._from_cells(present.tolist(), kind)
        wrong = (np.abs(values) > LARGEST) & self.there
        if wrong.any():
            at = int(wrong.argmax())
            size = "an infinite number" if np.isinf(values[at]) else f"{values[at]:.3g}"
            raise InputError(
                f"column {self.name!r} must hold numbers up to {LARGEST:.2g}, got {size} in "
                f"{self._row(at)}: leave such cells empty, or drop the column"
            )
        return values

    def _from_cells(self, cells: list[Any], kind: Kind) -> list[float]:
        numbers = []
        for at, cell in enumerate(cells):
            number = None
            if kind == "duration":
                number = cell.total_seconds() if hasattr(cell, "total_seconds") else None
            elif kind == "truth value" and isinstance(cell, str):
                number = TRUTH.get(cell.strip().lower())
            else:
                number = _number(cell)
            if number is None:
                self._refuse(kind, at)
            else:
                numbers.append(number)
        return numbers

    def _refuse(self, kind: Kind, at: int, written: str | None = None) -> None:
        """Raise the error that names the cell, counted among those that are there."""
        place = int(np.flatnonzero(self.there)[at])
        value = self.cells.iloc[place]
        cell = repr(value) if isinstance(value, str) else str(value)
        cell = cell if len(cell) <= 60 else cell[:59] + "…"
        how = f" written like {written}" if written else ""
        raise InputError(
            f"column {self.name!r} held {PLURAL[kind]}{how} in training, and now {cell} in "
            f"{self._row(place)}"
        )

    def _row(self, place: int) -> str:
        label = self.cells.index[place]
        return f"row {label + 1:,}" if isinstance(label, int | np.integer) else f"row {label!r}"


def _number(cell: Any) -> float | None:
    """Return a cell as the nearest float, None where it is no number."""
    if isinstance(cell, str) and "_" in cell:  # Python takes 1_000 for a number
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
