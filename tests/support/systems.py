"""Other systems that answer for a calibrator: databases, ONNX, and readers of JSON.

Each takes calibrators and scores, (n,) or (n, k), and returns for each calibrator a dict of the
columns that it answers, (n,) or (n, k); NaN where a row is refused.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from vennforest.export import to_json, to_sql

READERS = Path(__file__).parents[2] / "examples" / "readers"


def score_columns(model):
    """Return the names of the columns of scores, odd ones."""
    k = len(model.classes_)
    return ['my `score"; --1'] if k == 2 else [f"score of {label}" for label in model.classes_]


def statement(model, dialect, table, confidence):
    names = score_columns(model)
    score = names[0] if len(names) == 1 else dict(zip(model.classes_.tolist(), names, strict=True))
    return to_sql(model, dialect, table=table, score=score, confidence=confidence)


def columns_of(model, table):
    """Return the answers in the columns of a data frame, beside each other for more classes."""
    given = len(score_columns(model)) + 1
    k, names = len(model.classes_), list(table.columns)[given:]
    values = table[names].to_numpy(np.float64, na_value=np.nan)
    if k == 2:
        return dict(zip(names, values.T, strict=True))
    of = [name.rpartition("_")[0] for name in names]
    return {name: values[:, [one == name for one in of]] for name in dict.fromkeys(of)}


def frame_of(model, new):
    import pandas as pd

    table = pd.DataFrame(new.reshape(len(new), -1), columns=score_columns(model))
    table.insert(0, "row", np.arange(len(new)))
    return table


def in_duckdb(cases, confidence):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        for model, new in cases:
            connection.register("scores", frame_of(model, new))
            sql = statement(model, "duckdb", "scores", confidence)
            yield columns_of(model, connection.sql(f"SELECT * FROM ({sql}) ORDER BY row").df())


def in_spark(cases, confidence):
    spark = local_spark()
    for i, (model, new) in enumerate(cases):
        spark.createDataFrame(frame_of(model, new)).createOrReplaceTempView(f"scores{i}")
        sql = statement(model, "spark", f"scores{i}", confidence)
        yield columns_of(model, spark.sql(f"SELECT * FROM ({sql}) ORDER BY row").toPandas())


def in_postgres(cases, confidence):
    import io

    import pandas as pd

    with postgres() as run:
        for model, new in cases:
            columns = ['"' + name.replace('"', '""') + '"' for name in score_columns(model)]
            kinds = ", ".join(f"{name} DOUBLE PRECISION" for name in columns)
            rows = "\n".join(
                "\t".join([str(i), *(repr(float(s)) for s in row)])
                for i, row in enumerate(new.reshape(len(new), -1))
            )
            sql = statement(model, "postgres", "scores", confidence)
            text = run(
                f"CREATE TEMP TABLE scores (row INTEGER, {kinds});\n"
                f"COPY scores FROM stdin;\n{rows}\n\\.\n"
                f"COPY (SELECT * FROM ({sql}) AS a ORDER BY row) TO STDOUT CSV HEADER;\n"
            )
            yield columns_of(model, pd.read_csv(io.StringIO(text), float_precision="round_trip"))


def in_sqlite(cases, confidence):
    import pandas as pd

    pytest.importorskip("sqlglot")
    for model, new in cases:
        with closing(sqlite3.connect(":memory:")) as connection:
            try:
                connection.execute("SELECT LN(EXP(FLOOR(1)))")
            except sqlite3.OperationalError:
                pytest.skip("needs an SQLite with mathematical functions")
            frame_of(model, new).to_sql("scores", connection, index=False)
            sql = statement(model, "sqlite", "scores", confidence)
            table = pd.read_sql(f"SELECT * FROM ({sql}) ORDER BY row", connection)
            yield columns_of(model, table)


def in_onnx(cases, confidence):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from vennforest.export import to_onnx

    for model, new in cases:
        graph = to_onnx(model, confidence=confidence).SerializeToString()
        session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        (given,) = session.get_inputs()
        names = [one.name for one in session.get_outputs()]
        yield dict(zip(names, session.run(None, {given.name: new}), strict=True))


JAVASCRIPT = """
const fs = require("fs"), [reader, ...paths] = process.argv.slice(2);
const {read, apply} = require(reader);
for (let i = 0; i < paths.length; i += 2) {
  const reading = read(paths[i]), answers = {};
  for (const row of fs.readFileSync(paths[i + 1], "utf8").trim().split("\\n"))
    for (const [name, one] of Object.entries(apply(reading, row.split(" ").map(Number))))
      (answers[name] = answers[name] || []).push(one);
  console.log(JSON.stringify(answers));
}
"""


def in_javascript(cases, confidence):
    if shutil.which("node") is None or not READERS.exists():
        pytest.skip("needs node and the examples")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run.js").write_text(JAVASCRIPT)
        paths = [folder / "run.js", READERS / "calibrator.js"]
        for i, (model, new) in enumerate(cases):
            paths += [folder / f"{i}.json", folder / f"{i}.scores"]
            paths[-2].write_text(to_json(model, confidence=confidence), encoding="utf-8")
            rows = [" ".join(map(repr, row)) for row in new.reshape(len(new), -1).tolist()]
            text = "\n".join(rows) + "\n"
            paths[-1].write_text(text.replace("inf", "Infinity").replace("nan", "NaN"))
        process = subprocess.run(["node", *paths], capture_output=True, text=True, check=True)
    for line in process.stdout.splitlines():
        answers = json.loads(line)
        yield {name: np.array(column, np.float64) for name, column in answers.items()}


def local_spark():
    """Return a session of two workers in this machine; a task is tried four times."""
    sql = pytest.importorskip("pyspark.sql")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    made = (
        sql.SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    return made


@contextmanager
def postgres():
    """Give what runs a script in a PostgreSQL server of our own, which listens to a socket."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (found[-1] if found else None)
    if initdb is None or shutil.which("psql") is None:
        pytest.skip("needs PostgreSQL's initdb and psql")
    programs = Path(initdb).resolve().parent
    # The server refuses to run as root.
    user = {"user": "postgres"} if hasattr(os, "geteuid") and os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if user:
            shutil.chown(folder, **user)

        def start(program, *arguments, given=None, **options):
            command = [programs / program, *arguments]
            options |= {"cwd": folder, "text": True, "check": True, "input": given}
            return subprocess.run(command, capture_output=True, **user, **options).stdout

        start("initdb", "--pgdata=data", "--auth=trust", "--username=test", "--no-sync")
        listens = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c jit=off -F"
        arguments = ["--pgdata=data", "--wait", f"--log={folder}/log"]
        start("pg_ctl", *arguments, f"--options={listens}", "start")
        try:
            asked = ["-qX", "-v", "ON_ERROR_STOP=1", "-h", str(folder), "-U", "test", "postgres"]
            yield lambda script: start("psql", *asked, given=script)
        finally:
            start("pg_ctl", *arguments, "--mode=immediate", "stop")


SYSTEMS = {
    "duckdb": in_duckdb, "postgres": in_postgres, "sqlite": in_sqlite, "spark": in_spark,
    "onnx": in_onnx, "javascript": in_javascript,
}  # fmt: skip
