"""A table split into X and y."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._messages import not_one_of
from vennforest._validation import InputError
from vennforest.tables.cells import Column, is_text
from vennforest.tables.read import find_column
from vennforest.tables.screening import screen
from vennforest.tables.types import DROP, check_types, read_declared

if TYPE_CHECKING:
    import pandas as pd

MAX_CLASSES = 1000
MAX_NUMERIC_CLASSES = 50
"""Distinct whole numbers from which on a column is a quantity rather than classes."""
MAX_FRACTIONS = 20
"""Distinct numbers with a fraction that are taken for class labels."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table split into X, whose index is the row in the file, from 0, and y.

    Attributes
    ----------
    notes : list of str
        Remarks on what was left out or looks doubtful, a sentence each.
    types : dict of str to str
        What columns of X were declared to contain.
    left : list of str
        The columns left out as identifiers.
    suspects : dict of str to str
        Columns to check: ``"leak"``, one that alone predicts the label almost without error,
        ``"id"``, one left out as an ID that several rows share, or ``"text"``, numbers or dates
        that are read as text.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    target: str
    name: str
    notes: list[str]
    types: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
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

    If ``screened``, identifiers are left out, except columns to ``keep`` and those of declared
    ``types``, and remarks are made on doubtful columns; see `screening`.
    """
    target = find_column(table, target)
    types = {
        find_column(table, column, "declared column"): declared
        for column, declared in check_types(types or {}).items()
    }
    if target in types:
        raise InputError(
            f"the target {target!r} must not be among the types, labels are taken as they are: "
            "leave it out there"
        )
    unwanted = [find_column(table, column) for column in drop or []]
    unwanted += [column for column, declared in types.items() if declared == DROP]
    protected = {find_column(table, column) for column in [*(keep or []), *types]}
    if target in unwanted:
        raise InputError(f"the target {target!r} must not be among the columns left out")
    notes: list[str] = []
    X = table.drop(columns=[target, *unwanted])
    if not len(X.columns):
        raise InputError(f"there is no column besides the target {target!r} to predict it from")
    labels = Column(table[target], target)
    has_label = labels.is_present
    if not has_label.any():
        raise InputError(f"the target {target!r} is missing in every row")
    if not has_label.all():
        n_missing = int((~has_label).sum())
        notes.append(f"{n_missing:,} of {len(table):,} rows have no {target!r} and are left out.")
        X = X[has_label]
    y = labels_of(labels, target)
    types = {column: declared for column, declared in types.items() if column in X.columns}
    columns = list(X.columns)
    suspects: dict[str, str] = {}
    if screened:
        screening = screen(read_declared(X, types), y, protected, list(types))
        X = X.drop(columns=screening.left_out)
        notes += screening.notes
        suspects = screening.suspects
    left = [column for column in columns if column not in X.columns]
    return LabelledTable(X, y, target, name, notes, types, left, suspects)


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


def labels_of(column: Column, target: str) -> NDArray[Any]:
    """Return the labels that are present as integers, booleans or text, shape (n,).

    Raises
    ------
    InputError
        If they are a quantity, dates, of one class, or of more than `MAX_CLASSES`.
    """
    values = typed_labels(column, target)
    n_classes = len(check_classes(np.unique(values), target))
    if n_classes > 2 and 2 * n_classes > len(values):
        raise InputError(
            f"the target {target!r} contains {n_classes:,} distinct values in {len(values):,} "
            "rows, names or a quantity rather than classes"
        )
    return values


def typed_labels(column: Column, target: str) -> NDArray[Any]:
    """Return the cells that are present as integers, booleans or text, shape (n,)."""
    cells = column.array.drop_null()
    if column.infer()[0] == "date":
        raise InputError(f"the target {target!r} contains dates, which are not classes: bin them")
    if is_text(cells.type):
        return np.asarray(cells.to_pylist())
    values = np.asarray(cells.to_numpy(zero_copy_only=False))
    return _labels_of_floats(values, target) if values.dtype.kind == "f" else values


def check_classes(classes: NDArray[Any], target: str) -> NDArray[Any]:
    """Return distinct labels; refuse one alone, many numbers, and more than `MAX_CLASSES`."""
    n_classes = len(classes)
    if n_classes == 0:
        raise InputError(f"the target {target!r} is missing in every row")
    if n_classes == 1:
        raise InputError(
            f"the target {target!r} has only one class, {str(classes[0])!r}: at least two are "
            "needed"
        )
    if n_classes > MAX_NUMERIC_CLASSES and classes.dtype.kind in "iu":
        raise InputError(
            f"the target {target!r} contains {n_classes:,} distinct numbers, a quantity rather "
            "than classes: bin them, or write labels that are classes as text, such as 'class 7'"
        )
    if n_classes > MAX_CLASSES:
        raise InputError(
            f"the target {target!r} contains more than {MAX_CLASSES:,} distinct values, a quantity "
            "or names rather than classes"
        )
    return classes


def _labels_of_floats(values: NDArray[Any], target: str) -> NDArray[Any]:
    """Return whole numbers as integers, few numbers with a fraction as text."""
    if not np.isfinite(values).all():
        raise InputError(f"the target {target!r} contains infinite numbers")
    if (values == np.round(values)).all():
        if np.abs(values).max() >= 2**53:
            raise InputError(
                f"the target {target!r} must contain numbers below 2**53, or larger ones as "
                "integers or text, got larger ones as floats, which tell only some of them apart"
            )
        return values.astype(np.int64)
    n_distinct = len(np.unique(values))
    if n_distinct > MAX_FRACTIONS:
        raise InputError(
            f"the target {target!r} contains {n_distinct:,} distinct numbers with a fraction, a "
            "quantity rather than classes: choose a column of classes, or bin the numbers"
        )
    return np.asarray([str(value) for value in values.tolist()])
