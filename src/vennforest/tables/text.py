"""Tables written as text: detect the format, and read them with pyarrow."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.tables.cells import MISSING

DELIMITERS = (",", ";", "\t", "|")
SAMPLE_BYTES = 1 << 18
"""Bytes from which encoding and delimiter are detected."""

BLOCK_BYTES = 1 << 22
"""Bytes that are parsed together; a row must fit into them."""

MAX_LINES_SNIFFED = 200
"""Lines from which the delimiter is detected."""

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"(\xb5/\xfd": "zstd"}

DECIMAL_COMMA = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"


def open_bytes(path: Path) -> pa.NativeFile:
    """Open a file for reading bytes, unpacked if it is packed by gzip or zstandard."""
    with path.open("rb") as file:
        head = file.read(4)
    packed = [name for magic, name in COMPRESSIONS.items() if head.startswith(magic)]
    return pa.input_stream(str(path), compression=packed[0] if packed else None)


class TextTable:
    """A CSV or TSV file, whose first line names the columns; all cells are text.

    ``decimal`` is the decimal sign of numbers; None: a comma where cells are separated by
    semicolons and numbers are written so. White space before a cell is left out.
    """

    n_rows = None

    def __init__(self, path: Path, decimal: str | None = None) -> None:
        self._path = path
        with open_bytes(path) as file:
            sample = file.read(SAMPLE_BYTES)
        self._encoding = _encoding(path, sample)
        text = sample.decode(self._encoding, errors="ignore")
        self._delimiter, lines = _sniff(text[: text.rfind("\n") + 1] or text)
        if decimal is None:
            decimal = "," if self._delimiter == ";" and _has_decimal_comma(lines[1:]) else "."
        self.decimal = decimal
        with self._errors():
            header = self._reader({}).schema.names
        self._header = header
        names = [name.strip() or f"Unnamed: {i}" for i, name in enumerate(header)]
        self.schema = pa.schema([(name, pa.string()) for name in names])

    def to_batches(
        self, columns: Sequence[str], batch_size: int = 0, **_: Any
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns; batches are of about `BLOCK_BYTES`."""
        types = dict.fromkeys(self._header, pa.string())
        places = [self.schema.get_field_index(name) for name in columns]
        with self._errors():
            for batch in self._reader(types):
                arrays = [pc.utf8_ltrim_whitespace(batch.column(place)) for place in places]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _reader(self, types: dict[str, pa.DataType]) -> Any:
        return arrow_csv.open_csv(
            open_bytes(self._path),
            arrow_csv.ReadOptions(encoding=self._encoding, block_size=BLOCK_BYTES),
            arrow_csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                invalid_row_handler=self._refuse_row,
            ),
            arrow_csv.ConvertOptions(
                column_types=types, null_values=MISSING, strings_can_be_null=True
            ),
        )

    def _refuse_row(self, row: Any) -> str:
        self._bad_row = (
            f"a row has {row.actual_columns} cells, and the first line names "
            f"{row.expected_columns} columns ({row.text[:60]!r}); if it is the last row, the file "
            "may have been cut short"
        )
        return "error"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in one sentence why a file is not a table."""
        self._bad_row = ""
        try:
            yield
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self._path} is not text in {self._encoding}: write it as UTF-8"
            ) from error
        except pa.ArrowException as error:
            reason = self._bad_row or one_line(error)
            raise InputError(f"{self._path} is not a table: {reason}") from error


def with_decimal_point(cells: pa.Array) -> pa.Array:
    """Replace the comma of text that is a number with a decimal comma."""
    return pc.replace_substring_regex(cells, DECIMAL_COMMA, r"\1.\2")


def _encoding(path: Path, sample: bytes) -> str:
    """Return the encoding of a whole file, whose first accent may be in the last row."""
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    encoding, n_quotes, is_binary = "utf-8", 0, False
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path) as file:
        while part := file.read(1 << 22):
            n_quotes += part.count(b'"')
            is_binary = is_binary or b"\x00" in part
            try:
                if encoding == "utf-8":
                    decoder.decode(part)
            except UnicodeDecodeError:
                encoding = "cp1252"
                is_binary = any(bytes([i]) in sample for i in range(32) if i not in (9, 10, 12, 13))
    if is_binary:
        raise InputError(f"{path} is a binary file, not a table: CSV, Parquet and Arrow are read")
    if n_quotes % 2:
        _refuse_open_quote(path, encoding)
    return encoding


def _refuse_open_quote(path: Path, encoding: str) -> None:
    """Refuse a quote that is never closed: pyarrow reads the rows behind it as one cell."""
    with open_bytes(path) as file:
        lines = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="")
        try:
            for _ in csv.reader(lines, strict=True):
                pass
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise InputError(
                    f"{path} is not a table: a quotation mark is never closed"
                ) from None


def _sniff(text: str) -> tuple[str, list[list[str]]]:
    """Return the delimiter that splits the lines most alike, and the lines it splits."""
    best: tuple[float, int, str, list[list[str]]] = (-1.0, 0, ",", [[]])
    for delimiter in DELIMITERS:
        lines: list[list[str]] = []
        with suppress(csv.Error):
            reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
            for line in reader:
                if line:
                    lines.append(line)
                if len(lines) == MAX_LINES_SNIFFED:
                    break
        if not lines:
            continue
        width = len(lines[0])
        alike = sum(len(line) == width for line in lines) / len(lines) if width > 1 else 0.0
        if (alike, width) > best[:2]:
            best = (alike, width, delimiter, lines)
    return best[2], best[3]


def _has_decimal_comma(lines: list[list[str]]) -> bool:
    cells = [cell.strip() for line in lines for cell in line]
    commas = sum(bool(re.fullmatch(r"[-+]?\d+,\d+", cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"[-+]?\d+\.\d+", cell)) for cell in cells)
    return commas > 0 and points == 0
