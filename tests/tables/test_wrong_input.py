"""Input that used to be read as something else than it is: now read right, or refused."""

import gzip
import io

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
from pyarrow import ipc, parquet  # noqa: E402

from vennforest._validation import InputError  # noqa: E402
from vennforest.tables import TableColumns  # noqa: E402
from vennforest.tables.read import read_table  # noqa: E402
from vennforest.tables.stream import TableFile  # noqa: E402
from vennforest.tables.target import split_target  # noqa: E402
from vennforest.tables.text import read_text, text_format  # noqa: E402


def read_in_parts(path, size=None):
    table = TableFile(path)
    size = size or (3 if path.stat().st_size < 10_000 else 20_000)
    return pd.concat([part.rows for part in table.batches(table.names, [], size)])


BOTH = pytest.mark.parametrize("read", [read_table, read_in_parts])

# --- bytes that are text ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary(4), pa.dictionary(pa.int8(), pa.binary())]
)
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_binary_columns_are_the_text_they_hold(tmp_path, kind, form):
    words = ["rote", "blau", None, "grün"[:3] + "n", "1.50"] * 8
    labels = ["nein", "ja  "] * 20
    values = [None if word is None else word.encode().ljust(4)[:4] for word in words]
    arrays = {"word": pa.array(values, pa.binary(4)), "y": pa.array(labels).cast(pa.binary())}
    arrays["word"] = (
        arrays["word"].cast(pa.binary()).cast(pa.binary() if pa.types.is_dictionary(kind) else kind)
    )
    if pa.types.is_dictionary(kind):
        arrays["word"] = arrays["word"].dictionary_encode()
    table = pa.table(arrays)
    path = tmp_path / "t"
    if form == "parquet":
        parquet.write_table(table, path)
    else:
        with ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    parted = split_target(read_table(path), "y")
    assert sorted(set(parted.y)) == ["ja  ", "nein"]
    text = pd.DataFrame({"word": [None if v is None else v.decode() for v in values]})
    if pa.types.is_dictionary(kind):
        text = text.astype("category")
    columns, as_text = TableColumns().fit(parted.X), TableColumns().fit(text)
    assert columns.kinds_ == as_text.kinds_
    expected = as_text.transform(text)["word"].tolist()
    assert columns.transform(parted.X)["word"].tolist() == expected
    assert as_text.transform(read_in_parts(path))["word"].tolist() == expected
    assert not any("b'" in str(value) for value in expected)


def test_bytes_that_are_no_text_are_refused_if_they_are_used(tmp_path):
    table = pd.DataFrame(
        {"raw": [b"\xff\xfe", b"\x00\x01"] * 4, "x": range(8), "y": ["a", "b"] * 4}
    )
    table.to_parquet(tmp_path / "t")
    read = read_table(tmp_path / "t")
    parted = split_target(read, "y", ["raw"])
    assert parted.X.columns.tolist() == ["x"]
    with pytest.raises(
        InputError, match=r"'raw' must contain .*, got bytes that are not UTF-8 in row 1"
    ):
        TableColumns().fit(split_target(read, "y").X)
    with pytest.raises(InputError, match=r"'raw' must contain .*, got bytes that are not UTF-8"):
        split_target(read, "raw")


# --- rows that are too short -----------------------------------------------------------------

SHORT = {
    "a row": ("a,b,c\n1,2,3\n4,5\n6,7,8\n", 2, "2 cells"),
    "one cell": ("a,b,c\n1,2,3\n4\n6,7,8\n", 2, "1 cell"),
    "cut short": ("a,b,c\n1,2,3\n4,5,6\n7,8", 3, "2 cells"),
    "cut at a delimiter's eve": ("a;b;c\n1;2;3\n4;5;6\n7", 3, "1 cell"),
    "quotes": ('a,b,c\n"1,1","2\n2",3\n"4,4,4",5\n', 2, "2 cells"),
    "the first": ("a,b,c\n1,2\n4,5,6\n", 1, "2 cells"),
    "blank lines": ("a,b,c\n\n1,2,3\n\n\n4,5\n", 2, "2 cells"),
    "missing cells": ("a,b,c\n1,2,\n,,\nNA,NA,NA\n4,5\n", 4, "2 cells"),
    "later parts": ("a,b,c\n" + "1,2,3\n" * 50 + "4,5,\n" * 3 + "6,7\n", 54, "2 cells"),
}


@BOTH
@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "gzip"])
def test_short_rows_are_refused(tmp_path, name, coding, read):
    text, row, cells = SHORT[name]
    path = tmp_path / "t.csv"
    path.write_bytes(gzip.compress(text.encode()) if coding == "gzip" else text.encode(coding))
    with pytest.raises(InputError, match=rf"is not a table: row {row} has {cells}, and the first "):
        read(path)


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,2,\n,,\nNA,NA,NA\n",
        "a,b,c\n1,2,\n\n,,",
        'a,b,c\n1,2,""\n1,"2\n\n3",\n',
        "a\n1\n\nNA\n",
        "a,b\r\n1,\r\n2,\r\n",
        "a,b\r1,\r2,\r",
        "   \na, b\n1, \n",
    ],
)
def test_missing_cells_are_no_missing_rows(tmp_path, text, read):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    assert len(read(path)) in (1, 2, 3)


@BOTH
@pytest.mark.parametrize(
    "text", ["a,b\n1,2,3\n4,5,6\n", "a,b\n1,2\n3,4,5\n", "a,b\n1,2\n3,4,5,6\n"]
)
def test_long_rows_are_refused(tmp_path, text, read):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="is not a table"):
        read(path)


@BOTH
def test_a_quote_that_is_never_closed(tmp_path, read):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n3,"4\n5,6\n')
    with pytest.raises(InputError, match="is not a table: EOF inside string"):
        read(path)


# --- NUL bytes and long lines ----------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("place", [10, 300_000, -3])
def test_binary_files_are_refused_wherever_it_shows(tmp_path, place, read):
    content = bytearray(b"a,b\n" + b"12,34\n" * 100_000)
    content[place] = 0
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is a binary file, not a table"):
        read(path)


@BOTH
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_headers_may_be_longer_than_the_sample(tmp_path, delimiter, read):
    """Names are cut nowhere, though the first line ends beyond the sniffed 256 KiB."""
    names = [f"{'column ' * 14}{i}" for i in range(3000)]
    cells = ["1,5" if delimiter == ";" else "1.5"] * len(names)
    rows = [names, cells, cells]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(delimiter.join(row) for row in rows) + "\n")
    table = read(path)
    assert table.columns.tolist() == names
    if read is read_table:
        assert (table.to_numpy() == 1.5).all()


def test_names_that_are_twice_there_are_seen_beyond_the_sample(tmp_path):
    names = [f"{'x' * 80}{i}" for i in range(4000)] + ["x" * 80 + "7"]
    path = tmp_path / "t.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" * len(names)) + "\n")
    with pytest.raises(InputError, match=r"several columns called 'x+7'"):
        read_table(path)


def test_a_first_line_without_end_is_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr("vennforest.tables.text.MOST_SNIFFED", 1 << 20)
    path = tmp_path / "t.csv"
    path.write_text("x" * (1 << 21))
    with pytest.raises(InputError, match="first lines have more than 1 MiB"):
        read_table(path)


@BOTH
def test_cells_may_be_long(tmp_path, read):
    long = "word " * 60_000
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n{long},1\nshort,\n")
    table = read(path)
    assert table["a"].tolist() == [long, "short"]


def test_an_interrupt_while_pandas_reads_stays_one(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 1000)

    class Stopping(io.BytesIO):
        def read1(self, *size):
            raise KeyboardInterrupt

    how = text_format(path)
    monkeypatch.setattr("vennforest.tables.text.opened", lambda path: Stopping(path.read_bytes()))
    with pytest.raises(KeyboardInterrupt):
        read_text(path, how)


def test_parts_are_the_whole(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.normal(size=100), "t": rng.choice(["x", "", 'q"', "a\nb"], 100)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    whole = read_table(tmp_path / "t.csv")
    for size in (1, 7, 1000):
        parts = read_in_parts(tmp_path / "t.csv", size)
        assert parts.index.tolist() == list(range(100))
        columns = TableColumns().fit(whole)
        pd.testing.assert_frame_equal(columns.transform(parts), columns.transform(whole))
