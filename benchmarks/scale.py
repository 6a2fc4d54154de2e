"""Time and memory from 10^5 rows on: counts and record batches beside what a user would else do.

``python -m benchmarks.scale [-o FILE] [--largest 1e8]`` appends one record a measurement to FILE
(each in a process of its own, so that its memory is its own; what is there already is not measured
again) and prints the tables of ``docs/results/scale.md``. ``--largest 1e9`` takes minutes on a
quiet machine. CPU seconds are of all threads: on a machine that others use they are what compares.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
SAMPLES = (1_000, 10_000, 100_000, 1_000_000)
IN_MEMORY = 10_000_000
"""Rows up to which they are also held in memory."""

WRITTEN = 100_000_000
"""Rows up to which a file of them is read."""

APPLIED = 10_000_000
"""Rows up to which predictions are written."""

UNIFORM = "(hash({}) >> 11) / 9007199254740992.0::DOUBLE"


def true_share(s):
    """Return the share of positives at a score: too bold a model's, its log-odds halved."""
    with np.errstate(divide="ignore"):
        odds = np.sqrt(s / (1 - s))
    return np.where(s >= 1, 1.0, odds / (1 + odds))


def rows_of(n):
    """Return the query that makes n scored rows: most scores are low."""
    u = UNIFORM.format("i")
    v = UNIFORM.format("i + 4000000000000")
    share = "CASE WHEN s >= 1 THEN 1 ELSE sqrt(s / (1 - s)) / (1 + sqrt(s / (1 - s))) END"
    return (
        f"SELECT s, CAST(v < {share} AS TINYINT) AS y FROM "
        f"(SELECT pow({u}, 3) AS s, {v} AS v FROM range({n}) t(i))"
    )


def generating(n, folder):
    import duckdb

    duckdb.connect(config={"threads": 2}).sql(
        f"SELECT sum(s), sum(y) FROM ({rows_of(n)})"
    ).fetchall()


def in_memory(n, folder):
    from vennforest import VennAbers

    s, y = _arrays(n)
    start = _now()
    VennAbers().fit(s, y)
    return start


def sklearn_isotonic(n, folder):
    from sklearn.isotonic import IsotonicRegression

    s, y = _arrays(n)
    start = _now()
    IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(s, y)
    return start


def calibrate_command(n, folder):
    from vennforest.cli import main as command

    path = _file(n, folder)
    start = _now()
    assert not command(["calibrate", str(path), "-s", "s", "-t", "y", "-o", f"{folder}/c.json"])
    return start


def apply_command(n, folder):
    from vennforest.cli import main as command

    path = _file(n, folder)
    calibrator = ["calibrate", str(path), "-s", "s", "-t", "y", "-o", f"{folder}/c.json"]
    assert not command([*calibrator, "--grid", "logit"])
    start = _now()
    assert not command(["apply", f"{folder}/c.json", str(path), "-o", f"{folder}/out.parquet"])
    return start


WORK = {
    "making the rows alone": (generating, SIZES[-1]),
    "in memory: Venn–Abers fitted to rows": (in_memory, IN_MEMORY),
    "in memory: scikit-learn's isotonic": (sklearn_isotonic, IN_MEMORY),
    "vennforest calibrate, from Parquet": (calibrate_command, WRITTEN),
    "vennforest apply, Parquet to Parquet": (apply_command, APPLIED),
}


def _arrays(n):
    import duckdb

    found = duckdb.connect(config={"threads": 2}).sql(rows_of(n)).fetchnumpy()
    return np.asarray(found["s"]), np.asarray(found["y"])


def _file(n, folder):
    """Return a file of n rows, made by another process, so that its memory is not counted."""
    path = Path(folder) / "rows.parquet"
    making = (
        "import duckdb, sys; duckdb.connect(config={'threads': 2}).execute("
        "f\"COPY ({sys.argv[1]}) TO '{sys.argv[2]}'\")"
    )
    subprocess.run([sys.executable, "-c", making, rows_of(n), str(path)], check=True)
    return path


def _now():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def measure(work, n):
    """Print what one piece of work takes; in a process of its own."""
    import duckdb  # noqa: F401

    import vennforest

    vennforest.VennAbers().fit([0.1, 0.2], [0, 1]).predict_proba([0.1])  # loads what is compiled
    with tempfile.TemporaryDirectory() as folder:
        before = _now()
        before = WORK[work][0](n, folder) or before
        after = _now()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    record = {
        "work": work,
        "n": n,
        "seconds": round(after[0] - before[0], 3),
        "cpu": round(after[1] - before[1], 3),
        "peak_gib": round(peak, 3),
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(record))


def quantiles():
    """Return scores that stand for all of them: 200,000 quantiles."""
    return ((np.arange(200_000) + 0.5) / 200_000) ** 3


def excess_log_loss(answers):
    """Return the log loss of answers at the quantiles above that of the true shares."""
    p, q = true_share(quantiles()), np.clip(answers, 1e-12, 1 - 1e-12)
    return float((p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean())


def cost_of_samples(largest):
    """Return rows of what calibrating on a sample costs: log loss above that of the true share."""
    from sklearn.isotonic import IsotonicRegression

    from vennforest import IsotonicCalibration, ScoreCounts, ScoreGrid, VennAbers

    middle = quantiles()
    lines = []
    s, y = _arrays(largest)
    for m in [*(m for m in SAMPLES if m < largest), largest]:
        some, labels = s[:m], y[:m]
        theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(some, labels)
        counts = ScoreCounts.from_scores(some, labels, grid=ScoreGrid(), classes=[0, 1])
        ours = {
            "VennAbers": VennAbers(merge="log").fit_counts(counts),
            "isotonic": IsotonicCalibration().fit_counts(counts),
        }
        bounds = ours["VennAbers"].predict_multiprobability(middle)
        lines.append(
            {
                "rows": m,
                "sklearn": excess_log_loss(theirs.predict(middle)),
                **{
                    name: excess_log_loss(one.predict_proba(middle)[:, 1])
                    for name, one in ours.items()
                },
                "width": float((bounds.p1 - bounds.p0).mean()),
            }
        )
    return lines


def run(output, largest):
    records = []
    if output.exists():
        records = [json.loads(line) for line in output.read_text().splitlines()]
    done = {(r["work"], r["n"]) for r in records}
    for work, (_, most) in WORK.items():
        for n in SIZES:
            if n <= min(most, largest) and (work, n) not in done:
                command = [sys.executable, "-m", "benchmarks.scale", "--measure", work, str(n)]
                said = subprocess.run(command, capture_output=True, text=True, check=True)
                records.append(json.loads(said.stdout.splitlines()[-1]))
                with output.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    return records


def tables(records, samples):
    lines = [
        "| work | rows | seconds | CPU seconds | peak memory, GiB |",
        "|---|---|---|---|---|",
    ]
    for work in WORK:
        some = sorted((r for r in records if r["work"] == work), key=lambda r: r["n"])
        lines += [
            f"| {work} | {r['n']:.0e} | {r['seconds']:.2f} | {r['cpu']:.2f} | {r['peak_gib']:.2f} |"
            for r in some
        ]
    lines += [
        "",
        "| rows calibrated on | scikit-learn's isotonic | isotonic from counts | Venn–Abers | "
        "mean width |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['rows']:.0e} | {r['sklearn']:.2e} | {r['isotonic']:.2e} | {r['VennAbers']:.2e} | "
        f"{r['width']:.1e} |"
        for r in samples
    ]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("scale.jsonl"))
    parser.add_argument("--largest", type=float, default=1e7)
    parser.add_argument("--measure", nargs=2, metavar=("WORK", "ROWS"))
    given = parser.parse_args()
    if given.measure:
        measure(given.measure[0], int(given.measure[1]))
        return
    records = run(given.output, given.largest)
    print("\n".join(tables(records, cost_of_samples(int(min(given.largest, 1e7))))))


if __name__ == "__main__":
    main()
