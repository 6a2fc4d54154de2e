"""Tables in files: CSV, Parquet, Arrow and Excel, read batch by batch or whole."""

from __future__ import annotations

import codecs
import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import dataset, parquet

from vennforest._files import check_unpacked_size, files_of, one_line
from vennforest._messages import listed, needed, warn
from vennforest._validation import InputError
from vennforest.tables.read import (
    DECIMAL_COMMA,
    DECIMAL_POINT,
    MISSING_MARKERS,
    CellColumn,
    is_text,
    plain_array,
    plain_type,
    with_decimal_point,
    without_fraction,
)
from vennforest.tables.schema import find_name, infer

PARQUET, ARROW, ARROW_STREAM, ZIP = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"PK\x03\x04"
"""First bytes of files in these formats."""

DELIMITERS = ",;\t|"

SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""A first line with which spreadsheet programs name the delimiter."""

BLOCK_BYTES = 1 << 22
"""Bytes that are parsed together; a row must fit into them."""

WHOLE = r"^\s*[-+]?\d+\s*$"
THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}([.,]\d{3})+\s*$"
"""Numbers without a decimal sign, and with either as thousands separator."""

BATCH_ROWS = 1 << 16
"""Rows of a batch; the answers do not depend on it."""

MAX_SHEET_ROWS, MAX_SHEET_CELLS, MAX_EMPTY_RATIO = 1 << 20, 1 << 22, 100
"""Rows of a sheet, and cells between its ends, unless one in `MAX_EMPTY_RATIO` is not empty."""

MAX_EXACT_FLOAT = 2**53
"""Largest integer up to which floats represent all integers exactly."""


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """How a table is written, as far as its file does not say it.

    Parameters
    ----------
    decimal : {".", ","}, optional
        Decimal sign of numbers in text. By default a comma if cells are separated by semicolons,
        unless more columns of the first rows have numbers with a point, else a point.
    delimiter : str, optional
        The sign between cells of CSV, ``"tab"`` for a tab; by default the comma, semicolon, tab or
        bar that is most frequent in the first line, or that ``sep=`` in the first line names.
    encoding : str, optional
        Encoding of CSV, such as ``"cp1250"``; by default UTF-16 by its mark, else UTF-8, else
        cp1252.
    no_header : bool, default=False
        Whether the first row of CSV or Excel is no names of columns; they are ``column0``, … then.
    sheet : str, optional
        Name of the sheet of a workbook, by default the first.
    """

    decimal: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    no_header: bool = False
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal must be . or , got {self.decimal!r}")
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", one_sign(self.delimiter))
        try:
            io.TextIOWrapper(io.BytesIO(), self.encoding)  # base64 and others are of bytes
        except (LookupError, ValueError):
            raise InputError(
                f"encoding must be one that Python has, such as utf-8 or cp1252, got "
                f"{self.encoding!r}"
            ) from None


def one_sign(text: str) -> str:
    """Return a delimiter, a tab for ``"tab"``; raise an error for other than one sign."""
    sign = "\t" if text in ("tab", "\\t") else text
    if len(sign.encode(errors="surrogatepass")) != 1 or sign in '"\r\n':
        raise InputError(f"delimiter must be one sign or tab, got {text!r}")
    return sign


DETECTED = TableFormat()


class TableFile:
    """A table in a file, or in a folder of Parquet files.

    CSV or TSV (also compressed by gzip), Parquet, Arrow (also its stream) and a sheet of an Excel
    workbook are recognised by their content. Other files raise an `InputError`.

    Parameters
    ----------
    path : Path
        Path of a file, or of a folder whose Parquet files form one table with the columns of the
        first; numbers of different types are converted to their common type.
    form : TableFormat
        Decimal sign, delimiter, encoding and others where the file does not say them.

    Attributes
    ----------
    schema : pyarrow.Schema
        Schema of the batches; all columns of text files are text.
    names : list of str
        Names of the columns, without the unnamed index that pandas writes to Parquet.
    n_rows : int or None
        Number of rows, None for text.
    """

    def __init__(self, path: Path, form: TableFormat = DETECTED) -> None:
        self.path = path
        with _read_errors(path):
            self._source = _open(path, form)
            is_csv = isinstance(self._source, TextTable)
            _refuse_repeated_names(path, self._source.schema.names)
            self.n_rows: int | None = None if is_csv else self._source.count_rows()
        self.decimal: str = self._source.decimal if is_csv else form.decimal or "."
        self.decimal_is_detected = is_csv and self._source.is_detected
        self.has_semicolons = is_csv and self._source.has_semicolons
        self.is_text = is_csv or self.decimal == ","  # numbers of other formats may be text too
        self.schema: pa.Schema = self._source.schema
        # With threads pyarrow crashes where a reader of an Arrow file stops early.
        file_format = getattr(self._source, "format", None)
        self._takes_threads = isinstance(file_format, dataset.ParquetFileFormat)
        for field in self.schema:
            if pa.types.is_union(field.type):  # which can neither be read nor copied
                plain_array(pa.nulls(0, field.type), field.name)
        self.names = [n for n in self.schema.names if not n.startswith("__index_level_")]
        if not self.names:
            raise InputError(f"{path} has no columns")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or some columns of them, as record batches in the order of the file."""
        columns = self.names if columns is None else list(dict.fromkeys(columns))
        with _read_errors(self.path):
            for batch in self._source.to_batches(
                columns=columns,
                batch_size=BATCH_ROWS,
                batch_readahead=1,
                fragment_readahead=1,
                use_threads=self._takes_threads,
            ):
                if self.n_rows is not None:
                    batch.validate(full=True)  # others would read beyond a forged column
                yield batch

    def refuse_thousands(self, names: Iterable[str]) -> None:
        """Raise an error if the commas of a column of numbers may separate thousands."""
        for name in names if self.decimal_is_detected and self.decimal == "," else ():
            if name in self._source.in_doubt:
                raise InputError(
                    f"column {name!r} must contain numbers with one decimal sign, got commas that "
                    "may separate thousands: write plain numbers, or give --decimal , if they are "
                    "decimal commas"
                )

    @cached_property
    def cells(self) -> pa.Table:
        """All rows, unchanged."""
        schema = pa.schema([self.schema.field(name) for name in self.names])
        return pa.Table.from_batches(list(self.batches()), schema)

    def read(
        self,
        as_text: Iterable[str] = (),
        missing: Sequence[str] = (),
        names: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Return all rows, or some columns, with the index 0, 1, ….

        Columns of text become numbers or booleans if every cell is one, whatever the format of the
        file, except those of ``as_text``: labels, and columns whose type is declared or known from
        a model. ``missing`` are cells that stand for missing values, besides NA, NaN, null and
        empty cells.
        """
        as_text, names = set(as_text), self.names if names is None else names
        columns: dict[str, Any] = {}
        for name in names:
            cells = self.cells[name]
            if is_text(cells.type):
                cells = pc.utf8_ltrim_whitespace(cells.cast(plain_type(cells.type)))
            if is_text(cells.type) and name not in as_text:
                points = with_decimal_point(cells) if self.decimal == "," else cells
                if not (self.decimal_is_detected and mixes_thousands(cells)):
                    column = CellColumn(points, name, missing)
                    kind = infer(column, dates=False).kind
                    if kind == "boolean":
                        words = pc.utf8_lower(pc.utf8_trim_whitespace(column.array))
                        cells = pc.equal(words, "true")
                    elif kind == "number":
                        cells = numbers_of_text(column, cells)
            columns[name] = _to_pandas(cells, name, missing)
        if not self.cells.num_rows:
            raise InputError(f"{self.path} must have rows, got the names of {len(names)} columns")
        return pd.DataFrame(columns)


@contextmanager
def _read_errors(path: Path | str, kind: str = "") -> Iterator[None]:
    """Replace all errors of the libraries that read a file by one sentence for the user."""
    try:
        yield
    except (InputError, ImportError, MemoryError):
        raise
    except Exception as error:  # zlib.error, ParseError of XML, KeyError of a missing part, ...
        raise InputError(f"{path} cannot be read{kind}: {one_line(error)}") from error


def _open(path: Path, form: TableFormat) -> Any:
    """Open a table as text or as an Arrow data set, depending on its first bytes."""
    if not path.exists():
        raise InputError(f"there is no file {path}")
    paths = files_of(path)
    if not paths:
        raise InputError(f"there is no Parquet file in {path}")
    with paths[0].open("rb") as file:
        head = file.read(8)
    if head.startswith(PARQUET) or path.is_dir():
        return _parquet(list(map(str, paths)), path)
    if head.startswith(ARROW):
        schema = pa.ipc.open_file(pa.memory_map(str(path))).schema  # its errors are plain
        return dataset.dataset(str(path), format="ipc", schema=schema)
    if head.startswith(ARROW_STREAM):  # mapped, so that it takes no memory unless it is compressed
        return dataset.dataset(pa.ipc.open_stream(pa.memory_map(str(path))).read_all())
    if head.startswith(ZIP):
        return dataset.dataset(_read_sheet(path, form))
    if not head:
        raise InputError(f"{path} is empty")
    return TextTable(path, form)


def _refuse_repeated_names(path: Path | str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{path} has several columns called {name!r}: rename them")


def _parquet(paths: Sequence[str], folder: Path) -> dataset.Dataset:
    """Return Parquet files as one data set with the columns of the first file that has rows.

    Columns are matched by name, and others than those of the first file with rows are left out
    with a warning. Folders named ``column=value``, as Hive has them, are columns too.
    """
    schemas, n_rows = {}, {}
    for path in paths:
        with _read_errors(path, " as Parquet"):
            metadata = parquet.read_metadata(path)
            schemas[path], n_rows[path] = metadata.schema.to_arrow_schema(), metadata.num_rows
        _refuse_repeated_names(path, schemas[path].names)
    # Files without rows may have lost the types of their columns.
    paths = [path for path in paths if n_rows[path]] or paths[:1]
    if len(paths) == 1 and not folder.is_dir():
        return dataset.dataset(paths, format="parquet", schema=schemas[paths[0]])
    names = schemas[paths[0]].names
    layout = {"format": "parquet", "partitioning": "hive", "partition_base_dir": str(folder)}
    by_folder = dataset.dataset(paths, schema=None, **layout).partitioning.schema
    for path in paths:
        columns = schemas[path].names
        lacking = [name for name in names if name not in columns]
        if lacking:
            raise InputError(
                "the files of a table must have the same columns, got none called "
                f"{lacking[0]!r} in {path}"
            )
        if extra := [name for name in columns if name not in names]:
            warn(
                f"{path} has columns that {paths[0]} lacks, which are left out: {listed(extra, 8)}"
            )
    fields: list[pa.Field] = []
    try:
        for name in names:
            types = dict.fromkeys(schemas[path].field(name).type for path in paths)
            if len(types) > 1:  # a file whose cells are all missing may have no type
                types = dict.fromkeys(plain_type(kind) for kind in types if kind != pa.null())
            parts = [pa.schema([(name, kind)]) for kind in types]
            fields += pa.unify_schemas(parts, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"the columns of a table must be of one type in all files: {one_line(error)}"
        ) from error
    fields += [field for field in by_folder if field.name not in names]
    return dataset.dataset(paths, schema=pa.schema(fields), **layout)


def _read_sheet(path: Path, form: TableFormat) -> pa.Table:
    """Return a sheet of a workbook from its first to its last row that is not empty.

    Columns without a name and a cell are left out.
    """
    openpyxl = needed("openpyxl", "Excel files")
    with _read_errors(path, " as a workbook"), path.open("rb") as file:
        with zipfile.ZipFile(file) as archive:
            check_unpacked_size(archive, path.stat().st_size, str(path))
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        name = find_name(sheets, form.sheet or next(iter(sheets), ""), "sheet", f" in {path}")
        rows = _filled_rows(sheets[name], f"the sheet {name!r} of {path}")
        book.close()
    if form.sheet is None and (other_sheets := [sheet for sheet in sheets if sheet != name]):
        warn(
            f"{path.name} has several sheets, of which {name!r} is read and not "
            f"{listed(other_sheets, 8)}: --sheet names another"
        )
    if form.no_header:
        rows = [numbered_names(max(map(len, rows))), *rows]
    names, arrays = [], []
    for j, (column_name, *cells) in enumerate(zip_longest(*rows)):
        if column_name is not None or any(cell is not None for cell in cells):
            names.append(f"Unnamed: {j}" if column_name is None else str(column_name))
            arrays.append(plain_array(pd.Series(cells, dtype=object), names[-1]))
    return pa.Table.from_arrays(arrays, names)


def _filled_rows(sheet: Any, name: str) -> list[list[Any]]:
    """Return the rows from the first to the last with a cell; refuse a sheet of hardly any."""
    sheet.reset_dimensions()  # what a file says of its size need not be true
    rows: list[list[Any]] = []
    n_filled = n_cells = n_spanned = width = 0
    for i, row in enumerate(sheet.iter_rows()):
        cells = [
            None
            if cell.data_type == "e" or cell.value in MISSING_MARKERS
            else without_fraction(cell.value)
            for cell in row
        ]
        while cells and cells[-1] is None:
            cells.pop()
        if cells or rows:
            rows.append(cells)
        if cells:
            n_cells += len(cells) - cells.count(None)
            width = max(width, len(cells))
            n_filled, n_spanned = len(rows), len(rows) * width
        if i >= MAX_SHEET_ROWS or n_spanned > max(MAX_SHEET_CELLS, MAX_EMPTY_RATIO * n_cells):
            raise InputError(f"{name} has {n_cells:,} cells far apart: delete what is no table")
    if not rows:
        raise InputError(f"{name} is empty")
    return rows[:n_filled]


def numbers_of_text(column: CellColumn, cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column of text that is numbers to integers or floats; keep more digits as text."""
    trimmed = pc.utf8_trim_whitespace(column.array)
    with suppress(pa.ArrowInvalid):  # integers keep all their digits
        pc.cast(trimmed.slice(0, 100), pa.int64())  # fails for most columns of fractions
        return pc.cast(trimmed, pa.int64())
    floats = column.floats()
    too_large = np.abs(floats[column.is_present]) >= MAX_EXACT_FLOAT
    return cells if too_large.any() else pa.array(floats, from_pandas=True)


def _to_pandas(cells: pa.ChunkedArray, name: str, missing: Sequence[str]) -> pd.Series[Any]:
    """Return cells as a pandas series; those of ``missing`` are missing.

    Integers in columns with empty cells become floats, or text if floats are not exact.
    """
    if pa.types.is_integer(cells.type) and cells.null_count:
        ends = [end or 0 for end in pc.min_max(cells).as_py().values()]
        if max(map(abs, ends)) >= MAX_EXACT_FLOAT:
            cells = cells.cast(pa.string())
    series: pd.Series[Any] = cells.to_pandas()
    if missing or is_text(cells.type):
        series = series.where(CellColumn(cells, name, missing).is_present)
    return series


# --- text ---------------------------------------------------------------------------------------


def open_bytes(path: Path) -> pa.NativeFile:
    """Open a file for reading bytes, decompressed if it is compressed by gzip."""
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    return pa.input_stream(str(path), compression="gzip" if is_packed else None)


class TextTable:
    """A CSV or TSV file; all cells are text, unchanged.

    An empty line is a row of missing cells, but for those at the end, and before a header.
    """

    def __init__(self, path: Path, form: TableFormat) -> None:
        self._path, self._has_header = path, not form.no_header
        self._encoding, may_be_open = _scan(path, form.encoding)
        first_line = re.split(rb"[\r\n]", next(self._blocks()), maxsplit=1)[0].decode()
        sign = SEPARATOR.fullmatch(first_line)
        self._n_skipped = 0 if sign is None else 1
        outside_quotes = re.sub(r'"[^"]*"', "", first_line)
        self._delimiter = form.delimiter or (
            max(DELIMITERS, key=outside_quotes.count) if sign is None else one_sign(sign[1])
        )
        if may_be_open:
            self._refuse_open_quote()
        self._header = self._reader({}).schema.names
        names = [name.strip() or f"Unnamed: {i}" for i, name in enumerate(self._header)]
        names = names if self._has_header else numbered_names(len(names))
        self.schema = pa.schema([(name, pa.string()) for name in names])
        self.in_doubt: list[str] = []
        self.has_semicolons = self._delimiter == ";"  # where the sign may be either
        self.is_detected = form.decimal is None and self.has_semicolons
        self.decimal = form.decimal or ("," if self.is_detected and self._has_commas() else ".")

    def _has_commas(self) -> bool:
        """Return whether the first rows have no more columns with decimal points than with commas.

        Columns in which the sign may separate thousands count for neither; ``in_doubt`` are those
        with commas.
        """
        n_commas, n_points, names = 0, 0, self.schema.names
        for name, cells in zip(names, next(self.to_batches(names), []), strict=False):
            cells = cells.filter(pc.match_substring_regex(cells, r"\d"))  # others may be missing
            if mixes_thousands(cells):
                self.in_doubt.append(name)
            n_points += is_column_of(cells, DECIMAL_POINT)
            n_commas += is_column_of(cells, DECIMAL_COMMA)
        return n_points <= n_commas

    def to_batches(self, columns: Sequence[str], **_: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns; batches are of about `BLOCK_BYTES`."""
        indices = [self.schema.get_field_index(name) for name in columns]
        for batch in self._reader(dict.fromkeys(self._header, pa.string())):
            arrays = [batch.column(i) for i in indices]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _blocks(self) -> Iterator[bytes]:
        """Yield the text in UTF-8 without the empty lines at its end, and before a header."""
        line_ends, is_first = b"", True
        with open_bytes(self._path) as file:
            if self._encoding != "utf-8":
                file = pa.transcoding_input_stream(file, self._encoding, "utf-8")
            while block := file.read(BLOCK_BYTES):
                if is_first:
                    block = block.removeprefix(codecs.BOM_UTF8)
                    block = block.lstrip(b"\r\n") if self._has_header else block
                block = line_ends + block
                text = block.rstrip(b"\r\n")
                line_ends = block[len(text) :]
                if len(line_ends) > BLOCK_BYTES:
                    raise InputError(f"{self._path} is not a table: it has empty lines alone")
                if text:
                    is_first = False
                    yield text
        yield b"\n"

    def _reader(self, types: dict[str, pa.DataType]) -> Any:
        return arrow_csv.open_csv(
            io.BufferedReader(_Blocks(self._blocks()), BLOCK_BYTES),
            arrow_csv.ReadOptions(
                block_size=BLOCK_BYTES,
                skip_rows=self._n_skipped,
                autogenerate_column_names=not self._has_header,
            ),
            arrow_csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, ignore_empty_lines=False
            ),
            arrow_csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _refuse_open_quote(self) -> None:
        """Raise an error for an unclosed quote: pyarrow would read all rows after it as a cell."""
        limit = csv.field_size_limit(BLOCK_BYTES)
        try:
            with io.TextIOWrapper(
                io.BufferedReader(_Blocks(self._blocks())), "utf-8", newline=""
            ) as file:
                for _ in csv.reader(file, delimiter=self._delimiter, strict=True):
                    pass
        except csv.Error as error:
            if re.search("unexpected end|field limit", str(error)):
                raise InputError(
                    f"{self._path} is not a table: a quotation mark is never closed"
                ) from None
        finally:
            csv.field_size_limit(limit)


class _Blocks(io.RawIOBase):
    """A stream of blocks of bytes."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._block = blocks, memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the block reaches; return the number of bytes."""
        self._block = self._block or memoryview(next(self._blocks, b""))
        n = min(len(buffer), len(self._block))
        buffer[:n], self._block = self._block[:n], self._block[n:]
        return n


def numbered_names(n: int) -> list[str]:
    """Return names for columns without names, as DuckDB gives them."""
    return [f"column{i}" for i in range(n)]


def is_column_of(cells: pa.Array, decimals: str) -> bool:
    """Return whether cells of text are whole numbers or match a pattern, one without doubt."""
    has_sign = pc.match_substring_regex(cells, decimals)
    in_doubt = pc.match_substring_regex(cells, THOUSANDS)
    is_number = pc.or_(has_sign, pc.match_substring_regex(cells, WHOLE))
    is_sure = pc.and_not(has_sign, in_doubt)
    return bool(pc.all(is_number).as_py()) and pc.any(is_sure).as_py() is True


def mixes_thousands(cells: pa.ChunkedArray) -> bool:
    """Return whether commas may separate thousands in all cells with one, and others lack it.

    In a column of decimals with three digits each, as in 1,234 and 0,950, all have a comma.
    """
    has_comma = pc.match_substring(cells, ",")
    with_comma, without_comma = cells.filter(has_comma), cells.filter(pc.invert(has_comma))
    is_separator = pc.all(pc.match_substring_regex(with_comma, THOUSANDS)).as_py()
    is_mixed = pc.any(pc.match_substring_regex(without_comma, r"\d")).as_py()
    return bool(len(with_comma) and is_separator and is_mixed)


def _scan(path: Path, encoding: str | None) -> tuple[str, bool]:
    """Return the encoding of a file, and whether a quotation mark may be open at its end.

    The encoding is the requested one, else UTF-16, UTF-8 or cp1252; the whole file is read.
    """
    decoder, n_quotes, is_utf8 = codecs.getincrementaldecoder("utf-8")(), 0, encoding is None
    with open_bytes(path) as file:
        if is_utf8 and file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16", True
    with open_bytes(path) as file:
        while part := file.read(BLOCK_BYTES):
            is_one_line = len(part) >= BLOCK_BYTES and not re.search(rb"[\r\n]", part)
            if is_one_line or (encoding is None and b"\x00" in part):
                raise InputError(
                    f"{path} is not a table: write it as CSV in UTF-8, Parquet, Arrow or Excel, "
                    "or name the encoding of a CSV"
                )
            n_quotes += part.count(b'"')
            try:
                is_utf8 = is_utf8 and decoder.decode(part) is not None
            except UnicodeDecodeError:
                is_utf8 = False
    is_wide = encoding is not None and codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    return encoding or ("utf-8" if is_utf8 else "cp1252"), is_wide or n_quotes % 2 == 1
