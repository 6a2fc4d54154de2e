"""A table in a file, read whole or part by part, so it may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vennforest._files import files_of, one_line
from vennforest._validation import InputError
from vennforest.tables.arrow import ArrowTable, plain, to_frame
from vennforest.tables.cells import Column, numbers, without_markers
from vennforest.tables.files import PARQUET, check_table_file, is_arrow, is_workbook, sheet_as_arrow
from vennforest.tables.refusals import row_of
from vennforest.tables.text import TextFormat, read_text, text_format, text_parts, with_point


@dataclass(frozen=True)
class Batch:
    """Some rows of a table: those for the model, whose index counts all rows, and others."""

    rows: pd.DataFrame
    carried: list[pa.Array]


class TableFile:
    """A table in a file.

    CSV or TSV, Parquet, or Arrow, also packed: the format is detected from the content. A folder of
    Parquet files, or a pattern such as ``part-*.parquet``, is one table. Of an Excel workbook
    (.xlsx) the first sheet is read, whole. ``decimal`` is the decimal sign of numbers in text,
    None: a comma where cells are separated by semicolons and their numbers are written so.
    """

    def __init__(self, path: Path, decimal: str | None = None) -> None:
        if decimal not in (None, ".", ","):
            raise InputError(f"--decimal must be . or , got {decimal!r}")
        self.path = path
        self.text: TextFormat | None = None
        self._arrow: ArrowTable | None = None
        try:
            self._several = files_of(path)
            if not self._several and is_workbook(path):
                self._unpacked = TemporaryDirectory(prefix="vennforest-")  # gone with this object
                path = sheet_as_arrow(path, Path(self._unpacked.name))
            paths = self._several or [path]
            heads = [check_table_file(one) for one in paths]
            for one, head in zip(paths, heads, strict=True):
                if self._several and not head.startswith(PARQUET):
                    raise InputError(f"tables of several files must be Parquet, which {one} is not")
            if is_arrow(heads[0]):
                self._arrow = ArrowTable(paths, heads)
                self.names = self._arrow.names
            else:
                self.text = text_format(path, decimal)
                self.names = self.text.names
        except (OSError, EOFError) as error:
            raise self._unreadable(error) from error
        if not self.names:
            raise InputError(f"{path} has no columns")

    @property
    def n_rows(self) -> int | None:
        """Number of rows."""
        return None if self._arrow is None else self._arrow.n_rows

    def place(self, row: int) -> str:
        """Return what to call a row, counted from 0: its number from 1, and its file."""
        if self._several and self._arrow is not None:
            return self._arrow.place(row)
        return row_of(row, str(self.path))

    def read(self, as_text: Iterable[str] = (), missing: Sequence[str] = ()) -> pd.DataFrame:
        """Return all rows, see `read_table`."""
        if self._arrow is not None:
            return without_markers(to_frame(self._arrow.read()), missing)
        assert self.text is not None
        try:
            cells = without_markers(read_text(self.path, self.text), missing)
        except (OSError, EOFError) as error:
            raise self._unreadable(error) from error
        comma, index = self.text.decimal == ",", cells.index
        columns: dict[Any, Any] = dict(cells.items())
        del cells  # so the text of a column goes when its numbers are there
        for name in set(self.names).difference(as_text):
            columns[name] = _typed(columns[name], comma)
        return pd.DataFrame(columns, index=index)

    def types(self, columns: Sequence[str]) -> list[pa.DataType]:
        """Return the Arrow types of columns."""
        if self._arrow is None:
            return [pa.string()] * len(columns)
        return [plain(self._arrow.schema.field(name).type) for name in columns]

    def batches(
        self,
        columns: Sequence[str],
        carried: Sequence[str],
        size: int,
        numbers: Sequence[str] = (),
    ) -> Iterator[Batch]:
        """Yield up to ``size`` rows after another, in the order of the file.

        Cells of text files stay text, so no part is read differently from another. Columns are for
        the model, those ``carried`` are passed on; ``numbers`` names columns in which a comma may
        be a decimal comma.
        """
        if self._arrow is not None:
            first = 0
            for some in self._arrow.parts(list(dict.fromkeys([*columns, *carried])), size):
                rows = to_frame(some.select(list(columns)))
                rows.index = pd.RangeIndex(first, first + len(rows))
                first += len(rows)
                kept = (some[name] for name in carried)
                yield Batch(rows, [one.cast(plain(one.type)).combine_chunks() for one in kept])
            return
        assert self.text is not None
        try:
            for part in text_parts(self.path, self.text, size):
                others = [pa.array(part[name].astype(object), pa.string()) for name in carried]
                rows = part[list(columns)]
                if self.text.decimal == ",":
                    rows = rows.assign(**{name: with_point(rows[name]) for name in numbers})
                yield Batch(rows, others)
        except (OSError, EOFError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self.path} cannot be read: {one_line(error)}")


def _typed(cells: pd.Series[Any], comma: bool) -> pd.Series[Any]:
    """Return a column of text as numbers or booleans if it contains these, else as it is."""
    column = Column(with_point(cells) if comma else cells, str(cells.name))
    kind = column.learn_from_text()
    if kind == "text":
        return cells
    values = np.full(len(cells), np.nan)
    if kind == "boolean":
        words = column.read("boolean")
        return words.astype(bool) if column.there.all() else words.map({1.0: True, 0.0: False})
    if kind == "number":
        values[column.there] = numbers(column.present.tolist())
        if (np.abs(values) >= 2.0**53).any():  # labels might be two, and one as floats
            return _integers(column, cells)
        if (values == np.round(values)).all():
            values = values.astype(np.int64)
    return pd.Series(values, index=cells.index)


def _integers(column: Column, cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return large integers without loss, and what are none as the text it is."""
    with suppress(ValueError, OverflowError):
        present = np.array([int(cell) for cell in column.present.tolist()], dtype=np.int64)
        if column.there.all():
            return pd.Series(present, index=cells.index)
        values = np.zeros(len(cells), np.int64)
        values[column.there] = present
        return pd.Series(pd.arrays.IntegerArray(values, ~column.there), index=cells.index)
    return cells
