"""A table read whole, and columns found by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vennforest._messages import listed, nearest, needed
from vennforest._validation import InputError

if TYPE_CHECKING:
    import pandas as pd


def read_table(
    path: str | os.PathLike[str],
    as_text: Iterable[str] = (),
    missing: Sequence[str] = (),
    decimal: str | None = None,
) -> pd.DataFrame:
    """Return a table from a file, see `TableFile`; its index is 0, 1, …, and it has rows.

    Columns ``as_text`` of a text file stay as they are written: those whose types are declared.
    Others become numbers or booleans where every cell is one. ``missing`` names cells that stand
    for missing values, besides NA, NaN, null and nothing.
    """
    need_pandas()
    from vennforest.tables.files import TableFile

    table = TableFile(Path(path), decimal).read(as_text, missing)
    if not len(table):
        raise InputError(
            f"{os.fspath(path)} has no rows, only the names of {len(table.columns)} columns"
        )
    return table


def need_pandas() -> None:
    """Say what to install where pandas or pyarrow is missing."""
    for package in ("pandas", "pyarrow"):
        needed(package, "tables")


def find_column(table: pd.DataFrame, name: str, what: str = "column") -> str:
    """Return the name of a column; refuse a name that is none, with the closest one."""
    return find_name(list(table.columns), name, what)


def find_name(names: Sequence[str], name: str, what: str = "column", where: str = "") -> str:
    """Return a name that is among some; refuse another one, with the closest of them."""
    if name in names:
        return name
    hint = nearest(name, names) or f": there are {listed(names, 8)}"
    raise InputError(f"there is no {what} {name!r}{where}{hint}")
