"""The command line: help, messages and exit codes."""

import json
import re
import subprocess
import sys

import pandas as pd
import pytest

from support.commands import refused, run
from vennforest.calibrators import METHODS
from vennforest.classifier.parameters import SOURCE_NAMES
from vennforest.commands import options
from vennforest.report.estimators import ESTIMATORS
from vennforest.report.words import templates

COMMANDS = ("fit", "predict", "report", "check", "calibrate", "apply", "sql", "watch", "show")
FAST = ("--folds", "2", "--trees", 20, "--methods", "venn-abers", "--jobs", "1")
FAST += ("--estimator", "mixed-forest")  # beside no others


def test_a_table_becomes_a_page_and_json(table, tmp_path, capsys, monkeypatch, pictures, draw_only):
    page, costs = tmp_path / "page.html", '{"no": {"no": 0, "yes": 1}, "yes": {"no": 3, "yes": 0}}'
    options = ("-t", "y", "-o", page, "--json", "--costs", costs, "--positive", "no", "--seed", 3)
    assert run("report", table, *options, *FAST) == 0
    said = capsys.readouterr()
    note, verdict, last = said.err.splitlines()
    assert note == "Note: 1 of 60 rows have no 'y' and are left out."
    assert verdict.startswith("Collect about") and last == f"Wrote {page}"
    text = page.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert all(part in text for part in ("data.csv", "1 of 60 rows have no", "image/svg+xml"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "page.html"]
    summary = json.loads(said.out)
    assert summary["report"] == str(page)
    assert summary["rows"] == 59 and summary["positive"] == "no"
    assert summary["settings"]["random_state"] == 3 and summary["settings"]["n_folds"] == 2
    assert set(summary["methods"]) == {"none", "venn-abers", "baseline"}
    assert 0 <= summary["methods"]["venn-abers"]["mean_cost"] <= 3
    # Another format gives the same, and a terminal is shown the progress.
    monkeypatch.setenv("FORCE_COLOR", "1")  # as rich is told that it writes to one
    pd.read_csv(table).to_parquet(tmp_path / "data.parquet")
    draw_only()
    assert run("report", tmp_path / "data.parquet", *options, *FAST) == 0
    said = capsys.readouterr()
    assert "Folds" in said.err and json.loads(said.out)["methods"] == summary["methods"]


def test_an_example_needs_no_table(tmp_path):
    assert run("report", "--example", "iris", "-o", tmp_path / "iris.html", *FAST) == 0
    assert "species" in (tmp_path / "iris.html").read_text("utf-8")


USERS_ERRORS = {
    "no file": (["nothing.csv", "-t", "y"], "no file nothing.csv"),
    "no column": (["{table}", "-t", "z"], "no column 'z'"),
    "no target": (["{table}"], "--target"),
    "no data": ([], "--example"),
    "both": (["{table}", "--example", "iris"], "not both"),
    "no example": (["--example", "cancer"], "got 'cancer': did you mean 'breast-cancer'?"),
    "no folder": (["{table}", "-t", "y", "-o", "none/page.html"], "there is no folder"),
    "a folder": (["{table}", "-t", "y", "-o", "."], "is a folder"),
    "folds": (["{table}", "-t", "y", "--folds", "1"], "--folds"),
    "jobs": (["{table}", "-t", "y", "--jobs", "0"], "n_jobs"),
    "method": (["{table}", "-t", "y", "--methods", "plat"], "'plat'"),
    "positive": (["{table}", "-t", "y", "--positive", "maybe"], "'maybe'"),
    "cost file": (["{table}", "-t", "y", "--costs", "none.json"], "no file none.json"),
}


@pytest.mark.parametrize("name", USERS_ERRORS)
def test_users_errors_are_one_sentence(name, table, tmp_path, capsys, monkeypatch):
    arguments, message = USERS_ERRORS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr("vennforest.forest.MixedForestClassifier.fit")  # nothing is trained before
    code = run("report", *(str(table) if a == "{table}" else a for a in arguments))
    out, err = capsys.readouterr()
    assert code == 2 and out == "" and message in err and "Traceback" not in err
    assert err.splitlines()[-1].startswith("Error: ")
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(["repot"], "report"), (["fit", "--targt", "y"], "--target"), (["zzz"], "zzz")],
)
def test_the_nearest_name_is_suggested(typed, meant, capsys):
    assert re.search(rf"{meant}\b", refused(capsys, *typed))


def test_our_errors_ask_for_a_report(table, tmp_path, capsys, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by\nnought")

    monkeypatch.setattr("vennforest.commands.report.evaluate", broken)
    monkeypatch.chdir(tmp_path)
    assert run("report", table, "-t", "y") == 3
    said = capsys.readouterr().err
    last = said.splitlines()[-1]
    assert all(part in last for part in ("ZeroDivisionError: by nought", "report this", "--debug"))
    assert "Traceback" not in said
    assert run("report", table, "-t", "y", "--debug") == 3
    assert "Traceback" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_help_names_what_comes_with_the_library(capsys):
    assert list(options.METHOD_CHOICES) == list(METHODS)
    assert set(options.SOURCES) <= set(SOURCE_NAMES)
    assert set(options.ESTIMATOR_NAMES) == set(ESTIMATORS)
    for command in ("fit", "report", "calibrate"):
        assert run(command, "--help") == 0
        assert set(METHODS) - {"none"} <= set(re.findall(r"[\w-]+", capsys.readouterr().out))


def test_missing_extras_are_named(table, capsys, monkeypatch):
    templates.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert run("report", table, "-t", "y", *FAST) == 2
    assert "pip install 'vennforest[all]'" in capsys.readouterr().err


def test_without_typer_one_sentence():
    code = (
        "import sys; sys.modules['typer'] = None\n"
        "from vennforest.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "pip install 'vennforest[all]'" in done.stderr


def test_help_and_version_are_shown(capsys):
    assert run() == 0
    out, err = capsys.readouterr()
    assert err == ""
    for word in ("predict", "show", "report", "--install-completion"):
        assert word in out
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("vennforest ")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_short(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(command, "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert 10 < len(lines) <= 60 and max(map(len, lines)) <= 80
