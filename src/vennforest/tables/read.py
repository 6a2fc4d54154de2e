"""Tables in files: read into data frames whatever their format, written whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from vennforest._files import one_line
from vennforest._validation import InputError

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = (",", ";", "\t", "|")
SNIFFED = 1 << 18
"""Bytes that the delimiter is judged by."""

# pandas's own list without "None", which is a category more often than a missing cell.
MISSING = ["", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "-NaN", "-nan"]

GZIP, PARQUET, ARROW_FILE, FEATHER_1 = b"\x1f\x8b", b"PAR1", b"ARROW1", b"FEA1"
ARROW_STREAM = b"\xff\xff\xff\xff"
OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\x89HDF": "an HDF5 file",
    b"SQLite": "a database",
    b"BZh": "a bzip2 archive",
    b"\xfd7zX": "an xz archive",
    b"(\xb5/\xfd": "a zstandard archive",
}


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table from CSV or TSV (also gzipped), Parquet, or Arrow (Feather, IPC).

    The format is told from the content. Of a text file the first line names the columns; the
    delimiter is the one of comma, semicolon, tab and bar that splits the lines most alike, and
    with semicolons a decimal comma is understood.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    DataFrame
        Its index is 0, 1, …; cells that say NA, NaN, null or nothing are missing.

    Raises
    ------
    InputError
        If there is no such file, it is not a table, has no rows, or two columns share a name.
    ImportError
        If pandas is not installed.
    """
    pandas = need_pandas()
    path = Path(path)
    try:
        head = check_table_file(path)
        table = _read(path, head, pandas)
    except (PermissionError, gzip.BadGzipFile, EOFError, OSError) as error:
        raise InputError(f"{path} cannot be read: {one_line(error)}") from error
    if not len(table.columns):
        raise InputError(f"{path} has no columns")
    if not len(table):
        raise InputError(f"{path} has no rows, only the names of {len(table.columns)} columns")
    table.columns = [str(name) for name in table.columns]
    return table.reset_index(drop=True)


def check_table_file(path: Path) -> bytes:
    """Return the first bytes of a file, unzipped, that tell its format.

    Raises
    ------
    InputError
        If there is no such file, it is a folder or empty, or surely something else than a table.
    OSError
        If it cannot be read.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it")
    if not path.exists():
        raise InputError(f"there is no file {path}{_close_files(path)}")
    with opened(path) as file:
        head = file.read(8)
    if not head:
        raise InputError(f"{path} is empty")
    for magic, what in OTHER_FORMATS.items():
        if head.startswith(magic):
            raise InputError(
                f"{path} is {what}, not a table: write it as CSV, Parquet or Arrow first"
            )
    return head


def _read(path: Path, head: bytes, pandas: Any) -> pd.DataFrame:
    if head.startswith((PARQUET, ARROW_FILE, FEATHER_1, ARROW_STREAM)):
        return _read_arrow(path, head)
    return _read_text(path, pandas)


def _read_arrow(path: Path, head: bytes) -> pd.DataFrame:
    try:
        import pyarrow
        from pyarrow import feather, ipc, parquet
    except ImportError as missing:
        raise ImportError(_EXTRA) from missing
    try:
        with opened(path) as file:
            if head.startswith(PARQUET):
                whole = parquet.ParquetFile(pyarrow.PythonFile(file))
                refuse_duplicates(path, whole.schema_arrow.names)
                table = whole.read()
            elif head.startswith(ARROW_STREAM):
                table = ipc.open_stream(file).read_all()
            else:
                table = feather.read_table(file)
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        kind = "a Parquet" if head.startswith(PARQUET) else "an Arrow"
        raise InputError(f"{path} is damaged, or not {kind} file: {one_line(error)}") from error
    refuse_duplicates(path, table.schema.names)
    frame: pd.DataFrame = table.to_pandas()
    if frame.index.name is not None or frame.index.nlevels > 1:
        frame = frame.reset_index()
    return frame


def _read_text(path: Path, pandas: Any) -> pd.DataFrame:
    text = text_format(path)
    try:
        with opened(path) as file, warnings.catch_warnings():
            # Rows longer than the first line, whose last cells would be lost.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            table: pd.DataFrame = pandas.read_csv(file, low_memory=False, **text.options())
    except pandas.errors.ParserWarning as error:
        raise InputError(
            f"{path} is not a table: rows have more cells than the first line has names"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in {text.encoding}: write it as UTF-8") from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, csv.Error) as error:
        raise InputError(f"{path} is not a table: {one_line(error)}") from error
    return table


@dataclass(frozen=True)
class TextFormat:
    """How a table is written as text."""

    encoding: str
    delimiter: str
    decimal: str

    def options(self) -> dict[str, Any]:
        """Return the arguments of pandas's ``read_csv``."""
        return {
            "sep": self.delimiter,
            "decimal": self.decimal,
            "encoding": self.encoding,
            "index_col": False,
            "keep_default_na": False,
            "na_values": MISSING,
            "skipinitialspace": True,
            "on_bad_lines": "error",
        }


def text_format(path: Path) -> TextFormat:
    """Tell from the first lines of a text file how its table is written.

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
    refuse_duplicates(path, lines[0])
    decimal = "," if delimiter == ";" and _decimal_comma(lines[1:]) else "."
    return TextFormat(encoding, delimiter, decimal)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, which may be gzipped, for reading bytes."""
    with path.open("rb") as file:
        zipped = file.read(2) == GZIP
    with gzip.open(path, "rb") if zipped else path.open("rb") as file:
        yield file  # type: ignore[misc]


def _encoding(path: Path, sample: bytes) -> str:
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\x00" in sample:
        raise InputError(f"{path} is a binary file, not a table: CSV, Parquet and Arrow are read")
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 4:  # not only a letter cut in two at the end of the sample
            return "cp1252" if _printable(sample) else _refuse_binary(path)
    return "utf-8-sig"


def _printable(sample: bytes) -> bool:
    control = sum(sample.count(bytes([i])) for i in range(32) if i not in (9, 10, 12, 13))
    return control == 0


def _refuse_binary(path: Path) -> str:
    raise InputError(f"{path} is a binary file, not a table: CSV, Parquet and Arrow are read")


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
                if len(lines) == 200:
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


def refuse_duplicates(path: Path, names: list[str]) -> None:
    """Refuse a table in which two columns share a name."""
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        rest = f" and {len(twice) - 1} more" if len(twice) > 1 else ""
        raise InputError(f"{path} has several columns called {twice[0]!r}{rest}: rename them")


def find_column(table: pd.DataFrame, name: str, what: str = "column") -> str:
    """Return the name of a column, refused with close names where there is none.

    Raises
    ------
    InputError
        If there is no such column.
    """
    names = list(table.columns)
    if name in names:
        return name
    lower = {column.strip().lower(): column for column in names}
    close = get_close_matches(name.strip().lower(), lower, n=3, cutoff=0.6)
    if close:
        hint = "did you mean " + " or ".join(repr(lower[key]) for key in close) + "?"
    else:
        shown = ", ".join(map(repr, names[:8]))
        hint = f"there are {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    raise InputError(f"there is no {what} {name!r}: {hint}")


def _close_files(path: Path) -> str:
    with suppress(OSError):
        names = [p.name for p in path.parent.iterdir() if p.is_file()]
        close = get_close_matches(path.name, names, n=1, cutoff=0.7)
        if close:
            return f": did you mean {path.parent / close[0]}?"
    return ""


_EXTRA = "tables need pandas and pyarrow: install them with pip install 'vennforest[all]'"


def need_pandas() -> Any:
    """Return pandas, or say what to install."""
    try:
        import pandas
    except ImportError as missing:
        raise ImportError(_EXTRA) from missing
    return pandas
