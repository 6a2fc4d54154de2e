"""The commands ``datasets`` and ``reproduce``."""

import json

import pytest

from vennforest_experiments.__main__ import main
from vennforest_experiments.datasets import catalogue


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_datasets_are_listed(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("VENNFOREST_DATA", raising=False)
    (tmp_path / "iris.csv").write_text("a,target\n1,x\n")
    assert run("datasets", "--data-dir", tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(catalogue())
    (line,) = (one for one in lines if one.startswith("iris "))
    assert line.split()[1:5] == ["150", "4", "3", "folder"]
    assert run("datasets", "--json") == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert listed["adult"]["rows"] == 48842
    assert run("datasets", "--data-dir", tmp_path / "none") == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("how", ["itself", "symbolic", "environment"])
def test_results_are_kept_apart_from_data_sets(how, tmp_path, capsys, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    (data / "iris.csv").write_text("a,target\n1,x\n")
    command = ["reproduce", "johansson2018", "--data-dir", str(data)]
    if how == "environment":
        command = command[:2]
        monkeypatch.setenv("VENNFOREST_DATA", str(data))
    output = data
    if how == "symbolic":
        output = tmp_path / "other"
        output.symlink_to(data)
    assert main([*command, "-o", str(output)]) == 2
    assert "the output must not be the folder of data sets" in capsys.readouterr().err
    assert [path.name for path in data.iterdir()] == ["iris.csv"]


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_names_cannot_steer_the_terminal(capsys, debug):
    evil = "a\x1b]0;owned\x07\x9b2J\u202egpj.exe\x7f"
    for command in (("datasets", "--data-dir", evil), ("reproduce", evil)):
        assert run(*command, *debug) == 2
        out, err = capsys.readouterr()
        assert err
        assert not set((out + err).replace("\n", "")) & set("\x1b\x07\x9b\u202e\x7f")


def test_a_small_run_prints_its_tables(tmp_path, capsys):
    rows = "".join(f"{i % 7},{i % 5},{i % 3},{int(i % 7 + i % 5 > 5)}\n" for i in range(60))
    (tmp_path / "haberman.csv").write_text("a,b,c,target\n" + rows)
    command = ("reproduce", "johansson2018", "--data-dir", tmp_path, "--datasets", "haber")
    small = ("--repeats", 1, "--folds", 2, "--set", "trees=5", "--jobs", 1)
    assert run(*command, *small, "-o", tmp_path / "results") == 0
    assert "haber" in capsys.readouterr().out
    assert (tmp_path / "results" / "index.html").stat().st_size
