"""Kinds of cells, and their values."""

import datetime
import string
from contextlib import nullcontext, suppress
from datetime import time
from io import StringIO
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from support.arrow import TEXT_TYPES
from support.tables import read_table
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.tables import TableColumns, table_pipeline
from vennforest.tables.cells import MISSING_MARKERS, CellColumn, number, text_as_floats


@pytest.mark.parametrize(("cells", "kind"), [
    ([1, 2, None], "number"), (["1", "2.5", " 3e4 "], "number"), (["1", "2", "x"], "text"),
    (["01234", "1234"], "text"), (["0", "-0.5", "00.5", "0e1"], "number"), (["1", " 07 "], "text"),
    (["1", "", "2"], "number"), (["1", " NA ", "2", b"3"], "number"),
    (["1", "None", "2"], "text"), ([True, None, False], "boolean"),
    (["True", None, "FALSE"], "boolean"), (["True", "0"], "text"),
    (["2020-01-02", "2020-02-03"], "date"), (["2020-01-02", "", "2020-02-03"], "date"),
    (["2020-01-02", "soon"], "text"), ([pd.Timestamp("2020-01-02"), None], "date"),
    ([pd.Timedelta(3, "s"), None], "number"), ([None, None], "empty"),
    (["", "n/a", None], "empty"), ([1, "x", 2.5], "text"),
    (["2021Q1", "2021q4 ", None], "date"), (["2021-Q1", "2021 Q2"], "date"),
    (["2021Q1", "2021Q5"], "text"), (["2021-W01", "2021-W02"], "text"),
    (pd.Categorical(["1", "2"]), "text"), (pd.Categorical(["", None]), "empty"),
])  # fmt: skip
def test_kinds(cells, kind):
    frame = pd.DataFrame({"c": pd.Series(cells), "d": range(len(cells))})
    assert TableColumns().fit(frame).kinds_[0] == kind


def test_durations_are_numbers_of_seconds():
    cells = pd.Series(pd.to_timedelta(["1h", None, "90s", "5ms"]))
    values = CellColumn(cells, "wait").read("number")
    np.testing.assert_array_equal(values, [3600, np.nan, 90, 0.005])


@pytest.mark.parametrize("cells", [
    pd.period_range("2020Q1", periods=3, freq="Q"),
    pd.period_range("2020-01", periods=3, freq="M"),
    [time(1, 5), time(2, 30, 7), None], [UUID(int=i) for i in range(3)],
    pd.IntervalIndex.from_breaks(range(4)), [True, False, None],
    pd.array([2**62, 1, None], "Int64"),
    pd.Series(pd.date_range("2020-01-01", periods=3, tz="Asia/Tokyo"), dtype=object),
    [pd.Timestamp("2020-01-01", tz="UTC"), pd.Timestamp("2020-01-01", tz="Asia/Tokyo"), None],
])  # fmt: skip
def test_a_type_is_the_same_in_every_library_and_as_text(cells):
    frame = pd.DataFrame({"c": cells})
    text = pd.read_csv(StringIO(frame.to_csv(index=False)), dtype=str)
    columns = TableColumns().fit(frame)
    expected = columns.transform(frame)
    tables = [text, frame.astype(object)]
    with suppress(pyarrow.ArrowInvalid) if isinstance(cells[0], UUID) else nullcontext():
        tables.append(pyarrow.Table.from_pandas(frame))  # older versions know no UUID
    for table in tables:
        assert TableColumns().fit(table).kinds_ == columns.kinds_
        pd.testing.assert_frame_equal(columns.transform(table), expected)


def test_times_of_day_are_the_same_with_and_without_zeros_at_the_end():
    cells = ["10:30:00.000000000", "10:30:00", "10:30:00.500000", "10:30:00.5", "10:30:01", "10:00"]
    read = CellColumn(pd.Series(cells), "t").read("text").tolist()
    assert read == ["10:30:00", "10:30:00", "10:30:00.5", "10:30:00.5", "10:30:01", "10:00"]
    typed = pyarrow.array([37_800_000, 37_800_500], pyarrow.time32("ms"))
    assert CellColumn(typed, "t").read("text").tolist() == ["10:30:00", "10:30:00.5"]


NUMBERS = st.text("0123456789.eE+-_ infaNxd\u00a0\t", max_size=6)


WORDS = st.one_of(
    st.sampled_from(
        [*MISSING_MARKERS, "None", "true", "False", "2020-01-02", "02/01/2020", "x", "?"]
    ),
    st.sampled_from(["-999", "-999.0", " -9.99e2", "?", "5"]),
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False).map(repr),
    st.text(string.ascii_letters + string.digits + " .-+_%", max_size=4),
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(WORDS, min_size=1, max_size=8),
    st.sampled_from([None, "1", "true", "x"]),
    st.sampled_from([[], ["?", "-999"]]),
)
def test_a_column_is_the_same_in_every_format(tmp_path_factory, cells, filled, missing):
    """CSV, Parquet, views of text, and data frames with the same cells have the same values."""
    if filled is not None:  # columns of one kind but for few cells come up by chance seldom
        cells = [filled if i % 3 else cell for i, cell in enumerate(cells)]
    folder = tmp_path_factory.mktemp("formats")
    frame = pd.DataFrame({"c": pd.Series(cells, dtype=object), "d": "k"})
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    view = pyarrow.table({"c": pyarrow.array(cells).cast(TEXT_TYPES[-1]), "d": frame["d"]})
    parquet.write_table(view, folder / "v.parquet")
    files = [folder / name for name in ("t.csv", "t.parquet", "v.parquet")]
    tables = [frame, *(read_table(file, (), missing) for file in files)]
    columns = TableColumns(missing=missing)
    learnt = [clone(columns).fit(table) for table in [*tables, pl.from_pandas(frame)]]
    assert len({str((one.kinds_, one.formats_)) for one in learnt}) == 1
    try:
        read = [learnt[0].transform(table) for table in tables]
    except InputError as error:
        assert "must contain numbers up to" in str(error)
        return
    for other in read[1:]:
        pd.testing.assert_series_equal(read[0]["c"].map(_stripped), other["c"].map(_stripped))


def _stripped(cell):
    return cell.strip() if isinstance(cell, str) else cell  # as text files are read


@settings(deadline=None, max_examples=50)
@given(st.lists(st.one_of(NUMBERS, st.floats().map(repr), st.integers().map(str)), max_size=5))
def test_numbers_are_those_that_python_reads(cells):
    expected = [number(cell) for cell in cells]
    floats = text_as_floats(pyarrow.array(cells, pyarrow.string()))
    if None in expected:
        assert floats is None
    else:
        np.testing.assert_array_equal(floats.to_numpy(zero_copy_only=False), expected)


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


ZONED = ["2026-01-01T00:00:00+02:00", "2026-06-01T00:00:00Z", None, "2026-01-01 10:00-0500"]
NAIVE = ["2026-01-01T00:00:00", "2026-06-01", None, "2026-01-01 10:00"]


def forms(cells, utc):
    """The same times as text, as pandas's and as Arrow's timestamps."""
    text = pd.Series(cells, dtype=object)
    dates = pd.to_datetime(text, format="ISO8601", utc=utc)
    return [text, dates, dates.convert_dtypes(dtype_backend="pyarrow")]


@pytest.mark.parametrize("utc", [True, False])
def test_training_decides_whether_times_have_a_zone(utc):
    right, wrong = (forms(ZONED, True), forms(NAIVE, False))[:: 1 if utc else -1]
    rule = "with a time zone" if utc else "without a time zone"
    for trained in right:
        columns = TableColumns().fit(pd.DataFrame({"seen": trained}))
        declared = TableColumns(columns.as_types()).fit(pd.DataFrame({"seen": trained}))
        expected = columns.transform(pd.DataFrame({"seen": right[0]}))
        for fitted in (columns, declared):
            for new in right:
                found = fitted.transform(pd.DataFrame({"seen": new}))
                pd.testing.assert_frame_equal(found, expected)
            for new in wrong:
                with pytest.raises(InputError, match=rf"column 'seen' .* {rule}, as in .* row 1"):
                    fitted.transform(pd.DataFrame({"seen": new}))


def test_a_mixture_is_no_column_of_times():
    X = pd.DataFrame({"seen": [*ZONED, NAIVE[0]]})
    with pytest.raises(InputError, match=r"that all have a time zone, or none, got .* in row 5"):
        TableColumns().fit(X)
    assert TableColumns({"seen": "text"}).fit(X).kinds_ == ["text"]


def test_every_fold_reads_a_column_as_all_rows_show_it():
    """One word among 120 numbers: a fold without it would take the column for numbers."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"code": rng.integers(1, 4, 120).astype(str), "size": rng.normal(size=120)})
    X.loc[17, "code"] = "x"
    y = (X["size"] + rng.normal(size=120) > 0).astype(int)
    forest = table_pipeline(RandomForestClassifier(10, random_state=0), random_state=0)
    for options in ({"calibrate_on": "cv", "ensemble": True}, {"calibrate_on": "holdout"}):
        model = CalibratedClassifier(forest, random_state=0, **options).fit(X, y)
        assert {fitted[0].kinds_[0] for fitted in model.estimators_} == {"text"}
        assert np.isfinite(model.predict_proba(X)).all()
