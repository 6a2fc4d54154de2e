"""The format in which the dates of a column are written as text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 100
"""Letters of a cell beyond which it is no date: guessing takes a second for each 50,000."""

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
