"""Tables in Parquet and Arrow files: opened in one place, whole or part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
from pyarrow import feather, ipc, parquet

from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.tables.files import (
    ARROW_STREAM,
    FEATHER_1,
    PARQUET,
    opened,
    refuse_duplicates,
)


class ArrowFile:
    """A table in a Parquet, Feather or Arrow IPC file.

    Parameters
    ----------
    path : Path
    head : bytes
        How the file begins.

    Attributes
    ----------
    names : list of str
        The columns; those that pandas keeps its index in come first, a nameless one is left out.
    n_rows : int or None
        None where only reading would tell.
    schema : pyarrow.Schema

    Raises
    ------
    InputError
        If it is damaged.
    """

    def __init__(self, path: Path, head: bytes) -> None:
        self.path, self._head = path, head
        self.n_rows: int | None = None
        with self._open() as file:
            self.schema: pa.Schema = file.schema
            self.n_rows = file.n_rows
        self.names = _names(self.schema)
        refuse_duplicates(path, self.names)

    def parts(self, columns: Sequence[str], size: int) -> Iterator[pa.Table]:
        """Yield some columns, up to ``size`` rows after another.

        Raises
        ------
        InputError
            If it is damaged further on.
        """
        wanted = list(columns)
        with self._open() as file:
            for part in file.parts(wanted, size):
                for start in range(0, part.num_rows, size):
                    yield part.slice(start, size)

    def read(self) -> pa.Table:
        """Return all rows.

        Raises
        ------
        InputError
            If it is damaged further on.
        """
        with self._open() as file:
            return file.read().select(self.names)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        kind = "Parquet" if self._head.startswith(PARQUET) else "Arrow"
        try:
            with opened(self.path) as file:
                if self._head.startswith(PARQUET):
                    yield _Parquet(file)
                elif self._head.startswith(ARROW_STREAM):
                    yield _Stream(file)
                elif self._head.startswith(FEATHER_1):
                    yield _Feather(file)
                else:
                    yield _File(file)
        except InputError:
            raise
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            article = "a" if kind == "Parquet" else "an"
            raise InputError(
                f"{self.path} is damaged, or not {article} {kind} file: {one_line(error)}"
            ) from error


class _Parquet:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = parquet.ParquetFile(pa.PythonFile(file))
        self.schema, self.n_rows = self._file.schema_arrow, self._file.metadata.num_rows

    def parts(self, wanted: list[str], size: int) -> Iterator[pa.Table]:
        for part in self._file.iter_batches(batch_size=size, columns=wanted):
            yield pa.Table.from_batches([part]).select(wanted)

    def read(self) -> pa.Table:
        return self._file.read()


class _Stream:
    n_rows = None

    def __init__(self, file: IO[bytes]) -> None:
        self._file = ipc.open_stream(file)
        self.schema = self._file.schema

    def parts(self, wanted: list[str], size: int) -> Iterator[pa.Table]:
        for part in self._file:
            yield pa.Table.from_batches([part]).select(wanted)

    def read(self) -> pa.Table:
        return self._file.read_all()


class _File(_Stream):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = ipc.open_file(pa.PythonFile(file))
        self.schema = self._file.schema

    def parts(self, wanted: list[str], size: int) -> Iterator[pa.Table]:
        for i in range(self._file.num_record_batches):
            yield pa.Table.from_batches([self._file.get_batch(i)]).select(wanted)


class _Feather(_Stream):
    def __init__(self, file: IO[bytes]) -> None:
        self._table = feather.read_table(file)
        self.schema = self._table.schema

    def parts(self, wanted: list[str], size: int) -> Iterator[pa.Table]:
        yield self._table.select(wanted)

    def read(self) -> pa.Table:
        return self._table


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Return rows as pandas takes them, whatever pandas noted beside them."""
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame


def _names(schema: pa.Schema) -> list[str]:
    try:
        about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = [name for name in about.get("index_columns", []) if name in schema.names]
    except (ValueError, AttributeError, TypeError):  # somebody else's notes
        index = []
    named = [name for name in index if not name.startswith("__index_level_")]
    return [*named, *(name for name in schema.names if name not in index)]
