"""The errors that name a cell of scores, labels or weights, the same for every reader."""

from __future__ import annotations

import math
from typing import Any

from vennforest._validation import InputError
from vennforest.tables.cells import number


def bad_score(name: str, value: Any, place: str) -> InputError:
    """Return the error for a score that is no finite number."""
    return _bad(name, "finite scores", value, place)


def bad_weight(name: str, value: Any, place: str) -> InputError:
    """Return the error for a weight that is no finite number, or negative."""
    return _bad(name, "finite weights that are not negative", value, place)


def no_label(name: str, place: str) -> InputError:
    """Return the error for a row without a label."""
    return InputError(f"column {name!r} must contain a label in every row, got none in {place}")


def row_of(row: int, where: str) -> str:
    """Return what to call a row, given by its number from 0: people count from 1."""
    return f"row {row + 1:,} of {where}"


def _bad(name: str, what: str, value: Any, place: str) -> InputError:
    return InputError(f"column {name!r} must contain {what}, got {_shown(value)} in {place}")


def _shown(value: Any) -> str:
    found = number(value)
    if found is not None and not math.isnan(found):
        return f"{found:g}"
    if found is not None or not isinstance(value, str):  # libraries have marks of their own
        return "NaN or nothing"
    cell = repr(value)
    return cell if len(cell) <= 60 else cell[:59] + "…"
