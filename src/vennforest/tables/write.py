"""Tables written part by part, as CSV or Parquet."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow import csv, parquet

from vennforest._validation import InputError
from vennforest.tables.cells import is_text, number, plain_type

FORMULA = re.compile(r"[=+\-@\t\r＝＋－＠]")
"""First letters of text that spreadsheet programs may take for a formula."""


def output_format(path: str | os.PathLike[str]) -> str:
    """Return csv or parquet, by the suffix of a name."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError(f"the output must end in .csv or .parquet, got {Path(path).name!r}")
    return suffix[1:]


def table_writer(path: Path | IO[bytes], file_format: str, schema: pa.Schema) -> Any:
    """Return a writer whose ``write_table`` appends to a new file; it is a context manager."""
    return (parquet.ParquetWriter if file_format == "parquet" else csv.CSVWriter)(path, schema)


def as_text(value: str) -> str:
    """Return text with an apostrophe before it if a spreadsheet may take it for a formula.

    Numbers stay as they are.
    """
    return f"'{value}" if FORMULA.match(value) and number(value) is None else value


def all_as_text(table: pa.Table) -> pa.Table:
    """Return a table whose names and texts are not formulas, see `as_text`."""
    arrays = []
    for column in table.columns:
        kind = plain_type(column.type)
        if is_text(kind):
            cells = [None if cell is None else as_text(cell) for cell in column.to_pylist()]
            arrays.append(pa.array(cells, kind))
        else:
            arrays.append(column)
    return pa.Table.from_arrays(arrays, names=[as_text(name) for name in table.column_names])
