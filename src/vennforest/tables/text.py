"""Tables written as text: one detection of the format, one parser."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Self

import pandas as pd

from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.tables.cells import MISSING
from vennforest.tables.files import opened, refuse_duplicates

DELIMITERS = (",", ";", "\t", "|")
SNIFFED = 1 << 18
"""Bytes from which encoding and delimiter are detected."""

MOST_SNIFFED = 1 << 26
"""Bytes that the first lines may have."""

JUDGED = 200
"""Lines from which the delimiter is detected."""


@dataclass(frozen=True)
class TextFormat:
    """How a table is written as text; the first line has the names of the columns."""

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]


def text_format(path: Path, decimal: str | None = None) -> TextFormat:
    """Detect the format of a text file from its first lines."""
    sample = _sample(path)
    encoding = _encoding(path, sample)
    text = sample.decode(encoding, errors="ignore")
    delimiter, lines = _sniff(text[: text.rfind("\n") + 1] or text)
    if decimal is None:
        decimal = "," if delimiter == ";" and _decimal_comma(lines[1:]) else "."
    how = TextFormat(encoding, delimiter, decimal, [])
    with closing(_rows(path, how)) as rows:
        header = next(rows, [])
    names = [name or f"Unnamed: {i}" for i, name in enumerate(header)]
    refuse_duplicates(path, names)
    return replace(how, names=names)


def _sample(path: Path) -> bytes:
    """Return the beginning of a file, at least three lines of it."""
    with opened(path) as file:
        sample = file.read(SNIFFED)
        while sample.count(b"\n") < 3 and (more := file.read(len(sample))):
            sample += more
            if len(sample) > MOST_SNIFFED:
                raise InputError(
                    f"{path} is not a table: its first lines have more than "
                    f"{MOST_SNIFFED >> 20} MiB"
                )
    return sample


def read_text(path: Path, how: TextFormat) -> pd.DataFrame:
    """Return all rows; cells are text, missing ones NaN."""
    with opened(path) as file, _Text(path, file, how) as text:
        with text.errors():
            table: pd.DataFrame = _parse(text, how)
        text.check_widths(table)
    return table


def text_parts(path: Path, how: TextFormat, size: int) -> Iterator[pd.DataFrame]:
    """Yield the rows, up to ``size`` at a time; cells are text, missing ones NaN."""
    with opened(path) as file, _Text(path, file, how) as text:
        with text.errors():
            parts = _parse(text, how, chunksize=size)
        while True:
            with text.errors():
                part = next(parts, None)
            if part is None:
                return
            text.check_widths(part)
            yield part


def _parse(text: Any, how: TextFormat, **options: Any) -> Any:
    return pd.read_csv(
        text,
        sep=how.delimiter,
        header=0,
        names=how.names,
        dtype=str,
        index_col=False,
        keep_default_na=False,
        na_values=MISSING,
        skipinitialspace=True,
        on_bad_lines="error",
        **options,
    )


class _Text:
    """The text of a file, as pandas reads it; what is no text or no table is refused."""

    def __init__(self, path: Path, file: IO[bytes], how: TextFormat) -> None:
        self.path, self.how = path, how
        self._text = io.TextIOWrapper(file, encoding=how.encoding, newline="")
        self._failure: BaseException | None = None
        self._widths_known = len(how.names) == 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._text.detach()  # the file is closed by who opened it

    def __iter__(self) -> Iterator[str]:
        return iter(self._text)  # pandas asks for it, and calls read alone

    def read(self, size: int = -1) -> str:
        """Return some text, and keep what went wrong: pandas makes all interrupts its own error."""
        try:
            text = self._text.read(size)
            if "\x00" in text:
                raise _binary(self.path)
        except BaseException as error:
            self._failure = error
            raise
        return text

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Say in one sentence why a file is not a table."""
        try:
            with warnings.catch_warnings():
                # Rows longer than the first line, whose last cells would be lost.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                yield
        except pd.errors.ParserWarning as error:
            raise InputError(
                f"{self.path} is not a table: rows have more cells than the first line has names"
            ) from error
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.path} is not text in {self.how.encoding}: write it as UTF-8"
            ) from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            if self._failure is not None:
                raise self._failure from None
            raise InputError(f"{self.path} is not a table: {one_line(error)}") from error

    def check_widths(self, table: pd.DataFrame) -> None:
        """Refuse rows with fewer cells than there are columns, which pandas fills."""
        if self._widths_known or not table[self.how.names[-1]].isna().any():
            return  # what is filled is missing in the last column
        self._widths_known = True
        wanted = len(self.how.names)
        for number, row in enumerate(_rows(self.path, self.how)):
            if len(row) < wanted:
                cells = "1 cell" if len(row) == 1 else f"{len(row):,} cells"
                raise InputError(
                    f"{self.path} is not a table: row {number:,} has {cells}, and the first line "
                    f"names {wanted:,} columns; if it is the last row, the file may have been cut "
                    "short"
                )


def _rows(path: Path, how: TextFormat) -> Generator[list[str]]:
    """Yield the cells of each line that is not blank, the first with the names."""
    long = csv.field_size_limit(sys.maxsize >> 32)
    try:
        with opened(path) as file:
            text = io.TextIOWrapper(file, encoding=how.encoding, newline="")
            for row in csv.reader(text, delimiter=how.delimiter, skipinitialspace=True):
                if row not in ([], [""]):
                    yield row
    except csv.Error as error:
        raise InputError(f"{path} is not a table: {one_line(error)}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in {how.encoding}: write it as UTF-8") from error
    finally:
        csv.field_size_limit(long)


def with_point(cells: Any) -> Any:
    """Return numbers that are written with a decimal comma with a point; other cells stay."""
    pattern = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"
    return cells.str.replace(pattern, r"\1.\2", regex=True)


def _encoding(path: Path, sample: bytes) -> str:
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\x00" in sample:
        raise _binary(path)
    if _is_utf8(path):
        return "utf-8-sig"
    if any(bytes([i]) in sample for i in range(32) if i not in (9, 10, 12, 13)):
        raise _binary(path)
    return "cp1252"


def _is_utf8(path: Path) -> bool:
    """Tell whether a whole file is text in UTF-8: the first accent may be in the last row."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with opened(path) as file:
        try:
            while part := file.read(1 << 22):
                decoder.decode(part)
        except UnicodeDecodeError:
            return False
    return True


def _binary(path: Path) -> InputError:
    return InputError(f"{path} is a binary file, not a table: CSV, Parquet and Arrow are read")


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
                if len(lines) == JUDGED:
                    break
        if not lines:
            continue
        width = len(lines[0])
        alike = sum(len(line) == width for line in lines) / len(lines) if width > 1 else 0.0
        if (alike, width) > best[:2]:
            best = (alike, width, delimiter, lines)
    return best[2], best[3]


def _decimal_comma(lines: list[list[str]]) -> bool:
    cells = [cell.strip() for line in lines for cell in line]
    commas = sum(bool(re.fullmatch(r"[-+]?\d+,\d+", cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"[-+]?\d+\.\d+", cell)) for cell in cells)
    return commas > 0 and points == 0
