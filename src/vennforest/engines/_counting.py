"""Columns of scores and labels counted, in SQL or batch by batch, and a calibrator of counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, InputError, warn_of_small_weights
from vennforest.batch import check_number, matrix_of
from vennforest.calibrators import Calibrator, make_calibrator
from vennforest.calibrators.base import Increasing
from vennforest.counts import MAX_SCORES, ScoreCounts
from vennforest.engines._workers import label_kind, labels_of, with_rows
from vennforest.tables.read import find_name
from vennforest.tables.scores import bad_score, bad_weight, row_of

MOST = (1 << 63) - 1


@dataclass(frozen=True)
class Counting:
    """Which columns are counted, of which classes.

    One column of ``scores`` is of the second of two classes, or there is one a class.
    """

    scores: list[str]
    target: str
    weight: str | None
    classes: list[Any] | None = None

    @classmethod
    def of(
        cls,
        score: str | Sequence[str],
        target: str,
        weight: str | None,
        classes: Iterable[Any] | None = None,
    ) -> Counting:
        """Check the columns that a user named."""
        scores = [score] if isinstance(score, str) else list(score)
        if len(scores) == 2:
            scores = scores[1:]
        names = [*scores, target, *([] if weight is None else [weight])]
        if len(set(names)) < len(names) or not scores:
            raise InputError(f"score, target and weight must be different columns, got {names}")
        counting = cls(scores, target, weight)
        return counting if classes is None else counting.with_classes(list(classes))

    @property
    def columns(self) -> list[str]:
        """Every column that is read."""
        return [*self.scores, self.target, *([] if self.weight is None else [self.weight])]

    def labels(self, batches: Iterable[pa.RecordBatch], number: int) -> NDArray[Any]:
        """Return the distinct labels of a partition."""
        where = f"partition {number}"
        found = [
            np.unique(labels_of(batch.column(self.target), self.target, where, done))
            for batch, done in with_rows(batches, [], self.target, where)
        ]
        return np.unique(np.concatenate(found)) if found else np.empty(0)

    def with_classes(self, classes: ArrayLike) -> Counting:
        """Return the same with these classes."""
        labels = np.unique(np.asarray(classes)).tolist()
        wanted = len(self.scores) if len(self.scores) > 1 else 2
        if len(labels) != wanted:
            what = "one column of scores" if wanted == 2 else f"{wanted} columns of scores"
            raise InputError(
                f"column {self.target!r} must contain {wanted} classes for {what}, got "
                f"{len(labels)}: {labels[:10]} (classes= names those that are missing)"
            )
        return replace(self, classes=labels)

    def count(self, batches: Iterable[pa.RecordBatch], number: int) -> ScoreCounts:
        """Return the counts of one partition."""
        where, classes = f"partition {number}", self.classes
        assert classes is not None
        width = len(self.scores)
        counts = ScoreCounts.from_scores(
            np.empty((0,) if width == 1 else (0, width)),
            np.asarray(classes)[:0],
            classes=classes,
        )
        numbers = [name for name in self.columns if name != self.target]
        for batch, done in with_rows(batches, numbers, self.target, where):
            counts = counts + self._count(batch, where, done, classes)
            if len(counts) > MAX_SCORES:
                counts = counts.coarsen(MAX_SCORES // 2)
        return counts

    def check(self, batches: Iterable[pa.RecordBatch], of: int | str) -> None:
        """Refuse the first row that cannot be counted, of a partition or a file."""
        where = f"partition {of}" if isinstance(of, int) else of
        for batch, done in with_rows(batches, [], self.target, where):
            self._read(batch, where, done)

    def _read(
        self, batch: pa.RecordBatch, where: str, first: int
    ) -> tuple[FloatArray, NDArray[Any], NDArray[Any] | None]:
        """Return scores (n, columns), labels and weights (n,), once all can be counted."""
        x = matrix_of({name: batch.column(name) for name in self.scores}).astype(np.float64)
        wrong = ~np.isfinite(x)
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            name = self.scores[column]
            raise bad_score(name, _cell(batch, name, row), row_of(first + row, where))
        y = labels_of(batch.column(self.target), self.target, where, first)
        if self.weight is None:
            return x, y, None
        weight = matrix_of({self.weight: batch.column(self.weight)})[:, 0]
        wrong = ~np.isfinite(weight) | (weight < 0)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            value = _cell(batch, self.weight, row)
            raise bad_weight(self.weight, value, row_of(first + row, where))
        return x, y, weight

    def _count(
        self, batch: pa.RecordBatch, where: str, first: int, classes: list[Any]
    ) -> ScoreCounts:
        x, y, weight = self._read(batch, where, first)
        if label_kind(y) != label_kind(np.asarray(classes)):
            raise InputError(
                f"column {self.target!r} must contain labels like {classes[0]!r}, got "
                f"{label_kind(y)} in {where}"
            )
        unknown = ~np.isin(y, classes)
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            raise InputError(
                f"column {self.target!r} must contain labels of classes {classes}, got "
                f"{y[row].item()!r} in {row_of(first + row, where)}"
            )
        if weight is not None and not (weight > 0).any():
            x, y, weight = x[:0], y[:0], None
        return ScoreCounts.from_scores(
            x[:, 0] if x.shape[1] == 1 else x,
            y,
            sample_weight=weight,
            classes=classes,
        )

    def of_groups(self, groups: pa.Table, where: str, check: Callable[[], None]) -> ScoreCounts:
        """Return counts from the result of `Statement.groups`.

        Where rows cannot be counted, ``check`` refuses the first of them.
        """
        if groups["label"].null_count:
            check()
            raise InputError(f"{where} must stay as it is while it is read, got other rows")
        if not len(groups):
            raise InputError(f"{where} must contain at least one row, got none")
        names = [name for name in groups.column_names if name not in ("label", "n")]
        x = matrix_of({name: groups[name].combine_chunks() for name in names}).astype(np.float64)
        y = labels_of(groups["label"].combine_chunks(), self.target, "the data", 0)
        n = groups["n"].cast(pa.float64()).to_numpy()
        counting = self if self.classes is not None else self.with_classes(np.unique(y))
        classes = np.asarray(counting.classes)
        unknown = ~np.isin(y, classes)
        if unknown.any():
            raise InputError(
                f"column {self.target!r} must contain labels of classes {classes.tolist()}, "
                f"got {y[unknown][0].item()!r}"
            )
        return ScoreCounts.from_scores(
            x[:, 0] if x.shape[1] == 1 else x, y, sample_weight=n, classes=classes
        )


def fitted_to(
    method: str | Calibrator, counts: ScoreCounts, increasing: Increasing = True
) -> Calibrator:
    """Return a calibrator fitted to counts."""
    if not len(counts):
        raise InputError("the data must contain at least one row of weight above zero, got none")
    warn_of_small_weights(float(counts.total), len(counts))
    fitted: Calibrator = make_calibrator(method).fit_counts(counts, increasing=increasing)
    return fitted


def _cell(batch: pa.RecordBatch, name: str, row: int) -> Any:
    return batch.column(name)[row].as_py()


LARGEST = "1.7976931348623157e308"

TESTS = {
    "`": (f"NOT isnan({{x}}) AND {{x}} BETWEEN -{LARGEST} AND {LARGEST}", "NOT isnan({x})"),
}
"""The tests for a finite number, and for one that is not NaN, of Spark.
"""


@dataclass(frozen=True)
class Statement:
    """The queries of one count.

    ``whole`` weights are integers; of labels that are ``floats`` NaN is none.
    """

    counting: Counting
    quote: str
    whole: bool
    floats: bool

    @classmethod
    def of(cls, counting: Counting, schema: pa.Schema, quote: str, where: str) -> Statement:
        """Take the columns of a table, once they are there and contain numbers."""
        for name in counting.columns:
            find_name(schema.names, name, where=f" in {where}")
            if name != counting.target:
                check_number(name, schema.field(name).type, where)
        whole, weight = True, counting.weight
        if weight is not None:
            kind = schema.field(weight).type
            whole = bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))
        floats = bool(pa.types.is_floating(schema.field(counting.target).type))
        return cls(counting, quote, whole, floats)

    def name(self, column: str) -> str:
        """Return a quoted name."""
        return quoted(column, self.quote)

    def good(self) -> str:
        """Return the condition that a row can be counted."""
        counting, target = self.counting, self.name(self.counting.target)
        finite, not_nan = TESTS[self.quote]
        tests = [f"{target} IS NOT NULL", *([not_nan.format(x=target)] if self.floats else [])]
        for score in counting.scores:
            s = f"CAST({self.name(score)} AS DOUBLE)"
            tests.append(finite.format(x=s))
        if counting.weight is not None:
            w = f"CAST({self.name(counting.weight)} AS DOUBLE)"
            tests.append(f"{finite.format(x=w)} AND {w} >= 0")
        # A test of a missing cell is neither true nor false, and its opposite neither.
        return f"coalesce({' AND '.join(tests)}, FALSE)"

    def groups(self, source: str) -> str:
        """Return the query of distinct scores and labels.

        Its columns: the scores (``score0``, …), the ``label``, and the number or weight ``n`` of
        the examples. Rows that cannot be counted have no label.
        """
        counting = self.counting
        label = f"CASE WHEN {self.good()} THEN {self.name(counting.target)} END AS label"
        n = "COUNT(*)"
        if counting.weight is not None:
            w = self.name(counting.weight)
            kind = "DECIMAL(38, 0)" if self.whole else "DOUBLE"
            n = f"SUM(CASE WHEN {self.good()} THEN CAST({w} AS {kind}) END)"
        columns = [
            f"CASE WHEN {self.good()} THEN CAST({self.name(score)} AS DOUBLE) END AS score{i}"
            for i, score in enumerate(counting.scores)
        ]
        keys = ", ".join(str(i + 1) for i in range(len(columns) + 1))
        return f"SELECT {', '.join(columns)}, {label}, {n} AS n FROM {source} GROUP BY {keys}"


def quoted(column: str, quote: str) -> str:
    """Return a name between quotes, those in it doubled."""
    return quote + column.replace(quote, 2 * quote) + quote
