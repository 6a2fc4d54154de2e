"""Types of columns that are declared and not guessed."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vennforest._files import one_line, refuse_special, write_text
from vennforest._validation import InputError
from vennforest.tables.cells import Column, Kind
from vennforest.tables.formats import PLAIN, NumberFormat

if TYPE_CHECKING:
    import pandas as pd

DROP = "drop"
ALIASES = {"text": "category"}
"""Text that is declared takes numbers too; what is guessed to be text refuses them."""

KINDS = ("number", "date", "category", "boolean", "duration", DROP)
FORM = (
    'columns and what they contain, such as {"price": "number 1.234,5 €", "seen": "date %d.%m.%Y", '
    '"ward": "category", "remark": "drop"}'
)


def read_types(given: Path | str) -> dict[str, str]:
    """Return what a user says that columns contain: JSON, or a file of it; see `TableColumns`."""
    if str(given).lstrip().startswith("{"):
        return check_types(_parsed(str(given), "--types"), "--types")
    path = Path(given)
    try:
        refuse_special(path)
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"there is no file of types {path}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} must contain {FORM}, got no text") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {one_line(error)}") from None
    return check_types(_parsed(text, str(path)), str(path))


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except ValueError as error:
        raise InputError(f"{what} must contain {FORM}, got text with a fault: {error}") from None
    except RecursionError:
        raise InputError(f"{what} must contain {FORM}, got lists within lists") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the column {name!r} stands there twice")
        found[name] = value
    return found


def check_types(types: Any, what: str = "types") -> dict[str, str]:
    """Return declared types as a dictionary, once each of them is seen to be one."""
    if not isinstance(types, Mapping):
        raise InputError(f"{what} must contain {FORM}, got {str(types)[:60]}")
    for name, declared in types.items():
        if not isinstance(name, str) or not isinstance(declared, str):
            raise InputError(f"{what} must contain {FORM}, got {declared!r} for {name!r}")
        parse_type(declared.strip(), name)
    return {name: declared.strip() for name, declared in types.items()}


def parse_type(declared: str, name: str) -> tuple[str, str | None]:
    """Return the kind that a column is declared as (or drop), and how its cells are written."""
    kind, _, written = declared.partition(" ")
    kind, written = ALIASES.get(kind, kind), written.strip()
    if kind not in KINDS:
        raise InputError(
            f"the type of column {name!r} must be number, date, category, text, boolean, duration "
            f"or drop, got {declared!r}"
        )
    if not written:
        return kind, None
    try:
        if kind == "number":
            return kind, str(NumberFormat.parse(written))
        if kind == "date":
            return kind, _checked_date(written)
    except InputError as error:
        raise InputError(f"the type of column {name!r} cannot be read: {error}") from None
    raise InputError(
        f"the type of column {name!r} must be {kind!r} alone, got {declared!r}: numbers and dates "
        "have formats"
    )


def _checked_date(written: str) -> str:
    try:
        day = datetime(2021, 12, 31, 10, 11, 12)
        with warnings.catch_warnings():  # of a day without a year, which is refused below
            warnings.simplefilter("ignore", DeprecationWarning)
            read = datetime.strptime(day.strftime(written), written)
    except (ValueError, re.error):  # a part that stands twice is a fault of a pattern
        read = None
    if read is None or read.year != 2021:
        raise InputError(
            "a format of dates must say where day, month and year stand, such as %d.%m.%Y, "
            f"%m/%d/%y or %Y-%m-%d %H:%M, got {written!r}"
        )
    return written


def learn_declared(column: Column, declared: str) -> tuple[Kind, str | None]:
    """Return the kind of a column that is declared, and how its cells are written."""
    parsed, written = parse_type(declared, column.name)
    kind = cast(Kind, parsed)
    column.declared = declared
    if not column.there.any():
        return "empty", None
    if kind in ("number", "date"):
        written = column.learn_written(kind, written)
    column.read(kind, written)
    return kind, written


def declared_read(X: pd.DataFrame, types: Mapping[str, str]) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with the columns that are declared read as such, and remarks on them."""
    read, notes = {}, []
    for name, declared in types.items():
        column = Column(X[name], name)
        kind, written = learn_declared(column, declared)
        read[name] = column.read(kind, written)
        if kind == "number":
            notes += _limits(column, written)
    return X.assign(**read) if read else X, notes


def _limits(column: Column, written: str | None) -> list[str]:
    """Say that cells such as "<0.5" are taken for their limit."""
    how = NumberFormat.parse(written or PLAIN)
    texts = [cell for cell in column.present.tolist() if isinstance(cell, str)]
    limits = [cell for cell in texts if (found := how.read(cell)) is not None and found.limit]
    if not limits:
        return []
    first = how.read(limits[0])
    value = 0.0 if first is None else first.value
    many = f"{len(limits):,} cells such as" if len(limits) > 1 else "the cell"
    return [
        f"In {column.name!r} {many} {limits[0]!r} {'are' if len(limits) > 1 else 'is'} taken for "
        f"the limit, {value:g}."
    ]


def write_types(path: Path, types: Mapping[str, str]) -> None:
    """Write what columns contain as JSON, to be corrected and read again."""
    write_text(path, json.dumps(types, indent=2, ensure_ascii=False) + "\n")
