"""Types that are declared: what each cell becomes, what is refused, and what is said of it."""

import json

import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from vennforest._validation import InputError  # noqa: E402
from vennforest.tables import TableColumns  # noqa: E402
from vennforest.tables.read import read_table  # noqa: E402
from vennforest.tables.target import split_target  # noqa: E402
from vennforest.tables.types import check_types, read_types  # noqa: E402


@pytest.mark.parametrize(
    ("cells", "declared", "message"),
    [
        (
            ["1", "x"],
            "number",
            "'c' is declared as number and contains 'x' in row 2, which is none",
        ),
        (["5", "5 %"], "number", "contains '5 %' in row 2"),
        (["5 or 6"], "number", "contains '5 or 6'"),
        (["1e99"], "number", "must contain numbers up to"),
        (["12.05.2020"], "date %d/%m/%Y", "declared as date %d/%m/%Y and contains '12.05.2020'"),
        (["soon", "12.05.2020"], "date", "its cells share no format"),
        ([1.5], "date %Y%m%d", "contains 1.5 in row 1"),
        (["maybe"], "boolean", "contains 'maybe'"),
        ([0, 2], "boolean", "contains 2 in row 2"),
        (["1"], "numbr", "must be number, date, category, text, boolean or drop"),
        (["1"], "date %Q", "where day, month and year stand"),
        (["1"], "date %d.%m.", "where day, month and year stand"),
        (["1"], "number 1.234,5 €", "must be 'number' alone"),
        (["1"], "category x", "must be 'category' alone"),
        (["1"], "drop", "X must have at least one column"),
        (["1"], 5, "got 5 for 'c'"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(cells, declared, message):
    with pytest.raises(InputError, match=message) as refused:
        TableColumns({"c": declared}).fit(pd.DataFrame({"c": pd.Series(cells)}))
    assert "\n" not in str(refused.value)


def test_unknown_columns_and_other_forms_are_refused():
    frame = pd.DataFrame({"price": ["1"], "d": ["2"]})
    with pytest.raises(InputError, match="got 'prize': did you mean 'price'"):
        TableColumns({"prize": "number"}).fit(frame)
    with pytest.raises(InputError, match="types must contain columns and what they contain"):
        TableColumns(["price"]).fit(frame)


def test_new_cells_are_read_as_those_of_training():
    frame = pd.DataFrame(
        {
            "rate": ["12.5", "0", " 3 "],
            "day": ["05.06.2020", "", "07.08.2020"],
            "ward": [1, 2, 1],
            "gone": ["a", "b", "c"],
        }
    )
    types = {"rate": "number", "day": "date %d.%m.%Y", "ward": "text", "gone": "drop"}
    columns = TableColumns(types).fit(frame)
    assert columns.get_feature_names_out().tolist() == ["rate", "day", "ward"]
    read = columns.transform(frame.drop(columns="gone"))
    assert read["rate"].tolist() == [12.5, 0, 3]
    assert read["day"].dt.month.tolist()[::2] == [6, 8]
    assert read["ward"].tolist() == ["1", "2", "1"]
    new = pd.DataFrame({"rate": [0.5], "day": ["01.02.2021"], "ward": [3.0]})
    assert columns.transform(new)["ward"].item() == "3"
    again = columns.transform(new.assign(day=pd.Timestamp("2021-02-01"), ward="3"))
    pd.testing.assert_frame_equal(again, columns.transform(new))
    for name, cell in [("rate", "5 %"), ("rate", "1,5"), ("day", "2021")]:
        message = f"'{name}' held .* in training and now contains '.*' in row 1"
        with pytest.raises(InputError, match=message):
            columns.transform(new.astype({name: object}).assign(**{name: cell}))
    assert columns.numbers == ["rate"]
    again = TableColumns(columns.as_types()).fit(frame.drop(columns="gone"))
    assert (again.kinds_, again.formats_) == (columns.kinds_, columns.formats_)


def test_files_of_types(tmp_path):
    types = {"price": "number", "a b": "date %d.%m.%Y", "é": "drop"}
    (tmp_path / "t.json").write_text(json.dumps(types), "utf-8")
    assert read_types(tmp_path / "t.json") == types
    for content, message in [
        ('{"a": "number", "a": "text"}', "stands there twice"),
        ("[1]", "got \\[1\\]"),
        ('{"a": {"kind": "number"}}', "for 'a'"),
        ("a = 1", "got text with a fault"),
        ("[" * 100_000, "lists within lists"),
        ('{"a": "numbers"}', "must be number, date"),
    ]:
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(InputError, match=message):
            read_types(tmp_path / "bad.json")
    with pytest.raises(InputError, match="there is no file of types"):
        read_types(tmp_path / "none.json")


def ugly(n=40):
    return pd.DataFrame(
        {
            "income": [f"{10**4 + 937 * v:,} €" for v in range(n)],
            "lab": ["n.d.", "n.d.", *[str(v / 4) for v in range(n - 2)]],
            "day": [f"{1 + i % 12:02d}/{1 + i * 5 % 12:02d}/2021" for i in range(n)],
            "visit": [f"V{i}" for i in range(n)],
            "y": ["u", "v"] * (n // 2),
        }
    )


def test_a_table_is_screened_as_it_is_declared(tmp_path):
    ugly().to_csv(tmp_path / "t.csv", index=False)
    labelled = split_target(read_table(tmp_path / "t.csv"), "y")
    notes = " ".join(labelled.notes)
    assert "write plain numbers with a decimal point" in notes
    assert "if 'n.d.' stand for missing values, say so with --missing n.d." in notes
    assert """--types '{"day": "date %d/%m/%Y"}'""" in notes
    assert list(labelled.X.columns) == ["income", "lab", "day"]
    types = {"income": "text", "lab": "number", "day": "date %d/%m/%Y", "visit": "text"}
    table = read_table(tmp_path / "t.csv", types, ["n.d."])
    labelled = split_target(table, "y", types=types)
    assert labelled.notes == []
    assert labelled.types == types and list(labelled.X.columns) == [*types]
    dropped = split_target(ugly(), "y", types={"income": "drop"})
    assert list(dropped.X.columns) == ["lab", "day"] and dropped.types == {}
    with pytest.raises(InputError, match="'y' must not be among the types"):
        split_target(ugly(), "y", types={"y": "text"})
    with pytest.raises(InputError, match="there is no declared column 'labs': did you mean 'lab'"):
        split_target(ugly(), "y", types={"labs": "number"})


def test_types_that_are_none():
    with pytest.raises(InputError, match="must say where day, month and year stand"):
        check_types({"X0": "date %Y%Y"})
    with pytest.raises(InputError, match="--types must contain columns"):
        read_types('{"a": ')
    with pytest.raises(InputError, match=r"lists within lists|with a fault"):
        read_types('{"a":' + "[" * 200_000)
