"""The command line: what it writes, what it says, and how it fails."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "skrub", "matplotlib", "jinja2", "pyarrow"):
    pytest.importorskip(extra)

from vennforest import cli  # noqa: E402

FAST = ("--folds", "2", "--trees", "10", "--methods", "venn-abers", "--jobs", "1")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"x": x, "word": rng.choice(["a", "b", None], 60)})
    frame["y"] = np.where(x + rng.normal(size=60) / 2 > 0, "yes", "no")
    frame.loc[0, "y"] = None
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


START = "from vennforest.cli import main; main()"


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def test_a_table_becomes_a_page(table, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert run("report", table, "--target", "y", "-o", page, *FAST) == 0
    said = capsys.readouterr()
    assert said.out == ""
    note, *verdict = said.err.splitlines()
    assert note == "Note: 1 of 60 rows have no 'y' and are left out."
    assert len(verdict) == 1 and verdict[0].startswith("Collect about")
    text = page.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert "data.csv" in text and "1 of 60 rows have no" in text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "page.html"]


def test_json_for_machines(table, tmp_path, capsys):
    page, costs = tmp_path / "page.html", '{"no": {"no": 0, "yes": 1}, "yes": {"no": 3, "yes": 0}}'
    code = run("report", table, "-t", "y", "-o", page, "--json", "--costs", costs,
               "--positive", "no", "--seed", "3", *FAST)  # fmt: skip
    assert code == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["report"] == str(page) and page.exists()
    assert summary["rows"] == 59 and summary["positive"] == "no"
    assert summary["settings"]["random_state"] == 3 and summary["settings"]["n_folds"] == 2
    assert set(summary["methods"]) == {"none", "venn-abers", "baseline"}
    assert 0 <= summary["methods"]["venn-abers"]["mean_cost"] <= 3


def test_examples_and_formats_give_the_same(table, tmp_path, capsys):
    assert run("report", "--example", "iris", "-o", tmp_path / "iris.html", *FAST) == 0
    assert "species" in (tmp_path / "iris.html").read_text("utf-8")
    numbers = []
    pd.read_csv(table).to_parquet(tmp_path / "data.parquet")
    for path in (table, tmp_path / "data.parquet"):
        capsys.readouterr()
        assert run("report", path, "-t", "y", "-o", tmp_path / "p.html", "--json", *FAST) == 0
        numbers.append(json.loads(capsys.readouterr().out)["methods"])
    assert numbers[0] == numbers[1]


USERS_ERRORS = {
    "no file": (["nothing.csv", "-t", "y"], "no file nothing.csv"),
    "no column": (["{table}", "-t", "z"], "no column 'z'"),
    "no target": (["{table}"], "--target"),
    "no data": ([], "--example"),
    "both": (["{table}", "--example", "iris"], "not both"),
    "no example": (["--example", "cancer"], "got 'cancer': did you mean 'breast-cancer'?"),
    "no folder": (["{table}", "-t", "y", "-o", "none/page.html"], "no folder none"),
    "a folder": (["{table}", "-t", "y", "-o", "."], "is a folder"),
    "folds": (["{table}", "-t", "y", "--folds", "1"], "--folds"),
    "word": (["{table}", "-t", "y", "--folds", "many"], "--folds"),
    "trees": (["{table}", "-t", "y", "--trees", "0"], "--trees"),
    "jobs": (["{table}", "-t", "y", "--jobs", "0"], "n_jobs"),
    "method": (["{table}", "-t", "y", "--methods", "plat"], "'plat'"),
    "positive": (["{table}", "-t", "y", "--positive", "maybe"], "'maybe'"),
    "costs": (["{table}", "-t", "y", "--costs", "[[1"], "JSON with a fault"),
    "cost file": (["{table}", "-t", "y", "--costs", "none.json"], "no file none.json"),
    "drop": (["{table}", "-t", "y", "--drop", "z"], "no column 'z'"),
    "all dropped": (["{table}", "-t", "y", "--drop", "x", "--drop", "word"], "besides the target"),
    "option": (["{table}", "--tagret", "y"], "--tagret"),
    "continuous": (["{table}", "-t", "x"], "a quantity"),
    "subforest": (["{table}", "-t", "y", "--subforest", "most"], "subforest"),
}


@pytest.mark.parametrize("name", USERS_ERRORS)
def test_users_errors_are_one_sentence(name, table, tmp_path, capsys, monkeypatch):
    arguments, message = USERS_ERRORS[name]
    monkeypatch.chdir(tmp_path)
    code = run("report", *(str(table) if a == "{table}" else a for a in arguments))
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert said.err.startswith("Error: ") or "\nError: " in said.err
    assert message in said.err and "Traceback" not in said.err
    assert said.err.splitlines()[-1].startswith("Error: ")
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_an_unknown_command_is_the_users_error(capsys):
    assert run("reprot") == 2
    assert "reprot" in capsys.readouterr().err


def test_our_errors_ask_for_a_report(table, tmp_path, capsys, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by\nnought")

    monkeypatch.setattr("vennforest.commands.report.evaluate", broken)
    monkeypatch.chdir(tmp_path)
    assert run("report", table, "-t", "y") == 1
    said = capsys.readouterr().err
    last = said.splitlines()[-1]
    assert "ZeroDivisionError: by nought" in last and "report this" in last and "--debug" in last
    assert "Traceback" not in said
    assert run("report", table, "-t", "y", "--debug") == 1
    assert "Traceback" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_debug_is_what_was_parsed(table, capsys):
    """Not where the same letters are another option's value."""
    assert run("report", table, "-t=--debug") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_help_names_every_method(capsys):
    from vennforest.calibrators import METHODS

    for command in ("fit", "report", "calibrate"):
        assert run(command, "--help") == 0
        words = set(re.findall(r"[\w-]+", capsys.readouterr().out))
        assert set(METHODS) - {"none"} <= words


def test_missing_extras_are_named(table, capsys, monkeypatch):
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


def test_without_a_command_the_help_is_shown(capsys):
    assert run() == 0
    out, err = capsys.readouterr()
    assert err == ""
    for word in ("predict", "show", "report", "--install-completion"):
        assert word in out


def test_shells_complete_commands():
    environment = {
        **os.environ,
        "_VENNFOREST_COMPLETE": "complete_bash",
        "COMP_WORDS": "vennforest pr",
    }
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv = ['vennforest']; {START}"],
        env={**environment, "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["predict"]


def test_version_and_help(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("vennforest ")
    assert run("report", "--help") == 0
    text = capsys.readouterr().out
    for option in ("--target", "--example", "--costs", "--json", "--positive", "--seed"):
        assert option in text


def test_help_is_short(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in ("fit", "predict", "report", "check", "calibrate", "apply", "watch", "show"):
        assert run(command, "--help") == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 45 and max(map(len, lines)) <= 80


@pytest.mark.skipif(sys.platform == "win32", reason="another process cannot be interrupted there")
def test_stopping_leaves_nothing_half_written(table, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old")
    ready = tmp_path / "ready"
    code = (
        "import sys, pathlib, vennforest.report.training as folds\n"
        "from vennforest.cli import main\n"
        "real = folds._predicted\n"
        "def slow(*a):\n"
        f"    pathlib.Path({str(ready)!r}).touch()\n"
        "    import time; time.sleep(60)\n"
        "    return real(*a)\n"
        "folds._predicted = slow\n"
        "sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "report", str(table), "-t", "y", "-o", str(page), *FAST],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(600):
            if ready.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "Stopped: nothing was written."
    assert page.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "page.html", "ready"]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_progress_on_a_terminal(table, tmp_path):
    main_end, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-m", "vennforest", "report", str(table), "-t", "y", *FAST,
         "-o", str(tmp_path / "page.html")],
        stderr=terminal, stdout=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    os.close(terminal)
    said = b""
    try:
        while part := _read(main_end):
            said += part
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        os.close(main_end)
    assert "Folds" in said.decode() and "Wrote" in said.decode()


def _read(end):
    try:
        return os.read(end, 1 << 16)
    except OSError:  # the other end is closed
        return b""
