"""A sheet of an Excel workbook as a table."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from vennforest._validation import InputError
from vennforest.tables.files import refuse_duplicates

WORKBOOK = "xl/workbook.xml"
MOST_BYTES = 1 << 30
"""Of all parts of a workbook, unpacked."""


def is_workbook(path: Path) -> bool:
    """Tell whether a file is an Excel workbook (.xlsx)."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as parts:
        return WORKBOOK in parts.namelist()


def sheet_as_arrow(path: Path, sheet: str | None, folder: Path) -> Path:
    """Write one sheet to an Arrow file in a folder, and return its path.

    The first row names the columns; empty rows and columns without a name or cell are left out. A
    column of cells of several kinds becomes text, as written.

    Raises
    ------
    InputError
        If there is no such sheet, several and none is named, or it is too large.
    ImportError
        If openpyxl is not installed.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import feather

    try:
        import openpyxl  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            "Excel files need openpyxl: install it with pip install 'vennforest[excel]'"
        ) from missing
    with zipfile.ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > MOST_BYTES:
            raise InputError(f"{path} unpacks to more than 1 GiB: write it as CSV or Parquet first")
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            name = _sheet(path, [str(one) for one in book.sheet_names], sheet)
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


def _sheet(path: Path, names: list[str], wanted: str | None) -> str:
    """Return the sheet to read."""
    shown = ", ".join(map(repr, names))
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None:
        raise InputError(f"{path} has {len(names)} sheets ({shown}): name one with --sheet")
    if wanted not in names:
        raise InputError(f"{path} has no sheet {wanted!r}: it has {shown}")
    return wanted
