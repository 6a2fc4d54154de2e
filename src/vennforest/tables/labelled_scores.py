"""Scores and labels of a table, read batch by batch for `ScoreCounts.from_batches`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vennforest._class_columns import class_columns
from vennforest._validation import InputError
from vennforest.scores import On, is_impossible
from vennforest.tables.cells import CellColumn, as_floats, is_text, row_name, shown_cell
from vennforest.tables.files import TableFile, find_name
from vennforest.tables.target import MAX_CLASSES, check_classes, typed_labels
from vennforest.tables.text import with_decimal_point


class LabelledScores:
    """The columns of a table that contain scores, labels, and perhaps weights.

    The constructor reads the labels once: ``classes`` are sorted, and ``n_rows`` rows have a label,
    ``n_missing`` do not. Text is converted if all rows are numbers.
    ``scores`` are the entries of ``--score``, and ``columns`` says of which classes they are.
    ``on`` says what scores are: minus infinity is a logit.
    ``progress`` is called with the number of rows read and the total number, None if unknown.
    """

    def __init__(
        self,
        table: TableFile,
        scores: Sequence[str],
        target: str,
        weight: str | None = None,
        progress: Callable[[int, int | None], None] | None = None,
        on: On = "auto",
    ) -> None:
        self.table, self.target, self.weight, self.on = table, target, weight, on
        self._progress = progress
        # LABEL=COLUMN is read once the labels are known.
        early = [name for name in scores if name in table.names or "=" not in name]
        for name in [*early, *([weight] if weight else []), target]:
            find_name(table.names, name, where=f" in {table.path}")
        self._cells = pa.array([], pa.null())
        self.n_rows = self.n_missing = 0
        for batch in table.batches([target]):
            array = CellColumn(batch[target], target).array
            self.n_missing += array.null_count
            self.n_rows += len(array) - array.null_count
            cells = self._cells.cast(array.type)
            self._cells = pc.unique(pa.concat_arrays([cells, array.drop_null()]))
            if len(self._cells) > MAX_CLASSES:
                check_classes(np.asarray(self._cells.to_pylist(), dtype=object), target)
            self._report(self.n_rows + self.n_missing)
        labels = typed_labels(CellColumn(self._cells, target), target)
        self.classes: list[Any] = check_classes(np.unique(labels), target).tolist()
        self._labels = pa.array(labels.tolist())
        self.columns = class_columns(scores, self.classes, "--score", table.names)
        names = [*self._numbers(), target]
        for name in names:
            find_name(table.names, name, where=f" in {table.path}")
        if len(set(names)) < len(names):
            raise InputError(f"columns must be named once each, got {', '.join(names)}")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with a label: scores and weights as float64, and labels.

        An `InputError` names the row of a score that is not finite or of an invalid weight.
        """
        n_rows = 0
        names = self._numbers()
        for batch in self.table.batches([*names, self.target]):
            codes = pc.index_in(CellColumn(batch[self.target], self.target).array, self._cells)
            rows = np.flatnonzero(codes.is_valid().to_numpy(zero_copy_only=False))
            arrays = [self._floats(batch[name], name, rows, n_rows) for name in names]
            n_rows += batch.num_rows
            if len(rows):
                labels = self._labels.take(codes.drop_null())
                yield pa.RecordBatch.from_arrays([*arrays, labels], names=[*names, self.target])
            self._report(n_rows)

    def _numbers(self) -> list[str]:
        return [*self.columns.names, *([self.weight] if self.weight else [])]

    def _floats(
        self, cells: pa.Array, name: str, rows: NDArray[np.intp], n_before: int
    ) -> pa.Array:
        """Return the scores or weights of labelled rows; other rows are not validated."""
        table = str(self.table.path)
        cells = CellColumn(cells, name).array
        if self.table.decimal == "," and is_text(cells.type):
            cells = with_decimal_point(cells)
        if len(rows) < len(cells):
            mask = pa.array(~np.isin(np.arange(len(cells)), rows))
            cells = pc.if_else(mask, pa.scalar(None, cells.type), cells)
        values = as_floats(cells, name, table, n_before)[rows].astype(np.float64)
        is_weight = name == self.weight
        on: On = "score" if is_weight else self.on
        is_wrong = is_impossible(values, on, len(self.columns.names)) | (is_weight & (values < 0))
        if is_wrong.any():
            row = int(is_wrong.argmax())
            rule = "finite weights that are not negative" if is_weight else "finite scores"
            raise InputError(
                f"column {name!r} must contain {rule}, got {shown_cell(float(values[row]))} in "
                f"{row_name(n_before + int(rows[row]), table)}"
            )
        return pa.array(values)

    def _report(self, n_rows: int) -> None:
        if self._progress is not None:
            self._progress(n_rows, self.table.n_rows)
