"""The format in which the dates of a column are written as text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MAX_DATE_LENGTH = 100
"""Letters of a cell beyond which it is no date: guessing takes a second for each 50,000."""

N_CELLS_GUESSED = 5
"""Different cells whose formats are tried; a format that all cells share is one of each of them."""

N_CELLS_TRIED_FIRST = 1000
"""Cells that a format is tried with before all are."""

TIME = re.compile(r"\d\d:\d\d")
AM_OR_PM = re.compile(r"\b[ap]m\b", re.IGNORECASE)


def date_format(cells: pd.Series[Any]) -> str | None:
    """Return the format in which all cells of text are dates, None where there is none.

    Of the formats that pandas guesses from the first few cells, it is the first that all cells
    have; formats with the month before the day are tried first. So 05/06/2020 is the fifth of June
    if another cell of the column has a day above 12.
    """
    for date_format in _formats(list(islice(dict.fromkeys(cells), N_CELLS_GUESSED))):
        first = cells[:N_CELLS_TRIED_FIRST]
        if _all_dates(first, date_format) and _all_dates(cells, date_format):
            return date_format
    return None


def _formats(cells: list[str]) -> Iterator[str]:
    """Yield the formats that cells may have, each of them once."""
    formats: dict[str, None] = {}
    for day_first in (False, True):
        for cell in cells:
            guess = _guess(cell, day_first)
            if guess is None or guess.startswith(("%Y-%d", "%Y/%d", "%Y.%d")):
                continue  # a day between year and month is a typing error
            formats.update(dict.fromkeys((guess, guess.replace("%b", "%B"))))  # May is both
    yield from formats


def _guess(cell: str, day_first: bool) -> str | None:
    """Return the format of a date, guessed with its time replaced by 10:11 in the morning.

    pandas may take 20:15 for the year 2015, and guesses no format with PM.
    """
    from pandas.tseries.api import guess_datetime_format

    if len(cell) > MAX_DATE_LENGTH:
        return None
    morning = AM_OR_PM.sub("AM", TIME.sub("10:11", cell, count=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 25/06 is a day and its month
        try:
            guess = guess_datetime_format(morning, dayfirst=day_first)
        except (ValueError, TypeError, OverflowError):  # of text that is far from any date
            return None
    return guess if isinstance(guess, str) else None


def _all_dates(cells: pd.Series[Any], date_format: str) -> bool:
    import pandas as pd

    dates = pd.to_datetime(cells, format=date_format, errors="coerce", utc=True)
    return bool(dates.notna().all())
