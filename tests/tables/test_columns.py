"""Kinds of columns, their cells as values, and the numbers that encode them."""

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
import skrub
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.base import clone

from support.arrow import TEXT_TYPES
from support.tables import read_table
from vennforest._validation import InputError
from vennforest.tables import TableColumns, TableEncoder
from vennforest.tables.cells import MISSING_MARKERS, CellColumn, number, text_as_floats

NOON = pd.Timestamp("2020-01-01 12:00")


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


def test_true_and_false_among_numbers_are_1_and_0_in_every_format():
    columns = TableColumns().fit(pd.DataFrame({"c": [0.5, 1, 0]}))
    for cells in ([True, False, None], ["True", "false ", None]):
        read = columns.transform(pd.DataFrame({"c": cells}))
        np.testing.assert_array_equal(read["c"], [1, 0, np.nan])
    with pytest.raises(InputError, match="must contain numbers, got 'yes' in row 2"):
        columns.transform(pd.DataFrame({"c": ["true", "yes"]}))


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


@pytest.mark.parametrize(("frame", "message"), [
    (np.ones((1, 2)), "X must be a pandas or polars DataFrame, got ndarray"),
    (pd.DataFrame({"a": ["no"], "t": ["x"]}, index=["q"]), "in row 'q'"),
    (pd.DataFrame({"a": [1.0], "t": [b"\xff"]}), "'t' must contain numbers, .* got binary"),
    (pd.DataFrame([[1, "x", 2]], columns=["a", "t", "a"]), "two of the name 'a'"),
    (pd.DataFrame({"a": [1.0]}), "the table lacks the column 't' of training"),
    (pd.DataFrame({"a": [1.0], " t": ["x"]}), "'t' of training: did you mean ' t'?"),
    (pd.DataFrame({"a": [1.0, 2.0], "t": pd.Series([NOON, NOON.tz_localize("UTC")], dtype=object)}),
     "'t' must contain times that all have a time zone, or none, got both"),
    (pd.DataFrame({"a": [np.inf], "t": "x"}), r"numbers up to 3.4e\+38, got inf in row 1"),
])  # fmt: skip
def test_tables_that_do_not_fit_are_refused(frame, message):
    columns = TableColumns().fit(pd.DataFrame({"a": [1.0], "t": ["x"]}))
    with pytest.raises(InputError, match=message):
        columns.transform(frame)
    for empty in (pd.DataFrame({"a": [None]}), pd.DataFrame(index=[0])):
        with pytest.raises(InputError, match="got empty ones only"):
            TableColumns().fit(empty)


def mixed_table(seed, n=300):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "number": rng.normal(size=n),
        "few": rng.choice(["x", "y", "ü", None], n),
        "two": rng.choice(["u", "v"], n),
        "two or none": rng.choice(["u", "v", None], n),
        "many": [f"firm {i} and {i % 7}" if i % 11 else None for i in rng.integers(0, 300, n)],
        "day": pd.date_range("2020-01-01", periods=n),
        "hour": pd.date_range("2020-01-01", periods=n, freq="7h"),
        "category": pd.Categorical(rng.choice(["p", "q", "r"], n)),
        "empty": None,
        "constant": "k",
        "boolean": rng.choice([True, False], n),
        "forty": [f"t{i % 40}" for i in range(n)],
        "word": rng.choice([None, "None", "?"], n),
        "later": np.where(np.arange(n) < 200, None, "x"),
    })  # fmt: skip
    frame.loc[3:50, ["day", "hour"]] = pd.NaT
    return frame[list(rng.permutation(frame.columns))]


@pytest.mark.parametrize("seed", range(2))
def test_the_encoder_does_what_skrub_does_with_columns_of_known_kinds(seed):
    read = TableColumns().fit_transform(mixed_table(seed))
    # As categories, text is not taken for numbers, dates or missing cells a second time.
    text = {name: read[name].astype("category") for name in read if read[name].dtype.kind == "O"}
    theirs = skrub.TableVectorizer(high_cardinality=skrub.StringEncoder(random_state=5))
    ours = TableEncoder(random_state=5)
    expected = theirs.fit_transform(read.assign(**text).iloc[:200])
    found = ours.fit_transform(read.iloc[:200])
    assert ours.get_feature_names_out().tolist() == list(expected.columns)
    assert ours.sources_.tolist() == [theirs.output_to_input_[name] for name in expected.columns]
    assert {ours.encodings_["empty"], ours.encodings_["later"]} == {"empty"}
    np.testing.assert_array_equal(found, expected.to_numpy(np.float32))
    expected = theirs.transform(read.assign(**text).iloc[200:])
    np.testing.assert_array_equal(ours.transform(read.iloc[200:]), expected.to_numpy(np.float32))


def test_rows_are_encoded_alone_as_together():
    frame = mixed_table(9)
    columns = TableColumns().fit(frame)
    encoder = TableEncoder(random_state=0).fit(columns.transform(frame.iloc[:150]))
    together = encoder.transform(columns.transform(frame))
    for i in (0, 7, 40, 299):  # some of their cells are missing, some not met before
        alone = encoder.transform(columns.transform(frame.iloc[[i]]))
        np.testing.assert_allclose(alone[0], together[i], rtol=1e-5, atol=1e-6)
    assert encoder.transform(columns.transform(frame.iloc[:0])).shape == (0, together.shape[1])


def test_numbers_read_together_are_read_as_one_by_one():
    """A block of numbers is read as its columns would be one by one."""
    rng = np.random.default_rng(0)
    kinds = [np.float64, np.float32, np.int8, np.uint64, np.int64, "Int64", "boolean", object, str]
    for _ in range(20):
        table = pd.DataFrame({"full": np.arange(5.0)})
        for i in range(int(rng.integers(1, 9))):
            cells = pd.Series(rng.integers(0, 2, 5)).astype(kinds[rng.integers(len(kinds))])
            if cells.dtype.kind == "f":
                cells[rng.random(5) < rng.choice([0, 0.5, 1])] = np.nan
            table[f"c{i}"] = cells
        columns = TableColumns().fit(table)
        read = columns.transform(table[list(rng.permutation(table.columns))].assign(other=1.0))
        for name, kind, date_format in columns._learnt():
            column = CellColumn(table[name], name)
            assert column.infer() == (kind, date_format)
            np.testing.assert_array_equal(read[name], column.read(kind, date_format))
