"""Scores and labels of a table, read batch by batch for `ScoreCounts.from_batches`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vennforest._validation import InputError
from vennforest.tables.cells import Column, as_floats, is_text, row_name, shown_cell
from vennforest.tables.files import TableFile, typed_text
from vennforest.tables.read import find_name
from vennforest.tables.target import MAX_CLASSES, check_classes, typed_labels
from vennforest.tables.text import with_decimal_point

Progress = Callable[[int, int | None], None]


class LabelledScores:
    """The columns of a table that contain scores, labels, and perhaps weights.

    The labels are read once when this is made. Then a calibrator is fitted by::

        scores = LabelledScores(TableFile(path), ["score"], "outcome")
        counts = ScoreCounts.from_batches(
            scores.batches(), score="score", target="outcome", classes=scores.classes
        )

    Parameters
    ----------
    table : TableFile
    scores : sequence of str
        The column of the second of two classes, or one a class.
    target : str
        The column of labels. Text that is whole numbers in all rows, or true and false, becomes
        such labels.
    weight : str, optional
        The column that says how often a row counts.
    progress : callable, optional
        Called with the number of rows read and, where known, that of all.

    Attributes
    ----------
    classes : list
        The labels, sorted.
    n_rows, n_missing : int
        Rows with and without a label.

    Raises
    ------
    InputError
        If a column is missing, or the labels are refused (see `labels_of`).
    """

    def __init__(
        self,
        table: TableFile,
        scores: Sequence[str],
        target: str,
        weight: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.table, self.scores, self.target, self.weight = table, list(scores), target, weight
        self._progress = progress
        names = [*self.scores, target, *([weight] if weight else [])]
        for name in names:
            find_name(table.names, name, where=f" in {table.path}")
        if len(set(names)) < len(names):
            raise InputError(f"columns must be named once each, got {', '.join(names)}")
        cells: pa.Array | None = None
        self.n_rows = self.n_missing = 0
        for batch in table.batches([target]):
            array = Column(batch[target], target).array
            self.n_missing += array.null_count
            self.n_rows += len(array) - array.null_count
            distinct = pc.unique(array.drop_null())
            cells = distinct if cells is None else pc.unique(pa.concat_arrays([cells, distinct]))
            if len(cells) > MAX_CLASSES:
                check_classes(np.asarray(cells.to_pylist(), dtype=object), target)
            self._report(self.n_rows + self.n_missing)
        self._cells = pa.array([], pa.string()) if cells is None else cells
        column = Column(self._cells, target)
        if is_text(self._cells.type):
            column = Column(typed_text(column, self._cells, ()), target)
        labels = typed_labels(column, target) if len(self._cells) else np.empty(0)
        self.classes: list[Any] = check_classes(np.unique(labels), target).tolist()
        self._labels = pa.array(labels.tolist() if labels.dtype.kind == "U" else labels)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with a label: scores and weights as float64, and labels.

        Raises
        ------
        InputError
            If a score is not finite, or a weight is negative or not finite, with its row.
        """
        n_rows = 0
        numbers = [*self.scores, *([self.weight] if self.weight else [])]
        for batch in self.table.batches([*numbers, self.target]):
            place = pc.index_in(Column(batch[self.target], self.target).array, self._cells)
            rows = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False))
            labels = self._labels.take(place.drop_null())
            arrays = [self._numbers(batch[name], name, rows, n_rows) for name in numbers]
            n_rows += batch.num_rows
            if len(rows):
                yield pa.RecordBatch.from_arrays([*arrays, labels], names=[*numbers, self.target])
            self._report(n_rows)

    def _numbers(
        self, cells: pa.Array, name: str, rows: NDArray[np.intp], n_before: int
    ) -> pa.Array:
        table = str(self.table.path)
        if self.table.decimal == "," and is_text(cells.type):
            cells = with_decimal_point(cells)
        cells = Column(cells, name).array
        if len(rows) < len(cells):  # rows without a label may have any score
            mask = pa.array(~np.isin(np.arange(len(cells)), rows))
            cells = pc.if_else(mask, pa.scalar(None, cells.type), cells)
        values = as_floats(cells, name, table, n_before)[rows].astype(np.float64)
        wrong = ~np.isfinite(values)
        rule = "finite scores"
        if name == self.weight:
            wrong |= values < 0
            rule = "finite weights that are not negative"
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"column {name!r} must contain {rule}, got {shown_cell(float(values[row]))} in "
                f"{row_name(n_before + int(rows[row]), table)}"
            )
        return pa.array(values)

    def _report(self, n_rows: int) -> None:
        if self._progress is not None:
            self._progress(n_rows, self.table.n_rows)
