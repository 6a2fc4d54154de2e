"""Files at addresses, by fsspec."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from report.reading import numbers_in
from vennforest import _files
from vennforest._validation import InputError
from vennforest.cli import main
from vennforest.commands.pages import typed_command

pa = pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")

N = 60


class Store(fsspec.get_filesystem_class("memory")):
    """A store that stays: the memory of this process, at addresses of its own."""

    protocol = "store"
    store, pseudo_dirs = {}, [""]

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("store://", "memory://"))


fsspec.register_implementation("store", Store)


def frame(seed=1):
    rng = np.random.default_rng(seed)
    s = rng.random(N)
    return pd.DataFrame({"s": s, "y": np.where(rng.random(N) < s, "b", "a"), "i": np.arange(N)})


@pytest.fixture
def local(tmp_path):
    frame().to_csv(tmp_path / "scores.csv", index=False)
    frame().to_parquet(tmp_path / "scores.parquet", index=False)
    assert run("calibrate", tmp_path / "scores.csv", tmp_path / "c.json") == 0
    return tmp_path


def run(name, data, output, *more):
    columns = ["-s", "s", "-t", "y"] if name == "calibrate" else []
    return main([name, *map(str, more), str(data), *columns, "-o", str(output)])


def test_a_file_and_a_folder_at_an_address(local, capsys):
    store = "store://bucket/{}"
    for name in ("a.parquet", "b.parquet"):
        out = store.format(f"out/{name}")
        assert run("apply", local / "scores.parquet", out, local / "c.json") == 0
    capsys.readouterr()
    for data, n_rows in (("out/a.parquet", N), ("out", 2 * N)):
        assert run("calibrate", store.format(data), local / "d.json") == 0
        assert n_rows in numbers_in(capsys.readouterr().err)
    assert run("calibrate", store.format("out/nothing.csv"), local / "d.json") == 2
    missing = f"store://bucket/out/nothing.csv cannot be read: {os.strerror(errno.ENOENT)}"
    assert capsys.readouterr().err == f"Error: {missing}\n"
    bad = frame()
    bad.loc[4, "s"] = np.inf
    with _files.written_whole(store.format("bad/x.parquet")) as path:
        bad.to_parquet(path)
    assert run("calibrate", store.format("bad/x.parquet"), local / "d.json") == 2
    assert re.search(r"got inf in row 5 of store://.*bad/x\.parquet", capsys.readouterr().err)


def test_what_is_no_address(local, capsys):
    for name, address in (("calibrate", "nowhere://b/x.csv"), ("report", "s3://b/x.csv")):
        columns = ["-t", "y"] if name == "report" else ["-t", "y", "-s", "s"]
        assert main([name, address, *columns, "-o", str(local / "d.html")]) == 2
        assert "copy the file here first" in capsys.readouterr().err
    for text in ("C:/data/x.csv", "s3:/b/x", "-", "a b", "~/x"):
        assert _files.location(text) == Path(text)
    assert _files.location("S3://b/x") == "s3://b/x"
    assert _files.location("hdfs:///b/x") == "hdfs:///b/x"  # of the default host
    assert _files.location("nowhere://b/x") == "nowhere://b/x"


def test_local_addresses_are_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in ("local://a/x", "FILE://a/x", "file://./a/x", f"local://{tmp_path}/a/x"):
        assert _files.location(text) == tmp_path / "a" / "x"
    (tmp_path / "local:").mkdir()
    (tmp_path / "local:" / "x").touch()
    assert _files.location("local://x") == Path("local:/x")  # a file that is there
    for text in (
        "memory://x",
        "MEMORY://x",
        "zip://x::local://a.zip",
        "dir://x::s3://a",
        "generic://file:///x",
    ):
        with pytest.raises(InputError, match="is no address of a file that stays"):
            _files.location(text)


def test_spellings_of_one_address_are_one_file():
    assert _files.is_same_file("store://b/x", "STORE://b/y/../x")
    assert _files.is_same_file("s3://b/x", "s3://b//x")
    assert not _files.is_same_file("s3://b/x", "s3://b/X")
    assert not _files.is_same_file("s3://b/x", "b/x")


@pytest.mark.parametrize(
    "address",
    [
        "https://me:kEy1/+2aB==@127.0.0.1:9/x.csv?sig=kEy1/+2aB==",
        "s3://ACCESS:kEy1/+2aB==@bucket/x.csv?endpoint_override=127.0.0.1:9",
        "abfs://account:kEy1/+2aB==@account.dfs.core.windows.net/c/x.csv",
        "ftps://me:kEy1/+2aB==@127.0.0.1:9/x.csv",
    ],
    ids=range(4),
)
def test_no_key_is_shown(local, capsys, address):
    for words in (
        ["calibrate", address, "-s", "s", "-t", "y", "-o", local / "d.json"],
        ["calibrate", local / "scores.csv", "-s", "s", "-t", "y", "-o", address],
        ["apply", local / "c.json", local / "scores.csv", "-o", address],
        ["report", address, "-t", "y", "-o", local / "r.html"],
    ):
        assert main([*map(str, words)]) == 2
        text = "".join(capsys.readouterr())
        assert "should not" not in text and "kEy1" not in text, text


def test_no_key_of_an_input_is_written(local, capsys):
    with fsspec.open("store://me:kEy1@bucket/c.json", "wb") as file:
        file.write((local / "c.json").read_bytes())
    assert main(["show", "store://me:kEy1@bucket/c.json"]) == 0
    text = capsys.readouterr().out
    assert "store://***@bucket/c.json" in text and "kEy1" not in text


def test_no_key_of_a_typed_command_is_written(local, monkeypatch, capsys):
    words = ["check", "store://me:kEy1@b/c.csv", "--probability=s", "--target", "y", "--json"]
    with fsspec.open(words[1], "wb") as file:
        file.write((local / "scores.csv").read_bytes())
    words += ["--positive", "b", "-o", str(local / "c.html")]
    monkeypatch.setattr("sys.argv", ["vennforest", *words, "--data=s3://b/x?sig=kEy1", "-"])
    assert main(words) == 0
    text = capsys.readouterr().out + (local / "c.html").read_text("utf-8")
    assert "check store://***@b/c.csv" in text.replace("'", "") and "kEy1" not in text
    assert typed_command().endswith("'--data=s3://b/x?…' -")
