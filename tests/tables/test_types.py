"""Types that are declared: the cells that each reads and refuses."""

import json

import pandas as pd
import pytest

from support.tables import read_table
from vennforest._validation import InputError
from vennforest.tables import TableColumns
from vennforest.tables.cells import CellColumn
from vennforest.tables.target import split_target
from vennforest.tables.types import read_types


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
    assert list(dropped.X) == ["lab", "day"] and dropped.types == {}
    with pytest.raises(InputError, match="'y' must not be among"):
        split_target(frame, "y", types={"y": "text"})
