"""A table split into X and y."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest._messages import listed, not_one_of
from vennforest._validation import InputError
from vennforest.tables.notes import screen
from vennforest.tables.open import numbers_of_text
from vennforest.tables.read import CellColumn, is_text, number
from vennforest.tables.schema import (
    DROP,
    are_numbers,
    check_types,
    find_names,
    infer,
    infer_columns,
    with_declared,
)

MAX_CLASSES = 1000
MAX_NUMERIC_CLASSES = 50
"""Distinct whole numbers from which on a column is a quantity rather than classes."""
MAX_SHARE_OF_STRAYS = 0.2
MAX_FRACTIONS = 20
"""Distinct numbers with a fraction that are taken for class labels."""


MAX_MISSING_LABELS = 0.02
"""Share of rows without a label from which a note says what leaving them out does."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table split into X, whose index is the row in the file, from 0, and y.

    ``notes`` are sentences on what was left out or looks doubtful, ``types`` the types of columns
    of X: declared or, if the table was screened, inferred. ``suspects`` are columns to check:
    ``"leak"``, one that alone predicts the label almost without error, or ``"id"``, one left out as
    an ID that several rows share.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    target: str
    name: str
    notes: list[str]
    types: dict[str, str] = field(default_factory=dict)
    suspects: dict[str, str] = field(default_factory=dict)


def split_target(
    table: pd.DataFrame,
    target: str,
    drop: list[str] | None = None,
    *,
    name: str = "table",
    keep: list[str] | None = None,
    screened: bool = True,
    types: Mapping[str, str] | None = None,
) -> LabelledTable:
    """Split a table into X and y without the rows that have no label.

    If ``screened``, identifiers are dropped, except columns to ``keep`` and those with declared
    ``types``, and notes on doubtful columns are added; see `screen`. Otherwise one class is
    enough.
    """
    types = check_types(types or {})
    find_names(table.columns, [target, *(drop or []), *(keep or []), *types])
    unwanted = [*(drop or []), *(column for column, kind in types.items() if kind == DROP)]
    if target in [*types, *unwanted]:
        raise InputError(
            f"the target {target!r} must not be among the columns left out or the types: labels "
            "are taken as they are"
        )
    X = table.drop(columns=[target, *unwanted])
    if not len(X.columns):
        raise InputError(f"there is no column besides the target {target!r} to predict it from")
    labels = CellColumn(table[target], target)
    y = typed_labels(labels, target)
    n_classes = len(check_classes(np.unique(y), target, 2 if screened else 1))
    if n_classes > 2 and 2 * n_classes > len(y):
        raise InputError(
            f"the target {target!r} contains {n_classes:,} distinct values in {len(y):,} rows, "
            "names or a quantity rather than classes"
        )
    notes = _note_on_strays(y, target)
    if len(y) < len(X):
        n_missing = len(X) - len(y)
        note = f"{n_missing:,} of {len(X):,} rows have no {target!r} and are left out."
        if n_missing > MAX_MISSING_LABELS * len(X):
            note += (
                " If their labels are known later, or rows were not followed long enough, the "
                "others are no random part of the rows, and frequencies are off."
            )
        notes.append(note)
        X = X[labels.is_present]
    types = {column: declared for column, declared in types.items() if column in X.columns}
    if not screened:
        return LabelledTable(X, y, target, name, notes, types)
    schema = infer_columns(X, types)
    inferred = {column: schema[column] for column in schema if column not in types}
    protected = {*(keep or []), *types}
    left_out, remarks, suspects = screen(with_declared(X, types), y, inferred, protected)
    X = X.drop(columns=left_out)
    types = {
        column: str(schema[column]) for column in map(str, X) if schema[column].kind != "empty"
    }
    return LabelledTable(X, y, target, name, [*notes, *remarks], types, suspects)


def load_example(name: str) -> tuple[pd.DataFrame, str]:
    """Return a data set of scikit-learn, and the name of its usual target."""
    from sklearn import datasets

    examples = {
        "breast-cancer": (datasets.load_breast_cancer, "diagnosis"),
        "digits": (datasets.load_digits, "digit"),
        "iris": (datasets.load_iris, "species"),
        "wine": (datasets.load_wine, "cultivar"),
    }
    if name not in examples:
        raise not_one_of("--example", examples, name)
    load, target = examples[name]
    bunch = load(as_frame=True)
    return bunch.data.assign(**{target: np.asarray(bunch.target_names)[bunch.target]}), target


def typed_labels(column: CellColumn, target: str) -> NDArray[Any]:
    """Return the labels (m,) of the cells that are not missing, as integers, booleans or text.

    Floats become integers, or text if any has a fraction. Text becomes numbers if every cell is
    one; other text, True and False included, is unchanged. Dates and many fractions raise an
    `InputError`.
    """
    cells = column.array.drop_null()
    if is_text(cells.type) and len(cells) and are_numbers(cells):  # 01 and 1 are one class
        column = CellColumn(numbers_of_text(column, cells), target)
        cells = column.array.drop_null()
    if infer(column).kind == "date":
        raise InputError(f"the target {target!r} contains dates, which are not classes: bin them")
    if is_text(cells.type):
        return np.asarray(cells.to_pylist(), dtype=str)
    values = np.asarray(cells.to_numpy(zero_copy_only=False))
    if values.dtype.kind != "f":
        return values
    if (values == np.round(values)).all() and (np.abs(values) < 2**53).all():
        return values.astype(np.int64)
    if len(np.unique(values)) > MAX_FRACTIONS:
        raise InputError(
            f"the target {target!r} contains many distinct numbers with a fraction, a quantity "
            "rather than classes: choose a column of classes, or bin the numbers"
        )
    return values.astype(str)


def _note_on_strays(y: NDArray[Any], target: str) -> list[str]:
    """Return a note on labels that are no numbers, where most are."""
    labels, counts = np.unique(y, return_counts=True)
    is_number = np.array([number(label) is not None for label in labels.tolist()])
    n_strays = int(counts[~is_number].sum())
    if not 0 < n_strays <= MAX_SHARE_OF_STRAYS * len(y):
        return []
    strays = listed(labels[~is_number].tolist(), 4)
    return [
        f"{target!r} is {strays} in {n_strays:,} rows and a number in the others, so these are "
        "classes of their own: if they are no labels, leave such rows out, or name them with "
        "--missing of fit and report."
    ]


def check_classes(classes: NDArray[Any], target: str, lowest: int = 2) -> NDArray[Any]:
    """Return the classes; raise an error for fewer than ``lowest``, or too many."""
    n_classes = len(classes)
    if n_classes == 0:
        raise InputError(f"the target {target!r} is missing in every row")
    if n_classes < lowest:
        raise InputError(
            f"the target {target!r} must have two classes or more, got {str(classes[0])!r} alone"
        )
    if n_classes > (MAX_NUMERIC_CLASSES if classes.dtype.kind in "iu" else MAX_CLASSES):
        raise InputError(
            f"the target {target!r} contains {n_classes:,} distinct values, a quantity or names "
            "rather than classes: bin numbers, or write those that are classes as text, such as "
            "'class 7'"
        )
    return classes
