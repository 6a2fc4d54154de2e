"""Data sets by name: where they are found, what types they get."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets._openml as openml

from vennforest_experiments.datasets import available, catalogue, load

PAPERS = ["johansson2018", "bostrom2008", "vovk2014", "niculescu2005", "shaker2025"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache and no local folder."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(folder))
    monkeypatch.delenv("VENNFOREST_DATA", raising=False)
    return folder


@pytest.fixture(scope="module")
def real_data():
    """The folder of real data sets."""
    folder = os.environ.get("VENNFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set VENNFOREST_DATA to their folder")
    return folder


def write(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


# --- the catalogue ---------------------------------------------------------------------------


def test_catalogue_is_consistent():
    numbers = [e.openml for e in catalogue().values() if e.openml is not None]
    assert len(set(numbers)) == len(numbers)
    for name, entry in catalogue().items():
        assert entry.name == name
        assert sum(entry.class_counts.values()) == entry.rows
        assert entry.classes >= 2
        assert len(set(entry.columns)) == entry.features > 0
        assert entry.nominal <= set(entry.columns)
        assert entry.source
        assert entry.licence
        assert set(entry.papers) <= set(PAPERS)
        assert entry.papers


# --- the local folder ------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_columns_get_types_and_missing_cells(tmp_path, home, ending):
    text = "size,kind,code,target\n1,none,01,yes\n,NA,02,no\n2.5,,?,yes\n"
    write(tmp_path, f"tiny{ending}", text)
    got = load("tiny", tmp_path)
    assert got.name == "tiny"
    assert got.X["size"].dtype == np.float64
    np.testing.assert_array_equal(got.X["size"], [1, np.nan, 2.5])
    # Words that pandas would take for missing are values; digits alone are numbers.
    assert got.X["kind"].dtype == "category"
    assert got.X["kind"].tolist()[:2] == ["none", "NA"]
    assert got.X["kind"].isna().tolist() == [False, False, True]
    np.testing.assert_array_equal(got.X["code"], [1, 2, np.nan])
    assert got.y.tolist() == ["yes", "no", "yes"]


def test_catalogue_decides_types_where_it_knows_the_columns(tmp_path, home):
    entry = catalogue()["hayes_roth"]
    columns = [*entry.columns, "target"]
    write(tmp_path, "hayes_roth.csv", ",".join(columns) + "\n1,2,3,4,1\n2,2,,4,2\n")
    got = load("hayes_roth", tmp_path)
    assert all(got.X[c].dtype == "category" for c in got.X)
    assert got.X.iloc[0].tolist() == ["1", "2", "3", "4"]
    assert got.X.isna().sum().sum() == 1
    write(tmp_path, "hayes_roth.csv", "other,target\n1,1\n2,2\n")
    assert load("hayes_roth", tmp_path).X["other"].dtype == np.float64


def test_environment_names_the_folder(tmp_path, home, monkeypatch):
    write(tmp_path, "tiny.csv", "a,target\n1,x\n")
    monkeypatch.setenv("VENNFOREST_DATA", str(tmp_path))
    assert load("tiny").X.shape == (1, 1)
    other = tmp_path / "other"
    write(other, "tiny.csv", "a,target\n1,x\n2,y\n")
    assert load("tiny", other).X.shape == (2, 1)


def test_damaged_files_are_refused(tmp_path, home):
    write(tmp_path, "a.csv", "x,label\n1,2\n")
    with pytest.raises(ValueError, match="must have a column target"):
        load("a", tmp_path)
    write(tmp_path, "b.csv", "x,target\n1,u\n2,\n")
    with pytest.raises(ValueError, match="got none in row 1"):
        load("b", tmp_path)
    columns = [*catalogue()["iris"].columns, "target"]
    write(tmp_path, "iris.csv", ",".join(columns) + "\n1,2,three,4,a\n")
    with pytest.raises(ValueError, match=f"column {columns[2]} of iris must hold numbers"):
        load("iris", tmp_path)


def test_the_error_names_all_three_places(tmp_path, home):
    with pytest.raises(FileNotFoundError) as caught:
        load("no-such-set", tmp_path)
    message = str(caught.value)
    for part in (
        "'no-such-set'",
        f"{tmp_path} has no no-such-set.csv or no-such-set.csv.gz",
        "VENNFOREST_DATA",
        f"cache ({home / 'vennforest'}",
        "OpenML (no ID there is known for this name)",
    ):
        assert part in message


def test_available_tells_the_place(tmp_path, home):
    write(tmp_path, "iris.csv.gz", "a,target\n1,x\n")
    write(home / "vennforest", "wine.csv.gz", "a,target\n1,x\n")
    lines = {line.name: line for line in available(tmp_path)}
    assert list(lines) == list(catalogue())
    assert lines["iris"].place == "folder"
    assert lines["wine"].place == "cache"
    assert lines["sonar"].place == "openml"
    assert lines["cleveland"].place is None
    assert (lines["iris"].rows, lines["iris"].features, lines["iris"].classes) == (150, 4, 3)


def test_without_pandas_the_error_says_what_to_install(tmp_path):
    write(tmp_path, "tiny.csv", "a,target\n1,x\n")
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from vennforest_experiments.datasets import available, load\n"
        "assert len(available()) > 40\n"
        "try:\n"
        f"    load('tiny', {str(tmp_path)!r})\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert "pip install 'vennforest[report]'" in done.stdout


# --- OpenML, played by a local server --------------------------------------------------------


class FakeOpenml:
    """Answers as OpenML does: description, features and qualities as JSON, data as ARFF."""

    def __init__(self):
        self.pages = {}
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                body = outer.pages.get(self.path)
                self.send_response(200 if body is not None else 404)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def serve(self, number, columns, rows, target, ignored=(), checksum=None):
        """Serve a table; ``columns`` maps names to None (numeric) or a list of values."""
        head = [
            f"@ATTRIBUTE '{name}' " + ("REAL" if values is None else "{" + ",".join(values) + "}")
            for name, values in columns.items()
        ]
        lines = ["@RELATION fake", *head, "@DATA", *(",".join(row) for row in rows)]
        arff = ("\n".join(lines) + "\n").encode()
        path = f"/data/v1/download/{number}/fake.arff"
        features = [
            {
                "index": str(at),
                "name": name,
                "data_type": "numeric" if values is None else "nominal",
                **({} if values is None else {"nominal_value": values}),
                "is_target": str(name == target).lower(),
                "is_ignore": str(name in ignored).lower(),
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for at, (name, values) in enumerate(columns.items())
        ]
        description = {
            "id": str(number),
            "name": "fake",
            "version": "1",
            "description": "played by a test",
            "format": "ARFF",
            "status": "active",
            "url": self.base + path,
            "file_id": "1",
            "md5_checksum": checksum or hashlib.md5(arff).hexdigest(),
        }
        quality = [{"name": "NumberOfInstances", "value": str(len(rows))}]
        api = "/api/v1/json/data"
        self.pages |= {
            f"{api}/{number}": json.dumps({"data_set_description": description}).encode(),
            f"{api}/features/{number}": json.dumps(
                {"data_features": {"feature": features}}
            ).encode(),
            f"{api}/qualities/{number}": json.dumps(
                {"data_qualities": {"quality": quality}}
            ).encode(),
            path: arff,
        }


@pytest.fixture
def server(monkeypatch):
    fake = FakeOpenml()
    api = f"{fake.base}/api/v1/json/data"
    monkeypatch.setattr(openml, "_DATA_INFO", api + "/{}")
    monkeypatch.setattr(openml, "_DATA_FEATURES", api + "/features/{}")
    monkeypatch.setattr(openml, "_DATA_QUALITIES", api + "/qualities/{}")
    monkeypatch.setattr(openml.time, "sleep", lambda seconds: None)
    yield fake
    fake.close()


def fake_rows(entry, rng):
    """Rows with the catalogue's class counts; every nominal value is a, b or missing."""
    for label, count in entry.class_counts.items():
        for _ in range(count):
            cells = [
                str(rng.choice(["a", "b", "?"])) if c in entry.nominal else f"{rng.normal():.6f}"
                for c in entry.columns
            ]
            yield [*cells, label]


def test_openml_by_number_and_then_the_cache(server, home):
    entry = catalogue()["tae"]
    assert 0 < len(entry.nominal) < entry.features
    rows = list(fake_rows(entry, np.random.default_rng(0)))
    columns = {c: ["a", "b"] if c in entry.nominal else None for c in entry.columns}
    server.serve(48, {**columns, "Class": list(entry.class_counts)}, rows, "Class")
    got = load("tae")
    assert got.X.shape == (entry.rows, entry.features)
    table = [
        ["?" if pd.isna(v) else v if isinstance(v, str) else f"{v:.6f}" for v in row]
        for row in got.X.itertuples(index=False)
    ]
    assert [[*cells, y] for cells, y in zip(table, got.y, strict=True)] == rows

    before = len(server.asked)
    again = load("tae")
    assert len(server.asked) == before
    pd.testing.assert_frame_equal(again.X, got.X)
    assert again.y.tolist() == got.y.tolist()
    assert {line.name: line.place for line in available()}["tae"] == "cache"
    assert [p.name for p in (home / "vennforest").iterdir()] == ["tae.csv.gz"]


def test_openml_under_other_names_is_taken_by_position(server, home):
    entry = catalogue()["haberman"]
    rows = list(fake_rows(entry, np.random.default_rng(1)))
    columns = {"Age at operation": None, "Year": None, "Nodes": None}
    server.serve(43, {**columns, "Survival_status": ["1", "2"]}, rows, "Survival_status")
    got = load("haberman")
    assert list(got.X.columns) == list(entry.columns)
    assert got.X.iloc[5].tolist() == [float(v) for v in rows[5][:3]]


def test_openml_extra_columns_are_left_out_where_all_ours_are_there(server, home):
    entry = catalogue()["wine"]
    rows = [["7", *row] for row in fake_rows(entry, np.random.default_rng(2))]
    columns = {"identifier": None, **dict.fromkeys(entry.columns)}
    server.serve(187, {**columns, "class": ["1", "2", "3"]}, rows, "class")
    assert list(load("wine").X.columns) == list(entry.columns)


def test_openml_target_that_is_not_the_default_one(server, home, recwarn):
    # There the number of drinks is the default target and the selector is set aside.
    entry = catalogue()["liver"]
    rows = list(fake_rows(entry, np.random.default_rng(3)))
    columns = {**dict.fromkeys(entry.columns), "selector": ["1", "2"]}
    server.serve(8, columns, rows, entry.columns[-1], ignored=["selector"])
    got = load("liver")
    assert got.y.tolist() == [row[-1] for row in rows]
    assert list(got.X.columns) == list(entry.columns)
    assert not recwarn.list


def test_openml_data_that_are_not_the_catalogues_are_refused(server, home):
    entry = catalogue()["iris"]
    rows = list(fake_rows(entry, np.random.default_rng(4)))
    columns = {**dict.fromkeys(entry.columns), "class": list(entry.class_counts)}
    server.serve(61, columns, rows[1:], "class")
    with pytest.raises(ValueError, match=r"class counts of iris, \[50, 50, 50\], got \[49, 50, 50"):
        load("iris")
    server.serve(
        61, {"only": None, "class": columns["class"]}, [[r[0], r[-1]] for r in rows], "class"
    )
    with pytest.raises(ValueError, match="must have the 4 features of iris, got 1: only"):
        load("iris")
    assert not (home / "vennforest").exists()


def test_openml_out_of_reach(server, home, recwarn):
    with pytest.raises(FileNotFoundError, match=r"OpenML \(ID 40: HTTP Error 404"):
        load("sonar")
    entry = catalogue()["iris"]
    rows = list(fake_rows(entry, np.random.default_rng(5)))
    columns = {**dict.fromkeys(entry.columns), "class": list(entry.class_counts)}
    server.serve(61, columns, rows, "class", checksum="0" * 32)
    with pytest.raises(FileNotFoundError, match=r"OpenML \(ID 61: .*md5"):
        load("iris")


def test_without_a_network_the_error_alone_speaks(server, home):
    server.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FileNotFoundError, match=r"OpenML \(ID 40: .*urlopen error"):
            load("sonar")


def test_a_cache_that_cannot_be_written_costs_nothing(server, home):
    home.mkdir()
    (home / "vennforest").write_text("a file where the folder should be")
    entry = catalogue()["iris"]
    rows = list(fake_rows(entry, np.random.default_rng(6)))
    columns = {**dict.fromkeys(entry.columns), "class": list(entry.class_counts)}
    server.serve(61, columns, rows, "class")
    assert load("iris").X.shape == (150, 4)


# --- the real data ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", catalogue())
def test_real_data_are_as_the_catalogue_says(real_data, name):
    if not any((Path(real_data) / f"{name}{e}").exists() for e in (".csv", ".csv.gz")):
        pytest.skip(f"{name} is not in the folder")
    entry, got = catalogue()[name], load(name, real_data)
    assert list(got.X.columns) == list(entry.columns)
    assert len(got.X) == entry.rows
    assert int(got.X.isna().sum().sum()) == entry.missing_cells
    labels, counts = np.unique(got.y, return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == dict(entry.class_counts)
