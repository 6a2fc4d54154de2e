"""Tables written as text, read with pyarrow."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from vennforest._validation import InputError

DELIMITERS = ",;\t|"

SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""A first line with which spreadsheet programs name the delimiter."""

BLOCK_BYTES = 1 << 22
"""Bytes that are parsed together; a row must fit into them."""

DECIMAL_COMMA = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"
DECIMAL_POINT = r"^\s*([-+]?\d*\.\d*(?:[eE][-+]?\d+)?)\s*$"
WHOLE = r"^\s*[-+]?\d+\s*$"
THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}([.,]\d{3})+\s*$"
"""Numbers with a decimal comma, a decimal point, neither, and either as thousands separator."""


def open_bytes(path: Path) -> pa.NativeFile:
    """Open a file for reading bytes, decompressed if it is compressed by gzip."""
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    return pa.input_stream(str(path), compression="gzip" if is_packed else None)


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


class TextTable:
    """A CSV or TSV file; all cells are text, unchanged.

    An empty line is a row of missing cells, but for those at the end, and before a header.
    """

    n_rows = None

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
        self.names, self.in_doubt = self.schema.names, list[str]()
        self.is_detected = form.decimal is None and self._delimiter == ";"
        self.decimal = form.decimal or ("," if self.is_detected and self._has_commas() else ".")

    def _has_commas(self) -> bool:
        """Return whether the first rows have no more columns with decimal points than with commas.

        Columns in which the sign may separate thousands count for neither; ``in_doubt`` are those
        with commas.
        """
        n_commas = n_points = 0
        for name, cells in zip(self.names, next(self.to_batches(self.names), []), strict=False):
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
        decoder, line_ends, is_first = codecs.getincrementaldecoder(self._encoding)(), b"", True
        with open_bytes(self._path) as file:
            while block := file.read(BLOCK_BYTES):
                if self._encoding != "utf-8":
                    block = decoder.decode(block).encode()
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
        decoder.decode(b"", final=True)
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


def with_decimal_point(cells: pa.Array) -> pa.Array:
    """Replace the decimal comma of numbers by a point; numbers with a point become other text.

    A file has one decimal sign.
    """
    cells = pc.replace_substring_regex(cells, DECIMAL_POINT, r"\1 with a decimal point")
    return pc.replace_substring_regex(cells, DECIMAL_COMMA, r"\1.\2")


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
            if (encoding is None and b"\x00" in part) or (
                len(part) >= BLOCK_BYTES and not re.search(rb"[\r\n]", part)
            ):
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
