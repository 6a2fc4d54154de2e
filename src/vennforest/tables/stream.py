"""The rows of a table with the columns that are passed on, until all commands read batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from vennforest.tables import files
from vennforest.tables.cells import plain_type, row_name
from vennforest.tables.text import TextTable, with_decimal_point


@dataclass(frozen=True)
class Batch:
    """Some rows of a table: those for the model, whose index counts all rows, and others."""

    rows: pd.DataFrame
    carried: list[pa.Array]


class TableFile(files.TableFile):
    """A table in a file, read in batches of pandas rows."""

    @property
    def text(self) -> Any:
        """The text file, None of another format."""
        return self._source if isinstance(self._source, TextTable) else None

    def place(self, row: int) -> str:
        """Return what to call a row, counted from 0."""
        return row_name(row, str(self.path))

    def types(self, columns: Sequence[str]) -> list[pa.DataType]:
        """Return the Arrow types of columns."""
        return [plain_type(self.schema.field(name).type) for name in columns]

    def batches(  # type: ignore[override]
        self,
        columns: Sequence[str] | None = None,
        carried: Sequence[str] = (),
        size: int = 0,
        numbers: Sequence[str] = (),
    ) -> Iterator[Any]:
        """Yield up to ``size`` rows after another, in the order of the file."""
        if not size:
            yield from super().batches(columns)
            return
        first = 0
        for whole in super().batches([*(columns or ()), *carried]):
            for start in range(0, whole.num_rows, size):
                rows = whole.slice(start, size)
                cells = {n: rows[n] for n in columns or ()}
                if self.decimal == ",":
                    cells |= {n: with_decimal_point(rows[n]) for n in numbers}
                frame = pd.DataFrame({n: files._to_pandas(c, n, ()) for n, c in cells.items()})
                frame.index = pd.RangeIndex(first, first + rows.num_rows)
                first += rows.num_rows
                yield Batch(frame, [rows[n].cast(plain_type(rows[n].type)) for n in carried])
