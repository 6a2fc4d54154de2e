"""Tables written as text, read with pyarrow."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from vennforest._validation import InputError

DELIMITERS = ",;\t|"

BLOCK_BYTES = 1 << 22
"""Bytes that are parsed together; a row must fit into them."""

DECIMAL_COMMA = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"


def open_bytes(path: Path) -> pa.NativeFile:
    """Open a file for reading bytes, decompressed if it is compressed by gzip."""
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    return pa.input_stream(str(path), compression="gzip" if is_packed else None)


class TextTable:
    """A CSV or TSV file, whose first line names the columns; all cells are text.

    The delimiter is the comma, semicolon, tab or bar that is most frequent in the first line.
    ``decimal`` is the decimal sign, by default a comma if the delimiter is a semicolon.
    Cells are the text of the file, unchanged.
    """

    n_rows = None

    def __init__(self, path: Path, decimal: str | None = None) -> None:
        self._path = path
        self._encoding = _encoding(path)
        with io.TextIOWrapper(open_bytes(path), encoding=self._encoding) as file:
            first_line = re.sub(r'"[^"]*"', "", file.readline())
        self._delimiter = max(DELIMITERS, key=first_line.count)
        self.decimal = decimal or ("," if self._delimiter == ";" else ".")
        self._header = self._reader({}).schema.names
        names = [name.strip() or f"Unnamed: {i}" for i, name in enumerate(self._header)]
        self.schema = pa.schema([(name, pa.string()) for name in names])

    def to_batches(self, columns: Sequence[str], **_: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns; batches are of about `BLOCK_BYTES`."""
        indices = [self.schema.get_field_index(name) for name in columns]
        for batch in self._reader(dict.fromkeys(self._header, pa.string())):
            arrays = [batch.column(i) for i in indices]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _reader(self, types: dict[str, pa.DataType]) -> Any:
        return arrow_csv.open_csv(
            open_bytes(self._path),
            arrow_csv.ReadOptions(encoding=self._encoding, block_size=BLOCK_BYTES),
            arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def with_decimal_point(cells: pa.Array) -> pa.Array:
    """Replace the decimal comma by a point in cells of text that are numbers."""
    return pc.replace_substring_regex(cells, DECIMAL_COMMA, r"\1.\2")


def _encoding(path: Path) -> str:
    """Return the encoding of a file, UTF-8 or else cp1252; the whole file is read."""
    encoding, n_quotes = "utf-8", 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path) as file:
        while part := file.read(BLOCK_BYTES):
            if b"\x00" in part:
                raise InputError(
                    f"{path} is not a table: write it as CSV in UTF-8, Parquet, Arrow or Excel"
                )
            n_quotes += part.count(b'"')
            try:
                if encoding == "utf-8":
                    decoder.decode(part)
            except UnicodeDecodeError:
                encoding = "cp1252"
    if n_quotes % 2:
        _refuse_open_quote(path, encoding)
    return encoding


def _refuse_open_quote(path: Path, encoding: str) -> None:
    """Raise an error for an unclosed quote: pyarrow would read all rows after it as one cell."""
    with io.TextIOWrapper(open_bytes(path), encoding, "replace", newline="") as file:
        try:
            for _ in csv.reader(file, strict=True):
                pass
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise InputError(
                    f"{path} is not a table: a quotation mark is never closed"
                ) from None
