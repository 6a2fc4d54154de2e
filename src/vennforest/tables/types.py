"""Types of columns that are declared and not guessed."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vennforest._files import one_line, refuse_special
from vennforest._validation import InputError
from vennforest.tables.cells import Column, Kind

if TYPE_CHECKING:
    import pandas as pd

DROP = "drop"
ALIASES = {"text": "category"}
"""Text that is declared takes numbers too; what is guessed to be text refuses them."""

KINDS = ("number", "date", "category", "boolean", "duration", DROP)
FORM = (
    'columns and what they contain, such as {"seen": "date %d.%m.%Y", "ward": "category", '
    '"remark": "drop"}'
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
    """Return the kind that a column is declared as (or drop), and the format of its dates."""
    kind, _, written = declared.partition(" ")
    kind, written = ALIASES.get(kind, kind), written.strip()
    if kind not in KINDS:
        raise InputError(
            f"the type of column {name!r} must be number, date, category, text, boolean, duration "
            f"or drop, got {declared!r}"
        )
    if not written:
        return kind, None
    if kind != "date":
        raise InputError(
            f"the type of column {name!r} must be {kind!r} alone, got {declared!r}: only dates "
            "have a format"
        )
    try:
        return kind, _checked_date(written)
    except InputError as error:
        raise InputError(f"the type of column {name!r} cannot be read: {error}") from None


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
    """Return the kind of a column that is declared, and the format of its dates."""
    parsed, written = parse_type(declared, column.name)
    kind = cast(Kind, parsed)
    column.declared = declared
    if not column.there.any():
        return "empty", None
    if kind == "date":
        written = column.learn_dates(written)
    column.read(kind, written)
    return kind, written


def declared_read(X: pd.DataFrame, types: Mapping[str, str]) -> pd.DataFrame:
    """Return a table with the columns that are declared read as such."""
    read = {}
    for name, declared in types.items():
        column = Column(X[name], name)
        kind, written = learn_declared(column, declared)
        read[name] = column.read(kind, written)
    return X.assign(**read) if read else X
