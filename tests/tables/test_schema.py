"""What columns contain, inferred or declared, and columns of new tables read as in training."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from support.tables import read_table
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.tables import TableColumns, table_pipeline
from vennforest.tables.read import CellColumn
from vennforest.tables.schema import ColumnSchema, infer, read_types
from vennforest.tables.target import split_target

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


def test_true_and_false_among_numbers_are_1_and_0_in_every_format():
    columns = TableColumns().fit(pd.DataFrame({"c": [0.5, 1, 0]}))
    for cells in ([True, False, None], ["True", "false ", None]):
        read = columns.transform(pd.DataFrame({"c": cells}))
        np.testing.assert_array_equal(read["c"], [1, 0, np.nan])
    with pytest.raises(InputError, match="must contain numbers, got 'yes' in row 2"):
        columns.transform(pd.DataFrame({"c": ["true", "yes"]}))


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


@pytest.mark.parametrize(("options", "message"), [
    ({"missing": "n.d."}, "missing must be a list of text, got 'n.d.'"),
    ({"missing": [-999]}, r"missing must be a list of text, got \[-999\]"),
    ({"decimal": ";"}, "decimal must be one of"), ({"types": ["a"]}, "types must be columns"),
])  # fmt: skip
def test_options_that_mean_something_else_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        TableColumns(**options).fit(pd.DataFrame({"a": ["1"]}))


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
            assert infer(column) == ColumnSchema(kind, date_format)
            np.testing.assert_array_equal(read[name], column.read(kind, date_format))


@pytest.mark.parametrize(("cells", "declared", "message"), [
    (["1", "x"], "number", "'c' must contain numbers, got 'x' in row 2"),
    (["1e99"], "number", "must contain numbers up to"),
    (["12.05.2020"], "date %d/%m/%Y", "dates written like %d/%m/%Y, got '12.05.2020'"),
    (["soon", "12.05.2020"], "date", "must contain dates written like 2021-12-31, got 'soon'"),
    (["maybe"], "boolean", "must contain booleans, got 'maybe'"),
    (["1"], "numbr", "must be number, date, .* or drop, got 'numbr'"),
    (["1"], "date %Q", "must be date and a format such as %d.%m.%Y, got 'date %Q'"),
    (["1"], "drop", "must have a column with values"),
])  # fmt: skip
def test_cells_and_types_that_do_not_fit_are_refused(cells, declared, message):
    with pytest.raises(InputError, match=message) as refused:
        TableColumns({"c": declared}).fit(pd.DataFrame({"c": pd.Series(cells)}))
    assert "\n" not in str(refused.value)


def test_a_column_of_booleans_has_words_for_each():
    cells = ["true", "1", "1.0", "YES", " y", "T", None, "False", "0", "0.0", "no", "N", "f"]
    values = CellColumn(pd.Series(cells), "c").read("boolean")
    assert [*values[:6], *values[7:]] == [1.0] * 6 + [0.0] * 6 and values[6] != values[6]


def test_types_are_of_columns_of_the_table():
    frame = pd.DataFrame({"price": ["1"], "d": ["2"]})
    with pytest.raises(InputError, match="no column 'prize': did you mean 'price'"):
        TableColumns({"prize": "number"}).fit(frame)
    with pytest.raises(InputError, match="types must be columns and what they contain"):
        TableColumns(["price"]).fit(frame)


def test_new_cells_are_read_as_those_of_training():
    frame = pd.DataFrame({
        "rate": ["12.5", "0", " 3 "],
        "day": ["05.06.2020", "", "07.08.2020"],
        "ward": [1, 2, 1],
        "gone": ["a", "b", "c"],
    })  # fmt: skip
    types = {"rate": "number", "day": "date %d.%m.%Y", "ward": "category", "gone": "drop"}
    columns = TableColumns(types).fit(frame)
    table = columns.transform(frame.drop(columns="gone"))
    assert list(table) == ["rate", "day", "ward"] and columns.numbers == ["rate"]
    assert table["rate"].tolist() == [12.5, 0, 3]
    assert table["day"].dt.month.tolist()[::2] == [6, 8]
    assert table["ward"].tolist() == ["1", "2", "1"]
    new = pd.DataFrame({"rate": [0.5], "day": ["01.02.2021"], "ward": [3.0]})
    typed = new.assign(day=pd.Timestamp("2021-02-01"), ward="3")
    pd.testing.assert_frame_equal(columns.transform(typed), columns.transform(new))
    for name, cell in [("rate", "5 %"), ("rate", "1,5"), ("day", "2021")]:
        with pytest.raises(InputError, match=f"'{name}' must contain .*, got '{cell}' in row 1"):
            columns.transform(new.astype({name: object}).assign(**{name: cell}))
    again = TableColumns(columns.as_types()).fit(frame.drop(columns="gone"))
    assert (again.kinds_, again.formats_) == (columns.kinds_, columns.formats_)


def test_numbers_in_a_column_of_text_are_text_in_every_format():
    columns = TableColumns().fit(pd.DataFrame({"code": ["a", "7"]}))
    assert columns.transform(pd.DataFrame({"code": [7.0, None]}))["code"].tolist() == ["7", None]


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", r"got \[1\]"), ("a = 1", "types must be JSON of columns"), (None, "there is no file")],
)
def test_files_of_types(tmp_path, content, message):
    types = {"price": "number", "a b": "date %d.%m.%Y", "é": "drop"}
    (tmp_path / "t.json").write_text(json.dumps(types), "utf-8")
    assert read_types(tmp_path / "t.json") == types
    if content is not None:
        (tmp_path / "bad.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_types(tmp_path / "bad.json")


def test_a_table_is_screened_as_it_is_declared(tmp_path):
    n = 40
    frame = pd.DataFrame({
        "income": [f"{10**4 + 937 * v:,} €" for v in range(n)],
        "lab": ["n.d.", "n.d.", *[str(v / 4) for v in range(n - 2)]],
        "day": [f"{1 + i % 12:02d}/{1 + i * 5 % 12:02d}/2021" for i in range(n)],
        "visit": [f"V{i}" for i in range(n)],
        "y": ["u", "v"] * (n // 2),
    })  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    labelled = split_target(read_table(tmp_path / "t.csv"), "y")
    notes = " ".join(labelled.notes)
    assert "write plain numbers with a decimal point" in notes
    assert "'n.d.': if these stand for missing values, say so with --missing=n.d." in notes
    assert """--types '{"day": "date %d/%m/%Y"}'""" in notes
    assert list(labelled.X) == ["income", "lab", "day"]
    types = {"income": "text", "lab": "number", "day": "date %d/%m/%Y", "visit": "text"}
    table = read_table(tmp_path / "t.csv", types, ["n.d."])
    labelled = split_target(table, "y", types=types)
    assert labelled.notes == [] and labelled.types == types and list(labelled.X) == [*types]
    dropped = split_target(frame, "y", types={"income": "drop"})
    inferred = {"lab": "text", "day": "date %m/%d/%Y"}
    assert list(dropped.X) == ["lab", "day"] and dropped.types == inferred
    with pytest.raises(InputError, match="'y' must not be among"):
        split_target(frame, "y", types={"y": "text"})
