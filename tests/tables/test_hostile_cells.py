"""Cells that are made to take long: time grows with their length and no faster."""

import time

import pandas as pd
import pytest

from vennforest.tables import screening
from vennforest.tables.cells import Column

N = 1_000_000
CELLS = {
    "spaces": " " * N,
    "a number, spaces, a letter": "1" + " " * N + "x(",
    "limit and sign, spaces between": "<" + " " * N + "-" + " " * N + "e",
    "digits, then a letter": "1" * N + "x(",
    "digits and commas": "1," * N + "(",
    "digits and spaces": "1 " * N + "(",
    "an exponent": "1e" + "5" * N + "(",
    "signs": "-" * N,
    "points": "1" + "." * N,
    "a date, then points": "1-1" + "." * N + "x",
}


@pytest.mark.parametrize("name", CELLS)
def test_a_million_letters_take_milliseconds(name):
    cell = CELLS[name]
    for work in (
        lambda: screening.LIKE_NUMBER.match(cell),
        lambda: screening.LIKE_DATE.match(cell),
        lambda: Column(pd.Series([cell, "1"], dtype=object), "x").infer(),
    ):
        start = time.perf_counter()
        work()
        assert time.perf_counter() - start < 2  # a pattern of degree two would take hours
