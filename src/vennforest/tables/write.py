"""Tables written part by part, as CSV, Parquet or Arrow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow import csv, ipc, parquet

from vennforest._validation import InputError
from vennforest.tables.cells import is_text, number, plain_type

FORMULA = re.compile(r"[=+\-@\t\r＝＋－＠]")
"""First letters of text that spreadsheet programs may take for a formula."""

SUFFIXES = {
    ".csv": "csv",
    ".csv.gz": "csv.gz",
    ".tsv": "tsv",
    ".tsv.gz": "tsv.gz",
    ".csv.zst": "csv.zst",
    ".tsv.zst": "tsv.zst",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def output_format(path: str | os.PathLike[str]) -> str:
    """Return csv, csv.gz, csv.zst, the same of tsv, parquet or arrow, by the suffix of a name."""
    suffixes = Path(path).suffixes[-2:]
    for suffix in ("".join(suffixes).lower(), "".join(suffixes[-1:]).lower()):
        if suffix in SUFFIXES:
            return SUFFIXES[suffix]
    raise InputError(
        "the output must end in .csv, .tsv, .csv.gz, .csv.zst, .parquet or .arrow, got "
        f"{Path(path).name!r}"
    )


@contextmanager
def table_writer(path: Path | IO[bytes], file_format: str, schema: pa.Schema) -> Iterator[Any]:
    """Give a writer whose ``write_table`` and ``write_batch`` append to a new file.

    ``file_format`` is as `output_format` returns it.
    """
    if file_format == "parquet":
        with parquet.ParquetWriter(path, schema) as writer:
            yield writer
        return
    with ExitStack() as stack:
        sink = pa.OSFile(str(path), "wb") if isinstance(path, Path) else pa.PythonFile(path, "w")
        if isinstance(path, Path):
            stack.enter_context(sink)
        if file_format == "arrow":
            yield stack.enter_context(ipc.new_file(sink, schema))
            return
        packed = {".gz": "gzip", ".zst": "zstd"}.get(Path(file_format).suffix)
        if packed is not None:
            sink = stack.enter_context(pa.CompressedOutputStream(sink, packed))
        options = csv.WriteOptions(delimiter="\t" if file_format.startswith("tsv") else ",")
        yield stack.enter_context(csv.CSVWriter(sink, schema, write_options=options))


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
