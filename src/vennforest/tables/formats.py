"""How the numbers and the dates of a column are written as text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from vennforest._validation import InputError

if TYPE_CHECKING:
    import pandas as pd

PLAIN, POINT, COMMA = "1234.5", "1,234.5", "1.234,5"
"""How a number is written: the point is the decimal one, and there are no commas; the comma
separates thousands; the comma is the decimal one. Spaces and apostrophes separate thousands always.
"""

HUNDREDS = {"%": -2, "‰": -3}
"""Units that are a power of ten."""

UNIT = r"[^\d\s.,'’<>≤≥~=+\-−()]"
"""How a unit begins."""

LONGEST = 100
"""Letters of a cell beyond which it is text: no number or date is as long, and guessing a format of
dates takes a second for each 50,000."""

# What repeats without a bound gives nothing back (possessive quantifiers), since what follows it
# begins with another letter: a cell takes time in proportion to its length, whatever it contains.
CELL = re.compile(
    r"(?P<limit>[<>]=?|[≤≥~])?\s*+(?P<sign>[-+−])?\s*+"
    rf"(?P<before>{UNIT}{{1,4}})?\s*+(?P<second>[-+−])?\s*+"
    r"(?P<digits>[.,]?\d(?:[.,'’\s]*+\d)*+[.,]?)(?P<power>[eE][-+]?\d++)?\s*+"
    rf"(?P<after>{UNIT}\S{{0,15}})?"
)


def _digits(thousands: str, decimal: str) -> re.Pattern[str]:
    groups = rf"[1-9]\d{{0,2}}(?P<by>[{thousands}\s'’])(?:\d{{2,3}}(?P=by))*+\d{{3}}"
    return re.compile(rf"(?P<whole>{groups}|\d*)(?:{decimal}(?P<part>\d*))?")


DIGITS = {PLAIN: _digits("", r"\."), POINT: _digits(",", r"\."), COMMA: _digits(".", ",")}


@dataclass(frozen=True)
class Number:
    """A cell that was read as a number.

    The value of "12.5%" is 0.125, that of "<0.5" the limit; the unit is what stands before or after
    it, such as a currency, or empty.
    """

    value: float
    unit: str
    limit: bool


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written: `PLAIN`, `POINT` or `COMMA`, and their unit.

    Cells may have the unit or none; of a percentage all have it.
    """

    digits: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.digits} {self.unit}".strip()

    @classmethod
    def parse(cls, text: str) -> NumberFormat:
        """Return the format of a sample: one number such as ``1.234,5 €``."""
        found = _parts(text)
        if found is not None and not (found["limit"] or found["sign"] or found["second"]):
            read = {name: one for name in DIGITS if (one := _read(text, name)) is not None}
            if len({one.value for one in read.values()}) == 1:
                return cls(next(iter(read)), found["after"] or found["before"] or "")
        raise InputError(
            f"a format of numbers must be a sample such as {PLAIN}, {POINT} or {COMMA}, with a "
            f"unit if there is one, got {text!r}"
        )

    def read(self, cell: str) -> Number | None:
        """Return a cell as a number, None where it is not written like this."""
        found = _read(cell, self.digits)
        if found is None or found.unit not in ("", self.unit):
            return None
        if self.unit in HUNDREDS and not found.unit and found.value != 0:
            return None
        return found


def learn_format(
    cells: Sequence[str], name: str, declared: NumberFormat | None = None
) -> NumberFormat | int:
    """Return how the cells of a column are written, or the first that does not fit the others.

    Where a format is declared, only a unit that it lacks is learnt.
    """
    if declared is not None:
        return _with_unit(cells, declared.digits, declared.unit)
    fits = {digits: [_read(cell, digits) for cell in cells] for digits in (POINT, COMMA)}
    missed = {digits: [one is None for one in read].count(True) for digits, read in fits.items()}
    digits = COMMA if missed[COMMA] < missed[POINT] else POINT
    if missed[digits]:
        return fits[digits].index(None)
    if not missed[COMMA] and not missed[POINT]:
        for i, cell in enumerate(cells):
            point, comma = fits[POINT][i], fits[COMMA][i]
            if point is not None and comma is not None and point.value != comma.value:
                raise InputError(
                    f"{cell!r} in column {name!r} could be {point.value:g} or {comma.value:g}, and "
                    f'no other cell says which: declare it as "number {POINT}" or "number {COMMA}"'
                )
    if digits == POINT and not any("," in cell for cell in cells):
        digits = PLAIN
    return _with_unit(cells, digits, "")


def _with_unit(cells: Sequence[str], digits: str, unit: str) -> NumberFormat | int:
    """Return the format with the first unit that a cell has, or the first cell it does not fit."""
    if not unit:
        read = (_read(cell, digits) for cell in cells)
        unit = next((found.unit for found in read if found is not None and found.unit), "")
    how = NumberFormat(digits, unit)
    return next((i for i, cell in enumerate(cells) if how.read(cell) is None), how)


def _read(cell: str, digits: str) -> Number | None:
    """Return a cell as a number with whatever unit, None where it is none."""
    found = _parts(cell)
    if found is None or (found["sign"] and found["second"]) or (found["before"] and found["after"]):
        return None
    number = DIGITS[digits].fullmatch(found["digits"])
    if number is None or not (number["whole"] or number["part"]):
        return None
    unit = found["before"] or found["after"] or ""
    whole = re.sub(r"\D", "", number["whole"])
    power = int((found["power"] or "e0")[1:]) + HUNDREDS.get(unit, 0)
    value = float(f"{whole or 0}.{number['part'] or 0}e{power}")
    sign = -1.0 if (found["sign"] or found["second"]) in ("-", "−") else 1.0
    return Number(sign * value, unit, bool(found["limit"]))


def _parts(cell: str) -> re.Match[str] | None:
    cell = cell.strip()
    return CELL.fullmatch(cell) if len(cell) <= LONGEST else None


PROBED = 5
"""Different cells whose formats are tried; any that all cells share is one of each of them."""

TRIED_FIRST = 1000
"""Cells that a format is tried with before all are."""

TIME = re.compile(r"\d\d:\d\d")
HALF = re.compile(r"\b[ap]m\b", re.IGNORECASE)


def date_format(cells: pd.Series[Any]) -> str | None:
    """Return the one format in which all cells of text are dates, None where there is none.

    It depends on all cells, and on no draw of some: of the formats that pandas sees in the first
    few, the first that every cell has, formats with the month before the day before others. Thus
    05/06/2020 is the fifth of June wherever another cell of the column has a day above 12.
    """
    for written in _formats(list(islice(dict.fromkeys(cells), PROBED))):
        if _all_dates(cells[:TRIED_FIRST], written) and _all_dates(cells, written):
            return written
    return None


def _formats(cells: list[str]) -> Iterator[str]:
    """Yield the formats that cells may have, each of them once."""
    seen = set()
    for day_first in (False, True):
        for cell in cells:
            guessed = _guess(cell, day_first)
            if guessed is None or guessed.startswith(("%Y-%d", "%Y/%d", "%Y.%d")):
                continue  # no one writes the day between year and month; it is a slip of the pen
            for written in (guessed, guessed.replace("%b", "%B")):  # May may be either
                if written not in seen:
                    seen.add(written)
                    yield written


def _guess(cell: str, day_first: bool) -> str | None:
    """Return the format of a date.

    It is that of the same date at 10:11 in the morning, since pandas may take 20:15 for the year
    2015, and knows no afternoon.
    """
    from pandas.tseries.api import guess_datetime_format

    if len(cell) > LONGEST:
        return None
    morning = HALF.sub("AM", TIME.sub("10:11", cell, count=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 25/06 is a day and its month
        try:
            guessed = guess_datetime_format(morning, dayfirst=day_first)
        except (ValueError, TypeError, OverflowError):  # of text that is far from any date
            return None
    return guessed if isinstance(guessed, str) else None


def _all_dates(cells: pd.Series[Any], written: str) -> bool:
    import pandas as pd

    dates = pd.to_datetime(cells, format=written, errors="coerce", utc=True)
    return bool(dates.notna().all())
