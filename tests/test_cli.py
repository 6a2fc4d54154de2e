"""The command line: help, messages and exit codes."""

import re
import sys

import pytest

from support.commands import FAST, refused, run
from vennforest.report.words import templates

COMMANDS = ("fit", "predict", "report", "check", "calibrate", "apply", "sql", "watch", "show")


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


def test_missing_extras_are_named(table, capsys, monkeypatch):
    templates.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert run("report", table, "-t", "y", *FAST) == 2
    assert "pip install 'vennforest[all]'" in capsys.readouterr().err


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
