"""Files that may contain tables: opened, and their format detected from the first bytes."""

from __future__ import annotations

import io
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

from vennforest._files import refuse_special, shown_path, url_of
from vennforest._messages import needed
from vennforest._validation import InputError

GZIP, PARQUET, ARROW_FILE = b"\x1f\x8b", b"PAR1", b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
ZSTANDARD = b"(\xb5/\xfd"
FREE, MOST_RATIO = 1 << 30, 100
"""Bytes that a packed table may unpack to, or how many times its own size if that is more."""

OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"FEA1": "a Feather file of version 1",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\x89HDF": "an HDF5 file",
    b"SQLite": "a database",
    b"BZh": "a bzip2 archive",
    b"\xfd7zX": "an xz archive",
}


def check_table_file(path: Path) -> bytes:
    """Return the first bytes of a file, unzipped, that tell its format."""
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


def is_arrow(head: bytes) -> bool:
    """Tell whether a file that begins like this is Parquet or Arrow; others are text."""
    return head.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file, which may be packed by gzip or zstandard, for reading bytes."""
    path = Path(path)
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        packed = "gzip" if head.startswith(GZIP) else "zstd" if head == ZSTANDARD else None
        if packed is None:
            yield file
        else:
            with io.BufferedReader(_Unpacked(path, file, packed)) as unpacked:
                yield unpacked


class _Unpacked(io.RawIOBase):
    """A packed file, read once from its beginning and up to a limit.

    The size that it declares itself may be anything.
    """

    def __init__(self, path: Path, file: IO[bytes], packed: str) -> None:
        from pyarrow import CompressedInputStream

        self._path, self._stream, self._done = path, CompressedInputStream(file, packed), 0
        self._most = max(FREE, MOST_RATIO * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._done += len(data)
        if self._done > self._most:
            raise InputError(
                f"{self._path} unpacks to more than {self._most / 2**20:,.0f} MiB, {MOST_RATIO} "
                "times its own size: unpack it first if it is a table"
            )
        return len(data)


def refuse_duplicates(path: Path, names: list[str]) -> None:
    """Refuse a table in which two columns share a name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        rest = f" and {len(twice) - 1} more" if len(twice) > 1 else ""
        raise InputError(f"{path} has several columns called {twice[0]!r}{rest}: rename them")


def _close_files(path: Path) -> str:
    with suppress(OSError):
        names = [p.name for p in path.parent.iterdir() if p.is_file()]
        close = get_close_matches(path.name, names, n=1, cutoff=0.7)
        if close:
            return f": did you mean {path.parent / close[0]}?"
    return ""


WORKBOOK = "xl/workbook.xml"
MOST_BYTES = 1 << 30
"""Of all parts of a workbook, unpacked."""


def is_workbook(path: Path) -> bool:
    """Tell whether a file is an Excel workbook (.xlsx)."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as parts:
        return WORKBOOK in parts.namelist()


def sheet_as_arrow(path: Path, folder: Path) -> Path:
    """Write the first sheet to an Arrow file in a folder, and return its path.

    The first row names the columns; empty rows and columns without a name or cell are left out. A
    column of cells of several kinds becomes text, as written.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import feather

    needed("openpyxl", "Excel files", "excel")
    with zipfile.ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > MOST_BYTES:
            raise InputError(f"{path} unpacks to more than 1 GiB: write it as CSV or Parquet first")
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            name = str(book.sheet_names[0])
            cells = pd.read_excel(
                book, sheet_name=name, header=None, dtype=object, keep_default_na=False
            )
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as a workbook: {error}") from error
    cells = cells.map(lambda cell: None if cell == "" or cell != cell else cell)
    cells = cells.dropna(how="all").dropna(how="all", axis=1)
    if not len(cells):
        raise InputError(f"the sheet {name!r} of {path} is empty")
    names = ["" if cell is None else str(cell) for cell in cells.iloc[0]]
    if "" in names:
        raise InputError(f"the sheet {name!r} of {path} must name every column in its first row")
    refuse_duplicates(path, names)
    columns: dict[str, Any] = {}
    for at, column in enumerate(names):
        values = cells.iloc[1:, at].tolist()
        try:
            columns[column] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[column] = pa.array([None if cell is None else str(cell) for cell in values])
    target = folder / "sheet.arrow"
    feather.write_feather(pa.table(columns), str(target), compression="uncompressed")
    return target
