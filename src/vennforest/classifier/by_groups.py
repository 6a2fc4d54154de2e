"""Groups of objects that ``by`` has calibrated separately (Mondrian categories)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from vennforest._messages import shown
from vennforest._validation import (
    InputError,
    IntArray,
    check_increasing,
    group_cells,
    is_frame,
    require,
)
from vennforest.sources.estimators import names_of_columns

Key = str | int | Callable[[Any], Any]
"""A column by name or position, or a function that returns a label for each row."""


@dataclass(frozen=True, eq=False)
class ByGroups:
    """Groups of rows that ``fit`` has seen.

    Parameters
    ----------
    by : str, int or callable
        A column by name (data frames) or position, or a function of the rows of ``fit`` and
        ``predict`` that returns a label for each row, independent of the other rows.
    labels : ndarray of shape (g,)
        Sorted labels of the groups, as float64 or text.
    has_missing : bool
        Whether ``fit`` saw rows without a label. They form the last group.
    """

    by: Key
    labels: NDArray[Any]
    has_missing: bool

    @classmethod
    def fit(cls, by: Any, X: Any, n: int) -> tuple[ByGroups, IntArray]:
        """Return the groups of n rows, and the code of each row's group, (n,)."""
        row_labels, missing = _group_labels(by, X, n)
        labels = np.unique(row_labels[~missing])
        n_groups = len(labels) + missing.any()
        if 2 * n_groups > n > 2:
            raise InputError(
                f"by must put rows into few groups, got {n_groups} groups of {n} rows: round or "
                "bin the values first, or in Python give a function that does"
            )
        groups = cls(by, labels, bool(missing.any()))
        codes = groups.codes(X, n)
        if callable(by) and n > 1:
            half = np.arange((n + 1) // 2)
            if not np.array_equal(groups.codes(_safe_indexing(X, half), len(half)), codes[half]):
                raise InputError(
                    "by must give a row its group whatever the other rows are, got a function that "
                    "gives other groups for the first half of the rows alone: fix its edges"
                )
        return groups, codes

    def __len__(self) -> int:
        return len(self.labels) + self.has_missing

    def codes(self, X: Any, n: int) -> IntArray:
        """Return the code of each row's group (n,), -1 for groups that ``fit`` did not see."""
        row_labels, missing = _group_labels(self.by, X, n)
        codes = np.full(n, len(self.labels) if self.has_missing else -1, np.intp)
        present = row_labels[~missing]
        if present.dtype.kind == "U" and self.labels.dtype.kind == "f":
            present = np.array([_number_in(cell) for cell in present.tolist()])
        if len(present) and len(self.labels) and present.dtype.kind != self.labels.dtype.kind:
            kinds = ["text" if a.dtype.kind == "U" else "numbers" for a in (self.labels, present)]
            raise InputError(f"by must give {kinds[0]}, as at fit, got {kinds[1]}")
        index = np.searchsorted(self.labels, present)
        is_known = index < len(self.labels)
        is_known[is_known] = self.labels[index[is_known]] == present[is_known]
        codes[~missing] = np.where(is_known, index, -1)
        return codes

    def _check_state(self) -> None:
        require(isinstance(self.by, str | Integral), "by must be a column")
        labels = self.labels
        is_vector = type(labels) is np.ndarray and labels.ndim == 1
        require(is_vector and (labels.dtype == np.float64 or labels.dtype.kind == "U"), "labels")
        check_increasing(labels, "labels")
        require(len(self) > 0, "labels must name a group")


def _group_labels(by: Key, X: Any, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the label of each row as float64 or text, and a mask of missing labels, each (n,)."""
    column = by(X) if callable(by) else _column(by, X)
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    labels = np.asarray(column)
    if labels.shape == (n, 1):
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise InputError(f"by must give a label for each of {n} rows, got shape {labels.shape}")
    if labels.dtype.kind in "biuf":
        numbers = labels.astype(np.float64)
        return numbers, np.isnan(numbers)
    cells, present = group_cells(labels, "by")
    kinds = {isinstance(cell, int | float | np.number | np.bool_) for cell in cells}
    if len(kinds) > 1:
        raise InputError("by must give numbers or text, got both: turn all labels into text")
    are_numbers = kinds == {True}
    values = np.array(cells, np.float64) if are_numbers else np.array([*map(str, cells)], str)
    all_rows = np.full(n, np.nan if are_numbers else "", values.dtype)
    all_rows[present] = values
    return all_rows, ~present


def _number_in(cell: str) -> float:
    """Return the number or boolean that a text file has as text, NaN for other text."""
    words = {"true": 1.0, "false": 0.0}
    try:
        return float(words.get(cell.strip().lower(), cell))
    except ValueError:
        return np.nan


def _column(by: str | int, X: Any) -> Any:
    """Return column ``by`` of X (n, d), by its name or by its position, which may be negative.

    The result has shape (n,), or (n, 1) if X is sparse.
    """
    if isinstance(by, str):
        if (names := names_of_columns(X)) is None:
            raise InputError(
                f"X must be a data frame for by={shown(by)}, got {type(X).__name__}: give the "
                "position of the column, or a function"
            )
        if by not in names:
            raise InputError(f"by must name a column of X, got {shown(by)}")
        by = names.index(by)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2 or not -shape[1] <= by < shape[1]:
        raise InputError(f"by must be the position of a column of X, got {by} for shape {shape}")
    if hasattr(X, "tocsc"):
        return X.tocsc()[:, [by]].toarray()
    return _safe_indexing(X if is_frame(X) else np.asarray(X), int(by) % shape[1], axis=1)
