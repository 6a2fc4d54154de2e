"""Full disks, faults and signals: one sentence, the exit code, and no file half-written."""

import os
import random
import signal
import stat
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "matplotlib", "jinja2", "pyarrow", "skops"):
    pytest.importorskip(extra)

import vennforest  # noqa: E402
from support.children import (  # noqa: E402
    Child,
    few_rows_at_once,
    ignore_hangups,
    small_files_only,
)
from support.commands import refused, run  # noqa: E402
from support.faults import KINDS, Faults  # noqa: E402
from vennforest._files import OutputError, check_output, written_whole  # noqa: E402
from vennforest._validation import InputError  # noqa: E402
from vennforest.tables.files import read_table  # noqa: E402

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
SUFFIXES = {"fit": ".skops", "predict": ".csv", "report": ".html"}

# --- outputs ---------------------------------------------------------------------------------


@FORKS
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_said_and_leaves_the_old_file(folder, tmp_path, name):
    """No file may grow beyond 1,000 bytes: what every library says of that is one sentence."""
    output = tmp_path / f"out{SUFFIXES[name]}"
    output.write_text("old")
    code, out, err = Child(*commands(folder, output)[name], before=(small_files_only,)).wait()
    assert code == 2 and out == "" and "Traceback" not in err, err
    assert err.splitlines()[-1] == f"Error: {output} cannot be written: File too large"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(output.name, "old")]


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


def test_links_that_lead_nowhere(folder, tmp_path, capsys):
    a, b, new = (tmp_path / f"{stem}.csv" for stem in ("a", "b", "new"))
    outside = tmp_path / "none" / new.name
    for link, target in ((a, new), (b, outside)):
        link.symlink_to(target)
    assert run(*predict(folder, a)) == 0  # made where the link leads
    assert new.stat().st_size and a.is_symlink()
    message = f"there is no folder {outside.parent}: make it first"
    assert refused(capsys, *predict(folder, b)) == message


def test_names_that_are_too_long(folder, tmp_path, capsys):
    name = "é" * 125  # 254 bytes with the suffix
    message = "cannot be written: File name too long"
    assert message in refused(capsys, *predict(folder, tmp_path / f"{name}é.csv"))
    assert run(*predict(folder, tmp_path / f"{name}.csv")) == 0
    message = refused(capsys, "predict", tmp_path / ("n" * 300), folder / "data.csv")
    assert message.endswith(": File name too long")


def test_pipes_and_devices_are_no_outputs(folder, tmp_path, capsys):
    pipe, null = tmp_path / "pipe.csv", tmp_path / "null.csv"
    os.mkfifo(pipe)
    null.symlink_to(os.devnull)
    for output in (pipe, null):
        message = refused(capsys, *predict(folder, output))
        assert "is not a file that can be written to" in message
    assert stat.S_ISFIFO(pipe.stat().st_mode) and stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_protected_output_stays(folder, tmp_path, capsys):
    output = tmp_path / "o.csv"
    output.write_text("old")
    output.chmod(0o400)
    message = refused(capsys, *predict(folder, output))
    assert "is not a file that can be written to" in message and output.read_text() == "old"


def test_python_is_told_as_well(tmp_path):
    missing = written_whole(tmp_path / "none" / "o")
    with pytest.raises(OutputError, match="cannot be written: No such file"), missing:
        pass
    with pytest.raises(InputError, match="File name too long"):
        check_output(tmp_path / ("n" * 256))


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


def test_a_file_whose_name_is_not_utf_8_is_refused(folder, tmp_path, capsys):
    source = tmp_path / os.fsdecode(b"caf\xe9.csv")
    try:
        source.write_bytes((folder / "data.csv").read_bytes())
    except OSError:
        pytest.skip("names are text in this file system")
    message = refused(capsys, "predict", folder / "m.skops", source, "-o", tmp_path / "o.csv")
    assert "caf\\udce9.csv cannot be read: " in message


def test_no_memory_is_said(folder, tmp_path, capsys, monkeypatch):
    def greedy(*_, **__):
        raise np._core._exceptions._ArrayMemoryError((10**9, 10**9), np.dtype(float))

    monkeypatch.setattr("vennforest.batch.BatchPredictor._predict", greedy)
    message = refused(capsys, *predict(folder, tmp_path / "o.csv"))
    assert message.startswith("there is not enough memory: ")
    assert not list(tmp_path.iterdir())


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


@FORKS
def test_a_hangup_is_ignored_under_nohup(folder, tmp_path):
    work = long_work(folder, tmp_path, ignore_hangups)
    work.signal(signal.SIGHUP)
    assert work.wait()[0] == 0
    assert len(read_table(tmp_path / "o.csv")) == 8000


@FORKS
@pytest.mark.parametrize("name", ["fit", "predict"])
def test_being_killed_leaves_the_old_file_or_the_new(folder, tmp_path, name):
    """At moments drawn between its start and its end: SIGKILL cannot be answered."""
    output = tmp_path / OUTPUTS[name]
    command = commands(folder, output)[name]
    start = time.monotonic()
    assert Child(*command).wait()[0] == 0
    longest, rng = time.monotonic() - start, random.Random(name)
    for _ in range(2):
        output.write_text("old")
        work = Child(*command)
        time.sleep(rng.uniform(0, 1.2) * longest)
        work.signal(signal.SIGKILL)
        work.wait()
        assert output.read_bytes() == b"old" or whole(output)


def test_no_folder_of_data_sets_appears_in_the_home(monkeypatch):
    monkeypatch.delenv("SKB_DATA_DIRECTORY", raising=False)
    assert run("--version") == 0
    assert os.environ["SKB_DATA_DIRECTORY"] == tempfile.gettempdir()
