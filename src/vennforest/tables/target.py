"""A table split into X and y."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import InputError
from vennforest.tables.cells import Column
from vennforest.tables.read import find_column, need_pandas

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 1000
FEW_FRACTIONS = 20
"""Up to so many distinct numbers with a fraction are taken for class labels."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table split into X and y.

    Attributes
    ----------
    X : DataFrame of shape (n, d)
        The other columns; its index is the row in the file, from 0.
    y : ndarray of shape (n,)
        Labels: integers, booleans or text.
    target : str
        The column the labels come from.
    name : str
        What the table is called.
    notes : list of str
        Remarks on what was left out or looks doubtful, one sentence each.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    target: str
    name: str
    notes: list[str]


def split_target(
    table: pd.DataFrame, target: str, drop: list[str] | None = None, *, name: str = "table"
) -> LabelledTable:
    """Split a table into X and y; rows without a label are left out.

    Parameters
    ----------
    table : DataFrame
        As ``read_table`` returns it.
    target : str
        The column of labels.
    drop : list of str, optional
        Columns to leave out.
    name : str
        What the table is called.

    Raises
    ------
    InputError
        If there is no such column, no other column, no label or only one class, or the labels are
        a quantity or nearly as many as there are rows.
    """
    target = find_column(table, target)
    unwanted = [find_column(table, name) for name in drop or []]
    if target in unwanted:
        raise InputError(f"the target {target!r} must not be among the columns left out")
    notes: list[str] = []
    X = table.drop(columns=[target, *unwanted])
    if not len(X.columns):
        raise InputError(f"there is no column besides the target {target!r} to predict it from")
    labels = Column(table[target], target)
    known = labels.there
    if not known.any():
        raise InputError(f"the target {target!r} is missing in every row")
    if not known.all():
        missing = int((~known).sum())
        notes.append(f"{missing:,} of {len(table):,} rows have no {target!r} and are left out.")
        X = X[known]
    y = _labels(labels.present, target)
    notes += _doubtful(X)
    return LabelledTable(X, y, target, name, notes)


def load_example(
    name: str, target: str | None = None, drop: list[str] | None = None
) -> LabelledTable:
    """Return a data set that scikit-learn ships.

    Parameters
    ----------
    name : {"breast-cancer", "digits", "iris", "wine"}
    target : str, optional
        The column to predict; by default the data set's own.
    drop : list of str, optional
        Columns to leave out.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    from sklearn import datasets

    own = {
        "breast-cancer": (datasets.load_breast_cancer, "diagnosis"),
        "digits": (datasets.load_digits, "digit"),
        "iris": (datasets.load_iris, "species"),
        "wine": (datasets.load_wine, "cultivar"),
    }
    if name not in own:
        raise InputError(f"there is no example {name!r}: choose one of {', '.join(own)}")
    need_pandas()
    load, label = own[name]
    bunch = load(as_frame=True)
    table = bunch.data.assign(**{label: np.asarray(bunch.target_names)[bunch.target]})
    return split_target(table, target or label, drop, name=f"{name} (shipped with scikit-learn)")


def _labels(column: pd.Series[Any], target: str) -> NDArray[Any]:
    """Return labels as integers, booleans or text."""
    values = column.to_numpy()
    kind = values.dtype.kind
    if kind == "O":
        types = {type(value) for value in values[:10_000]}
        if types <= {bool, np.bool_}:
            values, kind = values.astype(bool), "b"
        elif types <= {int, np.int64, np.int32}:
            with suppress(OverflowError):
                values, kind = values.astype(np.int64), "i"
    if kind == "f":
        if not np.isfinite(values).all():
            raise InputError(f"the target {target!r} holds infinite numbers")
        if (values == np.round(values)).all() and np.abs(values).max() < 2**53:
            values, kind = values.astype(np.int64), "i"
        elif len(np.unique(values)) > FEW_FRACTIONS:
            raise InputError(
                f"the target {target!r} holds {len(np.unique(values)):,} distinct numbers with a "
                "fraction, a quantity rather than classes: choose a column of classes, or bin "
                "the numbers"
            )
    if kind not in "biu":
        values = np.asarray([str(value) for value in values])
    n_classes = len(np.unique(values))
    if n_classes == 1:
        raise InputError(
            f"the target {target!r} holds only one class, {str(values[0])!r}: "
            "at least two are needed"
        )
    if n_classes > 2 and 2 * n_classes > len(values):
        raise InputError(
            f"the target {target!r} holds {n_classes:,} distinct values in {len(values):,} rows, "
            "names or a quantity rather than classes"
        )
    if n_classes > MOST_CLASSES:
        raise InputError(
            f"the target {target!r} holds {n_classes:,} distinct values: "
            f"at most {MOST_CLASSES:,} classes are supported"
        )
    labels: NDArray[Any] = values
    return labels


def _doubtful(X: pd.DataFrame) -> list[str]:
    """Return a sentence on columns that look like row identifiers."""
    if len(X) < 20:
        return []
    suspects = []
    for name in X.columns:
        column = X[name]
        kind = getattr(column.dtype, "kind", "O")
        named = re.search(r"(^|[_\W])(id|uuid|guid|index|key)$", name, re.IGNORECASE) is not None
        if kind not in "iuO" or not _all_distinct(column):
            continue
        counted = kind in "iu" and bool((np.diff(column.to_numpy()) == 1).all())
        if named or counted or name.startswith("Unnamed:"):
            suspects.append(name)
    if not suspects:
        return []
    shown = ", ".join(map(repr, suspects[:5])) + (" and others" if len(suspects) > 5 else "")
    return [
        f"{shown} differs in every row, like a row number or an identifier: "
        "leave it out with --drop unless it carries information."
    ]


def _all_distinct(column: pd.Series[Any]) -> bool:
    try:
        return bool(column.is_unique)
    except TypeError:  # lists and the like have no hash
        return False
