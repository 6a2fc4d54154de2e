"""Files in object stores and on web servers, and tables packed by zstandard."""

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vennforest import _files, _remote
from vennforest.cli import main

pa = pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")

N = 60
PORT = 19123
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own, which its documentation gives."""


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


@pytest.fixture
def web(local):
    serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(local))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_from_a_web_server(local, web, capsys, name):
    for data in (f"{web}/{name}", Path(f"{web}/{name}")):
        assert run("calibrate", data, local / "d.json") == 0
    assert run("apply", f"{web}/{name}", local / "out.csv", f"{web}/c.json") == 0
    assert run("apply", local / name, local / "wanted.csv", local / "c.json") == 0
    assert (local / "out.csv").read_bytes() == (local / "wanted.csv").read_bytes()
    capsys.readouterr()
    assert run("calibrate", f"{web}/nothing.csv", local / "d.json") == 2
    assert f"{web}/nothing.csv cannot be read: " in capsys.readouterr().err
    assert run("calibrate", local / name, f"{web}/d.json") == 2
    assert "web servers can only be read" in capsys.readouterr().err


def through(store, local, capsys):
    """Write to a store, read a file, a pattern and a folder from it, and be refused."""
    wanted = local / "wanted.parquet"
    assert run("apply", local / "scores.parquet", wanted, local / "c.json") == 0
    for name in ("a.parquet", "b.parquet"):
        out = store.format(f"out/{name}")
        assert run("apply", local / "scores.parquet", out, local / "c.json") == 0
    capsys.readouterr()
    for given, rows in (("out/a.parquet", N), ("out/*.parquet", 2 * N), ("out", 2 * N)):
        output = local / "d.json"
        assert run("calibrate", store.format(given), output) == 0
        assert f"Calibrated on {rows} rows" in capsys.readouterr().err
    assert run("calibrate", store.format("out/nothing.csv"), local / "d.json") == 2
    assert "there is no file" in capsys.readouterr().err
    bad = frame()
    bad.loc[4, "s"] = np.inf
    bad.to_parquet(local / "bad.parquet")
    with _remote.sent_whole(store.format("bad/x.parquet")) as path:
        path.write_bytes((local / "bad.parquet").read_bytes())
    assert run("calibrate", store.format("bad/x.parquet"), local / "d.json") == 2
    assert re.search(r"got inf in row 5 of \w+://.*bad/x\.parquet", capsys.readouterr().err)


def test_in_a_store_of_fsspec(local, capsys):
    through("memory://bucket/{}", local, capsys)


def test_in_an_object_store(local, capsys, monkeypatch):
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        query = f"?scheme=http&endpoint_override={host}:{port}&region=us-east-1"
        query += "&allow_bucket_creation=true"
        from pyarrow import fs

        system, _ = fs.FileSystem.from_uri(f"s3://bucket{query}")
        system.create_dir("bucket")
        through("s3://bucket/{}" + query, local, capsys)
    finally:
        server.stop()


def test_in_google_cloud_storage(local, capsys):
    server = pytest.importorskip("gcp_storage_emulator.server").create_server(
        "127.0.0.1", PORT, in_memory=True, default_bucket="bucket"
    )
    server.start()
    try:
        query = f"?scheme=http&endpoint_override=127.0.0.1:{PORT}&retry_limit_seconds=5"
        through("gs://anonymous@bucket/{}" + query, local, capsys)
    finally:
        server.stop()


def test_in_azure(local, capsys, monkeypatch):
    """Against Azurite, which needs other credentials than an address can name."""
    from pyarrow import fs

    program = os.environ.get("AZURITE") or shutil.which("azurite-blob")
    if program is None:
        pytest.skip("needs Azurite: npm install azurite; AZURITE=node_modules/.bin/azurite-blob")
    host, scheme = f"127.0.0.1:{PORT}", "http"
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", str(PORT)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([program, *options], cwd=local, **quiet)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), 1):
                break
            time.sleep(0.2)
        system = fs.AzureFileSystem(
            "devstoreaccount1",
            account_key=KEY,
            blob_storage_authority=host,
            dfs_storage_authority=host,
            blob_storage_scheme=scheme,
            dfs_storage_scheme=scheme,
        )
        system.create_dir("bucket")
        known = lambda url: (system, url.partition("://")[2])  # noqa: E731
        monkeypatch.setattr(_remote, "_store", known)
        through("abfs://bucket/{}", local, capsys)
    finally:
        server.terminate()
        server.wait()


def test_what_is_no_address(local, capsys):
    assert run("calibrate", "nowhere://b/x.csv", local / "d.json") == 2
    assert "s3://, gs://, abfs:// and https:// are known" in capsys.readouterr().err
    assert main(["report", "s3://b/x.csv", "-t", "y", "-o", str(local / "r.html")]) == 2
    assert "copy the file here first" in capsys.readouterr().err
    assert run("calibrate", "abfs://b@a.dfs.core.windows.net/x?enable_tls=false", "d.json") == 2
    assert "must be read with TLS" in capsys.readouterr().err
    assert _files.url_of("C:/data/x.csv") is None
    assert _files.url_of(Path("s3://b/x")) == "s3://b/x"


SECRETS = ("kEy1/+2aB==", "kEy1%2F%2B2aB%3D%3D", "5igNaTuRe")


@pytest.mark.parametrize("key", SECRETS[:2])
@pytest.mark.parametrize(
    "address",
    [
        "https://me:{}@127.0.0.1:9/x.csv?sig=5igNaTuRe",
        "http://5igNaTuRe@127.0.0.1:9/x.csv?{}",
        "s3://ACCESS:{}@bucket/x.csv?endpoint_override=127.0.0.1:9&scheme=http&region=r-1",
        "gs://5igNaTuRe@bucket/x.csv?retry_limit_seconds=1&key={}",
        "abfs://account:{}@account.dfs.core.windows.net/c/x.csv?sig=5igNaTuRe&nonsense=1",
        "abfs://:{}@account.dfs.core.windows.net/c/x.csv?enable_tls=false",
        "abfss://account:{}@a b/c/x.csv",
        "ftps://me:{}@127.0.0.1:9/x.csv",
        "nowhere://me:{}@b/x.csv?sig=5igNaTuRe",
    ],
    ids=range(9),
)
def test_no_key_is_shown(local, capsys, monkeypatch, address, key):
    """Neither in messages nor in what Python prints of the errors behind them."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    url = address.format(key)
    shown = []
    for words in (
        ["calibrate", url, "-s", "s", "-t", "y", "-o", local / "d.json"],
        ["calibrate", local / "scores.csv", "-s", "s", "-t", "y", "-o", url],
        ["apply", local / "c.json", local / "scores.csv", "-o", url],
        ["report", url, "-t", "y", "-o", local / "r.html"],
        ["report", local / "scores.csv", "-t", "y", "-o", url],
    ):
        assert main([*map(str, words)]) == 2
        shown.append("".join(capsys.readouterr()))
    for text in shown:
        assert "should not" not in text  # an error that nobody expected
        assert not [one for one in SECRETS if one in text], text


def test_a_password_for_a_web_server(local, capsys):
    asked = []

    class Guarded(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers.get("Authorization"))
            if self.path == "/moved.csv":
                self.send_response(302)
                self.send_header("Location", "/scores.csv")
                self.end_headers()
                return
            super().do_GET()

    serve = functools.partial(Guarded, directory=str(local))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://me:a%2Fb@127.0.0.1:{server.server_port}"
        assert run("calibrate", f"{url}/moved.csv", local / "d.json") == 0
        server.shutdown()
    assert asked == ["Basic bWU6YS9i", None]  # whoever it is sent on to is told no password


def test_packed_by_zstandard(local, capsys, monkeypatch):
    text = (local / "scores.csv").read_bytes()
    with pa.output_stream(str(local / "scores.csv.zst"), compression="zstd") as file:
        file.write(text)
    assert run("calibrate", local / "scores.csv.zst", local / "d.json") == 0
    out, plain = local / "out.csv.zst", local / "out.csv"
    assert run("apply", local / "scores.csv.zst", out, local / "d.json") == 0
    assert run("apply", local / "scores.csv", plain, local / "d.json") == 0
    with pa.input_stream(str(out), compression="zstd") as file:
        assert file.read() == plain.read_bytes()
    with pa.output_stream(str(local / "p.zst"), compression="zstd") as file:
        file.write((local / "scores.parquet").read_bytes())
    assert run("calibrate", local / "p.zst", local / "e.json") == 0
    assert run("calibrate", local / "scores.parquet", local / "f.json") == 0
    made = [json.loads((local / name).read_text("utf-8")) for name in ("e.json", "f.json")]
    assert made[0]["calibrator"] == made[1]["calibrator"]
    capsys.readouterr()
    with pa.output_stream(str(local / "bomb.csv.zst"), compression="zstd") as file:
        file.write(text + b"0.5,a,1\n" * 200_000)
    monkeypatch.setattr("vennforest.tables.files.FREE", 1 << 16)
    assert run("calibrate", local / "bomb.csv.zst", local / "d.json") == 2
    assert "unpacks to more than" in capsys.readouterr().err
