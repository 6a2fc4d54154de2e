"""Tables read and written part by part, so that they may be larger than memory."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import feather, ipc, parquet

from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.tables.read import (
    ARROW_FILE,
    ARROW_STREAM,
    FEATHER_1,
    PARQUET,
    TextFormat,
    check_table_file,
    opened,
    refuse_duplicates,
    text_format,
)

SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


@dataclass(frozen=True)
class Batch:
    """Some rows of a table: those for the model, whose index counts all rows, and others."""

    rows: pd.DataFrame
    carried: list[pa.Array]


class TableFile:
    """A table in a file, read part by part.

    Cells of text files stay text, so that no part is taken for something else than another.

    Parameters
    ----------
    path : Path
        CSV or TSV (also gzipped), Parquet, or Arrow.

    Attributes
    ----------
    names : list of str
        The columns.
    n_rows : int or None
        None where only reading would tell.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows: int | None = None
        self.text: TextFormat | None = None
        with self._errors():
            self._head = check_table_file(path)
            if self._head.startswith((PARQUET, ARROW_FILE, FEATHER_1, ARROW_STREAM)):
                self.names = self._arrow_names()
            else:
                self.text = text_format(path)
                with opened(path) as file:
                    header = pd.read_csv(file, nrows=0, **self.text.options())
                self.names = [str(name) for name in header.columns]
        refuse_duplicates(path, self.names)
        if not self.names:
            raise InputError(f"{path} has no columns")

    def types(self, columns: Sequence[str]) -> list[pa.DataType]:
        """Return the Arrow types of columns."""
        if self.text is not None:
            return [pa.string()] * len(columns)
        return [_plain(self._schema.field(name).type) for name in columns]

    def batches(
        self,
        columns: Sequence[str],
        carried: Sequence[str],
        size: int,
        numbers: Sequence[str] = (),
    ) -> Iterator[Batch]:
        """Yield up to ``size`` rows after another, in the order of the file.

        Parameters
        ----------
        columns, carried : sequence of str
            For the model, and to be passed on.
        size : int
            Above zero.
        numbers : sequence of str
            Those of the columns in which a comma may be a decimal comma.

        Raises
        ------
        InputError
            If the file is damaged further on.
        """
        with self._errors():
            yield from (
                self._text_batches(columns, carried, size, numbers)
                if self.text is not None
                else self._arrow_batches(columns, carried, size)
            )

    def _text_batches(
        self, columns: Sequence[str], carried: Sequence[str], size: int, numbers: Sequence[str]
    ) -> Iterator[Batch]:
        assert self.text is not None
        with (
            opened(self.path) as file,
            pd.read_csv(file, dtype=str, chunksize=size, **self.text.options()) as parts,
        ):
            for part in parts:
                others = [pa.array(part[name].astype(object), pa.string()) for name in carried]
                rows = part[list(columns)]
                if self.text.decimal == ",":
                    rows = rows.assign(**{name: _with_point(rows[name]) for name in numbers})
                yield Batch(rows, others)

    def _arrow_batches(
        self, columns: Sequence[str], carried: Sequence[str], size: int
    ) -> Iterator[Batch]:
        wanted = list(dict.fromkeys([*columns, *carried]))
        first = 0
        for part in self._arrow_parts(wanted, size):
            for start in range(0, part.num_rows, size):
                some = part.slice(start, size)
                rows = some.select(list(columns)).to_pandas(ignore_metadata=True)
                rows.index = pd.RangeIndex(first, first + len(rows))
                first += len(rows)
                others = [
                    some[name].cast(_plain(some[name].type)).combine_chunks() for name in carried
                ]
                yield Batch(rows, others)

    def _arrow_parts(self, wanted: list[str], size: int) -> Iterator[pa.Table]:
        with opened(self.path) as file:
            if self._head.startswith(PARQUET):
                table = parquet.ParquetFile(pa.PythonFile(file))
                for part in table.iter_batches(batch_size=size, columns=wanted):
                    yield pa.Table.from_batches([part]).select(wanted)
            elif self._head.startswith(FEATHER_1):
                yield feather.read_table(file, columns=wanted)
            else:
                for part in self._record_batches(file):
                    yield pa.Table.from_batches([part]).select(wanted)

    def _record_batches(self, file: Any) -> Iterator[pa.RecordBatch]:
        if self._head.startswith(ARROW_STREAM):
            yield from ipc.open_stream(file)
            return
        table = ipc.open_file(pa.PythonFile(file))
        for i in range(table.num_record_batches):
            yield table.get_batch(i)

    def _arrow_names(self) -> list[str]:
        with opened(self.path) as file:
            if self._head.startswith(PARQUET):
                table = parquet.ParquetFile(pa.PythonFile(file))
                self._schema, self.n_rows = table.schema_arrow, table.metadata.num_rows
            elif self._head.startswith(ARROW_STREAM):
                self._schema = ipc.open_stream(file).schema
            elif self._head.startswith(FEATHER_1):
                self._schema = feather.read_table(file).schema
            else:
                self._schema = ipc.open_file(pa.PythonFile(file)).schema
        names: list[str] = list(self._schema.names)
        return names

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in one sentence what is wrong with the file."""
        try:
            yield
        except InputError:
            raise
        except UnicodeDecodeError as error:
            encoding = self.text.encoding if self.text else "UTF-8"
            raise InputError(f"{self.path} is not text in {encoding}: write it as UTF-8") from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
            raise InputError(f"{self.path} is not a table: {one_line(error)}") from error
        except (pa.ArrowException, OSError, EOFError) as error:
            raise InputError(f"{self.path} cannot be read: {one_line(error)}") from error


def _with_point(cells: Any) -> Any:
    """Return numbers that are written with a decimal comma, with a point; other cells stay."""
    pattern = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"
    return cells.str.replace(pattern, r"\1.\2", regex=True)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def output_format(path: str | os.PathLike[str]) -> str:
    """Return csv, parquet or arrow, told from how a name ends.

    Raises
    ------
    InputError
        If it ends otherwise.
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
        with pa.OSFile(str(path), "wb") as sink, arrow_csv.CSVWriter(sink, schema) as writer:
            yield writer
    else:
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, schema) as writer:
            yield writer
