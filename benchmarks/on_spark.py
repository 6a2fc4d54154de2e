"""Calibration on Spark beside what else there is: MLlib's isotonic regression, spark-calibration.

``python -m benchmarks.on_spark [-o FILE] [--largest 1e7]`` appends one record a measurement to
FILE (what is there already is not measured again) and prints the table of
``docs/results/scale.md``. It
needs Java 17, pyspark and spark-calibration 2.0. The rows are those of ``benchmarks.scale``, made
by Spark and written to Parquet in 8 parts before; local mode with two workers. CPU seconds are of
the driver's process and all below it, the virtual machine and the Python workers. Excess log loss
is over the true share of positives, which is known.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.scale import excess_log_loss, quantiles

SIZES = (1_000_000, 10_000_000)
PARTS = 8


def session():
    """Return Spark in local mode."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.maxResultSize", "2g")
        .config("spark.sql.shuffle.partitions", str(PARTS))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def rows(spark, n, folder):
    """Return n scored rows from Parquet files that are made first."""
    uniform = "shiftrightunsigned(xxhash64({}), 11) / 9007199254740992.0D"
    share = "CASE WHEN s >= 1 THEN 1 ELSE sqrt(s / (1 - s)) / (1 + sqrt(s / (1 - s))) END"
    made = (
        spark.range(0, n, 1, PARTS)
        .selectExpr(
            f"pow({uniform.format('id')}, 3) AS s",
            f"{uniform.format('id + 4000000000000L')} AS v",
        )
        .selectExpr("s", f"CAST(v < {share} AS INT) AS y")
    )
    path = str(Path(folder) / f"{n}.parquet")
    made.write.parquet(path)
    return spark.read.parquet(path)


def ours(method, **options):
    """Return what fits a calibrator of ours, and answers at scores."""

    def fit(frame):
        from vennforest.calibrators.core.interface import make_calibrator
        from vennforest.engines.spark import calibrate

        calibrator = make_calibrator(method).set_params(**options)
        fitted = calibrate(frame, score="s", target="y", method=calibrator)
        return lambda s: fitted.predict_proba(s)[:, 1]

    return fit


def mllib(frame):
    from pyspark.ml.regression import IsotonicRegression

    model = IsotonicRegression(featuresCol="s", labelCol="y").fit(frame)
    x, p = np.asarray(model.boundaries), np.asarray(model.predictions)
    for at in (0.1, 0.5, 0.9):  # it draws lines between its boundaries
        assert abs(model.predict(at) - np.interp(at, x, p)) < 1e-9
    return lambda s: np.interp(s, x, p)


def spark_calibration(frame):
    from spark_calibration import Betacal

    model = Betacal().fit(frame, "s", "y")
    return lambda s: 1 / (1 + np.exp(-(model.a * np.log(s) - model.b * np.log(1 - s) + model.c)))


WORK = {
    "Venn–Abers from counts": (ours("venn-abers", merge="log"), "p, lower, upper"),
    "isotonic from counts": (ours("isotonic"), "p"),
    "Spark MLlib: IsotonicRegression": (mllib, "p"),
    "beta from counts": (ours("beta"), "p"),
    "spark-calibration: Betacal": (spark_calibration, "p"),
}


def cpu():
    """Return CPU seconds of this process and all below it."""
    tick, parents, used = os.sysconf("SC_CLK_TCK"), {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        number = int(path.parent.name)
        parents[number] = int(fields[1])
        used[number] = sum(map(int, fields[11:15])) / tick  # its own, and of children that ended
    family, new = set(), {os.getpid()}
    while new:
        family |= new
        new = {number for number, parent in parents.items() if parent in new} - family
    return sum(used[number] for number in family)


def run(output, largest):
    records = []
    if output.exists():
        records = [json.loads(line) for line in output.read_text().splitlines()]
    done = {(r["work"], r["n"]) for r in records}
    todo = [(n, work) for n in SIZES for work in WORK if n <= largest and (work, n) not in done]
    if not todo:
        return records
    s = quantiles()
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        frames = {n: rows(spark, n, folder) for n in dict.fromkeys(n for n, _ in todo)}
        warm = rows(spark, 10_000, folder)  # classes are loaded, code is compiled
        for work in dict.fromkeys(work for _, work in todo):
            WORK[work][0](warm)
        for n, work in todo:
            before = time.perf_counter(), cpu()
            answers = WORK[work][0](frames[n])
            seconds, used = time.perf_counter() - before[0], cpu() - before[1]
            record = {
                "work": work,
                "n": n,
                "seconds": round(seconds, 2),
                "cpu": round(used, 2),
                "excess": excess_log_loss(answers(s)),
                "load": round(os.getloadavg()[0], 1),
            }
            records.append(record)
            with output.open("a") as file:
                file.write(json.dumps(record) + "\n")
    spark.stop()
    return records


def table(records):
    lines = [
        "| on Spark | rows | seconds | CPU seconds | excess log loss | gives |",
        "|---|---|---|---|---|---|",
    ]
    for n in SIZES:
        for work, (_, gives) in WORK.items():
            lines += [
                f"| {work} | {n:.0e} | {r['seconds']:.1f} | {r['cpu']:.1f} | {r['excess']:.2e} | "
                f"{gives} |"
                for r in records
                if (r["work"], r["n"]) == (work, n)
            ]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("on_spark.jsonl"))
    parser.add_argument("--largest", type=float, default=1e7)
    given = parser.parse_args()
    print("\n".join(table(run(given.output, given.largest))))


if __name__ == "__main__":
    main()
