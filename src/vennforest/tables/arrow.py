"""Tables in Parquet and Arrow files: opened in one place, whole or part by part."""

from __future__ import annotations

import io
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
from vennforest.tables.files import ARROW_STREAM, PARQUET, opened, refuse_duplicates
from vennforest.tables.refusals import row_of

NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
"""Types of pandas that contain large integers and empty cells side by side."""

AT_ONCE = 1 << 20
"""Rows that are read together of a whole table."""


class ArrowTable:
    """A table in a Parquet, Feather or Arrow IPC file, or in several Parquet files, one by one.

    Files begin with ``heads``. The first tells the columns, of which those that pandas keeps its
    index in come first in ``names``, a nameless one is left out; others may have more of them.
    Numbers of several types become those of their common type. ``n_rows`` is None where only
    reading would tell.
    """

    def __init__(self, paths: Sequence[Path], heads: Sequence[bytes]) -> None:
        self._files = list(zip(paths, heads, strict=True))
        about = [_about(*one) for one in self._files]
        self._rows = [n_rows for _, n_rows in about]
        self.n_rows = None if None in self._rows else sum(n for n in self._rows if n is not None)
        for path, (schema, _) in zip(paths, about, strict=True):
            refuse_duplicates(path, _names(schema))
        self.schema: pa.Schema = about[0][0]
        self.names = _names(self.schema)
        kinds = {field.name: field.type for field in self.schema}
        for path, (schema, _) in list(zip(paths, about, strict=True))[1:]:
            for name, kind in kinds.items():
                if name not in schema.names:
                    raise InputError(
                        f"the files of a table must have the same columns, got none called "
                        f"{name!r} in {path}"
                    )
                other = schema.field(name).type
                if kind != other:
                    kinds[name] = self._common(name, kind, other, path)
            self.schema = pa.schema(list(kinds.items()))

    def parts(self, columns: Sequence[str], size: int) -> Iterator[pa.Table]:
        """Yield some columns, up to ``size`` rows after another."""
        for path, head in self._files:
            with _opened(path, head) as file:
                for batch in _batches(file, head, list(columns), size):
                    part = self._cast(pa.Table.from_batches([batch]).select(list(columns)), path)
                    for start in range(0, part.num_rows, size):
                        yield part.slice(start, size)

    def read(self) -> pa.Table:
        """Return all rows."""
        none = pa.schema([self.schema.field(name) for name in self.names]).empty_table()
        return pa.concat_tables([none, *self.parts(self.names, AT_ONCE)])

    def place(self, row: int) -> str:
        """Return what to call a row, counted from 0 over all files."""
        for (path, _), n_rows in zip(self._files, self._rows, strict=True):
            if n_rows is None or row < n_rows:
                return row_of(row, str(path))
            row -= n_rows
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
            f"{path.name} after {one} in {self._files[0][0]}"
        )


@contextmanager
def _opened(path: Path, head: bytes) -> Iterator[IO[bytes]]:
    """Open a file; one that is packed is unpacked whole, unless it is a stream."""
    kind = "a Parquet" if head.startswith(PARQUET) else "an Arrow"
    try:
        with opened(path) as file:
            streamed = file.seekable() or head.startswith(ARROW_STREAM)
            yield file if streamed else io.BytesIO(file.read())
    except InputError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} is damaged, or not {kind} file: {one_line(error)}") from error


def _about(path: Path, head: bytes) -> tuple[pa.Schema, int | None]:
    """Return the columns of a file, and how many rows it has where it says so."""
    with _opened(path, head) as file:
        if head.startswith(PARQUET):
            found = parquet.ParquetFile(pa.PythonFile(file, mode="r"))
            return found.schema_arrow, found.metadata.num_rows
        if head.startswith(ARROW_STREAM):
            return ipc.open_stream(file).schema, None
        return ipc.open_file(pa.PythonFile(file, mode="r")).schema, None


def _batches(
    file: IO[bytes], head: bytes, columns: list[str], size: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file as they lie; of Parquet some columns, up to ``size`` at a time."""
    if head.startswith(PARQUET):
        found = parquet.ParquetFile(pa.PythonFile(file, mode="r"))
        yield from found.iter_batches(batch_size=size, columns=columns)
    elif head.startswith(ARROW_STREAM):
        yield from ipc.open_stream(file)
    else:
        found = ipc.open_file(pa.PythonFile(file, mode="r"))
        yield from (found.get_batch(i) for i in range(found.num_record_batches))


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values, text for views of text, others as they are."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    return pa.string() if pa.types.is_string_view(kind) else kind


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
