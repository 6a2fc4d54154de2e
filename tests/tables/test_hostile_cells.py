"""Cells that are made to take long: time grows with their length and no faster."""

import contextlib
import time

import pandas as pd
import pytest

from vennforest._validation import InputError
from vennforest.tables import screening
from vennforest.tables.cells import Column
from vennforest.tables.formats import CELL, POINT, NumberFormat, learn_format

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

    def declared():
        column = Column(pd.Series([cell, "1"], dtype=object), "x")
        with contextlib.suppress(InputError):
            column.learn_written("number", POINT)

    work = [
        lambda: CELL.fullmatch(cell),
        lambda: learn_format([cell, "1"], "x"),
        lambda: NumberFormat(POINT).read(cell),
        lambda: screening.LIKE_NUMBER.match(cell),
        lambda: screening.LIKE_DATE.match(cell),
        lambda: screening.DAY_AND_MONTH.match(cell),
        lambda: Column(pd.Series([cell, "1"], dtype=object), "x").learn(),
        declared,
    ]
    # A pattern of degree two would take hours.
    assert max(seconds(one) for one in work) < 2


def test_cells_longer_than_any_number_are_text():
    assert NumberFormat(POINT).read("1" * 101) is None
    assert NumberFormat(POINT).read(" " * 200 + "1,234.5 €") is None  # the unit is another
    found = NumberFormat(POINT, "€").read(" " * 200 + "- 1,234.5 €")
    assert found is not None and found.value == -1234.5 and found.unit == "€"
    column = pd.Series(["1-2-2020" + " " * 1000, "31-12-2020"], dtype=object)
    assert Column(column, "x").learn()[0] in ("text", "date")
