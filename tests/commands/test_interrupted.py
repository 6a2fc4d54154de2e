"""Full disks and signals: one sentence, the exit code, and no file half-written."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd
import pytest

from support.commands import refused, run

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


# --- outputs ---------------------------------------------------------------------------------


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
    [
        ("fit", "o.skops"),
        ("predict", "o.parquet"),
        ("predict", "o.csv"),
        ("report", "o.html"),
    ],
)
def test_a_full_disk_leaves_the_old_file(folder, tmp_path, capsys, full_disk, name, output):
    output = tmp_path / output
    output.write_text("old")
    assert run(*commands(folder, output)[name]) == 2
    said = capsys.readouterr().err
    assert said.splitlines()[-1] == f"Error: {output} cannot be written: File too large"
    assert "Traceback" not in said
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


# --- inputs ----------------------------------------------------------------------------------


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


# --- being stopped ---------------------------------------------------------------------------

# Signals have their default action, also where the tests run under nohup. Few rows are predicted at
# once, so that there is time to stop.
STOPPABLE = """
import signal, sys
for name in ("SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from vennforest.__main__ import main
from vennforest.commands import predict
predict.ROWS_AT_ONCE = 20
sys.exit(main())
"""


@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_being_stopped_leaves_nothing_half_written(folder, tmp_path, stop):
    output = tmp_path / "o.csv"
    output.write_text("old")
    pd.concat([make_table()] * 100).to_csv(tmp_path / "n.csv", index=False)
    command = ("predict", folder / "m.skops", tmp_path / "n.csv", "-o", output)
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPABLE, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Not the empty file with which the output is tried first.
    while process.poll() is None and not any(
        part.stat().st_size for part in tmp_path.glob(".*") if part.exists()
    ):
        time.sleep(0.005)
    process.send_signal(getattr(signal, stop))
    assert process.communicate(timeout=60) == ("", "Stopped: nothing was written.\n")
    assert process.returncode == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.csv", "o.csv"]
    assert output.read_text() == "old"


def test_no_folder_of_data_sets_appears_in_the_home(monkeypatch):
    monkeypatch.delenv("SKB_DATA_DIRECTORY", raising=False)
    assert run("--version") == 0
    assert os.environ["SKB_DATA_DIRECTORY"] == tempfile.gettempdir()
