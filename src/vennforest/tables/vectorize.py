"""Data frames with text, dates and missing cells become the numbers that a forest takes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import InputError

if TYPE_CHECKING:
    import pandas as pd

LARGEST = float(np.finfo(np.float32).max)


def is_frame(X: Any) -> bool:
    """Tell whether X has named columns."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def plain_frame(X: Any) -> pd.DataFrame:
    """Return a data frame whose columns are numbers, text, categories or dates.

    Parameters
    ----------
    X : pandas or polars DataFrame of shape (n, d)

    Raises
    ------
    InputError
        If there is no column, or one holds a number that is infinite or too large for float32.
    """
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if not len(X.columns):
        raise InputError("X must have at least one column, got none")
    columns = {str(name): _plain(X.iloc[:, i], str(name)) for i, name in enumerate(X.columns)}
    if len(columns) < len(X.columns):
        raise InputError("X must have columns of different names, got two that are called alike")
    frame: pd.DataFrame = type(X)(columns, index=X.index)
    return frame


def _plain(column: pd.Series[Any], name: str) -> Any:
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return column
    kind = getattr(dtype, "kind", "O")
    if kind == "m":
        return column.dt.total_seconds()
    if kind == "c":
        raise InputError(f"column {name!r} must hold real numbers, got complex ones")
    if kind == "O" and not isinstance(dtype, pd.StringDtype):
        column = _from_objects(column)
        kind = getattr(column.dtype, "kind", "O")
    if kind in "fiu":
        size = column.abs().max()
        if not pd.isna(size) and size > LARGEST:
            value = "infinite" if np.isinf(float(size)) else f"{float(size):.3g}"
            raise InputError(
                f"column {name!r} must hold numbers up to {LARGEST:.2g}, got {value}: "
                "leave such cells empty, or drop the column"
            )
    return column


def _from_objects(column: pd.Series[Any]) -> Any:
    """Return a column of Python objects as numbers, dates or text."""
    import pandas as pd

    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("boolean", "decimal", "integer", "floating", "mixed-integer-float"):
        return pd.to_numeric(column).astype(np.float64)
    if kind in ("date", "datetime", "datetime64"):
        return pd.to_datetime(column, errors="coerce")
    if kind == "timedelta":
        return pd.to_timedelta(column).dt.total_seconds()
    if kind in ("string", "empty"):
        return column
    return column.map(str, na_action="ignore").astype("str")


class Vectorizer:
    """skrub's ``TableVectorizer``, fitted to the training part of a fold.

    Parameters
    ----------
    seed : int
        Of the encoder of text.
    """

    def __init__(self, seed: int) -> None:
        try:
            from skrub import StringEncoder, TableVectorizer
        except ImportError as missing:
            raise ImportError(
                "data frames need skrub: install it with pip install 'vennforest[all]'"
            ) from missing
        self._vectorizer = TableVectorizer(high_cardinality=StringEncoder(random_state=seed))

    def fit_transform(self, X: pd.DataFrame, y: NDArray[Any]) -> NDArray[np.float32]:
        """Learn the columns, and return them as numbers, (n, outputs)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on how columns are read
            table = self._vectorizer.fit_transform(X, y)
        if not table.shape[1]:
            raise InputError("X must have a column with values, got empty ones only")
        return np.ascontiguousarray(table.to_numpy(dtype=np.float32))

    def transform(self, X: pd.DataFrame) -> NDArray[np.float32]:
        """Return rows as numbers, (m, outputs)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # categories not seen before count as none of them
            table = self._vectorizer.transform(X)
        return np.ascontiguousarray(table.to_numpy(dtype=np.float32))

    def sources(self) -> list[str]:
        """Return the name of the column that each output comes from."""
        origin = self._vectorizer.output_to_input_
        return [origin[output] for output in self._vectorizer.all_outputs_]

    def kinds(self) -> dict[str, str]:
        """Return how each column was read."""
        kinds: dict[str, str] = dict(self._vectorizer.column_to_kind_)
        return kinds
