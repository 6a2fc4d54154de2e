"""A table split into X and y."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._messages import listed, not_one_of
from vennforest._validation import InputError
from vennforest.tables import screening
from vennforest.tables.cells import Column
from vennforest.tables.read import find_column, need_pandas
from vennforest.tables.types import DROP, check_types, declared_read

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 1000
FEW_FRACTIONS = 20
"""Up to so many distinct numbers with a fraction are taken for class labels."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table split into X, whose index is the row in the file, from 0, and y.

    The ``notes`` are remarks on what was left out or looks doubtful, a sentence each; ``types`` is
    what columns of X were declared to contain, ``left`` names those left out as identifiers.
    ``suspects`` are columns to check: ``"leak"``, one that alone predicts the label almost without
    error, ``"id"``, one left out as an ID that several rows share, or ``"text"``, numbers or dates
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
    """Split a table into X and y; rows without a label are left out, and so are identifiers.

    An identifier is a column of running numbers, of text that differs in nearly every row and is
    no prose, or of a number that differs in every row where its name says what it is or chance
    would have left equal ones. Columns to ``keep`` and those of declared ``types`` stay even so;
    only if ``screened`` are identifiers left out, and remarks made on doubtful columns.
    """
    target = find_column(table, target)
    types = {
        find_column(table, name, "declared column"): declared
        for name, declared in check_types(types or {}).items()
    }
    if target in types:
        raise InputError(
            f"the target {target!r} must not be among the types, labels are taken as they are: "
            "leave it out there"
        )
    unwanted = [find_column(table, name) for name in drop or []]
    unwanted += [name for name, declared in types.items() if declared == DROP]
    kept = {find_column(table, name) for name in [*(keep or []), *types]}
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
    types = {name: declared for name, declared in types.items() if name in X.columns}
    given = list(X.columns)
    suspects: dict[str, str] = {}
    if screened:
        X, remarks, suspects = _screened(X, y, kept, types)
        notes += remarks
    left = [name for name in given if name not in X.columns]
    return LabelledTable(X, y, target, name, notes, types, left, suspects)


def load_example(
    name: str, target: str | None = None, drop: list[str] | None = None
) -> LabelledTable:
    """Return a data set that scikit-learn ships, with its own or another column to predict."""
    from sklearn import datasets

    own = {
        "breast-cancer": (datasets.load_breast_cancer, "diagnosis"),
        "digits": (datasets.load_digits, "digit"),
        "iris": (datasets.load_iris, "species"),
        "wine": (datasets.load_wine, "cultivar"),
    }
    if name not in own:
        raise not_one_of("--example", own, name)
    need_pandas()
    load, label = own[name]
    bunch = load(as_frame=True)
    table = bunch.data.assign(**{label: np.asarray(bunch.target_names)[bunch.target]})
    return split_target(table, target or label, drop, name=f"{name} (shipped with scikit-learn)")


def large_floats(target: str) -> InputError:
    """Return the error for labels that floats may have made one."""
    return InputError(
        f"the target {target!r} must contain numbers below 2**53, or larger ones as integers or "
        "text, got larger ones as floats, which tell only some of them apart"
    )


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
            raise InputError(f"the target {target!r} contains infinite numbers")
        if (values == np.round(values)).all():
            if np.abs(values).max() >= 2**53:
                raise large_floats(target)
            values, kind = values.astype(np.int64), "i"
        elif len(np.unique(values)) > FEW_FRACTIONS:
            raise InputError(
                f"the target {target!r} contains {len(np.unique(values)):,} distinct numbers with "
                "a fraction, a quantity rather than classes: choose a column of classes, or bin "
                "the numbers"
            )
    if kind not in "biu":
        values = np.asarray([str(value) for value in values])
    n_classes = len(np.unique(values))
    if n_classes == 1:
        raise InputError(
            f"the target {target!r} has only one class, {str(values[0])!r}: at least two are needed"
        )
    if n_classes > 2 and 2 * n_classes > len(values):
        raise InputError(
            f"the target {target!r} contains {n_classes:,} distinct values in {len(values):,} "
            "rows, names or a quantity rather than classes"
        )
    if n_classes > MOST_CLASSES:
        raise InputError(
            f"the target {target!r} contains {n_classes:,} distinct values: "
            f"at most {MOST_CLASSES:,} classes are supported"
        )
    labels: NDArray[Any] = values
    return labels


def _screened(
    whole: pd.DataFrame, y: NDArray[Any], kept: set[str], types: Mapping[str, str]
) -> tuple[pd.DataFrame, list[str], dict[str, str]]:
    """Return X without identifiers, remarks on it, and columns to check (see `LabelledTable`)."""
    notes = screening.alike(np.unique(y))
    X = declared_read(whole, types)
    found = {n: why for n, why in screening.identifiers(X).items() if n not in kept}
    if found and len(found) == len(X.columns):
        notes.append(f"All columns look like identifiers ({listed(found, 8)}), and are kept.")
    elif found:
        reasons = "; ".join(
            f"{listed([n for n in found if found[n] == why], 8)}: {why}"
            for why in dict.fromkeys(found.values())
        )
        notes.append(
            f"Left out as identifiers: they carry no information about new rows ({reasons}). "
            "--keep brings a column back."
        )
        X, whole = X.drop(columns=list(found)), whole.drop(columns=list(found))
    shared = {n: size for n, size in screening.repeaters(X, y).items() if n not in kept}
    if len(shared) < len(X.columns):
        X, whole = X.drop(columns=list(shared)), whole.drop(columns=list(shared))
    notes += [
        f"Left out: {column!r} looks like a repeated ID ({n_values:,} values in {len(X):,} rows), "
        "and the same person may be in both training and test data. Keep its rows together with "
        f"--groups {shlex.quote(column)}; --keep brings the column back."
        for column, n_values in shared.items()
        if column not in whole.columns
    ]
    alone = [name for name in screening.leaks(X, y) if name not in kept]
    if alone:
        many = len(alone) > 1
        notes.append(
            f"Possible leakage: {listed(alone, 8)} alone {'predict' if many else 'predicts'} the "
            f"label almost without error. If {'they were' if many else 'it was'} recorded after "
            f"the outcome, leave {'them' if many else 'it'} out with --drop; "
            "if not, say so with --keep."
        )
    suspects = dict.fromkeys(alone, "leak") | dict.fromkeys(shared, "id")
    same = screening.constants(X)
    if same:
        notes.append(
            f"{listed(same, 8)} {'have' if len(same) > 1 else 'has'} one value in every row and "
            f"{'carry' if len(same) > 1 else 'carries'} no information."
        )
    misread = screening.misread(X.drop(columns=[n for n in types if n in X.columns]))
    suspects |= {name: "text" for name, why in misread.items() if "is read as text" in why}
    return whole, [*notes, *misread.values()], suspects
