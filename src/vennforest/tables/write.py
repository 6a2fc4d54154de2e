"""Tables in files that are written: CSV, Parquet and Arrow."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from vennforest._files import is_standard
from vennforest._validation import InputError, check_option
from vennforest.tables.read import is_number, is_text, number

FORMULA = re.compile(r"[=+\-@\t\r＝＋－＠]")
"""First letters of text that spreadsheet programs may take for a formula."""


def output_format(path: str | os.PathLike[str], requested: str | None = None) -> str:
    """Return "csv", "parquet" or "arrow", as requested or by the suffix of a path.

    Standard output is CSV unless another is requested; other suffixes raise an error.
    """
    if requested is not None:
        check_option(requested, ("csv", "parquet", "arrow"), "--format")
        return requested
    if is_standard(path):
        return "csv"
    suffix = Path(os.fspath(path).partition("?")[0]).suffix.lower()  # a key may follow
    if suffix not in (".csv", ".parquet"):
        raise InputError(f"the output must end in .csv or .parquet, got {Path(path).name!r}")
    return suffix[1:]


def without_formula(value: str) -> str:
    """Put an apostrophe before text that a spreadsheet may take for a formula."""
    return f"'{value}" if FORMULA.match(value) and number(value) is None else value


def table_as_text(table: pa.Table, escape_formulas: bool = False) -> pa.Table:
    """Return a table as CSV contains it: every digit, dates in ISO 8601.

    With ``escape_formulas``, `without_formula` is applied to names and text.
    """
    columns, names = table.columns, table.column_names
    for i, name in enumerate(names):
        if not is_number(columns[i].type):
            columns[i] = _column_as_text(columns[i], name)
            if escape_formulas:
                texts = columns[i].to_pylist()
                cells = [None if cell is None else without_formula(cell) for cell in texts]
                columns[i] = pa.array(cells, pa.string())
    return pa.Table.from_arrays(columns, [*map(without_formula if escape_formulas else str, names)])


def _column_as_text(cells: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a carried column as text; booleans as True and False, as class labels are named."""
    kind, types = cells.type, pa.types
    if types.is_dictionary(kind):
        return _column_as_text(cells.cast(kind.value_type), name)
    if types.is_boolean(kind):
        return pc.if_else(cells, "True", "False")
    is_day = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind)
    is_decimal = types.is_decimal(kind)  # or numbers of a dictionary
    if not (is_text(kind) or is_day or is_number(kind) or is_decimal or types.is_null(kind)):
        raise InputError(
            f"column {name!r} must contain numbers, dates or text to be in CSV, got {kind}: "
            "write Parquet, or name the columns to copy with --id"
        )
    text = cells.cast(pa.string())
    if types.is_timestamp(kind):
        text = pc.replace_substring(text, " ", "T")
        text = pc.replace_substring_regex(text, r"([+-]\d\d)(\d\d)$", r"\1:\2")
    return text
