"""Types of columns that the user declares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pandas as pd

from vennforest._files import one_line, read_json
from vennforest._validation import InputError
from vennforest.tables.cells import ZONED, CellColumn, CellKind

DROP = "drop"
DECLARABLE = {
    **{name: name for name in ("number", "date", "text", "boolean", DROP)},
    "category": "text",
}
"""Types that can be declared, with the kind of column that each is."""

TYPES_FORM = (
    'columns and what they contain, such as {"seen": "date %d.%m.%Y", "ward": "category", '
    '"remark": "drop"}'
)


def read_types(source: Path | str) -> dict[str, str]:
    """Return declared column types from JSON text or a JSON file; see `TableColumns`."""
    return check_types(read_json(source, "types", f"JSON of {TYPES_FORM}"))


def check_types(types: Any) -> dict[str, str]:
    """Return declared types as a dict; raise an `InputError` if they are not valid."""
    if not isinstance(types, Mapping):
        raise InputError(f"types must be {TYPES_FORM}, got {str(types)[:60]}")
    for name, declared in types.items():
        parse_type(declared, name)
    return dict(types)


def texts_of(types: Mapping[str, str]) -> list[str]:
    """Return the declared columns other than numbers, whose text is kept as it is."""
    return [name for name, declared in types.items() if parse_type(declared, name)[0] != "number"]


def parse_type(declared: Any, name: str) -> tuple[str, str | None]:
    """Return the kind that a column is declared as (or drop), and the format of its dates."""
    kind, _, date_format = str(declared).strip().partition(" ")
    if kind not in DECLARABLE or (date_format and kind != "date"):
        raise InputError(
            f"the type of column {name!r} must be number, date, date and a format, date zoned, "
            f"category, text, boolean or drop, got {declared!r}"
        )
    try:
        pd.to_datetime([""], format=date_format if date_format != ZONED else None)
    except (ValueError, re.error) as error:
        raise InputError(
            f"the type of column {name!r} must be date and a format such as %d.%m.%Y, got "
            f"{declared!r}: {one_line(error)}"
        ) from None
    return DECLARABLE[kind], date_format or None


def infer_declared(column: CellColumn, declared: str) -> tuple[CellKind, str | None]:
    """Return kind and date format of a declared column; raise an error for cells of other kinds."""
    kind, date_format = parse_type(declared, column.name)
    if not column.is_present.any():
        return "empty", None
    if kind == "date" and date_format is None:
        date_format = column.date_format()
    column.read(cast(CellKind, kind), date_format)
    return cast(CellKind, kind), date_format


def read_declared(X: pd.DataFrame, types: Mapping[str, str]) -> pd.DataFrame:
    """Return a table in which the declared columns are read as such."""
    columns = {}
    for name, declared in types.items():
        column = CellColumn(X[name], name)
        columns[name] = pd.Series(column.read(*infer_declared(column, declared)), index=X.index)
    return X.assign(**columns)
