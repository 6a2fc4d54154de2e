"""Which group each object belongs to, by a column or a function of the rows."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import attrs
import numpy as np
from attrs.validators import instance_of
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from vennforest._state import check_increasing, require, stored
from vennforest._validation import FloatArray, InputError, IntArray, check_count, is_frame

Key = str | int | Callable[[Any], Any]
"""A column by name or position, or a function of rows that gives a label for each."""

LARGEST_EXACT = 2.0**53
"""Integers from here on are not told apart as float64."""


@stored("groups")
@attrs.frozen
class Groups:
    """How objects are put into groups that are calibrated each by itself.

    Parameters
    ----------
    by : str, int or callable
        A column by name (data frames) or position, or a function that takes rows as ``fit`` and
        ``predict`` get them and returns a label for each, whatever the other rows are.
    smallest : int, default=0
        Groups of fewer calibration examples than this are calibrated together, and so are groups
        that were not seen. That gives up the statement about each of them by itself; it holds for
        all of them together. 0: each by itself, however few.

    Examples
    --------
    >>> from vennforest import CalibratedClassifier
    >>> from vennforest.groups import Groups
    >>> model = CalibratedClassifier(by=Groups("ward", smallest=50))
    """

    by: Key
    smallest: int = 0

    def check(self) -> None:
        """Refuse anything but a column or a function, and a count.

        Raises
        ------
        InputError
            Naming the parameter.
        """
        column = isinstance(self.by, str | Integral) and not isinstance(self.by, bool)
        if not column and not callable(self.by):
            raise InputError(
                "by must be the name or position of a column, a function of the rows, or Groups, "
                f"got {self.by!r}"
            )
        check_count(self.smallest, "smallest", 0)

    @classmethod
    def from_state(cls, by: Any, smallest: Any) -> Self:
        """Return what a file holds, in which there are no functions.

        Raises
        ------
        ValueError
            If there is one, or ``check`` refuses.
        """
        require(not callable(by), "by must be a column")
        groups = cls(by, smallest)
        groups.check()
        return groups

    @classmethod
    def of(cls, by: Any) -> Groups:
        """Return what the parameter ``by`` stands for, checked."""
        groups = by if isinstance(by, Groups) else cls(by)
        groups.check()
        return groups


@stored("grouping")
@attrs.frozen(eq=False)
class Grouping:
    """The groups that were seen at ``fit``.

    Attributes
    ----------
    groups : Groups
    values : ndarray of shape (g,)
        Their labels, sorted: numbers as float64, or text.
    missing : bool
        Whether rows without a label were seen: they are a group of their own, the last one.
    """

    groups: Groups = attrs.field(validator=instance_of(Groups))
    values: NDArray[Any]
    missing: bool = attrs.field(validator=instance_of(bool))

    def __attrs_post_init__(self) -> None:
        """Refuse labels that are not sorted, or of another kind."""
        require(
            type(self.values) is np.ndarray
            and self.values.ndim == 1
            and (self.values.dtype == np.float64 or self.values.dtype.kind == "U"),
            "values must be numbers or text",
        )
        check_increasing(self.values, "values")
        require(len(self), "values must name a group")

    @classmethod
    def fit(cls, by: Any, X: Any, n: int) -> tuple[Self, IntArray]:
        """Return the groups of n rows, and the number of each row's group (n,).

        Raises
        ------
        InputError
            If rows have no such column, labels are not of one kind, there are nearly as many
            groups as rows, or a function's answer depends on what other rows there are.
        """
        groups = Groups.of(by)
        labels, absent = _labels(groups.by, X, n)
        values = np.unique(labels[~absent])
        many = len(values) + absent.any()
        if 2 * many > n > 2:
            raise InputError(
                f"by must put rows into few groups, got {many} groups of {n} rows: round or bin "
                "the values first, or in Python give a function that does"
            )
        grouping = cls(groups, values, bool(absent.any()))
        codes = grouping._codes(labels, absent)
        if callable(groups.by) and n > 1:
            half = np.arange((n + 1) // 2)
            if not np.array_equal(grouping.codes(_safe_indexing(X, half), len(half)), codes[half]):
                raise InputError(
                    "by must give a row its group whatever the other rows are, got a function that "
                    "answers otherwise for the first half of the rows alone: fix its edges"
                )
        return grouping, codes

    def __len__(self) -> int:
        return len(self.values) + self.missing

    def names(self) -> list[Any]:
        """Return the label of each group, None for rows without one."""
        names: list[Any] = self.values.tolist()
        return [*names, None] if self.missing else names

    def codes(self, X: Any, n: int) -> IntArray:
        """Return the number of each row's group (n,), -1 for groups that were not seen."""
        return self._codes(*_labels(self.groups.by, X, n))

    def _codes(self, labels: NDArray[Any], absent: NDArray[np.bool_]) -> IntArray:
        codes = np.full(len(labels), len(self.values) if self.missing else -1, np.intp)
        there = labels[~absent]
        if there.dtype.kind == "U" and self.values.dtype.kind == "f":
            there = _numbers(there)  # files of text hold numbers as they are written
        if len(there) and len(self.values) and (there.dtype.kind != self.values.dtype.kind):
            now, then = ("text" if a.dtype.kind == "U" else "numbers" for a in (there, self.values))
            raise InputError(f"by must give {then}, as at fit, got {now}")
        if len(self.values):
            at = np.searchsorted(self.values, there).clip(max=len(self.values) - 1)
            codes[~absent] = np.where(self.values[at] == there, at, -1)
        else:
            codes[~absent] = -1
        return codes


def _labels(by: Key, X: Any, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the label of each row (n,), as float64 or text, and where there is none."""
    given = by(X) if callable(by) else _column(by, X)
    if hasattr(given, "to_numpy"):
        given = given.to_numpy()
    found = np.asarray(given)
    if found.shape == (n, 1):
        found = found[:, 0]
    if found.shape != (n,):
        raise InputError(f"by must give a label for each of {n} rows, got shape {found.shape}")
    if found.dtype.kind in "biuf":
        numbers = found.astype(np.float64)
        if found.dtype.kind in "iu" and len(numbers) and np.abs(numbers).max() >= LARGEST_EXACT:
            raise InputError(
                "by must give numbers below 2**53 or text, got larger numbers: turn them into text"
            )
        return numbers, np.isnan(numbers)
    every = found.tolist() if found.dtype.kind == "O" else [str(one) for one in found]
    absent = np.array([_is_missing(one) for one in every], bool)
    there = [one for one in every if not _is_missing(one)]
    kinds = {isinstance(one, int | float | np.number | np.bool_) for one in there}
    if len(kinds) > 1:
        raise InputError("by must give numbers or text, got both: turn all labels into text")
    if kinds == {True}:
        labels = np.full(n, np.nan)
        labels[~absent] = [float(one) for one in there]
        return labels, absent
    text = np.zeros(n, f"U{max([1, *(len(str(one)) for one in there)])}")
    text[~absent] = [str(one) for one in there]
    return text, absent


def _numbers(text: NDArray[Any]) -> FloatArray:
    """Return the numbers that texts stand for, NaN where they stand for none."""

    def one(cell: str) -> float:
        try:
            return float({"true": "1", "false": "0"}.get(cell.strip().lower(), cell))
        except ValueError:
            return np.nan

    return np.array([one(cell) for cell in text.tolist()], np.float64)


def _is_missing(value: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, or what pandas puts there."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return (isinstance(value, float) and value != value) or (
        isinstance(value, str) and value == "NaT"
    )


def _column(by: str | int, X: Any) -> Any:
    sparse: bool = issparse(X)
    if isinstance(by, str):
        if not is_frame(X):
            raise InputError(
                f"X must be a data frame for by={by!r}, got {type(X).__name__}: give the position "
                "of the column, or a function"
            )
        if by not in list(X.columns):
            raise InputError(f"by must name a column of X, got {by!r}")
        return X[by]
    shape = X.shape if sparse else np.shape(X)
    if len(shape) != 2 or not -shape[1] <= by < shape[1]:
        raise InputError(f"by must be the position of a column of X, got {by} for shape {shape}")
    if sparse:
        return X.tocsc()[:, [by]].toarray()
    if is_frame(X):
        return _safe_indexing(X, int(by) % shape[1], axis=1)
    return np.asarray(X)[:, by]
