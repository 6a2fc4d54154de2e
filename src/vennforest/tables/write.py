"""Tables written part by part, as CSV, Parquet or Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow import csv, ipc, parquet

from vennforest._validation import InputError

SUFFIXES = {
    ".csv": "csv",
    ".csv.gz": "csv.gz",
    ".tsv": "tsv",
    ".tsv.gz": "tsv.gz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def output_format(path: str | os.PathLike[str]) -> str:
    """Return csv, csv.gz, tsv, tsv.gz, parquet or arrow, depending on the suffix of a name.

    Raises
    ------
    InputError
        If the suffix is another.
    """
    suffixes = Path(path).suffixes[-2:]
    for suffix in ("".join(suffixes).lower(), "".join(suffixes[-1:]).lower()):
        if suffix in SUFFIXES:
            return SUFFIXES[suffix]
    raise InputError(
        f"the output must end in .csv, .tsv, .csv.gz, .parquet or .arrow, got {Path(path).name!r}"
    )


@contextmanager
def table_writer(path: Path | IO[bytes], how: str, schema: pa.Schema) -> Iterator[Any]:
    """Give something whose ``write_table`` appends to a file.

    Parameters
    ----------
    path : Path or binary file
        Written from the start.
    how : {"csv", "csv.gz", "tsv", "tsv.gz", "parquet", "arrow"}
    schema : pyarrow.Schema
    """
    if how == "parquet":
        with parquet.ParquetWriter(path, schema) as writer:
            yield writer
        return
    with ExitStack() as opened:
        sink = pa.OSFile(str(path), "wb") if isinstance(path, Path) else pa.PythonFile(path, "w")
        if isinstance(path, Path):
            opened.enter_context(sink)
        if how == "arrow":
            yield opened.enter_context(ipc.new_file(sink, schema))
            return
        if how.endswith(".gz"):
            sink = opened.enter_context(pa.CompressedOutputStream(sink, "gzip"))
        options = csv.WriteOptions(delimiter="\t" if how.startswith("tsv") else ",")
        yield opened.enter_context(csv.CSVWriter(sink, schema, write_options=options))
