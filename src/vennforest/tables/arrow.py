"""Tables in Parquet and Arrow files: opened in one place, whole or part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
from pyarrow import compute, ipc, parquet

from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.tables.files import (
    ARROW_STREAM,
    PARQUET,
    check_table_file,
    opened,
    refuse_duplicates,
)
from vennforest.tables.refusals import row_of

NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
"""Types of pandas that contain large integers and empty cells side by side."""


class ArrowFile:
    """A table in a Parquet, Feather or Arrow IPC file, which begins with ``head``.

    In ``names`` the columns that pandas keeps its index in come first, a nameless one is left out;
    ``n_rows`` is None where only reading would tell.
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
        """Yield some columns, up to ``size`` rows after another."""
        wanted = list(columns)
        with self._open() as file:
            for part in file.parts(wanted, size):
                for start in range(0, part.num_rows, size):
                    yield part.slice(start, size)

    def read(self) -> pa.Table:
        """Return all rows."""
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
                else:
                    yield _File(file)
        except InputError:
            raise
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            article = "a" if kind == "Parquet" else "an"
            raise InputError(
                f"{self.path} is damaged, or not {article} {kind} file: {one_line(error)}"
            ) from error


class ParquetFiles:
    """A table in several Parquet files, one after another, as `ArrowFile` has it in one.

    The first file tells the columns; others may have more of them. Numbers of several types become
    those of their common type.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [ArrowFile(path, _head(path)) for path in paths]
        first = self._files[0]
        self.names, self.n_rows = first.names, sum(file.n_rows or 0 for file in self._files)
        kinds = {field.name: field.type for field in first.schema}
        for file in self._files[1:]:
            for name, kind in kinds.items():
                if name not in file.schema.names:
                    raise InputError(
                        f"the files of a table must have the same columns, got none called "
                        f"{name!r} in {file.path}"
                    )
                other = file.schema.field(name).type
                if kind != other:
                    kinds[name] = self._common(name, kind, other, file.path)
        self.schema = pa.schema(list(kinds.items()))

    def parts(self, columns: Sequence[str], size: int) -> Iterator[pa.Table]:
        """Yield some columns, up to ``size`` rows after another."""
        for file in self._files:
            for part in file.parts(columns, size):
                yield self._cast(part, file.path)

    def read(self) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables([self._cast(file.read(), file.path) for file in self._files])

    def place(self, row: int) -> str:
        """Return what to call a row, counted from 0 over all files."""
        for file in self._files:
            if row < (file.n_rows or 0):
                return row_of(row, str(file.path))
            row -= file.n_rows or 0
        raise IndexError(row)

    def _cast(self, part: pa.Table, path: Path) -> pa.Table:
        columns = []
        for name in part.column_names:
            column, wanted = part[name], self.schema.field(name).type
            try:
                columns.append(
                    column
                    if column.type == wanted
                    else column.cast(plain(column.type)).cast(wanted)
                )
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise self._mixed(name, wanted, column.type, path) from error
        return pa.table(columns, names=part.column_names)

    def _common(self, name: str, one: Any, other: Any, path: Path) -> pa.DataType:
        kinds = [pa.schema([(name, plain(kind))]) for kind in (one, other)]
        try:
            return pa.unify_schemas(kinds, promote_options="permissive").field(name).type
        except pa.ArrowException as error:
            raise self._mixed(name, one, other, path) from error

    def _mixed(self, name: str, one: Any, other: Any, path: Path) -> InputError:
        return InputError(
            f"column {name!r} must be of one type in all files of a table, got {other} in "
            f"{path.name} after {one} in {self._files[0].path}"
        )


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values, and other types as they are."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _head(path: Path) -> bytes:
    head = check_table_file(path)
    if not head.startswith(PARQUET):
        raise InputError(f"tables of several files must be Parquet, which {path} is not")
    return head


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


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Return rows as pandas takes them, whatever pandas noted beside them.

    Integers beside empty cells become floats, but where these would not tell them apart.
    """
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    for name, column in zip(table.column_names, table.itercolumns(), strict=True):
        if column.null_count and column.type in NULLABLE and _largest(column) >= 2**53:
            frame[name] = column.to_pandas(types_mapper=NULLABLE.get)
    return frame


def _largest(integers: pa.ChunkedArray) -> int:
    """Return the largest absolute value, 0 where there is none."""
    ends = compute.min_max(integers).as_py().values()
    return max((abs(end) for end in ends if end is not None), default=0)


def _names(schema: pa.Schema) -> list[str]:
    try:
        about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = [name for name in about.get("index_columns", []) if name in schema.names]
    except (ValueError, AttributeError, TypeError):  # somebody else's notes
        index = []
    named = [name for name in index if not name.startswith("__index_level_")]
    return [*named, *(name for name in schema.names if name not in index)]
