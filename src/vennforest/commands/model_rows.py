"""A model from a file, and how it takes the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vennforest import persistence
from vennforest._files import one_line, refuse_special
from vennforest._validation import InputError
from vennforest.batch import table_columns
from vennforest.tables.columns import unknown_names


def read_model(path: Path, trusted: Sequence[str]) -> Any:
    """Return the model of a file, which may contain the ``trusted`` types beyond the known ones."""
    refuse_special(path)
    if not path.is_file():
        raise InputError(f"there is no model file {path}")
    try:
        return persistence.load(path, trusted=trusted)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {one_line(error)}") from error


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
