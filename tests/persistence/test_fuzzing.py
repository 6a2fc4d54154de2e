"""Model files changed at random: refused, or the same predictions, or honest ones."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import vennforest
from support import fuzzing
from vennforest._validation import InputError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and /proc")


def run(count, seed, tmp_path):
    """Fuzz in a process of its own, in which no thread was ever started."""
    state = tmp_path / "state.json"
    done = subprocess.run(
        [
            sys.executable,
            fuzzing.__file__,
            f"--count={count}",
            f"--seed={seed}",
            f"--state={state}",
        ],
        env={**fuzzing.os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return fuzzing.json.loads(state.read_text())


def test_a_thousand_changes(tmp_path):
    done = run(1000, 4, tmp_path)
    assert done["done"] == 1000 and not done["bad"]
    refused = sum(n for said, n in done["counts"].items() if "refused" in said)
    assert refused > 400  # the changes do change something


@pytest.mark.slow
def test_ten_thousand_changes(tmp_path):
    done = run(10_000, 5, tmp_path)
    assert done["done"] == 10_000 and not done["bad"]


def test_fuzzing_goes_on_where_it_stopped(tmp_path):
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    one = fuzzing.fuzz(30, 7, state=whole)
    fuzzing.fuzz(11, 7, state=parts)
    two = fuzzing.fuzz(30, 7, state=parts)
    assert one["counts"] == two["counts"] and one["done"] == two["done"] == 30


@pytest.mark.parametrize(
    ("evil", "said"),
    [
        (lambda path: fuzzing.os.kill(fuzzing.os.getpid(), 9), "CRASHED"),
        (lambda path: bytearray(4 << 30), "OUT OF MEMORY"),
        (lambda path: fuzzing.os.mkdir(f"{path}.d"), "TOUCHED os.mkdir"),
        (lambda path: Path(f"{path}.x").write_text("x"), "TOUCHED open"),
        (lambda path: 1 / 0, "UNKNOWN ERROR ZeroDivisionError"),
        (lambda path: Half(), "NO PROBABILITIES"),
        (lambda path: Half(0.5), "OTHER PREDICTIONS"),
    ],
)
def test_what_must_not_happen_is_seen(evil, said, tmp_path, monkeypatch):
    """The harness sees each of the things that it looks for."""
    monkeypatch.setattr(vennforest, "load", evil)
    found = fuzzing.alone(tmp_path / "model", np.zeros(1), {"p": np.ones((1, 2))}, "OTHER" in said)
    assert found.startswith(said)


def forever():
    while True:
        pass


@pytest.mark.parametrize("wait", [forever, lambda: time.sleep(600)])
def test_what_never_ends_is_seen(wait, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "WALL", 1)
    monkeypatch.setattr(fuzzing, "SECONDS", 1)
    monkeypatch.setattr(vennforest, "load", lambda path: wait())
    assert fuzzing.alone(tmp_path / "model", None, {}, True) == "HANGS"


def test_what_ends_a_child_ends_no_other(tmp_path, monkeypatch):
    """Each change that a child reads has its own outcome; the bad ones are read again, alone."""
    calls = {3: lambda: fuzzing.os.kill(fuzzing.os.getpid(), 9), 5: lambda: 1 / 0}
    monkeypatch.setattr(fuzzing, "Bases", lambda: FiveBases(tmp_path))

    def load(path):
        number = int(path.read_text())
        calls.get(number, int)()
        return Half(0.5)

    monkeypatch.setattr(vennforest, "load", load)
    done = fuzzing.fuzz(8, 0)
    assert done["done"] == 8 and done["counts"] == {
        "structure: another model": 6,
        "structure: CRASHED": 1,
        "structure: UNKNOWN ERROR ZeroDivisionError in test_fuzzing.py": 1,
    }
    assert [bad[0] for bad in done["bad"]] == [3, 5]
    assert all(bad[3] == bad[4].removeprefix("alone: ") for bad in done["bad"])


def test_what_is_no_evidence_is_seen():
    assert fuzzing.is_evidence({"evidence": np.array([0, 1e300]), "since": np.array([0, 3])})
    assert not fuzzing.is_evidence({"evidence": np.array([0, np.inf]), "since": np.array([0])})
    assert not fuzzing.is_evidence({"evidence": np.array([0.5]), "since": np.array([-3])})


def test_counts_of_other_files_are_refused(tmp_path):
    state = tmp_path / "state.json"
    state.write_text(fuzzing.json.dumps({"files": 1, "done": 5}))
    with pytest.raises(SystemExit, match="of other model files"):
        fuzzing.fuzz(6, 0, state=state)


def test_refusals_are_ours(tmp_path, monkeypatch):
    def refuse(path):
        raise InputError("no")

    monkeypatch.setattr(vennforest, "load", refuse)
    assert fuzzing.alone(tmp_path / "model", None, {}, True) == "refused"


class FiveBases:
    """Changes that are their own numbers."""

    def __init__(self, folder):
        self.sum, self.rows, self.expected = 0, {"x": None}, {"x": {"p": np.ones((1, 2))}}

    def changed(self, seed, number, path):
        path.write_text(str(number))
        return "x", "change_value"


class Half:
    """A model that is none."""

    def __init__(self, p=32.6):
        self.p = p

    def predict_proba(self, rows):
        return np.full((1, 2), self.p)
