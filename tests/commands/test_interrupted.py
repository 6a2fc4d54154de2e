"""Full disks, faults and signals: one sentence, the exit code, and no file half-written."""

import os
import random
import signal
import tempfile

import numpy as np
import pandas as pd
import pytest

import vennforest
from support.children import (
    Child,
    few_rows_at_once,
)
from support.commands import run
from support.faults import KINDS, Faults
from vennforest.tables.files import read_table

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FIT = ("--trees", "5", "--jobs", "1")
REPORT = ("--folds", "2", "--trees", "5", "--methods", "platt", "--jobs", "1")


def make_table(n=80, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    frame = pd.DataFrame({"x": x, "word": rng.choice(["a", "b", None], n)})
    return frame.assign(y=np.where(x + rng.normal(size=n) / 2 > 0, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    make_table().to_csv(folder / "data.csv", index=False)
    assert run("fit", folder / "data.csv", "-t", "y", "-o", folder / "m.skops", *FIT) == 0
    return folder


def commands(folder, output):
    return {
        "fit": ("fit", folder / "data.csv", "-t", "y", "-o", output, *FIT),
        "predict": ("predict", folder / "m.skops", folder / "data.csv", "-o", output),
        "report": ("report", folder / "data.csv", "-t", "y", "-o", output, *REPORT),
    }


COMMANDS = ("fit", "predict", "report")
# --- outputs ---------------------------------------------------------------------------------


def whole(path):
    """Tell whether a file is what a command writes, to its end."""
    if path.suffix == ".skops":
        return vennforest.load(path) is not None
    if path.suffix == ".html":
        return path.read_text("utf-8").rstrip().endswith("</html>")
    return len(read_table(path)) == 80


OUTPUTS = {"fit": "o.skops", "predict": "o.parquet", "report": "o.html"}


def assert_survives(command, output, faults):
    """Run a command while something fails: the old file, or a new one, is there and whole."""
    output.write_text("old")
    with faults:
        code = run(*command)
    assert code in (0, 2)
    assert [path.name for path in output.parent.iterdir()] == [output.name]
    if code == 2:
        assert output.read_text() == "old"
    else:
        assert whole(output)
    return code


def every_fault(name, folder, tmp_path, capsys, places):
    output = tmp_path / OUTPUTS[name]
    command = commands(folder, output)[name]
    every = Faults(tmp_path)
    assert assert_survives(command, output, every) == 0
    assert {"open", "chmod", "fsync", "rename"} <= set(every.done)
    capsys.readouterr()
    for at in places(len(every.done)):
        for kind in KINDS if every.done[at] == "write" else KINDS[:2]:
            code = assert_survives(command, output, Faults(tmp_path, at, kind))
            said = capsys.readouterr().err.splitlines()
            if code == 0:  # zipfile opens a file again, in another mode
                assert every.done[at] == "open" and output.suffix == ".skops"
                continue
            why = "Input/output error" if kind == "broken" else "No space left on device"
            assert code == 2 and said[-1] == f"Error: {output} cannot be written: {why}", said
            assert not any("Traceback" in line for line in said)
    return len(every.done)


@pytest.mark.parametrize("name", COMMANDS)
def test_any_operation_on_a_file_may_fail(folder, tmp_path, capsys, name):
    """A few of them for each command: the first, the last, and some drawn between."""
    rng = random.Random(name)
    every_fault(name, folder, tmp_path, capsys,
                lambda n: sorted({0, n - 1, n - 2, *rng.sample(range(n), min(n, 2))}))  # fmt: skip


def predict(folder, output):
    return commands(folder, output)["predict"]


# --- inputs ----------------------------------------------------------------------------------


@FORKS
@pytest.mark.parametrize("role", ["table", "model", "costs"])
def test_a_pipe_as_input_does_not_hang(folder, tmp_path, role):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = {
        "model": ("predict", pipe, folder / "data.csv"),
        "table": ("predict", folder / "m.skops", pipe),
        "costs": (*commands(folder, tmp_path / "o.html")["report"], "--costs", pipe),
    }[role]
    code, _, err = Child(*command).wait()
    assert code == 2 and "pipe or a device" in err and err.count("\n") == 1


# --- being stopped ---------------------------------------------------------------------------

STOPS = ("SIGINT", "SIGTERM", "SIGHUP")
STOPPED = "Stopped: nothing was written.\n"


def long_work(folder, tmp_path, *functions):
    """Start a prediction of many rows, and wait until some are written."""
    pd.concat([make_table()] * 100).to_csv(tmp_path / "n.csv", index=False)
    command = ("predict", folder / "m.skops", tmp_path / "n.csv", "-o", tmp_path / "o.csv")
    work = Child(*command, before=(few_rows_at_once, *functions))
    # Not the empty file with which the output is tried first.
    work.wait_for(lambda: any(p.exists() and p.stat().st_size for p in tmp_path.glob(".*")))
    return work


@FORKS
@pytest.mark.parametrize("stop", STOPS)
def test_being_stopped_leaves_nothing_half_written(folder, tmp_path, stop):
    output = tmp_path / "o.csv"
    output.write_text("old")
    work = long_work(folder, tmp_path)
    work.signal(getattr(signal, stop))
    assert work.wait() == (130, "", STOPPED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.csv", "o.csv"]
    assert output.read_text() == "old"


def test_no_folder_of_data_sets_appears_in_the_home(monkeypatch):
    monkeypatch.delenv("SKB_DATA_DIRECTORY", raising=False)
    assert run("--version") == 0
    assert os.environ["SKB_DATA_DIRECTORY"] == tempfile.gettempdir()
