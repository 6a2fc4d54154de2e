"""Measures every row of the table of speeds beside its peer, in one process, and prints the table.

Peer and library take turns, so that whatever else the machine does meets both; medians count.
"""

import csv
import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import joblib
import numpy as np
import pytest

ROWS = pytest.StashKey[list]()


@dataclass
class Row:
    """One line of the table."""

    work: str
    against: str
    peer: float | None  # seconds, or the peer's figure
    ours: float
    unit: str
    at_most: float | None

    @property
    def figure(self):
        """What is compared with the target: the ratio, or our own number."""
        return self.ours if self.peer is None else self.ours / self.peer


def pytest_addoption(parser):
    parser.addoption("--large", action="store_true", help="also what takes 10^7 scores")
    parser.addoption("--write", help="replace the rows that were measured in this CSV file")


def pytest_configure(config):
    config.stash[ROWS] = []
    config.addinivalue_line("markers", "large: only with --large")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--large"):
        for item in items:
            if "large" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="only with --large"))


@pytest.fixture
def record(request):
    """Add a line to the table."""

    def add(work, against, ours, at_most, peer=None, unit="s"):
        request.config.stash[ROWS].append(Row(work, against, peer, ours, unit, at_most))

    return add


@pytest.fixture
def versus(benchmark, record):
    """Time ``ours`` beside ``peer`` and add the ratio to the table."""

    def run(work, against, ours, peer, at_most, rounds=5):
        peer()
        seconds = []

        def take_turns():
            start = time.perf_counter()
            peer()
            seconds.append(time.perf_counter() - start)

        benchmark.pedantic(ours, setup=take_turns, rounds=rounds, warmup_rounds=1)
        record(work, against, benchmark.stats.stats.median, at_most, float(np.median(seconds)))

    return run


def write_rows(path, rows):
    """Replace the rows of a file that were measured again, and add others."""
    with Path(path).open(newline="") as file:
        header, *before = csv.reader(file)
    values = {(work, against): [work, against, *rest] for work, against, *rest in before}
    for row in rows:
        peer = "" if row.peer is None else f"{row.peer:.4g}"
        figures = [peer, f"{row.ours:.4g}", row.unit, f"{row.figure:.3g}"]
        values[row.work, row.against] = [row.work, row.against, *figures]
    with Path(path).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *values.values()])


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[ROWS]
    if not rows:
        return
    if path := config.getoption("--write"):
        write_rows(path, rows)
    line = terminalreporter.write_line
    packages = ("vennforest", "numpy", "scipy", "scikit-learn", "numba", "venn-abers")
    terminalreporter.section("speed")
    line(
        f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in packages)
        + f"; {joblib.cpu_count()} cores, BLAS threads {os.environ.get('OMP_NUM_THREADS', 'free')}"
    )
    line("")
    line("| work | against | peer | vennforest | ratio or figure | at most | |")
    line("|---|---|---|---|---|---|---|")
    for row in rows:
        peer = "" if row.peer is None else f"{row.peer:.4g} {row.unit}"
        target = "" if row.at_most is None else f"{row.at_most:g}"
        met = "" if row.at_most is None else ("met" if row.figure <= row.at_most else "**missed**")
        line(
            f"| {row.work} | {row.against} | {peer} | {row.ours:.4g} {row.unit} "
            f"| {row.figure:.3g} | {target} | {met} |"
        )
