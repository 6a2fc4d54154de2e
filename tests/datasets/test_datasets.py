"""Data sets by name: where they are found, what types they get, how the papers take them."""

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

from vennforest.datasets import Dataset, available, catalogue, load
from vennforest.papers.protocol.problems import load_problem, one_hot, prepare, problems

PAPERS = ["johansson2018", "bostrom2008", "vovk2014", "niculescu2005"]


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


def test_every_paper_has_its_problems():
    assert [len(problems(p)) for p in PAPERS] == [22, 34, 9, 4]
    for paper in PAPERS:
        for name in problems(paper).values():
            assert paper in catalogue()[name].papers
        marked = {e.name for e in catalogue().values() if paper in e.papers}
        assert marked == set(problems(paper).values())


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
        "OpenML (no data set of this name has a number there)",
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
        "from vennforest.datasets import available, load\n"
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
    with pytest.raises(FileNotFoundError, match=r"OpenML \(number 40: HTTP Error 404"):
        load("sonar")
    entry = catalogue()["iris"]
    rows = list(fake_rows(entry, np.random.default_rng(5)))
    columns = {**dict.fromkeys(entry.columns), "class": list(entry.class_counts)}
    server.serve(61, columns, rows, "class", checksum="0" * 32)
    with pytest.raises(FileNotFoundError, match=r"OpenML \(number 61: .*md5"):
        load("iris")


def test_without_a_network_the_error_alone_speaks(server, home):
    server.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FileNotFoundError, match=r"OpenML \(number 40: .*urlopen error"):
            load("sonar")


def test_a_cache_that_cannot_be_written_costs_nothing(server, home):
    home.mkdir()
    (home / "vennforest").write_text("a file where the folder should be")
    entry = catalogue()["iris"]
    rows = list(fake_rows(entry, np.random.default_rng(6)))
    columns = {**dict.fromkeys(entry.columns), "class": list(entry.class_counts)}
    server.serve(61, columns, rows, "class")
    assert load("iris").X.shape == (150, 4)


# --- preparation -----------------------------------------------------------------------------


def frame(**columns):
    return pd.DataFrame(
        {
            name: pd.Categorical(values) if isinstance(values[-1], str) else np.array(values, float)
            for name, values in columns.items()
        }
    )


def test_one_hot():
    X = frame(size=[1, np.nan, 3], two=["p", "q", "p"], gap=["u", None, "v"], many=["c", "a", "b"])
    got = one_hot(X)
    assert list(got.columns) == ["size", "two=q", "gap=u", "gap=v", "many=a", "many=b", "many=c"]
    np.testing.assert_array_equal(
        got.to_numpy(),
        [[1, 0, 1, 0, 0, 0, 1], [np.nan, 1, 0, 0, 1, 0, 0], [3, 0, 0, 1, 0, 1, 0]],
    )
    assert list(one_hot(X, every_value=True).columns)[1:3] == ["two=p", "two=q"]


def test_johansson_fills_then_leaves_out_equal_rows_whatever_the_label():
    X = frame(a=[1, 3, np.nan, 2, 1], b=["x", "x", None, "x", "x"])
    got, y = prepare(Dataset("colic", X, np.array(list("nyyny"))), "johansson2018")
    # The mean of 1, 3, 2, 1 and the commonest name fill the third row.
    np.testing.assert_array_equal(got.to_numpy()[:, 0], [1, 3, 1.75, 2])
    assert y.tolist() == ["n", "y", "y", "n"]


def test_johansson_german_lacks_eight_attributes_as_published():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 50, size=(60, 20)).astype(float)).add_prefix("a")
    X.iloc[7, 8:] = X.iloc[3, 8:]
    dataset = Dataset("german", X, np.repeat(["good", "bad"], 30))
    got, y = prepare(dataset, "johansson2018")
    assert list(got.columns) == list(X.columns[8:])
    assert len(got) == len(y) == 59
    assert prepare(dataset, "johansson2018", as_published=False)[0].shape == (60, 20)


def test_johansson_spect_has_the_test_rows_first_and_lost_a_row():
    X = pd.DataFrame({"number": np.arange(267.0)})
    dataset = Dataset("spect", X, np.arange(267).astype(str))
    got, y = prepare(dataset, "johansson2018")
    assert got["number"].tolist() == [*range(80, 267), *range(1, 80)]
    assert y.tolist() == [str(i) for i in [*range(80, 267), *range(1, 80)]]
    assert len(prepare(dataset, "johansson2018", as_published=False)[0]) == 267


def test_johansson_vote_is_a_mixture_as_published(tmp_path, home):
    squares = [*catalogue()["tictactoe"].columns]
    boards = ["xxxxooxoo", "bbbbbbbbb", "oxbxoxxob", "oxbxoxbox", "boxxoxbox"]
    rows = [",".join([*board, "positive"]) for board in boards]
    write(tmp_path, "tictactoe.csv", "\n".join([",".join([*squares, "target"]), *rows]) + "\n")
    issues = {f"issue{i}": ["n", "y", "y"] for i in range(16)}
    dataset = Dataset("vote", frame(**issues), np.array(["democrat", "republican", "democrat"]))
    got, y = prepare(dataset, "johansson2018", data_dir=tmp_path)
    # Rows 4 and 5 of the board table follow: o=010, x=001, b=100, cut to sixteen columns and the
    # seventeenth as label. The second vote of "all yes" is a duplicate.
    codes = {"b": "100", "o": "010", "x": "001"}
    below = ["".join(codes[square] for square in board)[:17] for board in boards[3:]]
    expected = ["0" * 16 + "0", "1" * 16 + "1", *below]
    assert [
        "".join(f"{v:.0f}" for v in r) + str(t) for r, t in zip(got.values, y, strict=True)
    ] == (expected)
    honest, labels = prepare(dataset, "johansson2018", as_published=False)
    assert labels.tolist() == ["democrat", "republican"]
    assert len(honest) == 2


def test_niculescu_problems():
    letters = np.array(list("AMNOZ"))
    dataset = Dataset("letter", frame(a=[1, 2, 3, 4, 5]), letters)
    assert prepare(dataset, "niculescu2005", problem="LETTER.P1")[1].tolist() == [0, 0, 0, 1, 0]
    assert prepare(dataset, "niculescu2005", problem="LETTER.P2")[1].tolist() == [1, 1, 0, 0, 0]
    with pytest.raises(ValueError, match=r"problem must be one of \['LETTER.P1', 'LETTER.P2'\]"):
        prepare(dataset, "niculescu2005")
    X = frame(age=[1, 2, np.nan, 4], kind=["a", "b", "c", "a"])
    X2, y = prepare(Dataset("adult", X, np.array(["<=50K", ">50K", ">50K", ">50K"])), PAPERS[3])
    # The row with a missing cell goes, and with it the only "c".
    assert list(X2.columns) == ["age", "kind=a", "kind=b"]
    assert y.tolist() == [0, 1, 1]
    cover = Dataset("covtype_30k", frame(a=[1, 2, 3]), np.array(["1", "2", "7"]))
    assert prepare(cover, "niculescu2005")[1].tolist() == [1, 0, 0]


def test_wrong_papers_and_data_sets_are_refused(tmp_path):
    iris = Dataset("iris", frame(a=[1, 2]), np.array(["x", "y"]))
    with pytest.raises(ValueError, match="paper must be one of"):
        prepare(iris, "breiman2001")
    with pytest.raises(ValueError, match=r"dataset must be one of .* for vovk2014, got 'iris'"):
        prepare(iris, "vovk2014")
    with pytest.raises(ValueError, match=r"problem must be one of .*got 'Iris'"):
        load_problem("vovk2014", "Iris", tmp_path)


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


REMAIN = {
    "colic": 357,
    "german": 955,
    "haber": 283,
    "heartC": 302,
    "heartH": 293,
    "iono": 350,
    "kc1": 1192,
    "kc2": 369,
    "kc3": 325,
    "liver": 341,
    "mw": 379,
    "pc4": 1343,
    "spect": 218,
    "wbc": 463,
    "vote": 517,
}


@pytest.mark.parametrize("problem", problems("johansson2018"))
def test_johansson_sizes(real_data, problem):
    name = problems("johansson2018")[problem]
    X, y = load_problem("johansson2018", problem, real_data)
    assert len(X) == len(y) == REMAIN.get(problem, catalogue()[name].rows)
    assert X.notna().all().all()
    assert (X.dtypes == np.float64).all()
    if problem == "german":
        assert X.shape[1] == 27
    if problem == "vote":
        assert X.shape[1] == 16


def test_niculescu_attributes_and_shares(real_data):
    X, y = load_problem("niculescu2005", "ADULT", real_data)
    assert X.shape == (45222, 104)
    assert round(100 * y.mean()) == 25
    X, y = load_problem("niculescu2005", "COV_TYPE", real_data)
    assert X.shape[1] == 54
    assert round(100 * y.mean()) == 36


@pytest.mark.parametrize("paper", ["bostrom2008", "vovk2014"])
def test_other_papers_take_every_row(real_data, paper):
    for problem, name in problems(paper).items():
        X, y = load_problem(paper, problem, real_data)
        assert len(X) == len(y) == catalogue()[name].rows
        assert len(np.unique(y)) == catalogue()[name].classes
        assert (X.dtypes == np.float64).all()
