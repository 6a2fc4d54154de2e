"""Scores and labels of a table, read batch by batch for `ScoreCounts.from_batches`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vennforest._class_columns import class_columns
from vennforest._validation import InputError
from vennforest.counts import ScoreCounts
from vennforest.scores import On, is_impossible
from vennforest.tables.open import TableFile
from vennforest.tables.read import CellColumn, as_floats, refuse_cell, row_name
from vennforest.tables.schema import find_names
from vennforest.tables.target import MAX_CLASSES, check_classes, typed_labels


@dataclass
class LeftOut:
    """Numbers of rows that are not calibrated on, for want of a label or a score."""

    n_unlabelled: int = 0
    n_unscored: int = 0

    def __add__(self, part: LeftOut) -> LeftOut:
        """Return the numbers of two parts together."""
        return LeftOut(self.n_unlabelled + part.n_unlabelled, self.n_unscored + part.n_unscored)

    def drop(
        self, batches: Iterable[pa.RecordBatch], target: str, scores: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows with a label and a value in each of ``scores``, and count the others."""
        for batch in batches:
            has_label = is_valid(batch, [target])
            has_score = pc.and_(has_label, is_valid(batch, scores)) if scores else has_label
            n_labelled, n_scored = (mask.true_count for mask in (has_label, has_score))
            self.n_unlabelled += batch.num_rows - n_labelled
            self.n_unscored += n_labelled - n_scored
            yield batch.filter(has_score)

    def notes(self, target: str) -> list[str]:
        """Return sentences on the rows left out without a label and without a score, if any."""
        reasons = ((self.n_unlabelled, repr(target)), (self.n_unscored, "score"))
        return [f"{n:,} rows have no {lack} and are left out." for n, lack in reasons if n]


def is_valid(batch: pa.RecordBatch, names: Sequence[str]) -> pa.BooleanArray:
    """Return a mask of the rows with a cell in each column; NaN is none."""
    masks = [pc.invert(pc.is_null(batch[name], nan_is_null=True)) for name in names]
    return reduce(pc.and_, masks)


class LabelledScores:
    """The columns of a table that contain scores, labels, and perhaps weights.

    The constructor reads the labels once: ``classes`` are sorted, and ``n_rows`` rows have a label.
    Text is converted if all rows are numbers.
    ``scores`` are the entries of ``--score``, and ``columns`` says of which classes they are.
    ``on`` says what scores are: minus infinity is a logit.
    With ``drops_missing``, rows without a score are left out; ``left_out`` counts rows.
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
        drops_missing: bool = False,
    ) -> None:
        self.left_out, self._drops_missing = LeftOut(), drops_missing
        self.table, self.target, self.weight, self.on = table, target, weight, on
        self._progress = progress
        # LABEL=COLUMN is read once the labels are known.
        early = [name for name in scores if name in table.names or "=" not in name]
        where = f" in {table.path}"
        find_names(table.names, [*early, *filter(None, [weight]), target], where)
        self._cells = pa.array([], pa.null())
        self.n_rows = 0
        for batch in table.batches([target]):
            array = CellColumn(batch[target], target).array
            self.left_out.n_unlabelled += array.null_count
            self.n_rows += len(array) - array.null_count
            cells = self._cells.cast(array.type)
            self._cells = pc.unique(pa.concat_arrays([cells, array.drop_null()]))
            if len(self._cells) > MAX_CLASSES:
                check_classes(np.asarray(self._cells.to_pylist(), dtype=object), target)
            self._report(self.n_rows + self.left_out.n_unlabelled)
        labels = typed_labels(CellColumn(self._cells, target), target)
        self.classes: list[Any] = check_classes(np.unique(labels), target).tolist()
        self._labels = pa.array(labels.tolist())
        self.columns = class_columns(scores, self.classes, "--score", table.names)
        table.refuse_thousands(self._numbers())
        names = [*self._numbers(), target]
        find_names(table.names, names, where)
        if len(set(names)) < len(names):
            raise InputError(f"columns must be named once each, got {', '.join(names)}")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with a label: scores and weights as float64, and labels.

        An `InputError` names the row of a score that is not finite or of an invalid weight.
        """
        n_rows = self.left_out.n_unscored = 0
        names = self._numbers()
        scores = self.columns.names if self._drops_missing else []
        for batch in self.table.batches([*names, self.target]):
            codes = pc.index_in(CellColumn(batch[self.target], self.target).array, self._cells)
            rows = np.flatnonzero(codes.is_valid().to_numpy(zero_copy_only=False))
            arrays = [self._floats(batch[name], name, rows, n_rows) for name in names]
            n_rows += batch.num_rows
            if len(rows):
                labels = self._labels.take(codes.drop_null())
                batch = pa.RecordBatch.from_arrays([*arrays, labels], names=[*names, self.target])
                yield from self.left_out.drop([batch], self.target, scores)
            self._report(n_rows)

    def counts(self) -> ScoreCounts:
        """Return the distinct scores of the rows with their weights, by class."""
        return ScoreCounts.from_batches(
            self.batches(),
            score=self.columns.by_label,
            target=self.target,
            weight=self.weight,
            classes=self.classes,
            on=self.on,
        )

    @property
    def n_used(self) -> int:
        """Number of rows with a label, and with a score where others are left out."""
        return self.n_rows - self.left_out.n_unscored

    def _numbers(self) -> list[str]:
        return [*self.columns.names, *filter(None, [self.weight])]

    def _floats(
        self, cells: pa.Array, name: str, rows: NDArray[np.intp], n_before: int
    ) -> pa.Array:
        """Return the scores or weights of labelled rows; other rows are not validated."""
        table = str(self.table.path)
        cells = CellColumn(cells, name).array
        if len(rows) < len(cells):
            mask = pa.array(~np.isin(np.arange(len(cells)), rows))
            cells = pc.if_else(mask, pa.scalar(None, cells.type), cells)
        values = as_floats(cells, name, table, n_before, decimal=self.table.decimal)
        values = values[rows].astype(np.float64)
        is_weight = name == self.weight
        on: On = "score" if is_weight else self.on
        is_wrong = is_impossible(values, on, len(self.columns.names)) | (is_weight & (values < 0))
        if self._drops_missing and not is_weight:
            is_wrong &= ~np.isnan(values)
        if is_wrong.any():
            row = int(is_wrong.argmax())
            rule = "finite weights that are not negative" if is_weight else "finite scores"
            refuse_cell(name, rule, float(values[row]), row_name(n_before + int(rows[row]), table))
        return pa.array(values)

    def _report(self, n_rows: int) -> None:
        if self._progress is not None:
            self._progress(n_rows, self.table.n_rows)
