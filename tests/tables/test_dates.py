"""Text is dates if all of its cells are, in one format."""

import datetime

import numpy as np
import pandas as pd
import pytest

from vennforest.tables.columns import TableColumns

FORMATS = [
    "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d %B %Y", "%d %b %Y",
    "%B %d, %Y", "%Y-%m", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%d %H:%M:%S.%f", "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p",
]  # fmt: skip


def learnt(cells):
    columns = TableColumns().fit(pd.DataFrame({"c": pd.Series(cells, dtype=object)}))
    return columns.kinds_[0], columns.formats_[0]


@pytest.mark.parametrize("date_format", FORMATS)
def test_dates_are_recognised_whatever_the_number_of_rows(date_format):
    rng = np.random.default_rng(0)
    start = datetime.datetime(2016, 5, 25, 20, 15, 3, 250_000, tzinfo=datetime.UTC)
    moments = [start + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**9, 300)]
    cells = [moment.strftime(date_format) for moment in [start, *moments]]
    for n in (1, 2, 31, 301):
        assert learnt(cells[:n])[0] == "date"
    table = pd.DataFrame({"c": cells})
    dates = TableColumns().fit(table).transform(table)["c"]
    expected = [datetime.datetime.strptime(cell, date_format) for cell in cells]
    assert dates.tolist() == [pd.Timestamp(moment.replace(tzinfo=None)) for moment in expected]


@pytest.mark.parametrize("place", [0, 57, 199])
@pytest.mark.parametrize(("cell", "expected"), [
    ("05/06/2020", ("date", "%m/%d/%Y")),
    ("25/06/2020", ("date", "%d/%m/%Y")),
    ("06/25/2020", ("date", "%m/%d/%Y")),
    ("31/06/2020", ("text", None)),  # no such day
])  # fmt: skip
def test_one_cell_tells_the_day_from_the_month(place, cell, expected):
    day, month = np.random.default_rng(1).integers(1, 13, (2, 200))
    cells = [f"{d:02d}/{m:02d}/2020" for d, m in zip(day, month, strict=True)]
    cells[place] = cell
    assert learnt(cells) == expected


@pytest.mark.parametrize("cells", [
    ["2020-01-01", "soon"], ["2020-01-01", "02/01/2020"], ["2020-05-06"] * 40 + ["2020-25-06"],
    ["May", "June"], ["10:30", "12:45"], ["2020-01-01", "today"], ["1.2.3", "2.2.3"],
    ["2020-01-01"] * 2000 + ["a"],
])  # fmt: skip
def test_text_in_several_formats_is_no_date(cells):
    assert learnt(cells) == learnt(cells[::-1]) == ("text", None)
