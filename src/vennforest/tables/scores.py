"""Scores and labels in a table, counted part by part, so it may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest._validation import FloatArray, InputError
from vennforest.counts import ScoreCounts
from vennforest.tables.cells import Column, as_floats, number, row_name, shown_cell
from vennforest.tables.read import find_name
from vennforest.tables.stream import TableFile
from vennforest.tables.target import MAX_CLASSES

MOST_SCORES = 1 << 20
"""Distinct scores that are kept as they are."""

Progress = Callable[[int, int | None], None]


def check_names(table: TableFile, names: Sequence[str]) -> None:
    """Refuse columns that the table does not have, and names given twice."""
    for name in names:
        find_name(table.names, name, where=f" in {table.path}")
    if len(set(names)) < len(names):
        raise InputError(f"columns must be named once each, got {', '.join(names)}")


def read_scores(
    cells: pd.Series[Any],
    name: str,
    place: Callable[[int], str],
) -> FloatArray:
    """Return a column's cells as finite scores, shape (n,).

    ``place`` says what to call a row by its number in the index of the cells.
    """
    values, given = score_numbers(cells, name)
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = int(wrong.argmax())
        raise bad_score(name, given(at), place(int(cells.index[at])))
    return values


def read_weights(cells: pd.Series[Any], name: str, place: Callable[[int], str]) -> FloatArray:
    """Return a column's cells as finite weights that are not negative, shape (n,)."""
    values, given = score_numbers(cells, name)
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        at = int(wrong.argmax())
        raise bad_weight(name, given(at), place(int(cells.index[at])))
    return values


def score_numbers(cells: pd.Series[Any], name: str) -> tuple[FloatArray, Callable[[int], Any]]:
    """Return numbers, NaN where a cell is none, and what gives the cell at a place."""
    array = Column(cells, name).array
    try:
        values = np.asarray(as_floats(array, name, ""), np.float64)
    except InputError:
        numbers = [number(cell) for cell in array.to_pylist()]
        values = np.array([np.nan if one is None else one for one in numbers], dtype=np.float64)
    return values, lambda at: array[at].as_py()


def bad_score(name: str, value: Any, place: str, grid: Any = None) -> InputError:
    """Return the error for a score that is no finite number."""
    value = value if number(value) is None else number(value)
    return InputError(
        f"column {name!r} must contain finite scores, got {shown_cell(value)} in {place}"
    )


def bad_weight(name: str, value: Any, place: str) -> InputError:
    """Return the error for a weight that is no finite number, or negative."""
    value = value if number(value) is None else number(value)
    return InputError(
        f"column {name!r} must contain finite weights that are not negative, got "
        f"{shown_cell(value)} in {place}"
    )


def no_label(name: str, place: str) -> InputError:
    """Return the error for a row without a label."""
    return InputError(f"column {name!r} must contain a label in every row, got none in {place}")


row_of = row_name


class ScoreColumns:
    """The columns of a table that contain scores, labels, and perhaps weights.

    One column of scores is of the second of two classes, or there is one a class; a weight says how
    often a row counts. ``size`` rows are read together, and ``progress`` is called with the rows
    done and, where known, all of them.
    """

    def __init__(
        self,
        table: TableFile,
        scores: Sequence[str],
        target: str,
        weight: str | None,
        size: int,
        progress: Progress | None = None,
    ) -> None:
        self.table, self.scores, self.target, self.weight = table, list(scores), target, weight
        self._size, self._progress = size, progress
        self._code: dict[Any, int] = {}

    def labels(self) -> tuple[list[Any], int]:
        """Read the labels, and return the distinct ones, sorted, and how many rows have none.

        Cells of text that all say whole numbers, or true and false, become such; other kinds stay
        text.
        """
        seen: dict[Any, None] = {}
        missing = done = 0
        for batch in self.table.batches([self.target], [], self._size):
            which, cells = _distinct(batch.rows[self.target], self.target)
            missing += int((which < 0).sum())
            done += len(batch.rows)
            seen.update(dict.fromkeys(cells))
            if len(seen) > MAX_CLASSES:
                raise InputError(
                    f"the target {self.target!r} contains more than {MAX_CLASSES:,} distinct "
                    "values, a quantity or names rather than classes"
                )
            if self._progress is not None:
                self._progress(done, self.table.n_rows)
        classes, self._code = _classes_of(list(seen), self.target)
        return classes, missing

    def count(self, classes: Sequence[Any], most: int = MOST_SCORES) -> tuple[ScoreCounts, int]:
        """Return the counts of rows with a label, and how many rows these are; see `Counter`.

        ``classes`` is what ``labels`` returned.
        """
        counter, n_rows = Counter(classes, most), 0
        for scores, codes, weight in self.parts():
            counter.add(scores, codes, weight)
            n_rows += len(codes)
        return counter.total(), n_rows

    def parts(
        self,
    ) -> Iterator[tuple[FloatArray, NDArray[np.int64], FloatArray | None]]:
        """Yield scores (n,) or (n, k), numbers of labels (n,), and weights of rows with a label."""
        others = [*self.scores, *([self.weight] if self.weight else [])]
        done = 0
        for batch in self.table.batches([*others, self.target], [], self._size, others):
            which, cells = _distinct(batch.rows[self.target], self.target)
            rows = batch.rows[which >= 0]
            done += len(batch.rows)
            if len(rows):
                numbers_of = np.array([self._code[cell] for cell in cells], np.int64)
                codes = numbers_of[which[which >= 0]]
                place, weight = self.table.place, None
                columns = [read_scores(rows[name], name, place) for name in self.scores]
                scores = columns[0] if len(columns) == 1 else np.column_stack(columns)
                if self.weight is not None:
                    weight = read_weights(rows[self.weight], self.weight, place)
                if weight is not None and not weight.all():
                    there = weight > 0
                    scores, codes, weight = scores[there], codes[there], weight[there]
                yield scores, codes, weight
            if self._progress is not None:
                self._progress(done, self.table.n_rows)


def _distinct(cells: pd.Series[Any], name: str) -> tuple[NDArray[np.intp], list[Any]]:
    """Return for each cell which of the distinct ones it is, -1 where it is missing, and these."""
    which, different = pd.factorize(cells)
    numbers_of, first = np.unique(which, return_index=True)
    index = cells.index[first[numbers_of >= 0]]  # so a row is named where it cannot be read
    column = Column(pd.Series(different, index=index), name)
    place = np.where(column.there, np.cumsum(column.there) - 1, -1)
    return np.append(place, -1)[which], column.present.tolist()


def _classes_of(cells: list[Any], target: str) -> tuple[list[Any], dict[Any, int]]:
    """Return the classes that distinct cells stand for, sorted, and the number of each cell's."""
    if not cells:
        raise InputError(f"the target {target!r} is missing in every row")
    labels = _plain(cells, target)
    classes = sorted(set(labels))
    if len(classes) == 1:
        raise InputError(
            f"the target {target!r} has only one class, {str(classes[0])!r}: "
            "at least two are needed"
        )
    place = {label: code for code, label in enumerate(classes)}
    return classes, {cell: place[label] for cell, label in zip(cells, labels, strict=True)}


def _plain(cells: list[Any], target: str) -> list[Any]:
    """Return distinct cells as labels: whole numbers, booleans, or text."""
    if all(isinstance(cell, bool) for cell in cells):
        return cells
    if all(isinstance(cell, int) and not isinstance(cell, bool) for cell in cells):
        return cells
    if not any(isinstance(cell, str) for cell in cells):
        values = [cell if isinstance(cell, int | Decimal) else number(cell) for cell in cells]
        if all(one is not None and one == one // 1 for one in values):
            if any(isinstance(one, float) and abs(one) >= 2**53 for one in values):
                raise InputError(f"the target {target!r} must contain numbers below 2**53")
            return [int(one) for one in values if one is not None]
        if all(one is not None for one in values):
            raise InputError(
                f"the target {target!r} contains numbers with a fraction, a quantity rather than "
                "classes"
            )
    text = [str(cell) for cell in cells]
    words = {"true": True, "false": False}
    if all(cell.strip().lower() in words for cell in text):
        return [words[cell.strip().lower()] for cell in text]
    try:
        whole = [int(cell) for cell in text if "_" not in cell]
    except ValueError:
        return text
    return whole if len(whole) == len(text) and max(map(abs, whole)) < 2**63 else text


class Counter:
    """Adds up counts of parts in bounded memory.

    Scores are counted as they are, up to ``most`` distinct ones, and beyond that coarsened.
    """

    def __init__(self, classes: Sequence[Any], most: int = MOST_SCORES) -> None:
        self.classes, self.most = classes, most
        self.counts = self._count(np.empty((0,) if len(classes) == 2 else (0, len(classes))), [])
        self._waiting: list[ScoreCounts] = []

    def _count(
        self, scores: FloatArray, codes: Any, weight: FloatArray | None = None
    ) -> ScoreCounts:
        names = np.asarray(self.classes)
        labels = names[np.asarray(codes, np.int64)]
        return ScoreCounts.from_scores(scores, labels, sample_weight=weight, classes=names)

    def add(self, scores: FloatArray, codes: NDArray[np.int64], weight: FloatArray | None) -> None:
        """Add a part."""
        self._waiting.append(self._count(scores, codes, weight))
        # Parts are added when they are as many together as what they are added to.
        if sum(map(len, self._waiting)) > max(len(self.counts), 1 << 16):
            self._settle()

    def total(self) -> ScoreCounts:
        """Return the counts of all parts."""
        self._settle()
        return self.counts

    def _settle(self) -> None:
        self.counts = sum(self._waiting, start=self.counts)
        self._waiting = []
        if len(self.counts) > self.most:
            self.counts = self.counts.coarsen(self.most // 2)
