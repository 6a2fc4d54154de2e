"""Cells that are made to take long: time grows with their length and no faster."""

import time

import pandas as pd
import pytest

from vennforest.tables import screening
from vennforest.tables.cells import Column

MANY = 1_000_000
HOSTILE = {
    "spaces": lambda n: " " * n,
    "spaces, then a letter": lambda n: " " * n + "x",
    "a number, spaces, a letter": lambda n: "1" + " " * n + "x(",
    "limit and sign, spaces between": lambda n: "<" + " " * n + "-" + " " * n + "e",
    "unit, spaces, sign": lambda n: "EUR" + " " * n + "-" + " " * n + "(",
    "digits": lambda n: "1" * n,
    "digits, then a letter": lambda n: "1" * n + "x(",
    "digits and commas": lambda n: "1," * n + "(",
    "digits and spaces": lambda n: "1 " * n + "(",
    "an exponent": lambda n: "1e" + "5" * n + "(",
    "signs": lambda n: "-" * n,
    "points": lambda n: "1" + "." * n,
    "a date, then points": lambda n: "1-1" + "." * n + "x",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_million_letters_take_milliseconds(what):
    cell = HOSTILE[what](MANY)

    def seconds(work):
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    work = [
        lambda: screening.LIKE_NUMBER.match(cell),
        lambda: screening.LIKE_DATE.match(cell),
        lambda: screening.DAY_AND_MONTH.match(cell),
        lambda: Column(pd.Series([cell, "1"], dtype=object), "x").infer(),
    ]
    # A pattern of degree two would take hours.
    assert max(seconds(one) for one in work) < 2
