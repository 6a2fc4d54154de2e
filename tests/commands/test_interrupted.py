"""Full disks and signals: one sentence, the exit code, and no file half-written."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

from support.commands import refused, run
from vennforest.__main__ import main as vennforest_command
from vennforest.commands import predict
from vennforest.tables.write import table_as_text

FIT = ("--trees", "5", "--jobs", "1")
REPORT = ("--folds", "2", "--trees", "5", "--methods", "platt", "--jobs", "1")
REPORT += ("--estimator", "mixed-forest")  # beside no others


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


@pytest.fixture
def full_disk():
    """Let a file have at most 1,000 bytes."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    ("name", "output"),
    [("fit", "o.skops"), ("predict", "o.parquet"), ("predict", "o.csv"), ("report", "o.html")],
)
def test_a_full_disk_leaves_the_old_file(folder, tmp_path, capsys, full_disk, name, output):
    output = tmp_path / output
    output.write_text("old")
    assert run(*commands(folder, output)[name]) == 2
    said = capsys.readouterr().err
    assert said.splitlines()[-1] == f"Error: {output} cannot be written: File too large"
    assert "Traceback" not in said
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("role", ["table", "model", "costs"])
def test_a_pipe_as_input_does_not_hang(folder, tmp_path, capsys, role):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = {
        "model": ("predict", pipe, folder / "data.csv"),
        "table": ("predict", folder / "m.skops", pipe),
        "costs": (*commands(folder, tmp_path / "o.html")["report"], "--costs", pipe),
    }[role]
    assert "pipe or a device" in refused(capsys, *command)


SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


@pytest.fixture
def handlers():
    """Give signals the actions that a new process has, also where the tests run under nohup."""
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    actions = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        is_interrupt = number == signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
    yield
    for number, action in actions.items():
        signal.signal(number, action)


@pytest.mark.parametrize("stop", SIGNALS)
def test_being_stopped_leaves_nothing_half_written(
    folder, tmp_path, capsys, monkeypatch, handlers, stop
):
    output, n_parts = tmp_path / "o.csv", 0
    output.write_text("old")

    def as_text(table, escape_formulas):
        nonlocal n_parts
        n_parts += 1
        if n_parts == 3:  # that of the header, and one that is written
            assert [path for path in tmp_path.glob(".*") if path.stat().st_size]
            signal.raise_signal(getattr(signal, stop))
        return table_as_text(table, escape_formulas)

    monkeypatch.setattr(predict, "table_as_text", as_text)
    monkeypatch.setattr(predict, "ROWS_PREDICTED_AT_ONCE", 20)
    monkeypatch.setattr("sys.argv", ["vennforest", *map(str, commands(folder, output)["predict"])])
    assert vennforest_command() == 130
    assert capsys.readouterr() == (
        "",
        "Stopped: files are whole or as they were; standard output may end early.\n",
    )
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
