"""Tables written part by part, as CSV, Parquet or Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, ipc, parquet

from vennforest._validation import InputError

SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def output_format(path: str | os.PathLike[str]) -> str:
    """Return csv, parquet or arrow, depending on the suffix of a name.

    Raises
    ------
    InputError
        If the suffix is another.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"the output must end in .csv, .parquet or .arrow, got {Path(path).name!r}"
        )
    return SUFFIXES[suffix]


@contextmanager
def table_writer(path: Path, how: str, schema: pa.Schema) -> Iterator[Any]:
    """Give something whose ``write_table`` appends to a file.

    Parameters
    ----------
    path : Path
        Written from the start.
    how : {"csv", "parquet", "arrow"}
    schema : pyarrow.Schema
    """
    if how == "parquet":
        with parquet.ParquetWriter(path, schema) as writer:
            yield writer
    elif how == "csv":
        with pa.OSFile(str(path), "wb") as sink, csv.CSVWriter(sink, schema) as writer:
            yield writer
    else:
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, schema) as writer:
            yield writer
