"""A model from a file, and how it takes the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vennforest import persistence
from vennforest._files import one_line, refuse_special
from vennforest._validation import InputError
from vennforest.batch import table_columns
from vennforest.tables.columns import unknown_names
from vennforest.tables.stream import TableFile


def read_model(path: Path, trusted: Sequence[str]) -> Any:
    """Return the model of a file, which may contain the ``trusted`` types beyond the known ones."""
    refuse_special(path)
    if not path.is_file():
        raise InputError(f"there is no model file {path}")
    try:
        return persistence.load(path, trusted=trusted)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {one_line(error)}") from error


@dataclass(frozen=True)
class RowReader:
    """The columns a model takes, and how rows are passed to it: as an array, and read from text."""

    columns: list[str]
    numbers: list[str]
    ignored: list[str]
    as_array: bool = False
    text: bool = False

    def read(self, rows: pd.DataFrame) -> Any:
        """Return rows as the model takes them."""
        if self.text:
            try:
                rows = rows.astype(np.float64)
            except ValueError as error:
                raise InputError(
                    f"the model file does not say how text is to be read: {one_line(error)}; "
                    "give the table as Parquet, or fit the model with vennforest fit"
                ) from error
        return rows.to_numpy() if self.as_array else rows


def rows_of(model: Any, table: TableFile, carried: Sequence[str] = ()) -> RowReader:
    """Return which columns of a table a model takes, and how.

    Columns that are ``carried`` are not for a model which knows no names.
    """
    model = inner_model(model)
    known = table_columns(model)
    if known is not None:
        ignored = known.check_names(table.names)
        return RowReader(known.feature_names_in_.tolist(), known.numbers, ignored)
    names = getattr(model, "feature_names_in_", None)
    text = table.text is not None
    if names is not None:
        columns = [str(name) for name in names]
        return RowReader(columns, columns, unknown_names(table.names, columns), text=text)
    columns = [name for name in table.names if name not in carried]
    if len(columns) != model.n_features_in_:
        raise InputError(
            f"the model was fitted to {model.n_features_in_} columns without names, and "
            f"{table.path} has {len(columns)}"
        )
    return RowReader(columns, columns, [], as_array=True, text=text)


def rows_for(model: Any, frame: pd.DataFrame, carried: Sequence[str] = ()) -> Any:
    """Return the rows of a table as a model takes them.

    Columns that are ``carried`` are no features of a model that was fitted without names.
    """
    table = table_columns(model)
    names = getattr(model, "feature_names_in_", None) if table is None else table.feature_names_in_
    if names is not None:
        unknown_names(frame.columns, [str(name) for name in names])
        return frame[list(names)]
    features = frame.drop(columns=list(carried))
    if features.shape[1] != model.n_features_in_:
        raise InputError(
            f"the model was fitted to {model.n_features_in_} columns without names, and the table "
            f"has {features.shape[1]}"
        )
    return features.to_numpy()


def inner_model(model: Any) -> Any:
    """Return the model that takes rows: that of a monitor, or itself."""
    while hasattr(model, "model"):
        model = model.model
    return model
