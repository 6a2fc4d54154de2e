"""Splits into training rows and predicted rows, with groups and times."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import fisher_exact
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from vennforest._messages import as_sentence, counted, listed
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    encode_groups,
    group_names,
    is_missing,
)
from vennforest.monitoring.stream import times_as_numbers
from vennforest.report.numbers import percent
from vennforest.sources.splits import Split, at_most_groups
from vennforest.tables.read import CellColumn
from vennforest.tables.schema import are_numbers, infer

MAX_SITES = 50

N_PARTS_OF_TIME, LABELS_LEVEL = 5, 0.01
"""Parts of time, of which the last one is recent, and the level of the test of missing labels."""


@dataclass(frozen=True, eq=False)
class Design:
    """How n rows are divided into those that train a model and those that it predicts.

    ``kind`` is "folds" (shuffled), "time" (folds in order of ``values``, the times of the rows) or
    "sites" (a fold for each code in ``values``); ``values`` (n,) are NaN where missing. Rows of
    equal codes in ``groups`` (n,) are never on both sides of a split.
    """

    kind: Literal["folds", "time", "sites"]
    n_folds: int
    seed: int
    groups: IntArray | None = None
    values: FloatArray | None = None

    def splits(
        self, rows: IntArray, codes: IntArray, groups: IntArray | None, notes: list[str]
    ) -> list[Split]:
        """Return for each fold which of some rows (m,) train and which are predicted.

        Classes and groups (m,) are those of these rows.
        """
        if self.values is None:
            return shuffled(codes, groups, self.n_folds, self.seed, notes)
        values = self.values[rows]
        if self.kind == "time":
            return forward(codes, values, groups, self.n_folds)
        sites = np.unique(values)
        if not 2 <= len(sites) <= MAX_SITES:
            raise InputError(
                f"site must have 2 to {MAX_SITES} different values, got {len(sites)}: each takes a "
                "model of the others"
            )
        splits = [(np.flatnonzero(values != s), np.flatnonzero(values == s)) for s in sites]
        return _trainable(splits, codes, groups)


def shuffled(
    codes: IntArray, groups: IntArray | None, n_folds: int, seed: int, notes: list[str]
) -> list[Split]:
    """Return shuffled folds, stratified by class; groups are kept together.

    There are no more folds than rows of the largest class.
    """
    largest = int(np.bincount(codes).max())
    if largest < n_folds:
        notes.append(f"No class has {n_folds} rows: {largest} folds instead of {n_folds}.")
        n_folds = largest
    X, random = np.empty(len(codes)), np.random.RandomState(seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        if groups is None:
            splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random)
            return list(splitter.split(X, codes))
        n_folds = at_most_groups(n_folds, groups, lambda text: notes.append(as_sentence(text)))
        grouped = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random)
        return _trainable(list(grouped.split(X, codes, groups)), codes, groups)


def forward(
    codes: IntArray, time: FloatArray, groups: IntArray | None, n_folds: int
) -> list[Split]:
    """Return folds whose training rows are earlier; rows of equal time share a fold."""
    n_times = len(np.unique(time))
    if n_times < 2:
        raise InputError("time must have at least two different times, got one")
    part = equal_parts(time, min(n_folds + 1, n_times))
    splits = [(np.flatnonzero(part < i), np.flatnonzero(part == i)) for i in np.unique(part)[1:]]
    return _trainable(splits, codes, groups)


def equal_parts(values: NDArray[Any], n_parts: int) -> IntArray:
    """Return the part (n,) of each row, in order of the values; equal values stay together."""
    _, position = np.unique(values, return_inverse=True)
    sizes = np.bincount(position)
    middle = (np.cumsum(sizes) - sizes / 2) / len(values)
    part = np.minimum((middle * n_parts).astype(np.intp), n_parts - 1)
    return part[position]


def _trainable(splits: Sequence[Split], codes: IntArray, groups: IntArray | None) -> list[Split]:
    """Return the folds that are not empty and train on at least two classes with two rows.

    Rows of a predicted group are removed from the training rows.
    """
    trainable = []
    for train, test in splits:
        if groups is not None:
            train = train[~np.isin(groups[train], groups[test])]
        if len(test) and (np.bincount(codes[train], minlength=1) >= 2).sum() >= 2:
            trainable.append((train, test))
    if not trainable:
        raise InputError(
            "the rows to train on must have two classes with two rows each, got fewer in every fold"
        )
    return trainable


def group_codes(groups: ArrayLike | None, n: int, notes: list[str]) -> IntArray | None:
    """Return the code (n,) of each row's group; a row without a group is a group of its own.

    A note counts the missing ones; see `group_names`. None without groups.
    """
    if groups is None:
        return None
    names = group_names(groups)
    missing = is_missing(names)
    if missing.any():
        notes.append(f"A group each: {counted(int(missing.sum()))} without a group.")
    # A blank before the number: no group is called so.
    names[missing] = [f" {row}" for row in np.flatnonzero(missing)]
    return encode_groups(np.unique(names.astype(str), return_inverse=True)[1], np.empty(n))


def read_times(column: Any, name: str) -> NDArray[Any]:
    """Return the times of a column (n,) as numbers, or as dates; NaN and NaT where missing."""
    cells = CellColumn(pd.Series(column), name)
    schema = infer(cells)
    kind = schema.kind
    if schema.has_codes and are_numbers(cells.array.drop_null()):
        kind = "number"  # months such as 01 are written like codes
    if kind not in ("number", "date"):
        raise InputError(
            f"the times {name!r} must be numbers or dates in one format, got {kind}: write dates "
            "as 2021-01-25"
        )
    values = cells.read(kind, schema.date_format)
    return values.astype("datetime64[us]" if values.dtype.kind == "M" else np.float64)


def dates_in(column: Any, name: str) -> NDArray[Any] | None:
    """Return the dates of a column (n,), None for a column of anything else."""
    try:
        values = read_times(column, name)
    except InputError:
        return None
    return None if values.dtype.kind != "M" or np.isnat(values).all() else values


def times(column: Any, name: str) -> FloatArray:
    """Return the times of a column (n,) as numbers, NaN where missing: see `read_times`."""
    return times_as_numbers(read_times(column, name))


def note_on_recent_labels(column: Any, name: str, has_label: NDArray[np.bool_]) -> list[str]:
    """Return a note if, beyond chance, recent rows (n,) have a label less often than others.

    Recent are those in the last fifth of the times in a column (n,).
    """
    try:
        time = times(column, name)
    except InputError:  # periods as text
        return []
    has_time = np.isfinite(time)
    is_recent = equal_parts(time[has_time], N_PARTS_OF_TIME) == N_PARTS_OF_TIME - 1
    is_missing = ~has_label[has_time]
    counts = pd.crosstab(is_recent, is_missing).to_numpy()
    if counts.shape != (2, 2) or fisher_exact(counts, "greater").pvalue >= LABELS_LEVEL:
        return []
    recent, earlier = (percent(is_missing[of].mean()) for of in (is_recent, ~is_recent))
    return [
        f"Labels are missing more often among recent rows, {recent} of the last fifth of {name!r} "
        f"against {earlier} before, beyond chance: recent outcomes may not be known yet."
    ]


def without_single_rows(
    codes: IntArray, classes: NDArray[Any], notes: list[str]
) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """Return the rows that stay, their codes and classes, without classes of a single row.

    A note is added that names these.
    """
    single = np.bincount(codes, minlength=len(classes)) < 2
    if (~single).sum() < 2:
        raise InputError(
            f"y must have two classes with two rows each, got {int((~single).sum())} such"
        )
    if single.any():
        names = listed(classes[single].astype(str).tolist(), 5)
        notes.append(f"Left out: {names}. One row cannot both train a model and be predicted.")
    rows = np.flatnonzero(~single[codes])
    new_code = np.cumsum(~single) - 1
    return rows, new_code[codes[rows]].astype(np.intp), classes[~single]
