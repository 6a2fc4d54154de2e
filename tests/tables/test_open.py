"""Tables in files of every format, and files that are no tables."""

import gzip

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import feather, parquet

from support.arrow import TEXT_TYPES
from support.tables import read_table
from vennforest._validation import InputError
from vennforest.batch import BatchPredictor
from vennforest.calibrators import PlattScaling
from vennforest.tables import TableColumns
from vennforest.tables.open import TableFile, TableFormat
from vennforest.tables.schema import find_name
from vennforest.tables.target import LabelledScores, split_target

TABLE = pd.DataFrame({
    "number": [1.5, 2.25, np.nan, -4.0],
    "text": ["a,b", 'say "x"', None, "ü; ¥"],
    "whole": [1, 2, 3, 4],
    "label": ["yes", "no", "yes", "None"],
})  # fmt: skip
WRITERS = {
    "comma": lambda path: TABLE.to_csv(path, index=False),
    "semicolon": lambda path: TABLE.to_csv(path, sep=";", index=False),
    "tab": lambda path: TABLE.to_csv(path, sep="\t", index=False),
    "bar": lambda path: TABLE.to_csv(path, sep="|", index=False),
    "packed.gz": lambda path: TABLE.to_csv(path, index=False, compression="gzip"),
    "mark": lambda path: TABLE.to_csv(path, index=False, encoding="utf-8-sig"),
    "latin": lambda path: TABLE.to_csv(path, index=False, encoding="cp1252"),
    "parquet": lambda path: TABLE.to_parquet(path, index=False),
    "indexed": lambda path: TABLE.set_index("number").to_parquet(path),
    "feather": lambda path: feather.write_feather(TABLE, str(path)),
    "excel.xlsx": lambda path: TABLE.to_excel(path, index=False, engine="openpyxl"),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_gives_the_same_table(tmp_path, kind):
    if kind == "excel.xlsx":
        pytest.importorskip("openpyxl")
    WRITERS[kind](tmp_path / kind)
    (tmp_path / kind).rename(tmp_path / "t")  # the content tells the format, not the name
    table = read_table(tmp_path / "t")[list(TABLE)]
    np.testing.assert_array_equal(table["number"], TABLE["number"])
    np.testing.assert_array_equal(table["whole"], TABLE["whole"])
    for name in ("text", "label"):
        cells = [[None if pd.isna(v) else v for v in frame[name]] for frame in (table, TABLE)]
        assert cells[0] == cells[1]


def test_a_sheet_of_names_alone_is_a_table_without_rows(tmp_path):
    pytest.importorskip("openpyxl")
    TABLE[:0].to_excel(tmp_path / "t.xlsx", index=False)
    table = TableFile(tmp_path / "t.xlsx")
    assert table.names == list(TABLE) and table.n_rows == 0
    with pytest.raises(InputError, match="must have rows, got the names of"):
        read_table(tmp_path / "t.xlsx")


BAD = {
    "empty": (b"", "is empty"),
    "no rows": (b"a,b\n", "must have rows"),
    "a zero byte far behind": (b"a,b\n" + b"12,34\n" * 100_000 + b"\x00", "is not a table"),
    "zip": (b"PK\x03\x04" + bytes(40), "cannot be read as a workbook"),
    "parquet": (b"PAR1 nothing of the kind", "cannot be read"),
    "arrow": (b"ARROW1\x00\x00 nothing", "cannot be read"),
    "twice": (b"a,b,a\n1,2,3\n", "several columns called 'a'"),
    "long row": (b"a,b\n1,2\n3,4,5,6\n", "cannot be read: .* columns, got 4"),
    "short row": (b"a,b,c\n1,2,3\n4,5\n6,7,8\n", "cannot be read: .* columns, got 2"),
    "open quote": (b'a,b\n1,2\n3,"4\n5,6\n', "a quotation mark is never closed"),
    "cut.gz": (gzip.compress(b"a,b\n" + bytes(9999))[:-20], "cannot be read|is not a table"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_table_is_refused_in_one_sentence(tmp_path, name):
    content, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*data.csv"):
        read_table(tmp_path / "data.csv")
    with pytest.raises(InputError, match="there is no Parquet file in"):
        read_table(tmp_path)


def test_columns_that_are_not_in_the_table_are_refused():
    table = pd.DataFrame({"Diagnosis": [1], "age": [2]})
    assert find_name(table.columns, "age") == "age"
    with pytest.raises(InputError, match="did you mean 'Diagnosis'"):
        find_name(table.columns, "diagnosys")
    with pytest.raises(InputError, match="there are 'Diagnosis', 'age'"):
        find_name(table.columns, "zzz")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("offset", [2**53, -(2**54), 2**62])
def test_large_labels_keep_all_their_digits(tmp_path, kind, gap, offset):
    """As floats the first two would be one."""
    labels = [offset + i % 3 for i in range(30)]
    cells = [None if gap and i == 4 else label for i, label in enumerate(labels)]
    table = pyarrow.table({"x": np.arange(30.0), "y": pyarrow.array(cells)})
    if kind == "parquet":
        parquet.write_table(table, tmp_path / "t")
    else:
        lines = (f"{i}.5,{'' if cell is None else cell}" for i, cell in enumerate(cells))
        (tmp_path / "t").write_text("\n".join(["x,y", *lines]))
    labelled = split_target(read_table(tmp_path / "t"), "y", screened=False)
    assert list(map(str, labelled.y)) == [str(cell) for cell in cells if cell is not None]
    assert labelled.y.dtype.kind == "i"


@pytest.mark.parametrize(
    "kind", [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary(4), TEXT_TYPES[-1]]
)
def test_bytes_are_the_text_they_contain(tmp_path, kind):
    words = ["rote", "blau", None, "1.50"] * 8
    values = words if "string" in str(kind) else [word and word.encode() for word in words]
    parquet.write_table(pyarrow.table({"word": pyarrow.array(values, kind)}), tmp_path / "t")
    table = read_table(tmp_path / "t")
    assert TableColumns().fit_transform(table)["word"].tolist() == words
    digits = ["1.50" if word is None or "string" in str(kind) else b"1.50" for word in words]
    digits = [None if word is None else digit for word, digit in zip(words, digits, strict=True)]
    parquet.write_table(pyarrow.table({"digits": pyarrow.array(digits, kind)}), tmp_path / "t")
    read = TableColumns().fit_transform(read_table(tmp_path / "t"))["digits"]
    assert read.tolist() == [1.5, 1.5, pytest.approx(np.nan, nan_ok=True), 1.5] * 8


def test_columns_that_cannot_be_read_are_refused_if_they_are_used(tmp_path):
    frame = pd.DataFrame({"raw": [b"\xff\xfe", b"\x00\x01"] * 4, "list": [[1]] * 8, "x": range(8)})
    frame.assign(y=["a", "b"] * 4).to_parquet(tmp_path / "t")
    table = read_table(tmp_path / "t")
    assert list(split_target(table, "y", ["raw", "list"]).X) == ["x"]
    for unused in ("raw", "list"):
        with pytest.raises(InputError, match="must contain numbers, dates or text, got"):
            TableColumns().fit(split_target(table, "y", [unused]).X)


def test_files_of_a_table_may_have_more_columns_than_the_first(tmp_path):
    parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "1.parquet")
    more = pyarrow.table({"more": [0.5], "b": pyarrow.array(["z"]).dictionary_encode(), "a": [2.5]})
    parquet.write_table(more, tmp_path / "2.parquet")
    expected = pd.DataFrame({"a": [1, 2, 2.5], "b": ["x", "y", "z"]})
    pd.testing.assert_frame_equal(read_table(tmp_path), expected)
    for columns, message in (
        ({"a": ["x"], "b": ["x"]}, "must be of one type in all files"),
        ({"a": [1]}, "got none called 'b'"),
    ):
        parquet.write_table(pyarrow.table(columns), tmp_path / "3.parquet")
        with pytest.raises(InputError, match=message):
            read_table(tmp_path)


def test_batches_are_the_rows_in_their_order(tmp_path):
    rng = np.random.default_rng(0)
    n = 150_000
    table = pd.DataFrame({"n": rng.normal(size=n), "t": rng.choice(["x", "", 'q"', "a\nb"], n)})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet", row_group_size=40_000)
    for name in ("t.csv", "t.parquet"):
        batches = list(TableFile(tmp_path / name).batches(["t", "n"]))
        rows = pyarrow.Table.from_batches(batches)
        assert rows.column_names == ["t", "n"]
        assert name.endswith("csv") or len(batches) > 2
        np.testing.assert_array_equal(rows["n"].cast("float64"), table["n"])
        assert [t or "" for t in rows["t"].to_pylist()] == table["t"].tolist()


def test_names_of_folders_are_no_columns(tmp_path):
    folder = tmp_path / "y=no" / "run=7"
    folder.mkdir(parents=True)
    parquet.write_table(pyarrow.table({"s": [1.0], "y": ["a"]}), folder / "x.parquet")
    assert read_table(folder / "x.parquet")["y"].tolist() == ["a"]
    assert read_table(folder).columns.tolist() == ["s", "y"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("end", ["", ".0"])
def test_features_of_more_digits_than_floats_have_stay_distinct(tmp_path, kind, end):
    values = [2**53 - 1, 2**53, 2**53 + 1]
    for largest in (2, 1):  # 2**53 alone is where the digits end
        cells = [f"{value}{end}" for value in values[: largest + 1]]
        columns = {"x": [*cells, None], "y": ["a"] * (len(cells) + 1)}
        if kind == "parquet":
            x = pyarrow.array([*values[: largest + 1], None])
            parquet.write_table(pyarrow.table({**columns, "x": x}), tmp_path / "t")
        else:
            pd.DataFrame(columns).to_csv(tmp_path / "t", index=False)
        x = read_table(tmp_path / "t")["x"].dropna()
        assert x.nunique() == largest + 1
        texts = [str(value) for value in values] if kind == "parquet" else cells
        assert x.tolist() == texts[: largest + 1]
    pd.DataFrame({"x": [f"{2**53 - 1}{end}", None], "y": "a"}).to_csv(tmp_path / "t", index=False)
    assert read_table(tmp_path / "t")["x"].tolist()[0] == 2**53 - 1


def write_lake(folder):
    """Write a folder for each of three days, one without rows and one with another column."""
    frames = {
        "2026-01-01": pd.DataFrame({"s": [0.1, 0.2], "y": ["a", "b"]}),
        "2026-01-02": pd.DataFrame({"s": [], "y": []}),
        "2026-01-03": pd.DataFrame({"y": ["b"], "more": [1], "s": [3]}),
    }
    for day, frame in frames.items():
        part = folder / f"day={day}" / "site=2"
        part.mkdir(parents=True)
        frame.to_parquet(part / "p.parquet", index=False)
    (folder / "_metadata").mkdir()
    (folder / "_metadata" / "p.parquet").write_bytes(b"hidden")


def test_folders_named_as_hive_does_are_columns(tmp_path):
    write_lake(tmp_path)
    with pytest.warns(UserWarning, match=r"which are left out: 'more'"):
        table = read_table(tmp_path)
    expected = {
        "s": [0.1, 0.2, 3.0],
        "y": ["a", "b", "b"],
        "day": ["2026-01-01", "2026-01-01", "2026-01-03"],
        "site": [2, 2, 2],
    }
    assert table.to_dict("list") == expected
    part = tmp_path / "day=2026-01-03" / "site=2" / "p.parquet"
    pd.DataFrame({"s": [0.5]}).to_parquet(part)
    with pytest.raises(InputError, match=r"got none called 'y' in .*day=2026-01-03"):
        read_table(tmp_path)


def test_a_folder_keeps_the_types_on_which_its_files_agree(tmp_path):
    kind = pyarrow.decimal128(9, 2)
    for name in "ab":
        (tmp_path / name / "deep").mkdir(parents=True)
        cells = pyarrow.array([1, 2]).cast(pyarrow.decimal128(21, 2)).cast(kind)
        numbers = pyarrow.array([1, 2], pyarrow.int8() if name == "a" else pyarrow.float32())
        table = pyarrow.table({"d": cells, "n": numbers})
        parquet.write_table(table, tmp_path / name / "deep" / "p.parquet")
    schema = TableFile(tmp_path).schema
    assert schema.field("d").type == kind and pyarrow.types.is_floating(schema.field("n").type)


@pytest.mark.parametrize("cells", [["x", "y"], [True, False], [2**60 + 1, 3], [1.5, 2.0]])
def test_a_file_of_a_folder_may_have_a_column_without_a_cell(tmp_path, cells):
    for name, column in (("a", pyarrow.nulls(2)), ("b", pyarrow.array(cells))):
        parquet.write_table(pyarrow.table({"x": column, "n": [1, 2]}), tmp_path / f"{name}.parquet")
    table = TableFile(tmp_path)
    assert table.cells["x"].to_pylist() == [None, None, *cells]


@pytest.mark.parametrize("error", ["#DIV/0!", "#ERROR!", "#GETTING_DATA"])
def test_any_error_in_a_cell_of_a_sheet_is_missing(tmp_path, error):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [None, 3]):
        book.active.append(row)
    book.active["A3"].value, book.active["A3"].data_type = error, "e"
    book.save(tmp_path / "t.xlsx")
    np.testing.assert_array_equal(read_table(tmp_path / "t.xlsx")["a"], [1, np.nan])


@pytest.mark.parametrize("kind", ["csv", "xlsx", "arrow", "stream"])
def test_columns_of_one_name_are_refused_in_every_format(tmp_path, kind):
    path, table = tmp_path / "t", pyarrow.Table.from_arrays([pyarrow.array([1, 2])] * 2, ["a", "a"])
    if kind == "csv":
        path.write_text("a,a\n1,2\n")
    elif kind == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        book.active.append(["a", "a"])
        book.active.append([1, 2])
        book.save(path)
    else:
        new = pyarrow.ipc.new_file if kind == "arrow" else pyarrow.ipc.new_stream
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(InputError, match="several columns called 'a': rename them"):
        TableFile(path)


def test_readers_of_arrow_may_stop_early(tmp_path):
    names = [f"n{i}" for i in range(8)]
    table = pyarrow.table({name: pyarrow.array(["a", "b", None] * 40) for name in names})
    for compression in (None, "zstd"):
        path = tmp_path / f"{compression}.arrow"
        options = pyarrow.ipc.IpcWriteOptions(compression=compression)
        with pyarrow.ipc.new_file(str(path), table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=7)
    for _ in range(100):
        for path in tmp_path.iterdir():
            assert next(TableFile(path).batches(names[:3])).num_rows == 7


def test_files_of_arrow_that_are_cut_or_of_unions_are_refused_in_plain_words(tmp_path):
    union = pyarrow.UnionArray.from_sparse(
        pyarrow.array([0, 1], pyarrow.int8()), [pyarrow.array([1, 2]), pyarrow.array(["a", "b"])]
    )
    table = pyarrow.table({"u": union, "n": [1, 2]})
    with pyarrow.ipc.new_file(str(tmp_path / "t"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match="'u' must contain numbers, dates or text, got sparse_un"):
        TableFile(tmp_path / "t")
    (tmp_path / "t").write_bytes((tmp_path / "t").read_bytes()[:-9])
    with pytest.raises(InputError, match="t cannot be read: Not an Arrow file"):
        TableFile(tmp_path / "t")


@pytest.mark.parametrize(("rows", "kinds"), [
    (["0.126;1,234", "-2.5;950"], "fO"),  # a comma that separates thousands
    (["0,126;1.234", "-2,5;950"], "fO"),  # a point that does
    (["1,234;0.5", "0,950;2"], "fO"),  # one column each: a comma, and the point is text
    (["1,234;7", "950;8"], "Oi"),
    (["1,234;7", "0,950;8"], "fi"),
    (["1,5;0,5", "0.5;2,5"], "Of"),  # both signs in one column
    (["1.5;2.0", "NA;3.25"], "ff"),
])  # fmt: skip
def test_a_file_with_semicolons_has_one_decimal_sign(tmp_path, rows, kinds):
    (tmp_path / "t.csv").write_text("\n".join(["a;b", *rows]))
    frame = read_table(tmp_path / "t.csv")
    assert "".join(kind.kind for kind in frame.dtypes) == kinds


def test_commas_that_may_separate_thousands_are_refused_batch_by_batch(tmp_path):
    rows = "\n".join(f"{1000 * i % 5000 + 900:,};{'yno'[i % 2 :][:1]};0,5" for i in range(30))
    (tmp_path / "t.csv").write_text(f"x;y;p\n{rows}\n")
    table = TableFile(tmp_path / "t.csv")
    calibrator = PlattScaling().fit([900.0, 1900, 2900, 3900], [0, 1, 0, 1])
    for read in (
        lambda: LabelledScores(table, ["x"], "y"),
        lambda: list(BatchPredictor(calibrator, table.schema, columns="x").over(table)),
    ):
        with pytest.raises(InputError, match="'x' must contain numbers with one decimal sign"):
            read()
    declared = TableFile(tmp_path / "t.csv", TableFormat(decimal=","))
    assert LabelledScores(declared, ["x"], "y").counts().total == 30
    assert LabelledScores(table, ["p"], "y").counts().total == 30


@pytest.mark.parametrize(("text", "decimal", "numbers"), [
    ("a;b\n1,5;x\n2;y\n-3,25;x\n", None, [1.5, 2.0, -3.25]),
    ("b,a\n1,5\n2,6\n", None, [5, 6]),
    ("a\tb\n1,5\tx\n2\ty\n", ",", [1.5, 2.0]),
    ('"a";"1,5,6"\n1,5;"x"\n', None, [1.5]),
])  # fmt: skip
def test_decimal_commas(tmp_path, text, decimal, numbers):
    (tmp_path / "t.csv").write_text(text)
    form = TableFormat(decimal=decimal)
    assert read_table(tmp_path / "t.csv", form=form)["a"].tolist() == numbers


@pytest.mark.parametrize("n", [1, 10_000, 1_000_000])
def test_accents_of_windows_text_are_read_wherever_the_first_stands(tmp_path, n):
    path = tmp_path / "t.csv"
    path.write_bytes(b"name,x\n" + b"plain,1\n" * n + "Zürich,2\n".encode("cp1252"))
    assert read_table(path)["name"].iloc[-1] == "Zürich"


@pytest.mark.parametrize(("text", "n_rows"), [
    ("a,b,c\n1,2,\n,,\nNA,NA,NA\n", 3), ('a,b,c\n1,2,""\n1,"2\n\n3",\n', 2),
    ("a\n1\n\nNA\n", 3), ("a\r\n\r\n1\r\n\r\n\r\n", 2), ("\n\na\n1\n\n\n", 1),
    ("\na,b\n1,2\n\n3,4\n\n", 3),
    ("a,b\r\n1,\r\n2,\r\n", 2), ("a, b\n1, \n", 1),
    ("a,b\n" + "word " * 60_000 + ",1\nshort,\n", 2), ('a,b\n5" pipe,1\n', 1),
])  # fmt: skip
def test_missing_cells_are_no_missing_rows(tmp_path, text, n_rows):
    (tmp_path / "t.csv").write_bytes(text.encode())
    table = read_table(tmp_path / "t.csv")
    assert len(table) == n_rows and table.columns[0] == "a"


def test_decimal_commas_with_exponents_are_numbers(tmp_path):
    cells = ["1,5e3", "-2,5E-1", "+0,125e+2", ",5", "3e2", "7"]
    expected = [1500.0, -0.25, 12.5, 0.5, 300.0, 7.0]
    (tmp_path / "t.csv").write_text("\n".join(["x;y", *(f"{cell};a" for cell in cells)]))
    assert read_table(tmp_path / "t.csv")["x"].tolist() == expected
    (tmp_path / "t.tsv").write_text("\n".join(["x\ty", *(f"{cell}\ta" for cell in cells)]))
    form = TableFormat(decimal=",")
    assert read_table(tmp_path / "t.tsv", form=form)["x"].tolist() == expected
    assert read_table(tmp_path / "t.tsv", ["x"], form=form)["x"].tolist() == cells
