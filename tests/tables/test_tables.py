"""Tables from files of every kind, and files that are none."""

import cProfile
import gzip
import os
import pstats

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
from pyarrow import feather, ipc, parquet  # noqa: E402

from vennforest._files import check_output, written_whole  # noqa: E402
from vennforest._validation import InputError  # noqa: E402
from vennforest.tables import files  # noqa: E402
from vennforest.tables.columns import TableColumns  # noqa: E402
from vennforest.tables.read import find_column, read_table  # noqa: E402
from vennforest.tables.scores import ScoreColumns  # noqa: E402
from vennforest.tables.stream import TableFile  # noqa: E402
from vennforest.tables.target import load_example, split_target  # noqa: E402

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
     "stream", "file"],
)  # fmt: skip
def test_every_format_gives_the_same_table(tmp_path, kind):
    path = tmp_path / "table"  # the content tells the format, not the name
    write(path, kind)
    found = read_table(path)
    assert list(found.columns) == list(TABLE.columns)
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
    "control": (b"a,b\n\x01\x02\xff\xfe,2\n" * 9, "binary file"),
    "zip": (b"PK\x03\x04" + bytes(40), "zip archive or an Excel workbook"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(40), "a picture"),
    "parquet": (b"PAR1 nothing of the kind", "not a Parquet file"),
    "arrow": (b"ARROW1\x00\x00 nothing", "not an Arrow file"),
    "stream": (b"\xff\xff\xff\xff nothing", "not an Arrow file"),
    "gzip": (b"\x1f\x8b nothing", "cannot be read"),
    "damaged gzip": (gzip.compress(b"a,b\n" * 99)[:20] + b"x" * 99, "cannot be read"),
    "cut gzip": (gzip.compress(b"a,b\n" + bytes(9999))[:-20], "cannot be read|binary"),
    "twice": (b"a,b,a\n1,2,3\n", "several columns called 'a'"),
    "ragged": (b"a,b\n1,2\n3,4,5,6\n", "is not a table"),
    "longer": (b"a,b\n1,2,3\n4,5,6\n", "is not a table"),
    "quote": (b'a,b\n"1,2\n3,4\n', "is not a table|no rows"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_table(tmp_path, name):
    content, message = BAD[name]
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"no file .*dta.csv: did you mean .*data.csv"):
        read_table(tmp_path / "dta.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)


def test_duplicate_names_in_parquet(tmp_path):
    table = pyarrow.table([[1], [2]], names=["a", "a"])
    parquet.write_table(table, tmp_path / "t")
    with pytest.raises(InputError, match="several columns called 'a'"):
        read_table(tmp_path / "t")


def test_missing_columns_come_with_close_names():
    table = pd.DataFrame({"Diagnosis": [1], "age": [2]})
    assert find_column(table, "age") == "age"
    with pytest.raises(InputError, match="did you mean 'Diagnosis'"):
        find_column(table, "diagnosys")
    with pytest.raises(InputError, match="there are 'Diagnosis', 'age'"):
        find_column(table, "zzz")


def test_rows_without_a_label_are_left_out_and_counted():
    table = pd.DataFrame({"x": range(5), "y": ["a", None, "b", "a", np.nan]}, dtype=object)
    problem = split_target(table, "y")
    assert problem.y.tolist() == ["a", "b", "a"]
    assert problem.X.index.tolist() == [0, 2, 3]
    assert problem.notes == ["2 of 5 rows have no 'y' and are left out."]


@pytest.mark.parametrize(
    ("labels", "kept", "kind"),
    [
        ([1, 2, 1, 2], [1, 2, 1, 2], "i"),
        ([1.0, 2.0, np.nan, 2.0], [1, 2, 2], "i"),
        ([True, False, True, False], [True, False, True, False], "b"),
        ([True, None, False, True], [True, False, True], "b"),
        ([0.5, 1.5, 0.5, 1.5], ["0.5", "1.5", "0.5", "1.5"], "U"),
        (["a", 1, "a", 1], ["a", "1", "a", "1"], "U"),
        (pd.Categorical(["u", "v", "u", "v"]), ["u", "v", "u", "v"], "U"),
        (pd.array([3, None, 4, 3], dtype="Int64"), [3, 4, 3], "iU"),
    ],
)
def test_labels_of_every_type(labels, kept, kind):
    table = pd.DataFrame({"x": range(4), "y": labels})
    y = split_target(table, "y").y
    assert y.dtype.kind in kind
    assert list(map(str, y)) == list(map(str, kept))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 60, "only one class, 'a'"),
        (np.linspace(0, 1, 60), "60 distinct numbers with a fraction, a quantity"),
        ([f"name {i}" for i in range(60)], "60 distinct values in 60 rows"),
        ([np.inf, 1.0] * 30, "infinite"),
        (2.0**53 + 2 * np.arange(60), "larger ones as integers or text"),
        ([2.0**53, 2.0**53 + 2] * 30, "larger ones as integers or text"),
        ([None] * 60, "missing in every row"),
    ],
)
def test_refused_targets(labels, message):
    with pytest.raises(InputError, match=message):
        split_target(pd.DataFrame({"x": range(60), "y": labels}), "y")


LARGE = 2**53 + np.arange(3)  # as floats the first two are one


@pytest.mark.parametrize("kind", [",", ";", "parquet", "feather", "stream"])
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("offset", [0, -(2**54), 2**62, 2**63])
def test_large_labels_are_read_to_the_last_digit_beside_empty_cells(tmp_path, kind, gap, offset):
    kept = [int(v) + offset for v in np.tile(LARGE, 10)]
    cells = [None if gap and i == 4 else v for i, v in enumerate(kept)]
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
        written = (f"{i}.5{kind}{'' if v is None else v}" for i, v in enumerate(cells))
        path.write_text("\n".join([f"x{kind}y", *written]))
    found = split_target(read_table(path), "y", screened=False)
    assert list(map(str, found.y)) == [str(v) for v in cells if v is not None]
    of_text = "U" if kind in ",;" else "u"
    assert found.y.dtype.kind == (of_text if offset == 2**63 else "i")
    assert found.notes == ["1 of 30 rows have no 'y' and are left out."] * gap
    columns = ScoreColumns(TableFile(path), ["x"], "y", None, 7)
    classes, missing = columns.labels()
    assert missing == gap and list(map(str, classes)) == [str(v) for v in sorted(set(kept))]
    codes = np.concatenate([codes for _, codes, _ in columns.parts()])
    assert [str(classes[code]) for code in codes] == list(map(str, found.y))


def calls_to_read(path, n_columns):
    """How many functions are called to read six rows, part them and learn their columns."""
    rows = np.random.default_rng(n_columns).normal(size=(6, n_columns)).round(3)
    table = pd.DataFrame(rows, columns=[f"c{i}" for i in range(n_columns)])
    table.assign(y=list("ababab")).to_csv(path, index=False)
    profile = cProfile.Profile()
    profile.enable()
    found = split_target(read_table(path), "y")
    TableColumns().fit_transform(found.X)
    profile.disable()
    return pstats.Stats(profile).total_calls


def test_the_work_grows_with_the_columns_and_not_with_their_square(tmp_path):
    calls_to_read(tmp_path / "table", 20)  # what is imported and kept at the first time
    few, many = (calls_to_read(tmp_path / "table", n) for n in (150, 300))
    # A call for every pair of columns makes this 2.09.
    assert few > 50_000 and many < 2.03 * few


def test_large_features_beside_empty_cells_are_numbers(tmp_path):
    cells = [None, 2**60, 5, -(2**61)] * 25
    ids = [None, *(2**60 + 3 * i for i in range(99))]
    y = [i % 2 for i in range(100)]
    table = pyarrow.table({"x": np.arange(100.0) % 7, "a": cells, "customer_id": ids, "y": y})
    parquet.write_table(table, tmp_path / "table")
    found = split_target(read_table(tmp_path / "table"), "y")
    assert found.left == ["customer_id"]
    read = TableColumns().fit_transform(found.X)
    assert read["a"].dtype == np.float64
    np.testing.assert_array_equal(read["a"], np.array(cells, dtype=float))


def test_refused_columns():
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    with pytest.raises(InputError, match="no column besides the target"):
        split_target(table, "y", ["x"])
    with pytest.raises(InputError, match="must not be among"):
        split_target(table, "y", ["y"])
    with pytest.raises(InputError, match="no column 'z'"):
        split_target(table, "y", ["z"])


def test_row_names_are_pointed_out():
    n = 30
    table = pd.DataFrame(
        {
            "customer_id": np.random.default_rng(0).permutation(n),
            "counter": range(7, 7 + n),
            "fine": np.random.default_rng(1).normal(size=n),
            "valid": ["u", "v", "w"] * 10,
            "y": ["a", "b"] * 15,
        }
    )
    (note,) = split_target(table, "y").notes
    assert "'customer_id', 'counter'" in note and "fine" not in note and "valid" not in note


def test_examples():
    problem = load_example("breast-cancer")
    assert problem.X.shape == (569, 30) and set(problem.y) == {"benign", "malignant"}
    assert np.bincount(problem.y == "malignant").tolist() == [357, 212]
    assert load_example("iris").target == "species"
    with pytest.raises(InputError, match=r"example must be one of .*, got 'titanic'"):
        load_example("titanic")


def test_outputs_are_tried_first(tmp_path):
    check_output(tmp_path / "new.html")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(InputError, match="no folder"):
        check_output(tmp_path / "none" / "new.html")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="cannot be written"):
            check_output(tmp_path / "new.html")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_nothing_half_written(tmp_path, stop):
    path = tmp_path / "out"
    for old in (None, "old"):
        if old is not None:
            path.write_text(old)
        with pytest.raises(stop), written_whole(path) as part:
            part.write_text("half")
            raise stop
        assert [p.read_text() for p in tmp_path.iterdir()] == ([] if old is None else [old])
    with written_whole(path) as part:
        part.write_text("whole")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["whole"]


def test_written_files_have_the_usual_mode(tmp_path):
    (tmp_path / "usual").touch()
    with written_whole(tmp_path / "ours") as part:
        part.touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "usual").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "usual")
    with written_whole(tmp_path / "link") as part:
        part.write_text("through the link")
    assert (tmp_path / "usual").read_text() == "through the link"
    assert (tmp_path / "usual").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("kind", ["parquet", "feather", "stream"])
def test_packed_tables_of_arrow(tmp_path, kind, coding):
    path = tmp_path / "table"
    table = pyarrow.Table.from_pandas(TABLE)
    if kind == "parquet":
        parquet.write_table(table, path)
    else:
        new = pyarrow.ipc.new_file if kind == "feather" else pyarrow.ipc.new_stream
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
    with pyarrow.output_stream(str(tmp_path / "packed"), compression=coding) as packed:
        packed.write(path.read_bytes())
    pd.testing.assert_frame_equal(read_table(tmp_path / "packed"), read_table(path))


def test_gzipped_tables_unpack_up_to_a_limit(tmp_path, monkeypatch):
    """The size that a gzipped file declares may be anything: what is read is counted."""
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 500_000))
    assert len(read_table(path)) == 500_000
    monkeypatch.setattr(files, "FREE", 1 << 20)
    with pytest.raises(InputError, match="unpacks to more than 1 MiB, 100 times its own size"):
        read_table(path)
    monkeypatch.setattr(files, "MOST_RATIO", 5000)
    assert len(read_table(path)) == 500_000


def test_files_of_a_table_may_have_more_columns_than_the_first(tmp_path):
    parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "1.parquet")
    more = pyarrow.table({"more": [0.5], "b": ["z"], "a": [2.5]})
    parquet.write_table(more, tmp_path / "2.parquet")
    expected = pd.DataFrame({"a": [1, 2, 2.5], "b": ["x", "y", "z"]})
    pd.testing.assert_frame_equal(read_table(tmp_path), expected)
