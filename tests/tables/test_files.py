"""Tables in files of every format, and files that are no tables."""

import gzip

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
from pyarrow import feather, ipc, parquet  # noqa: E402

from vennforest._validation import InputError  # noqa: E402
from vennforest.tables import TableColumns  # noqa: E402
from vennforest.tables.files import TableFile  # noqa: E402
from vennforest.tables.read import find_column, read_table  # noqa: E402
from vennforest.tables.target import split_target  # noqa: E402

TABLE = pd.DataFrame(
    {
        "number": [1.5, 2.25, np.nan, -4.0],
        "text": ["a,b", 'say "x"', None, "ü; ¥"],
        "whole": [1, 2, 3, 4],
        "label": ["yes", "no", "yes", "None"],
    }
)


def write(path, kind):
    if kind in (",", ";", "\t", "|"):
        TABLE.to_csv(path, sep=kind, index=False)
    elif kind == "gzip":
        TABLE.to_csv(path, index=False, compression="gzip")
    elif kind == "utf-16":
        TABLE.to_csv(path, index=False, encoding="utf-16")
    elif kind == "bom":
        TABLE.to_csv(path, index=False, encoding="utf-8-sig")
    elif kind == "latin":
        TABLE.to_csv(path, index=False, encoding="cp1252")
    elif kind == "parquet":
        TABLE.to_parquet(path, index=False)
    elif kind == "indexed":
        TABLE.set_index("number").to_parquet(path)
    elif kind == "excel":
        pytest.importorskip("openpyxl")
        TABLE.to_excel(path.with_suffix(".xlsx"), index=False)
        path.with_suffix(".xlsx").rename(path)
    elif kind == "feather":
        feather.write_feather(TABLE, str(path))
    else:
        table = pyarrow.Table.from_pandas(TABLE, preserve_index=False)
        new = ipc.new_stream if kind == "stream" else ipc.new_file
        with new(str(path), table.schema) as file:
            file.write_table(table)


@pytest.mark.parametrize(
    "kind",
    [",", ";", "\t", "|", "gzip", "utf-16", "bom", "latin", "parquet", "indexed", "feather",
     "stream", "file", "excel"],
)  # fmt: skip
def test_every_format_gives_the_same_table(tmp_path, kind):
    path = tmp_path / "table"  # the content tells the format, not the name
    write(path, kind)
    found = read_table(path)
    assert sorted(found.columns) == sorted(TABLE.columns)
    np.testing.assert_array_equal(found["number"], TABLE["number"])
    np.testing.assert_array_equal(found["whole"], TABLE["whole"])
    for name in ("text", "label"):
        assert [None if pd.isna(v) else v for v in found[name]] == [
            None if pd.isna(v) else v for v in TABLE[name]
        ]


def test_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;x\n2;y\n-3,25;x\n")
    assert read_table(path)["a"].tolist() == [1.5, 2.0, -3.25]
    path.write_text("a,b\n1,5\n2,6\n")
    assert read_table(path)["b"].tolist() == [5, 6]
    path.write_text("a\tb\n1,5\tx\n2\ty\n")
    assert read_table(path, decimal=",")["a"].tolist() == [1.5, 2.0]
    with pytest.raises(InputError, match=r"decimal must be \. or , got ';'"):
        read_table(path, decimal=";")


@pytest.mark.parametrize("n", [1, 10_000, 100_000])
def test_accents_of_windows_text_are_read_wherever_the_first_stands(tmp_path, n):
    path = tmp_path / "t.csv"
    path.write_bytes(b"name,x\n" + b"plain,1\n" * n + "Zürich,2\n".encode("cp1252"))
    assert read_table(path)["name"].iloc[-1] == "Zürich"


BAD = {
    "empty": (b"", "is empty"),
    "no rows": (b"a,b\n", "has no rows"),
    "binary": (bytes(range(256)) * 9, "binary file"),
    "a zero byte far behind": (b"a,b\n" + b"12,34\n" * 100_000 + b"\x00", "binary file"),
    "control": (b"a,b\n\x01\x02\xff\xfe,2\n" * 9, "binary file"),
    "zip": (b"PK\x03\x04" + bytes(40), "zip archive"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(40), "a picture"),
    "parquet": (b"PAR1 nothing of the kind", "cannot be read"),
    "arrow": (b"ARROW1\x00\x00 nothing", "cannot be read"),
    "stream": (b"\xff\xff\xff\xff nothing", "cannot be read"),
    "gzip": (b"\x1f\x8b nothing", "cannot be read"),
    "damaged gzip": (gzip.compress(b"a,b\n" * 99)[:20] + b"x" * 99, "cannot be read"),
    "cut gzip": (gzip.compress(b"a,b\n" + bytes(9999))[:-20], "cannot be read|binary"),
    "twice": (b"a,b,a\n1,2,3\n", "several columns called 'a'"),
    "long row": (b"a,b\n1,2\n3,4,5,6\n", "is not a table: a row has 4 cells"),
    "short row": (b"a,b,c\n1,2,3\n4,5\n6,7,8\n", "is not a table: a row has 2 cells"),
    "cut short": (b"a;b;c\n1;2;3\n4;5;6\n7", "is not a table: a row has 1 cells"),
    "first row": (b"a,b\n1,2,3\n4,5,6\n", "is not a table"),
    "open quote": (b'a,b\n1,2\n3,"4\n5,6\n', "a quotation mark is never closed"),
    "utf-16 cut": ("a,b\n1,2\n".encode("utf-16")[:-1], "is not"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_table_is_refused_in_one_sentence(tmp_path, name):
    content, message = BAD[name]
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "n_rows"),
    [
        ("a,b,c\n1,2,\n,,\nNA,NA,NA\n", 3),
        ('a,b,c\n1,2,""\n1,"2\n\n3",\n', 2),
        ("a\n1\n\nNA\n", 2),
        ("a,b\r\n1,\r\n2,\r\n", 2),
        ("a, b\n1, \n", 1),
        ("a,b\n" + "word " * 60_000 + ",1\nshort,\n", 2),
        ('a,b\n5" pipe,1\n', 1),
    ],
)
def test_missing_cells_are_no_missing_rows(tmp_path, text, n_rows):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    table = read_table(path)
    assert len(table) == n_rows and table.columns[0] == "a"


def test_headers_may_be_longer_than_the_sample(tmp_path):
    names = [f"{'column ' * 14}{i}" for i in range(3000)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",".join(names), ",".join(["1.5"] * len(names))]) + "\n")
    table = read_table(path)
    assert table.columns.tolist() == names and (table.to_numpy() == 1.5).all()


def test_missing_files_and_folders(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"no file .*dta.csv: did you mean .*data.csv"):
        read_table(tmp_path / "dta.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)


def test_duplicate_names_in_parquet(tmp_path):
    parquet.write_table(pyarrow.table([[1], [2]], names=["a", "a"]), tmp_path / "t")
    with pytest.raises(InputError, match="several columns called 'a'"):
        read_table(tmp_path / "t")


def test_missing_columns_come_with_close_names():
    table = pd.DataFrame({"Diagnosis": [1], "age": [2]})
    assert find_column(table, "age") == "age"
    with pytest.raises(InputError, match="did you mean 'Diagnosis'"):
        find_column(table, "diagnosys")
    with pytest.raises(InputError, match="there are 'Diagnosis', 'age'"):
        find_column(table, "zzz")


LARGE = 2**53 + np.arange(3)  # as floats the first two are one


@pytest.mark.parametrize("kind", [",", ";", "parquet", "feather", "stream"])
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("offset", [0, -(2**54), 2**62, 2**63])
def test_large_labels_are_read_to_the_last_digit_beside_empty_cells(tmp_path, kind, gap, offset):
    labels = [int(v) + offset for v in np.tile(LARGE, 10)]
    cells = [None if gap and i == 4 else v for i, v in enumerate(labels)]
    path = tmp_path / "table"
    whole = pyarrow.uint64() if offset == 2**63 else pyarrow.int64()
    table = pyarrow.table({"x": np.arange(30.0), "y": pyarrow.array(cells, whole)})
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=7)
    elif kind == "feather":
        feather.write_feather(table, path)
    elif kind == "stream":
        with ipc.new_stream(path, table.schema) as file:
            file.write_table(table, max_chunksize=7)
    else:
        lines = (f"{i}.5{kind}{'' if v is None else v}" for i, v in enumerate(cells))
        path.write_text("\n".join([f"x{kind}y", *lines]))
    parted = split_target(read_table(path), "y", screened=False)
    assert list(map(str, parted.y)) == [str(v) for v in cells if v is not None]
    of_text = "U" if kind in ",;" else "u"
    assert parted.y.dtype.kind == (of_text if offset == 2**63 else "i")
    assert parted.notes == ["1 of 30 rows have no 'y' and are left out."] * gap


@pytest.mark.parametrize(
    "kind", [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary(4), pyarrow.string_view()]
)
def test_bytes_are_the_text_they_contain(tmp_path, kind):
    words = ["rote", "blau", None, "1.50"] * 8
    values = [None if word is None else word.encode() for word in words]
    array = pyarrow.array(words) if "string" in str(kind) else pyarrow.array(values, kind)
    parquet.write_table(pyarrow.table({"word": array.cast(kind)}), tmp_path / "t")
    table = read_table(tmp_path / "t")
    assert TableColumns().fit_transform(table)["word"].tolist() == words


def test_bytes_that_are_no_text_are_refused_if_they_are_used(tmp_path):
    table = pd.DataFrame({"raw": [b"\xff\xfe", b"\x00\x01"] * 4, "x": range(8)})
    table.assign(y=["a", "b"] * 4).to_parquet(tmp_path / "t")
    read = read_table(tmp_path / "t")
    assert split_target(read, "y", ["raw"]).X.columns.tolist() == ["x"]
    for target in ("raw", "y"):
        with pytest.raises(
            InputError, match=r"'raw' must contain .*, got bytes that are not UTF-8"
        ):
            TableColumns().fit(split_target(read, target).X)


def test_large_features_beside_empty_cells_are_numbers(tmp_path):
    cells = [None, 2**60, 5, -(2**61)] * 25
    ids = [None, *(2**60 + 3 * i for i in range(99))]
    y = [i % 2 for i in range(100)]
    table = pyarrow.table({"x": np.arange(100.0) % 7, "a": cells, "customer_id": ids, "y": y})
    parquet.write_table(table, tmp_path / "table")
    parted = split_target(read_table(tmp_path / "table"), "y")
    assert parted.left == ["customer_id"]
    read = TableColumns().fit_transform(parted.X)
    np.testing.assert_array_equal(read["a"], np.array(cells, dtype=float))


def test_files_of_a_table_may_have_more_columns_than_the_first(tmp_path):
    parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "1.parquet")
    more = pyarrow.table({"more": [0.5], "b": pyarrow.array(["z"]).dictionary_encode(), "a": [2.5]})
    parquet.write_table(more, tmp_path / "2.parquet")
    expected = pd.DataFrame({"a": [1, 2, 2.5], "b": ["x", "y", "z"]})
    pd.testing.assert_frame_equal(read_table(tmp_path), expected)
    parquet.write_table(pyarrow.table({"a": ["x"], "b": ["x"]}), tmp_path / "3.parquet")
    with pytest.raises(InputError, match="'a' must be of one type in all files"):
        read_table(tmp_path)
    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "3.parquet")
    with pytest.raises(InputError, match="got none called 'b'"):
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


@pytest.mark.parametrize("name", ["data[1].parquet", "d*.parquet", "it's.parquet"])
def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path, name):
    for other in ("data1.parquet", "d.parquet", "dd.parquet", "its.parquet"):
        parquet.write_table(pyarrow.table({"s": [2.0]}), tmp_path / other)
    parquet.write_table(pyarrow.table({"s": [1.0]}), tmp_path / name)
    assert read_table(tmp_path / name)["s"].tolist() == [1.0]


def test_names_of_folders_are_no_columns(tmp_path):
    folder = tmp_path / "y=no" / "run=7"
    folder.mkdir(parents=True)
    parquet.write_table(pyarrow.table({"s": [1.0], "y": ["a"]}), folder / "x.parquet")
    assert read_table(folder / "x.parquet")["y"].tolist() == ["a"]
    assert read_table(folder).columns.tolist() == ["s", "y"]


@pytest.mark.parametrize("writer", ["pandas", "pyarrow", "polars"])
def test_every_writer_of_parquet_gives_the_same_table(tmp_path, writer):
    table = pyarrow.table({"s": np.arange(120) / 7, "y": ["yes", "no", "no"] * 40})
    path = tmp_path / "t.parquet"
    if writer == "pandas":
        table.to_pandas().astype({"y": "category"}).to_parquet(path, row_group_size=40)
    elif writer == "pyarrow":
        with parquet.ParquetWriter(path, table.schema) as file:
            for start in range(0, 120, 40):
                file.write_table(table.slice(start, 0))  # a row group without rows
                file.write_table(table.slice(start, 40))
    else:
        pl = pytest.importorskip("polars")
        pl.from_arrow(table).with_columns(pl.col("y").cast(pl.Categorical)).write_parquet(path)
    rows = read_table(path)
    assert rows["s"].tolist() == table["s"].to_pylist()
    assert rows["y"].tolist() == table["y"].to_pylist()
