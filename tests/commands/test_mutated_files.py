"""Damaged files of every kind: the right answer or one sentence, soon and in little memory."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from support.commands import run

resource = pytest.importorskip("resource")
pytest.importorskip("openpyxl")
pytestmark = pytest.mark.slow

N_MUTATIONS, N_ROWS, MAX_SECONDS, MAX_BYTES = 300, 40, 5, 1 << 30

# Each line on stdin is a command as JSON. The process answers with the exit code, the seconds, the
# growth of its peak in bytes, and what it wrote to stderr.
WORKER = """
import contextlib, io, json, resource, sys, time
from vennforest.cli import main
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
for line in sys.stdin:
    words, limit = json.loads(line)
    if limit:
        size = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (size + limit, -1))
    before, start, text = peak(), time.process_time(), io.StringIO()
    with contextlib.redirect_stderr(text), contextlib.redirect_stdout(text):
        code = main(words)
    answer = [code, time.process_time() - start, peak() - before, text.getvalue()]
    print(json.dumps(answer), flush=True)
"""


def write_all(folder):
    rng = np.random.default_rng(0)
    s = rng.random(N_ROWS).round(3)
    table = pd.DataFrame({"s": s, "t": rng.choice(["x", "yé", ""], N_ROWS)})
    labelled = table.assign(y=np.where(rng.random(N_ROWS) < s, "b", "a"))
    labelled.to_csv(folder / "y.csv", index=False)
    table.to_csv(folder / "text", index=False)
    table.to_csv(folder / "gzip", index=False, compression="gzip")
    table.to_excel(folder / "t.xlsx", index=False)
    (folder / "t.xlsx").rename(folder / "workbook")
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    parquet.write_table(arrow, folder / "parquet")
    for kind, writer in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        with pa.OSFile(str(folder / kind), "wb") as file, writer(file, arrow.schema) as batches:
            batches.write_table(arrow)
    words = ("-s", "s", "-t", "y", "--quiet", "-o", folder / "document")
    assert run("calibrate", folder / "y.csv", *words) == 0
    fit = ("-t", "y", "--trees", 3, "--jobs", 1, "--quiet", "-o", folder / "model")
    assert run("fit", folder / "y.csv", *fit) == 0


TABLES = ("text", "gzip", "workbook", "parquet", "file", "stream")


def command(kind, path, folder):
    out = ["-o", str(folder / "out.csv"), "--quiet"]
    if kind == "model":
        return ["predict", str(path), str(folder / "text"), *out]
    if kind == "document":
        return ["apply", str(path), str(folder / "text"), *out]
    return ["apply", str(folder / "document"), str(path), *out]


def mutated(data, rng):
    """Change, insert, remove or repeat bytes, or put a number of extremes in place of four."""
    data, i = bytearray(data), int(rng.integers(len(data)))
    match int(rng.integers(6)):
        case 0:
            data[i] = int(rng.integers(256))
        case 1:
            del data[i : i + int(rng.integers(1, 40))]
        case 2:
            data[i:i] = rng.bytes(int(rng.integers(1, 40)))
        case 3:
            number = int(rng.choice([-1, 2**31 - 1, 2**30, -(2**31), 0]))
            data[i : i + 4] = number.to_bytes(4, "little", signed=True)
        case 4:
            data[i:i] = data[i : i + 200] * int(rng.integers(1, 9))
        case _:
            del data[i:]
    return bytes(data)


def damage(kind, source, path, rng):
    """Write a damaged copy; half of the archives are damaged within a member."""
    if kind in ("workbook", "model") and rng.random() < 0.5:
        with zipfile.ZipFile(source) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        name = str(rng.choice([name for name in parts if parts[name]]))
        parts[name] = mutated(parts[name], rng)
        with zipfile.ZipFile(path, "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
    else:
        path.write_bytes(mutated(source.read_bytes(), rng))


def is_answer(path):
    """Return whether a table of predictions has probabilities, of which all rows sum to 1."""
    p = pd.read_csv(path)[["p(a)", "p(b)"]].to_numpy()
    return ((p >= 0) & (p <= 1)).all() and np.allclose(p.sum(axis=1), 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    write_all(folder)
    return folder


class Worker:
    """A process that runs commands, and is started anew after it died."""

    def __init__(self):
        self.process = None

    def run(self, words, limit=0):
        if self.process is None:
            arguments = [sys.executable, "-W", "ignore", "-c", WORKER]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.process = subprocess.Popen(arguments, text=True, **pipes)
        self.process.stdin.write(json.dumps([words, limit]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        code, self.process = self.process.wait(), None
        return [code, 0.0, 0, "the process ended"]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize("kind", [*TABLES, "document", "model"])
def test_a_damaged_file_is_refused_in_one_sentence_or_read(kind, folder, tmp_path):
    rng, worker = np.random.default_rng([*kind.encode()]), Worker()
    assert worker.run(command(kind, folder / kind, folder))[0] == 0  # imports and compiles
    faults = []
    for i in range(N_MUTATIONS):
        path = tmp_path / f"{i}"
        damage(kind, folder / kind, path, rng)
        code, seconds, growth, text = worker.run(command(kind, path, folder), 2 * MAX_BYTES)
        lines = [line for line in text.splitlines() if line.startswith("Error: ")]
        is_told = code == 2 and len(lines) == 1 and "Traceback" not in text
        is_told |= code == 0 and is_answer(folder / "out.csv")
        if not is_told or seconds > MAX_SECONDS or growth > MAX_BYTES:
            faults.append((i, code, round(seconds, 1), growth >> 20, text[-300:]))
        else:
            path.unlink()
    if worker.process is not None:
        worker.process.kill()
    assert not faults, faults
