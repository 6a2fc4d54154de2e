"""The command ``vennforest-experiments``."""

import json

import pytest

from vennforest_experiments.cli import main
from vennforest_experiments.datasets import catalogue


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_datasets_are_listed(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("VENNFOREST_DATA", raising=False)
    (tmp_path / "iris.csv").write_text("a,target\n1,x\n")
    assert run("datasets", "--data-dir", tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(catalogue())
    (line,) = (line for line in lines if line.startswith("iris "))
    assert line.split()[1:5] == ["150", "4", "3", "folder"]
    assert run("datasets", "--json") == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["adult"]["rows"] == 48842
    assert run("datasets", "--data-dir", tmp_path / "none") == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("folder_from", ["option", "environment"])
def test_output_must_not_be_the_folder_of_data_sets(folder_from, tmp_path, capsys, monkeypatch):
    (tmp_path / "iris.csv").write_text("a,target\n1,x\n")
    command = ["reproduce", "johansson2018"]
    if folder_from == "option":
        command += ["--data-dir", tmp_path]
    else:
        monkeypatch.setenv("VENNFOREST_DATA", str(tmp_path))
    assert run(*command, "-o", tmp_path) == 2
    assert "the output must not be the folder of data sets" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["iris.csv"]


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_control_characters_are_not_printed(capsys, debug):
    name = "a\x1b]0;owned\x07\x9b2J\u202egpj.exe\x7f"
    for command in (("datasets", "--data-dir", name), ("reproduce", name)):
        assert run(*command, *debug) == 2
        out, err = capsys.readouterr()
        assert err
        assert not set((out + err).replace("\n", "")) & set("\x1b\x07\x9b\u202e\x7f")


def test_small_run_prints_tables_and_writes_a_page(tmp_path, capsys):
    rows = "".join(f"{i % 7},{i % 5},{i % 3},{int(i % 7 + i % 5 > 5)}\n" for i in range(60))
    (tmp_path / "haberman.csv").write_text("a,b,c,target\n" + rows)
    command = ("reproduce", "johansson2018", "--data-dir", tmp_path, "--datasets", "haber")
    small = ("--repeats", 1, "--folds", 2, "--set", "trees=5", "--jobs", 1)
    assert run(*command, *small, "-o", tmp_path / "results") == 0
    assert "haber" in capsys.readouterr().out
    assert (tmp_path / "results" / "index.html").stat().st_size


def test_errors_are_one_sentence(capsys):
    for arguments in (("reproduce", "no-paper"), ("no-command",), ("reproduce",)):
        assert run(*arguments) == 2
        assert capsys.readouterr().err.startswith("Error: ")
    assert run("reproduce", "bostrom2008", "--set", "trees") == 2
    assert "NAME=VALUE" in capsys.readouterr().err
