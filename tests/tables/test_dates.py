"""Whether text is dates, and in which format: a matter of all cells, and of no draw of some."""

import datetime
import warnings

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from vennforest._validation import InputError  # noqa: E402
from vennforest.tables.columns import TableColumns  # noqa: E402

FORMATS = [
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%Y-%m",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%d %H:%M:%S.%f",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
]


def learnt(cells):
    columns = TableColumns().fit(pd.DataFrame({"c": pd.Series(cells, dtype=object)}))
    return columns.kinds_[0], columns.formats_[0]


def kept(moment, written):
    """Return what a format keeps of a moment, as Python reads it back."""
    moment = datetime.datetime.strptime(moment.strftime(written), written)
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment


@pytest.mark.parametrize("written", FORMATS)
def test_dates_are_dates_whatever_the_number_of_rows(written):
    rng = np.random.default_rng(0)
    start = datetime.datetime(2015, 1, 1, 20, 15, 3, 250_000, tzinfo=datetime.UTC)
    moments = [start + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**9, 300)]
    moments.insert(0, datetime.datetime(2016, 5, 25, 20, 16, 20, 5, tzinfo=datetime.UTC))
    cells = [moment.strftime(written) for moment in moments]
    assert any(moment.day > 12 for moment in moments[:1])  # so that the format is the only one
    for n in (1, 2, 3, 29, 30, 31, 100, 301):
        for some in (cells[:n], cells[:n][::-1]):
            kind, found = learnt(some)
            assert kind == "date" and kept(moments[0], found) == kept(moments[0], written)
    table = pd.DataFrame({"c": cells})
    read = TableColumns().fit(table).transform(table)["c"]
    assert read.tolist() == [pd.Timestamp(kept(moment, written)) for moment in moments]


@pytest.mark.parametrize("time", ["20:15", "20:15:25", "20:15:25.5"])
def test_a_time_may_look_like_the_year(time):
    """In pandas before 3 the format of 2015-05-15 20:15:25 is not seen."""
    for n in (1, 50):
        assert learnt([f"2015-05-15 {time}"] * n)[0] == "date"


@pytest.mark.parametrize("place", [0, 1, 57, 199])
def test_one_cell_tells_the_day_from_the_month(place):
    """Wherever it stands: 30 cells, by which skrub decides, need not hold it."""
    rng = np.random.default_rng(1)
    day, month = rng.integers(1, 13, (2, 200))
    cells = [f"{d:02d}/{m:02d}/2020" for d, m in zip(day, month, strict=True)]
    assert learnt(cells) == ("date", "%m/%d/%Y")
    for unlike, expected in (("25/06/2020", "%d/%m/%Y"), ("06/25/2020", "%m/%d/%Y")):
        cells[place] = unlike
        assert learnt(cells) == ("date", expected)
    cells[place] = "31/06/2020"  # no such day
    assert learnt(cells) == ("text", None)


def test_no_day_between_year_and_month():
    """2020-25-06 among dates that could all be read like that is a slip, and no format."""
    assert learnt(["2020-05-06"] * 40 + ["2020-25-06"]) == ("text", None)


def test_months_that_are_abbreviations_of_themselves():
    cells = ["1 May 2020"] * 50 + ["1 June 2020"]
    assert learnt(cells)[0] == "date"
    assert learnt(["1 May 2020"] * 50 + ["1 Jun 2020"])[0] == "date"


@pytest.mark.parametrize(
    "cells",
    [
        ["2020-01-01", "soon"],
        ["2020-01-01", "02/01/2020"],
        ["May", "June"],
        ["10:30", "12:45"],
        ["now", "today"],
        ["1.2.3", "2.2.3"],
        ["a"] * 30 + ["2020-01-01"],
        ["2020-01-01"] * 2000 + ["a"],
    ],
)
def test_what_is_no_date(cells):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert learnt(cells) == ("text", None)
        assert learnt(cells[::-1]) == ("text", None)


def test_fit_and_predict_agree():
    """Whatever is a date in training is one afterwards, and everything else is refused."""
    rng = np.random.default_rng(2)
    pieces = ["2020-01-02", "02/01/2020", "13/01/2020", "1 May 2020", "x", "2020-1-2", "20:20"]
    n_dates = 0
    for _ in range(300):
        chosen = rng.choice(pieces, rng.integers(1, 4), replace=False)
        cells = rng.choice(chosen, rng.integers(1, 9))
        table = pd.DataFrame({"c": cells.astype(object)})
        columns = TableColumns().fit(table)
        n_dates += columns.kinds_ == ["date"]
        assert len(columns.transform(table)) == len(cells)
        assert learnt(cells[rng.permutation(len(cells))]) == (
            columns.kinds_[0],
            columns.formats_[0],
        )
        if columns.kinds_ == ["date"]:
            with pytest.raises(InputError, match="held dates written like"):
                columns.transform(pd.DataFrame({"c": ["x"]}))
    assert 50 < n_dates < 250
