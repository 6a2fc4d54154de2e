"""Which rows train and which are predicted: at random, by groups, in order of time, or apart."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from vennforest._validation import InputError, IntArray
from vennforest.tables.cells import Column

if TYPE_CHECKING:
    from vennforest._validation import FloatArray

Split = tuple[IntArray, IntArray]
"""Rows to train on and rows to predict."""


def shuffled(codes: IntArray, groups: IntArray | None, n_folds: int, seed: int) -> list[Split]:
    """Return shuffled folds, which keep groups together where there are groups."""
    if groups is None:
        return stratified(codes, n_folds, seed)
    return grouped(codes, groups, n_folds, seed)


def stratified(codes: IntArray, n_folds: int, seed: int) -> list[Split]:
    """Return shuffled folds stratified by class."""
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=np.random.RandomState(seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(splitter.split(np.empty(len(codes)), codes))


def grouped(codes: IntArray, groups: IntArray, n_folds: int, seed: int) -> list[Split]:
    """Return folds that keep every group together, stratified by class as far as possible.

    Raises
    ------
    InputError
        If there are fewer than two groups.
    """
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise InputError(f"groups must be at least two, got {n_groups}")
    splitter = StratifiedGroupKFold(
        min(n_folds, n_groups), shuffle=True, random_state=np.random.RandomState(seed)
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        found = list(splitter.split(np.empty(len(codes)), codes, groups))
    return _usable(found, codes)


def forward(
    codes: IntArray, time: FloatArray, groups: IntArray | None, n_folds: int
) -> list[Split]:
    """Return folds that are predicted from the rows before them; the first part only trains.

    Rows of one time stay together, and rows of a group that is predicted do not train.

    Raises
    ------
    InputError
        If there are fewer than two times, or no part before another holds two classes.
    """
    moments, at = np.unique(time, return_inverse=True)
    if len(moments) < 2:
        raise InputError("time must hold at least two different times, got one")
    reached = np.cumsum(np.bincount(at)) / len(time)
    parts = min(n_folds + 1, len(moments))
    # The part of a moment is where the middle of its rows lies.
    middle = reached - np.bincount(at) / len(time) / 2
    number = np.minimum((middle * parts).astype(np.intp), parts - 1)
    part = np.unique(number, return_inverse=True)[1][at]
    found = []
    for i in range(1, int(part.max()) + 1):
        test, train = np.flatnonzero(part == i), np.flatnonzero(part < i)
        if groups is not None:
            train = train[~np.isin(groups[train], groups[test])]
        found.append((train, test))
    return _usable(found, codes)


def apart(test: NDArray[np.bool_], groups: IntArray | None, codes: IntArray) -> list[Split]:
    """Return the one split into rows to train on and rows to test.

    Raises
    ------
    InputError
        If nothing is left on one side, or the rows to train on hold one class.
    """
    train, held = np.flatnonzero(~test), np.flatnonzero(test)
    if groups is not None:
        train = train[~np.isin(groups[train], groups[held])]
    return _usable([(train, held)], codes)


def _usable(splits: Sequence[Split], codes: IntArray) -> list[Split]:
    """Leave out folds that are empty or would train on fewer than two classes with two rows."""
    kept = [
        (train, test)
        for train, test in splits
        if len(test) and (np.bincount(codes[train], minlength=1) >= 2).sum() >= 2
    ]
    if not kept:
        raise InputError(
            "the rows to train on must hold two classes with two rows each, got fewer in every fold"
        )
    return kept


def members_of(groups: ArrayLike | None, n: int, notes: list[str]) -> IntArray | None:
    """Return the number of each row's group, and note how many rows have none.

    A row without a group is one of its own.

    Raises
    ------
    InputError
        If they are not as many as rows.
    """
    if groups is None:
        return None
    values = np.asarray(groups, dtype=object)
    if values.shape != (n,):
        raise InputError(f"groups must have shape ({n},), got {values.shape}")
    missing = np.array(
        [v is None or v != v or (isinstance(v, str) and not v.strip()) for v in values.tolist()],
        dtype=bool,
    )
    if missing.any():
        notes.append(f"{int(missing.sum()):,} rows without a group count as a group each.")
    names = np.array([f"{type(v).__name__} {v}" for v in values.tolist()], dtype=object)
    names[missing] = [f"row {i}" for i in np.flatnonzero(missing)]
    numbers: IntArray = np.unique(names.astype(str), return_inverse=True)[1].astype(np.intp)
    return numbers


def moments(column: Any, name: str) -> NDArray[Any]:
    """Return the times of a column (n,) as numbers, or as dates; NaN and NaT where missing.

    Raises
    ------
    InputError
        If it holds neither numbers nor dates.
    """
    import pandas as pd

    cells = Column(pd.Series(column), name)
    kind, written = cells.learn()
    if kind not in ("number", "date", "duration"):
        raise InputError(
            f"the times {name!r} must be numbers or dates in one format, got {kind}: write dates "
            "as 2021-01-25, or declare their format with --types"
        )
    read: NDArray[Any] = cells.read(kind, written).to_numpy()
    return read.astype("datetime64[us]" if read.dtype.kind == "M" else np.float64)


def times(column: Any, name: str) -> FloatArray:
    """Return the times of a column (n,) as numbers, NaN where missing: see `moments`."""
    read = moments(column, name)
    if read.dtype.kind == "M":
        number = read.astype(np.int64).astype(np.float64)
        return np.where(np.isnat(read), np.nan, number)
    return np.asarray(read, np.float64)


def values_by(by: Mapping[str, ArrayLike] | None, n: int) -> dict[str, Any]:
    """Return values of n rows as arrays of objects.

    Raises
    ------
    InputError
        If they are not as many as rows.
    """
    found = {}
    for name, values in (by or {}).items():
        column = np.asarray(values, dtype=object)
        if column.shape != (n,):
            raise InputError(f"by must hold {n} values for {name!r}, got shape {column.shape}")
        found[str(name)] = column
    return found
