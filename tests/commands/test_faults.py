"""What goes wrong around a command: one sentence, the right exit code, and no file half-written."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "matplotlib", "jinja2", "pyarrow", "skops"):
    pytest.importorskip(extra)

import vennforest  # noqa: E402
from support.children import Child, default_signals, ignore_hangups, small_files_only  # noqa: E402
from support.faults import KINDS, Faults  # noqa: E402
from vennforest._files import OutputError, check_output, written_whole  # noqa: E402
from vennforest._validation import InputError  # noqa: E402
from vennforest.cli import main  # noqa: E402
from vennforest.tables.read import read_table  # noqa: E402

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FIT = ("--trees", "5", "--jobs", "1")
REPORT = ("--folds", "2", "--trees", "5", "--methods", "platt", "--jobs", "1")
CONTROL = [chr(i) for i in (*range(32), *range(127, 160), *range(0x202A, 0x202F), 0x2066)]


def run(*arguments):
    return main([str(argument) for argument in arguments])


def shell(*arguments, **options):
    """Start the command line in a process of its own."""
    command = [sys.executable, "-m", "vennforest", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,
        **options,
    )


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


def sentence(capsys):
    """Return the one sentence on stderr."""
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Error: ") and err.count("\n") == 1, err
    assert "Traceback" not in err and "report this" not in err
    return err.removeprefix("Error: ").strip()


def commands(folder, output):
    return {
        "fit": ("fit", folder / "data.csv", "-t", "y", "-o", output, *FIT),
        "predict": ("predict", folder / "m.skops", folder / "data.csv", "-o", output),
        "report": ("report", folder / "data.csv", "-t", "y", "-o", output, *REPORT),
    }


COMMANDS = ("fit", "predict", "report")
SUFFIXES = {"fit": ".skops", "predict": ".csv", "report": ".html"}

# --- the terminal ----------------------------------------------------------------------------


def assert_harmless(text):
    assert not set(text.replace("\n", "")) & set(CONTROL), repr(text)


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_names_cannot_steer_the_terminal(folder, tmp_path, capsys, monkeypatch, debug):
    evil = "a\x1b]0;owned\x07\x9b2J\u202egpj.exe\x7f"
    monkeypatch.chdir(tmp_path)
    frame = make_table().rename(columns={"x": evil})
    frame["y"] = frame["y"] + evil
    frame.to_csv(evil + ".csv", index=False)
    model = evil + ".skops"
    for command in (
        ("fit", evil + ".csvv", "-t", "y"),
        ("fit", evil + ".csv", "-t", evil + "!"),
        ("fit", evil + ".csv", "-t", "y", "-o", evil + "/m"),
        ("fit", evil + ".csv", "--" + evil),
        ("fit", evil + ".csv", "-t", "y", "-o", model, *FIT),
        ("fit", evil + ".csv", "-t", "y", "-o", model, "--json", *FIT),
        ("predict", model, evil + ".csv", "-o", evil + ".parquet", "--json"),
        ("predict", model, folder / "data.csv", "-o", evil + ".parquet"),
        ("report", evil + ".csv", "-t", "y", "-o", evil + ".html", "--json", *REPORT),
    ):
        run(*command, *debug)
        out, err = capsys.readouterr()
        assert_harmless(err)
        assert_harmless(out)
        if "--json" in command:
            assert evil in _strings(json.loads(out))  # what was escaped is read as it was


def _strings(value):
    if isinstance(value, dict):
        return "".join(k + _strings(v) for k, v in value.items())
    if isinstance(value, list):
        return "".join(map(_strings, value))
    return str(value)


def test_warnings_are_sentences_for_the_terminal_too(folder, tmp_path, capsys, monkeypatch):
    def old(*_, **__):
        warnings.warn("written with \x1b[31m1.0\nand so on", UserWarning, stacklevel=1)
        raise InputError("refused")

    monkeypatch.setattr("vennforest.persistence.load", old)
    assert run(*commands(folder, tmp_path / "o.csv")["predict"]) == 2
    err = capsys.readouterr().err
    assert_harmless(err)
    assert err.startswith("Warning: written with \\x1b[31m1.0 and so on\n") and ".py" not in err


def test_a_file_whose_name_is_not_utf_8_is_refused(folder, tmp_path, capsys):
    source = tmp_path / os.fsdecode(b"caf\xe9.csv")
    try:
        source.write_bytes((folder / "data.csv").read_bytes())
    except OSError:
        pytest.skip("names are text in this file system")
    assert run("predict", folder / "m.skops", source, "-o", tmp_path / "o.csv") == 2
    assert "caf\\udce9.csv cannot be read: its name is not text in UTF-8" in sentence(capsys)


# --- outputs ---------------------------------------------------------------------------------


@FORKS
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_said_and_leaves_the_old_file(folder, tmp_path, name):
    """No file may grow beyond 1,000 bytes: what every library says of that is one sentence."""
    output = tmp_path / f"out{SUFFIXES[name]}"
    output.write_text("old")
    code, out, err = Child(*commands(folder, output)[name], before=small_files_only).wait()
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


class SmallFiles:
    """While it is entered, the system takes so many bytes of any file and no more."""

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        self.resource = pytest.importorskip("resource")
        self.signal = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.old = self.resource.getrlimit(self.resource.RLIMIT_FSIZE)
        self.resource.setrlimit(self.resource.RLIMIT_FSIZE, (self.size, self.old[1]))

    def __exit__(self, *_):
        self.resource.setrlimit(self.resource.RLIMIT_FSIZE, self.old)
        signal.signal(signal.SIGXFSZ, self.signal)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_that_ends_anywhere_is_not_written(folder, tmp_path, capsys, suffix):
    """What pyarrow writes goes by no file of Python's: the system itself cuts it short."""
    output = tmp_path / f"o.{suffix}"
    command = commands(folder, output)["predict"]
    assert run(*command) == 0
    size, rng = output.stat().st_size, random.Random(suffix)
    capsys.readouterr()
    for at in (0, 1, size // 2, size - 1, *(rng.randrange(size) for _ in range(4))):
        assert assert_survives(command, output, SmallFiles(at)) == 2
        said = capsys.readouterr().err.splitlines()
        assert said[-1] == f"Error: {output} cannot be written: File too large"
    assert assert_survives(command, output, SmallFiles(size)) == 0


def test_links_that_lead_nowhere(folder, tmp_path, capsys, name="predict"):
    a, b, new = (tmp_path / f"{stem}{SUFFIXES[name]}" for stem in ("a", "b", "new"))
    outside = tmp_path / "none" / new.name
    for link, target in ((a, new), (b, outside)):
        link.symlink_to(target)
    assert run(*commands(folder, a)[name]) == 0  # made where the link leads
    assert new.stat().st_size and a.is_symlink()
    capsys.readouterr()
    assert run(*commands(folder, b)[name]) == 2
    assert sentence(capsys) == f"there is no folder {outside.parent}: make it first"


def test_names_that_are_too_long(folder, tmp_path, capsys, name="predict"):
    suffix = SUFFIXES[name]
    fits = "é" * ((255 - len(suffix)) // 2)  # 254 or 255 bytes with the suffix
    assert run(*commands(folder, tmp_path / f"{fits}é{suffix}")[name]) == 2
    assert "cannot be written: File name too long" in sentence(capsys)
    assert run(*commands(folder, tmp_path / f"{fits}{suffix}")[name]) == 0
    capsys.readouterr()
    first, _, *rest = commands(folder, tmp_path / f"o{suffix}")[name]
    assert run(first, tmp_path / ("n" * 300), *rest) == 2
    assert sentence(capsys).endswith(": File name too long")


def test_pipes_and_devices_are_no_outputs(folder, tmp_path, capsys, name="predict"):
    pipe, null = (tmp_path / f"{stem}{SUFFIXES[name]}" for stem in ("pipe", "null"))
    os.mkfifo(pipe)
    null.symlink_to(os.devnull)
    for output in (pipe, null):
        assert run(*commands(folder, output)[name]) == 2
        assert "is not a file that can be written to" in sentence(capsys)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_protected_output_stays(folder, tmp_path, capsys):
    output = tmp_path / "o.csv"
    output.write_text("old")
    output.chmod(0o400)
    assert run(*commands(folder, output)["predict"]) == 2
    assert "is not a file that can be written to" in sentence(capsys)
    assert output.read_text() == "old"


def test_python_is_told_as_well(tmp_path):
    missing = written_whole(tmp_path / "none" / "o")
    with pytest.raises(OutputError, match="cannot be written: No such file"), missing:
        pass
    with pytest.raises(InputError, match="File name too long"):
        check_output(tmp_path / ("n" * 256))


# --- inputs ----------------------------------------------------------------------------------


@FORKS
@pytest.mark.parametrize("place", ["predict", "model", "costs"])
def test_a_pipe_as_input_does_not_hang(folder, tmp_path, place):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    all_ = commands(folder, tmp_path / ("o.skops" if place == "fit" else "o.csv"))
    first, data, *rest = all_[place if place in COMMANDS else "report"]
    command = {
        "model": ("predict", pipe, folder / "data.csv"),
        "costs": (first, data, *rest, "--costs", pipe),
        "predict": ("predict", folder / "m.skops", pipe),
    }.get(place, (first, pipe, *rest))
    code, _, err = Child(*command).wait()
    assert code == 2 and "pipe or a device" in err and err.count("\n") == 1


# --- faults inside ---------------------------------------------------------------------------


def test_no_memory_is_said(folder, tmp_path, capsys, monkeypatch):
    def greedy(*_, **__):
        raise np._core._exceptions._ArrayMemoryError((10**9, 10**9), np.dtype(float))

    monkeypatch.setattr("vennforest.batch.BatchPredictor._predict", greedy)
    assert run(*commands(folder, tmp_path / "o.csv")["predict"]) == 2
    assert sentence(capsys).startswith("there is not enough memory: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "error", [IndexError("list\nindex"), AttributeError("no 'x\x1b'"), ZeroDivisionError("by 0")]
)
def test_errors_of_a_model_are_the_models(folder, tmp_path, capsys, monkeypatch, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("vennforest.batch.BatchPredictor._predict", broken)
    assert run(*commands(folder, tmp_path / "o.csv")["predict"]) == 2
    said = sentence(capsys)
    assert said.startswith(f"the model in {folder / 'm.skops'} fails on this table, with ")
    assert type(error).__name__ in said and not list(tmp_path.iterdir())


# --- being stopped ---------------------------------------------------------------------------

STOPS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


@FORKS
@pytest.mark.parametrize("stop", STOPS)
def test_being_stopped_leaves_nothing_half_written(folder, tmp_path, stop):
    pd.concat([make_table()] * 500).to_csv(tmp_path / "n.csv", index=False)
    output = tmp_path / "o.csv"
    output.write_text("old")
    work = Child("predict", folder / "m.skops", tmp_path / "n.csv", "-o", output,
                 "--rows-at-once", 20)  # fmt: skip
    # Not the empty file with which the output is tried first.
    work.wait_for(lambda: any(p.exists() and p.stat().st_size for p in tmp_path.glob(".*")))
    work.signal(getattr(signal, stop))
    assert work.wait() == (STOPS[stop], "", "Stopped: nothing was written.\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.csv", "o.csv"]
    assert output.read_text() == "old"


@FORKS
def test_a_hangup_is_ignored_under_nohup(folder, tmp_path):
    pd.concat([make_table()] * 20).to_csv(tmp_path / "n.csv", index=False)
    output = tmp_path / "o.csv"
    work = Child("predict", folder / "m.skops", tmp_path / "n.csv", "-o", output,
                 "--rows-at-once", 20, before=ignore_hangups)  # fmt: skip
    work.wait_for(lambda: any(p.exists() and p.stat().st_size for p in tmp_path.glob(".*")))
    work.signal(signal.SIGHUP)
    assert work.wait()[0] == 0
    assert len(read_table(output)) == 1600


def killed(folder, tmp_path, name, times):
    """Kill a command at moments drawn between its start and its end: SIGKILL cannot be answered."""
    output = tmp_path / OUTPUTS[name]
    command = commands(folder, output)[name]
    began = time.monotonic()
    assert Child(*command).wait()[0] == 0
    longest = time.monotonic() - began
    rng, n_old = random.Random(name), 0
    for _ in range(times):
        output.write_text("old")
        work = Child(*command)
        time.sleep(rng.uniform(0, 1.2) * longest)
        work.signal(signal.SIGKILL)
        work.wait()
        if output.read_bytes() == b"old":
            n_old += 1
        else:
            assert whole(output)
    return n_old


@FORKS
@pytest.mark.parametrize("name", ["fit", "predict"])
def test_being_killed_leaves_the_old_file_or_the_new(folder, tmp_path, name):
    killed(folder, tmp_path, name, 2)


def stopped_while_starting(folder, tmp_path, stop, times):
    """At any moment from our own first line on: no traceback, and the exit code of the signal."""
    rng = random.Random(stop)
    number = getattr(signal, stop)
    for _ in range(times):
        work = shell("predict", folder / "m.skops", folder / "data.csv", "-o", tmp_path / "o.csv",
                     env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"})  # fmt: skip
        said, wanted = [], None
        try:
            for line in work.stderr:  # a line for every import, and more than a thousand of them
                said.append(line)
                if line.endswith("| vennforest\n"):
                    wanted = len(said) + int(10 ** rng.uniform(1, 3.1))
                if len(said) == wanted:
                    break
            work.send_signal(number)
            said += work.communicate(timeout=120)[1].splitlines(keepends=True)
        finally:
            work.kill()
        said = [line for line in said if not line.startswith("import time:")]
        assert work.returncode in (STOPS[stop], 0), (work.returncode, said)
        assert said in (["Stopped: nothing was written.\n"], []), said
        assert {path.name for path in tmp_path.iterdir()} <= {"o.csv"}


@pytest.mark.parametrize("stop", STOPS)
def test_being_stopped_while_starting(folder, tmp_path, stop):
    stopped_while_starting(folder, tmp_path, stop, 1)


# --- the home --------------------------------------------------------------------------------


def test_no_folder_of_data_sets_appears_in_the_home(folder, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XDG_", "MPL", "SKB", "SKRUB", "NUMBA"))
    } | {"HOME": str(home)}
    work = shell(*commands(folder, tmp_path / "o.csv")["report"], env=environment)
    _, err = work.communicate(timeout=300)
    assert work.returncode == 0, err
    assert not [path for path in home.iterdir() if "skrub" in path.name or "scikit" in path.name]
