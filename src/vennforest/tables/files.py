"""Tables in files: CSV, Parquet, Arrow and Excel, read batch by batch or whole."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, ipc, parquet

from vennforest._files import files_of, one_line, refuse_special, shown_path, url_of
from vennforest._messages import needed
from vennforest._validation import InputError
from vennforest.tables.cells import (
    Column,
    is_text,
    plain_type,
    text_as_floats,
)
from vennforest.tables.text import TextTable, open_bytes, with_decimal_point

PARQUET, ARROW_FILE, ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"

OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"FEA1": "a Feather file of version 1",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\x89HDF": "an HDF5 file",
    b"SQLite": "a database",
    b"BZh": "a bzip2 archive",
    b"\xfd7zX": "an xz archive",
}

WORKBOOK = "xl/workbook.xml"
MAX_WORKBOOK_BYTES = 1 << 30
"""Bytes of a workbook, unpacked."""

BATCH_ROWS = 1 << 16
"""Rows of a batch; answers do not depend on it."""

MAX_EXACT_FLOAT = 2**53
"""Integers from here on are not told apart as floats."""


class TableFile:
    """A table in a file, or in a folder or pattern of Parquet files.

    CSV or TSV (also packed by gzip or zstandard), Parquet, Arrow and the first sheet of an Excel
    workbook are recognised by their content.

    Parameters
    ----------
    path : Path
        Several Parquet files are one table with the columns of the first; numbers of different
        types become those of their common type.
    decimal : {".", ","}, optional
        The decimal sign of numbers in text. None: a comma where cells are separated by semicolons
        and numbers are written so.

    Attributes
    ----------
    names : list of str
        The columns.
    schema : pyarrow.Schema
        Their types; columns of text files are text, whatever they contain.
    n_rows : int or None
        None where only reading would tell.
    decimal : str
        The decimal sign of numbers in text.
    """

    def __init__(self, path: Path, decimal: str | None = None) -> None:
        if decimal not in (None, ".", ","):
            raise InputError(f"--decimal must be . or , got {decimal!r}")
        self.path = path
        self.decimal = "."
        with self._errors():
            self._source = self._opened(path, decimal)
        self.schema: pa.Schema = self._source.schema
        # pandas writes an index without a name as such a column.
        self.names = [n for n in self.schema.names if not n.startswith("__index_level_")]
        if not self.names:
            raise InputError(f"{path} has no columns")
        _refuse_duplicates(path, self.names)

    def _opened(self, path: Path, decimal: str | None) -> Any:
        """Return what the table is read from: a text file or an Arrow data set."""
        self.n_rows: int | None = None
        paths = files_of(path)
        head = b"" if paths else _first_bytes(path)
        if paths or head.startswith(PARQUET):
            source = _parquet(paths or [path])
        elif head.startswith(ARROW_FILE):
            source = dataset.dataset(str(path), format="ipc")
        elif head.startswith(ARROW_STREAM):
            with ipc.open_stream(str(path)) as stream:
                source = dataset.dataset(stream.read_all())
        elif _is_workbook(path):
            source = dataset.dataset(_first_sheet(path))
        else:
            for magic, what in OTHER_FORMATS.items():
                if head.startswith(magic):
                    raise InputError(
                        f"{path} is {what}, not a table: write it as CSV, Parquet or Arrow first"
                    )
            text = TextTable(path, decimal)
            self.decimal = text.decimal
            return text
        self.n_rows = source.count_rows()
        return source

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows as record batches, in the order of the file, in bounded memory.

        ``columns`` are those to read; None: all. An `InputError` refuses a file that cannot be
        read.
        """
        columns = self.names if columns is None else list(dict.fromkeys(columns))
        with self._errors():
            yield from self._source.to_batches(
                columns=columns, batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1
            )

    def read(self, as_text: Iterable[str] = (), missing: Sequence[str] = ()) -> pd.DataFrame:
        """Return all rows as a data frame with the index 0, 1, …, see `read_table`."""
        as_text = set(as_text)
        table = pa.Table.from_batches(
            list(self.batches()), pa.schema([self.schema.field(name) for name in self.names])
        )
        columns: dict[str, Any] = {}
        for name in self.names:
            cells, table = table[name], table.drop_columns(name)
            if self.is_text and name not in as_text:
                points = with_decimal_point(cells) if self.decimal == "," else cells
                columns[name] = typed_text(Column(points, name, missing), cells, missing)
            else:
                columns[name] = _to_pandas(cells, name, missing)
        return pd.DataFrame(columns)

    @property
    def is_text(self) -> bool:
        """Whether all cells are text, because the file is."""
        return isinstance(self._source, TextTable)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except UnicodeEncodeError as error:  # Arrow takes names of files in UTF-8 alone
            raise InputError(
                f"{self.path} cannot be read: its name is not text in UTF-8: rename it"
            ) from error
        except (pa.ArrowException, OSError, EOFError) as error:
            raise InputError(f"{self.path} cannot be read: {one_line(error)}") from error


def _refuse_duplicates(path: Path | str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{path} has several columns called {name!r}: rename them")


def _first_bytes(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked, which tell its format."""
    if path.is_dir():
        raise InputError(f"{path} is a folder without Parquet files: name a file in it")
    refuse_special(path)
    if url_of(path) is not None:
        raise InputError(
            f"{shown_path(path)} is an address, which fit, predict, calibrate and apply read: copy "
            "the file here first"
        )
    if not path.exists():
        raise InputError(f"there is no file {path}{_close_files(path)}")
    with open_bytes(path) as file:
        head: bytes = file.read(8)
    if not head:
        raise InputError(f"{path} is empty")
    return head


def _close_files(path: Path) -> str:
    with suppress(OSError):
        names = [p.name for p in path.parent.iterdir() if p.is_file()]
        close = get_close_matches(path.name, names, n=1, cutoff=0.7)
        if close:
            return f": did you mean {path.parent / close[0]}?"
    return ""


def _parquet(paths: Sequence[Path]) -> dataset.Dataset:
    """Return Parquet files as one data set with the columns of the first file."""
    for path in paths:
        if not _first_bytes(path).startswith(PARQUET):
            raise InputError(f"tables of several files must be Parquet, which {path} is not")
    names = [str(path) for path in paths]
    schemas = []
    for name in names:
        try:
            schemas.append(parquet.read_schema(name))
        except pa.ArrowException as error:
            raise InputError(f"{name} cannot be read: {one_line(error)}") from error
        _refuse_duplicates(name, schemas[-1].names)
    fields = list(schemas[0])
    for name, schema in zip(names[1:], schemas[1:], strict=True):
        for i, field in enumerate(fields):
            if field.name not in schema.names:
                raise InputError(
                    "the files of a table must have the same columns, got none called "
                    f"{field.name!r} in {name}"
                )
            other = schema.field(field.name)
            if other.type != field.type:
                fields[i] = _common_type(field, other, name, names[0])
    return dataset.dataset(names, format="parquet", schema=pa.schema(fields))


def _common_type(field: pa.Field, other: pa.Field, path: str, first: str) -> pa.Field:
    schemas = [pa.schema([(field.name, plain_type(kind))]) for kind in (field.type, other.type)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0)
    except pa.ArrowException as error:
        raise InputError(
            f"column {field.name!r} must be of one type in all files of a table, got {other.type} "
            f"in {path} after {field.type} in {first}"
        ) from error


def _is_workbook(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as parts:
        return WORKBOOK in parts.namelist()


def _first_sheet(path: Path) -> pa.Table:
    """Return the first sheet of a workbook, whose first row names the columns.

    Empty rows, and columns without a name or cell, are left out. A column with cells of several
    types becomes text.
    """
    needed("openpyxl", "Excel files", "excel")
    with zipfile.ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > MAX_WORKBOOK_BYTES:
            raise InputError(f"{path} unpacks to more than 1 GiB: write it as CSV or Parquet first")
    try:
        cells = pd.read_excel(
            path, header=None, dtype=object, keep_default_na=False, engine="openpyxl"
        )
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read as a workbook: {error}") from error
    cells = cells.map(lambda cell: None if cell == "" or cell != cell else cell)
    cells = cells.dropna(how="all").dropna(how="all", axis=1)
    if not len(cells):
        raise InputError(f"the first sheet of {path} is empty")
    names = ["" if cell is None else str(cell) for cell in cells.iloc[0]]
    if "" in names:
        raise InputError(f"the first sheet of {path} must name every column in its first row")
    columns = []
    for place in range(len(names)):
        values = cells.iloc[1:, place].tolist()
        try:
            columns.append(pa.array(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns.append(pa.array([None if cell is None else str(cell) for cell in values]))
    return pa.table(columns, names=names)


def typed_text(column: Column, cells: pa.ChunkedArray, missing: Sequence[str]) -> pd.Series[Any]:
    """Return a column of text as numbers or booleans if all its cells are such, else as text."""
    kind = column.infer_text()
    if kind == "boolean":
        words = pd.Series(column.read("boolean"))
        complete = column.is_present.all()
        return words.astype(bool) if complete else words.map({1.0: True, 0.0: False})
    if kind == "number":
        floats = text_as_floats(column.array)
        assert floats is not None
        values = floats.to_numpy(zero_copy_only=False)
        present = values[column.is_present]
        if (np.abs(present) >= MAX_EXACT_FLOAT).any():  # labels would not be told apart as floats
            with suppress(pa.ArrowInvalid):
                integers = pc.cast(pc.utf8_trim_whitespace(column.array), pa.int64())
                return _to_pandas(integers, column.name, ())
            return _to_pandas(cells, column.name, missing)
        if column.is_present.all() and (values == np.round(values)).all():
            values = values.astype(np.int64)
        return pd.Series(values)
    if kind == "empty":
        return pd.Series(np.full(len(cells), np.nan))
    return _to_pandas(cells, column.name, missing)


def _to_pandas(cells: pa.ChunkedArray, name: str, missing: Sequence[str]) -> pd.Series[Any]:
    """Return cells as a pandas series.

    Integers beside empty cells become floats, unless these would not tell them apart.
    """
    if pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.string())
    if pa.types.is_integer(cells.type) and cells.null_count:
        ends = pc.min_max(cells).as_py().values()
        if max((abs(end) for end in ends if end is not None), default=0) >= MAX_EXACT_FLOAT:
            exact = pd.UInt64Dtype if pa.types.is_uint64(cells.type) else pd.Int64Dtype
            return pd.Series(cells.to_pandas(types_mapper=lambda _: exact()))
    series: pd.Series[Any] = cells.to_pandas()
    if missing or is_text(cells.type):
        is_present = Column(cells, name, missing).is_present
        if len(series) - is_present.sum() > cells.null_count:
            series = series.where(is_present)
    return series
