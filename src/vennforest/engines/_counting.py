"""Columns of scores and labels counted, in SQL or batch by batch, and a calibrator of counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, InputError, warn_of_small_weights
from vennforest.batch import check_number, matrix_of
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.interface import OneVsRestCalibrator, make_calibrator
from vennforest.calibrators.core.scores import Increasing
from vennforest.calibrators.maps.log_odds import LogOddsCalibrator
from vennforest.calibrators.venn_abers import VennAbers
from vennforest.counts import ScoreCounts, ScoreGrid, sql_number
from vennforest.engines._workers import label_kind, labels_of, with_rows
from vennforest.tables.read import find_name
from vennforest.tables.scores import bad_score, bad_weight, row_of

Grid = ScoreGrid | Literal["auto"] | None
"""The grid that scores are put on; "auto": a million cells from 0 to 1; None: as they are."""

MOST = (1 << 63) - 1


@dataclass(frozen=True)
class Counting:
    """What is counted: which columns, on which grid, of which classes.

    One column of ``scores`` is of the second of two classes, or there is one a class; ``vectors``
    keeps those of an example together.
    """

    scores: list[str]
    target: str
    weight: str | None
    grid: ScoreGrid | None
    vectors: bool
    classes: list[Any] | None = None

    @classmethod
    def of(
        cls,
        score: str | Sequence[str],
        target: str,
        weight: str | None,
        method: str | Calibrator,
        grid: Grid,
        classes: Iterable[Any] | None = None,
    ) -> Counting:
        """Take what a user gave."""
        calibrator = make_calibrator(method)
        scores = [score] if isinstance(score, str) else list(score)
        if len(scores) == 2:
            scores = scores[1:]
        names = [*scores, target, *([] if weight is None else [weight])]
        if len(set(names)) < len(names) or not scores:
            raise InputError(f"score, target and weight must be different columns, got {names}")
        vectors = len(scores) > 1 and not _against_rest(calibrator, grid is not None)
        if grid == "auto":
            grid = None if vectors else ScoreGrid()
        if vectors and grid is not None:
            raise InputError(
                "grid must be left out with more than two classes for a "
                f"{type(calibrator).__name__}, which looks at all scores of an example together"
            )
        counting = cls(scores, target, weight, grid, vectors)
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
            sample_weight=None if self.weight is None else np.empty(0, np.int64),
            classes=classes,
            grid=self.grid,
            vectors=self.vectors,
        )
        numbers = [name for name in self.columns if name != self.target]
        for batch, done in with_rows(batches, numbers, self.target, where):
            counts = counts + self._count(batch, where, done, classes)
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
        low, high = (-np.inf, np.inf) if self.grid is None else (self.grid.low, self.grid.high)
        wrong = ~np.isfinite(x) | (x < low) | (x > high)
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            name = self.scores[column]
            raise bad_score(name, _cell(batch, name, row), row_of(first + row, where), self.grid)
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
            grid=self.grid,
            vectors=self.vectors,
        )

    def of_groups(
        self, groups: Sequence[pa.Table], where: str, check: Callable[[], None]
    ) -> ScoreCounts:
        """Return counts from the results of `Statement.groups`, one a column of scores.

        Where rows cannot be counted, ``check`` refuses the first of them.
        """
        if any(group["label"].null_count for group in groups):
            check()
            raise InputError(f"{where} must stay as it is while it is read, got other rows")
        if not any(len(group) for group in groups):
            raise InputError(f"{where} must contain at least one row, got none")
        found = [_Groups.of(table, self) for table in groups]
        counting = self
        if self.classes is None:
            counting = self.with_classes(np.unique(np.concatenate([one.y for one in found])))
        assert counting.classes is not None
        classes = np.asarray(counting.classes)
        for one in found:
            unknown = ~np.isin(one.y, classes)
            if unknown.any():
                raise InputError(
                    f"column {self.target!r} must contain labels of classes {classes.tolist()}, "
                    f"got {one.y[unknown][0].item()!r}"
                )
        if self.vectors:
            return ScoreCounts.from_scores(
                found[0].x, found[0].y, sample_weight=found[0].n, classes=classes, vectors=True
            )
        if len(classes) == 2:
            return _two_classes(found[0], classes[1], classes.tolist(), self.grid)
        parts = [
            _two_classes(one, label, [0, 1], self.grid)
            for one, label in zip(found, classes, strict=True)
        ]
        return ScoreCounts.one_vs_rest(parts, classes)


@dataclass(frozen=True)
class _Groups:
    """Scores or score vectors, labels, and how many examples have them."""

    x: NDArray[np.float64]
    y: NDArray[Any]
    n: NDArray[Any]

    @classmethod
    def of(cls, table: pa.Table, counting: Counting) -> _Groups:
        names = [name for name in table.column_names if name not in ("label", "n")]
        kept = {name: table[name].combine_chunks() for name in [*names, "label", "n"]}
        at = matrix_of({name: kept[name] for name in names})
        x = at[:, 0] if at.shape[1] == 1 else at.astype(np.float64)
        if counting.grid is not None:
            x = counting.grid.score_of(x.astype(np.int64))
        y = labels_of(kept["label"], counting.target, "the data", 0)
        if pa.types.is_floating(kept["n"].type):
            n: NDArray[Any] = kept["n"].to_numpy(zero_copy_only=False)
        else:
            numbers = [int(value) for value in kept["n"].to_pylist()]
            if sum(numbers) > MOST:
                raise InputError(
                    f"column {counting.weight!r} must sum to at most 2**63 - 1, got "
                    f"{sum(numbers)}: cast it to a floating type"
                )
            n = np.array(numbers, np.int64)
        return cls(x.astype(np.float64), y, n)


def _two_classes(
    groups: _Groups, positive: Any, classes: list[Any], grid: ScoreGrid | None
) -> ScoreCounts:
    of_class = groups.y == positive
    zero = np.zeros((), groups.n.dtype)
    return ScoreCounts.from_counts(
        groups.x,
        np.where(of_class, zero, groups.n),
        np.where(of_class, groups.n, zero),
        classes=classes,
        grid=grid,
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


def _against_rest(calibrator: Calibrator, probabilities: bool) -> bool:
    """Tell whether counts of each class against the rest are all that a calibrator needs."""
    if isinstance(calibrator, LogOddsCalibrator):
        return probabilities
    return isinstance(calibrator, OneVsRestCalibrator | VennAbers)


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
            if counting.grid is not None:
                low, high = sql_number(counting.grid.low), sql_number(counting.grid.high)
                tests.append(f"{s} BETWEEN {low} AND {high}")
        if counting.weight is not None:
            w = f"CAST({self.name(counting.weight)} AS DOUBLE)"
            tests.append(f"{finite.format(x=w)} AND {w} >= 0")
        # A test of a missing cell is neither true nor false, and its opposite neither.
        return f"coalesce({' AND '.join(tests)}, FALSE)"

    def groups(self, source: str) -> list[str]:
        """Return the queries, one a column of scores, or one of score vectors.

        Their columns: where examples are (``place0``: the number of a cell, or the score; of
        vectors also ``place1``, …), the ``label``, and their number or weight ``n``. Rows that
        cannot be counted have no label.
        """
        counting = self.counting
        label = f"CASE WHEN {self.good()} THEN {self.name(counting.target)} END AS label"
        n = "COUNT(*)"
        if counting.weight is not None:
            w = self.name(counting.weight)
            kind = "DECIMAL(38, 0)" if self.whole else "DOUBLE"
            n = f"SUM(CASE WHEN {self.good()} THEN CAST({w} AS {kind}) END)"
        columns = [
            f"CASE WHEN {self.good()} THEN {self._place(score)} END" for score in counting.scores
        ]
        chosen = [columns] if counting.vectors else [[column] for column in columns]
        queries = []
        for some in chosen:
            places = ", ".join(f"{column} AS place{i}" for i, column in enumerate(some))
            keys = ", ".join(str(i + 1) for i in range(len(some) + 1))
            queries.append(f"SELECT {places}, {label}, {n} AS n FROM {source} GROUP BY {keys}")
        return queries

    def _place(self, score: str) -> str:
        s = f"CAST({self.name(score)} AS DOUBLE)"
        return s if self.counting.grid is None else self.counting.grid.to_sql(s)


def quoted(column: str, quote: str) -> str:
    """Return a name between quotes, those in it doubled."""
    return quote + column.replace(quote, 2 * quote) + quote
