"""A table read whole, and columns found by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from vennforest._messages import listed, nearest
from vennforest._validation import InputError
from vennforest.tables.files import TableFile


def read_table(
    path: Path,
    as_text: Iterable[str] = (),
    missing: Sequence[str] = (),
    decimal: str | None = None,
) -> pd.DataFrame:
    """Return a table from a file, see `TableFile`; its index is 0, 1, …, and it has rows.

    Columns ``as_text`` of a text file stay as they are written: those whose types are declared.
    Others become numbers or booleans where every cell is one. ``missing`` names cells that stand
    for missing values, besides NA, NaN, null and nothing.
    """
    table = TableFile(path, decimal).read(as_text, missing)
    if table.empty:
        raise InputError(f"{path} must have rows, got the names of {len(table.columns)} columns")
    return table


def find_column(table: pd.DataFrame, name: str, noun: str = "column") -> str:
    """Return the name of a column; refuse a name that is none, with the closest one."""
    return find_name(list(table.columns), name, noun)


def find_name(names: Sequence[str], name: str, noun: str = "column", where: str = "") -> str:
    """Return a name that is among some; refuse another one, with the closest of them."""
    if name in names:
        return name
    hint = nearest(name, names) or f": there are {listed(names, 8)}"
    raise InputError(f"there is no {noun} {name!r}{where}{hint}")
