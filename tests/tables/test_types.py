"""Types that are declared: what each cell becomes, what is refused, and what is said of it."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from vennforest._validation import InputError  # noqa: E402
from vennforest.tables import TableColumns  # noqa: E402
from vennforest.tables.formats import COMMA, PLAIN, POINT, NumberFormat  # noqa: E402
from vennforest.tables.read import read_table  # noqa: E402
from vennforest.tables.target import split_target  # noqa: E402
from vennforest.tables.types import read_types, write_types  # noqa: E402

UNITS = ["", "€", "$", "EUR", "%", "‰", "mg/dl", "x10^9/l", "°C"]


def written(value, digits, unit, before, thousands, minus):
    """Write a decimal number as people do, from the rules of writing and nothing else."""
    whole, _, part = f"{abs(value):f}".partition(".")
    groups = []
    while len(whole) > 3:
        whole, last = whole[:-3], whole[-3:]
        groups.insert(0, last)
    text = thousands.join([whole, *groups]) + (("," if digits == COMMA else ".") + part) * bool(
        part
    )
    sign = minus if value < 0 else ""
    if unit and before:
        return f"{sign}{unit} {text}" if before == 1 else f"{unit}{sign}{text}"
    return f"{sign}{text} {unit}" if unit else sign + text


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.decimals(-(10**12), 10**12, places=4), min_size=1, max_size=6),
    st.sampled_from([PLAIN, POINT, COMMA]),
    st.sampled_from(UNITS),
    st.sampled_from([0, 0, 1, 2]),
    st.sampled_from(["", " ", "'", "’", "\u00a0", "\u202f", "usual"]),
    st.sampled_from("-−"),
    st.sampled_from(["", "<", "<= ", "> ", "≥"]),
)
def test_a_cell_is_the_number_that_was_written(
    values, digits, unit, before, thousands, minus, limit
):
    by = {"usual": {PLAIN: "", POINT: ",", COMMA: "."}[digits]}.get(thousands, thousands)
    before = before if len(unit) < 4 else 0
    cells = [limit + written(v, digits, unit, before, by, minus) for v in values]
    scale = {"%": Decimal("0.01"), "‰": Decimal("0.001")}.get(unit, 1)
    frame = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
    declared = f"number {digits} {unit}".strip()
    columns = TableColumns({"c": declared}).fit(frame)
    assert columns.as_types() == {"c": declared}
    expected = [float(v * scale) for v in values]
    assert columns.transform(frame)["c"].tolist() == expected
    parts = [columns.transform(frame.iloc[i : i + 1])["c"].item() for i in range(len(cells))]
    assert parts == expected
    if digits == COMMA and TableColumns().fit(frame).kinds_ == ["number"]:
        return  # 1.234, as it is guessed
    try:
        learnt = TableColumns({"c": "number"}).fit(frame)
    except InputError as error:
        assert "could be" in str(error)
        other = POINT if digits == COMMA else COMMA
        assert TableColumns({"c": f"number {other} {unit}"}).fit(frame)  # so it could
    else:
        assert learnt.transform(frame)["c"].tolist() == expected


@pytest.mark.parametrize(
    ("cells", "format_"),
    [
        (["1,234.5", "2"], POINT),
        (["1.234,5", "2"], COMMA),
        (["12,5", "2"], COMMA),
        (["1.234.567", "2"], COMMA),
        (["1,234,567"], POINT),
        (["1,23,456"], POINT),
        (["0.123", "1.5e3"], PLAIN),
        (["0,123"], COMMA),
        (["<5", "12"], PLAIN),
        (["1 234 567", "2"], PLAIN),
        (["$5", "-$1,000.0"], "1,234.5 $"),
        (["5 %", "0"], "1234.5 %"),
        ([1.5, "2"], PLAIN),
        ([1.5, 2], PLAIN),
    ],
)
def test_how_numbers_are_written_is_seen_from_all_cells(cells, format_):
    frame = pd.DataFrame({"c": pd.Series(cells), "d": 1})
    assert TableColumns({"c": "number"}).fit(frame).formats_[0] == format_


@pytest.mark.parametrize(
    ("cells", "declared", "message"),
    [
        (["1,234", "5,678"], "number", "'1,234' in column 'c' could be 1234 or 1.234"),
        (["1.234 €"], "number", "'1.234 €' in column 'c' could be 1.234 or 1234"),
        (
            ["1", "x"],
            "number",
            "'c' is declared as number and contains 'x' in row 2, which is none",
        ),
        (["5 €", "5 $"], "number", "contains '5 \\$' in row 2, which is none or written otherwise"),
        (["5 %", "5"], "number", "contains '5' in row 2"),
        (["12,5", "1,234.5"], "number", "contains '12,5' in row 1"),
        (["1,5"], "number 1,234.5", "contains '1,5' in row 1"),
        (["1234,567.5"], "number 1,234.5", "contains '1234,567.5'"),
        (["5-6"], "number", "contains '5-6'"),
        (["--5"], "number", "contains '--5'"),
        (["5 or 6"], "number", "contains '5 or 6'"),
        (["$5 €"], "number", "contains '\\$5 €'"),
        (["1e99"], "number", "must contain numbers up to"),
        (["12.05.2020"], "date %d/%m/%Y", "declared as date %d/%m/%Y and contains '12.05.2020'"),
        (["soon", "12.05.2020"], "date", "its cells share no format"),
        ([1.5], "date %Y%m%d", "contains 1.5 in row 1"),
        (["maybe"], "boolean", "contains 'maybe'"),
        ([0, 2], "boolean", "contains 2 in row 2"),
        (["1"], "duration", "contains '1'"),
        (["1"], "numbr", "must be number, date, category, text, boolean, duration or drop"),
        (["1"], "number 1,234", "a sample such as"),
        (["1"], "number x", "a sample such as"),
        (["1"], "date %Q", "where day, month and year stand"),
        (["1"], "date %d.%m.", "where day, month and year stand"),
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
            "money": ["1,234.5 €", "<7 €", None],
            "rate": ["12.5%", "0", "3 %"],
            "day": ["05.06.2020", "", "07.08.2020"],
            "ward": [1, 2, 1],
            "gone": ["a", "b", "c"],
        }
    )
    types = {"money": "number", "rate": "number", "day": "date %d.%m.%Y", "ward": "text",
             "gone": "drop"}  # fmt: skip
    columns = TableColumns(types).fit(frame)
    assert columns.get_feature_names_out().tolist() == ["money", "rate", "day", "ward"]
    found = columns.transform(frame.drop(columns="gone"))
    assert found["money"].tolist()[:2] == [1234.5, 7] and np.isnan(found["money"][2])
    assert found["rate"].tolist() == [0.125, 0, 0.03]
    assert found["day"].dt.month.tolist()[::2] == [6, 8]
    assert found["ward"].tolist() == ["1", "2", "1"]
    new = pd.DataFrame({"money": [5], "rate": [0.5], "day": ["01.02.2021"], "ward": [3.0]})
    assert columns.transform(new).iloc[0].tolist()[:2] == [5, 0.5]
    assert columns.transform(new)["ward"].item() == "3"
    again = columns.transform(new.assign(day=pd.Timestamp("2021-02-01"), ward="3"))
    pd.testing.assert_frame_equal(again, columns.transform(new))
    for name, cell in [("money", "5 $"), ("money", "1.234,5 €"), ("rate", "5"), ("day", "2021")]:
        written_like = columns.as_types()[name].split(" ", 1)[1]
        message = f"'{name}' held .* written like .* in training and now contains '.*' in row 1"
        with pytest.raises(InputError, match=message) as refused:
            columns.transform(new.astype({name: object}).assign(**{name: cell}))
        assert written_like in str(refused.value)
    assert columns.plain_numbers == ["rate"]
    again = TableColumns(columns.as_types()).fit(frame.drop(columns="gone"))
    assert (again.kinds_, again.formats_) == (columns.kinds_, columns.formats_)


def test_files_of_types(tmp_path):
    types = {"price": "number 1.234,5 €", "a b": "date %d.%m.%Y", "é": "drop"}
    write_types(tmp_path / "t.json", types)
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
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": [f"{v:,} €" for v in rng.permutation(10**5)[:n] + 10**4],
            "lab": ["<0.5", "<0.5", *np.round(rng.gamma(2, 2, n - 2), 2).astype(str)],
            "day": [f"{1 + i % 12:02d}/{1 + i * 5 % 12:02d}/2021" for i in range(n)],
            "visit": [f"V{i}" for i in range(n)],
            "y": ["u", "v"] * (n // 2),
        }
    )


def test_a_table_is_screened_as_it_is_declared(tmp_path):
    ugly().to_csv(tmp_path / "t.csv", index=False)
    parted = split_target(read_table(tmp_path / "t.csv"), "y")
    said = " ".join(parted.notes)
    assert """--types '{"income": "number 1,234.5"}' or --types '{"income": "number 1.""" in said
    assert """--types '{"lab": "number"}'""" in said
    assert """--types '{"day": "date %d/%m/%Y"}'""" in said
    assert list(parted.X.columns) == ["income", "lab", "day"]
    types = {"income": "number 1,234.5", "lab": "number", "day": "date %d/%m/%Y", "visit": "text"}
    parted = split_target(read_table(tmp_path / "t.csv", types), "y", types=types)
    assert parted.notes == ["In 'lab' 2 cells such as '<0.5' are taken for the limit, 0.5."]
    assert parted.types == types and list(parted.X.columns) == [*types]
    assert parted.X["lab"][0] == "<0.5"  # the pipeline reads it
    dropped = split_target(ugly(), "y", types={"income": "drop"})
    assert list(dropped.X.columns) == ["lab", "day"] and dropped.types == {}
    with pytest.raises(InputError, match="'y' must not be among the types"):
        split_target(ugly(), "y", types={"y": "text"})
    with pytest.raises(InputError, match="there is no declared column 'labs': did you mean 'lab'"):
        split_target(ugly(), "y", types={"labs": "number"})


def test_a_sample_says_how_numbers_are_written():
    for text, digits, unit in [
        ("1.234,5 €", COMMA, "€"), ("$1,234.50", POINT, "$"), ("12.5%", PLAIN, "%"),
        ("0,5", COMMA, ""), ("1'234.5 CHF", PLAIN, "CHF"), ("5", PLAIN, ""),
    ]:  # fmt: skip
        assert NumberFormat.parse(text) == NumberFormat(digits, unit)
        assert NumberFormat.parse(str(NumberFormat(digits, unit))) == NumberFormat(digits, unit)
