"""Types of columns that the user declares."""

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
"""Declared text accepts numbers too; inferred text refuses them."""

DECLARABLE = ("number", "date", "category", "boolean", DROP)
FORM = (
    'columns and what they contain, such as {"seen": "date %d.%m.%Y", "ward": "category", '
    '"remark": "drop"}'
)


def read_types(source: Path | str) -> dict[str, str]:
    """Return declared types from JSON, or a file of it; see `TableColumns`."""
    text, what = str(source), "--types"
    if not text.lstrip().startswith("{"):
        path = Path(source)
        what = str(path)
        try:
            refuse_special(path)
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise InputError(f"there is no file of types {path}") from None
        except UnicodeDecodeError:
            raise InputError(f"{path} must contain {FORM}, got no text") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {one_line(error)}") from None
    try:
        types = json.loads(text, object_pairs_hook=_unique_names)
    except ValueError as error:
        raise InputError(f"{what} must contain {FORM}, got text with a fault: {error}") from None
    except RecursionError:
        raise InputError(f"{what} must contain {FORM}, got lists within lists") from None
    return check_types(types, what)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    types = dict(pairs)
    if len(types) < len(pairs):
        name = next(name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1)
        raise ValueError(f"the column {name!r} stands there twice")
    return types


def check_types(types: Any, what: str = "types") -> dict[str, str]:
    """Return declared types as a dictionary; refuse anything else."""
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
    if kind not in DECLARABLE:
        raise InputError(
            f"the type of column {name!r} must be number, date, category, text, boolean or drop, "
            f"got {declared!r}"
        )
    if not written:
        return kind, None
    if kind != "date":
        raise InputError(
            f"the type of column {name!r} must be {kind!r} alone, got {declared!r}: only dates "
            "have a format"
        )
    try:
        day = datetime(2021, 12, 31, 10, 11, 12)
        with warnings.catch_warnings():  # of a day without a year, which is refused below
            warnings.simplefilter("ignore", DeprecationWarning)
            parsed = datetime.strptime(day.strftime(written), written)
    except (ValueError, re.error):  # a part that stands twice is a fault of a pattern
        parsed = None
    if parsed is None or parsed.year != 2021:
        raise InputError(
            f"the type of column {name!r} cannot be read: a format of dates must say where day, "
            f"month and year stand, such as %d.%m.%Y, %m/%d/%y or %Y-%m-%d %H:%M, got {written!r}"
        )
    return kind, written


def infer_declared(column: Column, declared: str) -> tuple[Kind, str | None]:
    """Return the kind of a declared column and the format of its dates; refuse other cells."""
    kind, written = parse_type(declared, column.name)
    if not column.is_present.any():
        return "empty", None
    if kind == "date":
        written = column.infer_dates(written)
    column.read(cast(Kind, kind), written)
    return cast(Kind, kind), written


def read_declared(X: pd.DataFrame, types: Mapping[str, str]) -> pd.DataFrame:
    """Return a table in which the declared columns are read as such."""
    import pandas as pd

    columns = {}
    for name, declared in types.items():
        column = Column(X[name], name, declared=declared)
        columns[name] = pd.Series(column.read(*infer_declared(column, declared)), index=X.index)
    return X.assign(**columns) if columns else X
