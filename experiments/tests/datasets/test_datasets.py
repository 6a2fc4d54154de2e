"""Data sets by name: where they are found, what types they get."""

import gzip
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from vennforest_experiments.datasets import available, catalogue, load, loading

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


# --- OpenML ----------------------------------------------------------------------------------


def openml_table(entry, seed=0):
    """Return a bunch as `fetch_openml` does, with the catalogue's class counts."""
    rng = np.random.default_rng(seed)
    y = np.repeat(list(entry.class_counts), list(entry.class_counts.values()))
    columns = {
        name: rng.choice(["a", "b"], len(y)) if name in entry.nominal else rng.normal(size=len(y))
        for name in entry.columns
    }
    return SimpleNamespace(data=pd.DataFrame(columns), target=pd.Series(y))


def test_openml_is_asked_by_number_and_then_the_cache(home, monkeypatch):
    entry, requests = catalogue()["tae"], []
    table = openml_table(entry)

    def fetch(**options):
        requests.append(options["data_id"])
        return table

    monkeypatch.setattr(loading, "fetch_openml", fetch)
    dataset, again = load("tae"), load("tae")
    assert requests == [entry.openml]
    assert dataset.X.shape == (entry.rows, entry.features)
    assert dataset.y.tolist() == again.y.tolist() == table.target.tolist()
    pd.testing.assert_frame_equal(again.X, dataset.X)
    assert {line.name: line.place for line in available()}["tae"] == "cache"


def test_openml_data_that_are_not_the_catalogues_are_refused(home, monkeypatch):
    table = openml_table(catalogue()["iris"])
    shorter = SimpleNamespace(data=table.data[1:], target=table.target[1:])
    monkeypatch.setattr(loading, "fetch_openml", lambda **options: shorter)
    with pytest.raises(ValueError, match=r"class counts of iris, \[50, 50, 50\], got \[49, 50, 50"):
        load("iris")
    narrow = SimpleNamespace(data=table.data.iloc[:, :1], target=table.target)
    monkeypatch.setattr(loading, "fetch_openml", lambda **options: narrow)
    with pytest.raises(ValueError, match="must have the 4 features of iris, got 1"):
        load("iris")
    assert not (home / "vennforest").exists()


def test_openml_out_of_reach(home, monkeypatch):
    def fetch(**options):
        raise OSError("no network")

    monkeypatch.setattr(loading, "fetch_openml", fetch)
    with pytest.raises(FileNotFoundError, match=r"OpenML \(ID 40: no network"):
        load("sonar")


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
