"""Tables written as text: one detection of the format, one parser."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd

from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.tables.cells import MISSING
from vennforest.tables.files import opened, refuse_duplicates

DELIMITERS = (",", ";", "\t", "|")
SNIFFED = 1 << 18
"""Bytes from which encoding and delimiter are detected."""

JUDGED = 200
"""Lines from which the delimiter is detected."""


@dataclass(frozen=True)
class TextFormat:
    """How a table is written as text.

    Attributes
    ----------
    encoding, delimiter, decimal : str
    names : list of str
        The columns, from the first line.
    """

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]


def text_format(path: Path) -> TextFormat:
    """Detect the format of a text file from its first lines.

    Raises
    ------
    InputError
        If it is no text, or two columns share a name.
    """
    with opened(path) as file:
        sample = file.read(SNIFFED)
    encoding = _encoding(path, sample)
    text = sample.decode(encoding, errors="ignore")
    if len(sample) == SNIFFED:
        text = text[: text.rfind("\n") + 1] or text
    delimiter, lines = _sniff(text)
    decimal = "," if delimiter == ";" and _decimal_comma(lines[1:]) else "."
    names = [name or f"Unnamed: {i}" for i, name in enumerate(lines[0])]
    refuse_duplicates(path, names)
    return TextFormat(encoding, delimiter, decimal, names)


def read_text(path: Path, how: TextFormat) -> pd.DataFrame:
    """Return all rows; cells are text, missing ones NaN.

    Raises
    ------
    InputError
        If it is no table.
    """
    with _errors(path, how), opened(path) as file:
        table: pd.DataFrame = _parse(file, how)
    return table


def text_parts(path: Path, how: TextFormat, size: int) -> Iterator[pd.DataFrame]:
    """Yield the rows, up to ``size`` at a time; cells are text, missing ones NaN.

    Raises
    ------
    InputError
        If it is no table.
    """
    with opened(path) as file:
        with _errors(path, how):
            parts = _parse(file, how, chunksize=size)
        while True:
            with _errors(path, how):
                part = next(parts, None)
            if part is None:
                return
            yield part


def _parse(file: IO[bytes], how: TextFormat, **options: Any) -> Any:
    return pd.read_csv(
        file,
        sep=how.delimiter,
        encoding=how.encoding,
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


@contextmanager
def _errors(path: Path, how: TextFormat) -> Iterator[None]:
    """Say in one sentence why a file is no table."""
    try:
        with warnings.catch_warnings():
            # Rows longer than the first line, whose last cells would be lost.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except pd.errors.ParserWarning as error:
        raise InputError(
            f"{path} is not a table: rows have more cells than the first line has names"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in {how.encoding}: write it as UTF-8") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
        raise InputError(f"{path} is not a table: {one_line(error)}") from error


def with_point(cells: Any) -> Any:
    """Return numbers that are written with a decimal comma with a point; other cells stay."""
    pattern = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"
    return cells.str.replace(pattern, r"\1.\2", regex=True)


def _encoding(path: Path, sample: bytes) -> str:
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\x00" in sample:
        raise _binary(path)
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 4:  # not only a letter cut in two at the end of the sample
            if not _printable(sample):
                raise _binary(path) from None
            return "cp1252"
    return "utf-8-sig"


def _printable(sample: bytes) -> bool:
    control = sum(sample.count(bytes([i])) for i in range(32) if i not in (9, 10, 12, 13))
    return control == 0


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
