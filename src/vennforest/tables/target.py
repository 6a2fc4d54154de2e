"""Labels of a table, which is split into X and y, or read batch by batch with its scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vennforest._class_columns import class_columns
from vennforest._messages import listed, not_one_of
from vennforest._validation import InputError
from vennforest.counts import ScoreCounts
from vennforest.scores import On, is_impossible
from vennforest.tables.notes import screen
from vennforest.tables.open import TableFile, numbers_of_text
from vennforest.tables.read import CellColumn, as_floats, is_text, number, refuse_cell, row_name
from vennforest.tables.schema import (
    DROP,
    are_numbers,
    check_types,
    find_names,
    infer,
    infer_columns,
    with_declared,
)

MAX_CLASSES = 1000
MAX_NUMERIC_CLASSES = 50
"""Distinct whole numbers from which on a column is a quantity rather than classes."""
MAX_SHARE_OF_STRAYS = 0.2
MAX_FRACTIONS = 20
"""Distinct numbers with a fraction that are taken for class labels."""

MAX_MISSING_LABELS = 0.02
"""Share of rows without a label from which a note says what leaving them out does."""

EXAMPLES = {
    "breast-cancer": "diagnosis", "digits": "digit", "iris": "species", "wine": "cultivar",
}  # fmt: skip
"""Data sets of scikit-learn, with what their labels are."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table split into X, whose index is the row in the file, from 0, and y.

    ``notes`` are sentences on what was left out or looks doubtful, ``types`` the types of columns
    of X: declared or, if the table was screened, inferred. ``suspects`` are columns to check:
    ``"leak"``, one that alone predicts the label almost without error, or ``"id"``, one left out as
    an ID that several rows share.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    target: str
    name: str
    notes: list[str]
    types: dict[str, str] = field(default_factory=dict)
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
    decimal: str = ".",
) -> LabelledTable:
    """Split a table into X and y without the rows that have no label.

    If ``screened``, identifiers are dropped, except columns to ``keep`` and those with declared
    ``types``, and notes on doubtful columns are added; see `screen`. Otherwise one class is
    enough. ``decimal`` is the sign of the file, see `infer_columns`.
    """
    types = check_types(types or {})
    find_names(table.columns, [target, *(drop or []), *(keep or []), *types])
    unwanted = [*(drop or []), *(column for column, kind in types.items() if kind == DROP)]
    if target in [*types, *unwanted]:
        raise InputError(
            f"the target {target!r} must not be among the columns left out or the types: labels "
            "are taken as they are"
        )
    X = table.drop(columns=[target, *unwanted])
    if not len(X.columns):
        raise InputError(f"there is no column besides the target {target!r} to predict it from")
    labels = CellColumn(table[target], target)
    y = typed_labels(labels, target)
    n_classes = len(check_classes(np.unique(y), target, 2 if screened else 1))
    if n_classes > 2 and 2 * n_classes > len(y):
        raise InputError(
            f"the target {target!r} contains {n_classes:,} distinct values in {len(y):,} rows, "
            "names or a quantity rather than classes"
        )
    notes = _note_on_strays(y, target)
    if len(y) < len(X):
        n_missing = len(X) - len(y)
        note = f"{n_missing:,} of {len(X):,} rows have no {target!r} and are left out."
        if n_missing > MAX_MISSING_LABELS * len(X):
            note += (
                " If their labels are known later, or rows were not followed long enough, the "
                "others are no random part of the rows, and frequencies are off."
            )
        notes.append(note)
        X = X[labels.is_present]
    types = {column: declared for column, declared in types.items() if column in X.columns}
    if not screened:
        return LabelledTable(X, y, target, name, notes, types)
    schema = infer_columns(X, types, decimal=decimal)
    inferred = {column: schema[column] for column in schema if column not in types}
    protected = {*(keep or []), *types}
    left_out, remarks, suspects = screen(with_declared(X, types), y, inferred, protected)
    X = X.drop(columns=left_out)
    types = {
        column: str(schema[column]) for column in map(str, X) if schema[column].kind != "empty"
    }
    return LabelledTable(X, y, target, name, [*notes, *remarks], types, suspects)


def load_example(name: str) -> tuple[pd.DataFrame, str]:
    """Return a data set of scikit-learn, and the name of its usual target."""
    from sklearn import datasets

    if name not in EXAMPLES:
        raise not_one_of("--example", EXAMPLES, name)
    bunch = getattr(datasets, f"load_{name.replace('-', '_')}")(as_frame=True)
    labels = np.asarray(bunch.target_names)[bunch.target]
    return bunch.data.assign(**{EXAMPLES[name]: labels}), EXAMPLES[name]


def typed_labels(column: CellColumn, target: str) -> NDArray[Any]:
    """Return the labels (m,) of the cells that are not missing, as integers, booleans or text.

    Floats become integers, or text if any has a fraction. Text becomes numbers if every cell is
    one; other text, True and False included, is unchanged. Dates and many fractions raise an
    `InputError`.
    """
    cells = column.array.drop_null()
    if is_text(cells.type) and len(cells) and are_numbers(cells):  # 01 and 1 are one class
        column = CellColumn(numbers_of_text(column, cells), target)
        cells = column.array.drop_null()
    if infer(column).kind == "date":
        raise InputError(f"the target {target!r} contains dates, which are not classes: bin them")
    if is_text(cells.type):
        return np.asarray(cells.to_pylist(), dtype=str)
    values = np.asarray(cells.to_numpy(zero_copy_only=False))
    if values.dtype.kind != "f":
        return values
    if (values == np.round(values)).all() and (np.abs(values) < 2**53).all():
        return values.astype(np.int64)
    if len(np.unique(values)) > MAX_FRACTIONS:
        raise InputError(
            f"the target {target!r} contains many distinct numbers with a fraction, a quantity "
            "rather than classes: choose a column of classes, or bin the numbers"
        )
    return values.astype(str)


def _note_on_strays(y: NDArray[Any], target: str) -> list[str]:
    """Return a note on labels that are no numbers, where most are."""
    labels, counts = np.unique(y, return_counts=True)
    is_number = np.array([number(label) is not None for label in labels.tolist()])
    n_strays = int(counts[~is_number].sum())
    if not 0 < n_strays <= MAX_SHARE_OF_STRAYS * len(y):
        return []
    strays = listed(labels[~is_number].tolist(), 4)
    return [
        f"{target!r} is {strays} in {n_strays:,} rows and a number in the others, so these are "
        "classes of their own: if they are no labels, leave such rows out, or name them with "
        "--missing of fit and report."
    ]


def check_classes(classes: NDArray[Any], target: str, lowest: int = 2) -> NDArray[Any]:
    """Return the classes; raise an error for fewer than ``lowest``, or too many."""
    n_classes = len(classes)
    if n_classes == 0:
        raise InputError(f"the target {target!r} is missing in every row")
    if n_classes < lowest:
        raise InputError(
            f"the target {target!r} must have two classes or more, got {str(classes[0])!r} alone"
        )
    if n_classes > (MAX_NUMERIC_CLASSES if classes.dtype.kind in "iu" else MAX_CLASSES):
        raise InputError(
            f"the target {target!r} contains {n_classes:,} distinct values, a quantity or names "
            "rather than classes: bin numbers, or write those that are classes as text, such as "
            "'class 7'"
        )
    return classes


# --- labels with scores --------------------------------------------------------------------------


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
