"""The same data by any writer: the same calibrator at every door, or the same refusal."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from support.systems import local_spark
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.commands.calibrate import calibrate_file
from vennforest.commands.signatures import Calibrate
from vennforest.engines import duckdb as engine

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

SLOW = pytest.mark.slow  # a session and its workers take longer than all else
N = 120
GROUP = 40
MISSING = "NaN or nothing"


def draw(seed=5):
    """Return columns of scores, labels and weights as pyarrow has them."""
    rng = np.random.default_rng(seed)
    s = np.round(rng.random(N), 2)
    y = np.where(rng.random(N) < s, "yes", "no")
    return {"s": s.tolist(), "y": y.tolist(), "w": rng.integers(0, 4, N).astype(float).tolist()}


def by_pandas(table, path):
    frame = table.to_pandas()
    frame["y"] = frame["y"].astype("category")  # a dictionary column
    frame.to_parquet(path, row_group_size=GROUP, index=False)


def by_pyarrow(table, path):
    with pq.ParquetWriter(path, table.schema) as writer:
        for start in range(0, N, GROUP):
            writer.write_table(table.slice(start, 0))  # a group of rows without any
            writer.write_table(table.slice(start, GROUP))
        writer.write_table(table.slice(0, 0))


def by_polars(table, path):
    frame = pl.from_arrow(table).with_columns(pl.col("y").cast(pl.Categorical))
    frame.write_parquet(path, row_group_size=GROUP)


def by_duckdb(table, path):
    connection = duckdb.connect()
    connection.register("rows", table)
    connection.execute(f"COPY rows TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {GROUP})")


def by_spark(table, path):
    spark = local_spark()
    folder = path.parent / f"{path.stem}.spark"
    rows = [tuple(row.values()) for row in table.to_pylist()]  # None is no NaN
    kinds = {"string": "string", "float": "float", "decimal128(10, 4)": "decimal(10, 4)"}
    kinds = {name: kinds.get(str(table.schema.field(name).type), "double") for name in "syw"}
    frame = spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, kind in kinds.items()))
    writer = frame.coalesce(1).write.mode("overwrite")
    writer.option("parquet.block.row.count.limit", str(GROUP)).parquet(str(folder))
    (written,) = folder.glob("*.parquet")
    written.rename(path)


WRITERS = [by_pandas, by_pyarrow, by_polars, by_duckdb, pytest.param(by_spark, marks=SLOW)]


def doors():
    """Yield what fits a calibrator to files: the command and the engine."""

    def of_command(grid):
        def fit(path, **options):
            output = path.parent / f"{path.stem}.json"
            calibrate_file(Calibrate(path, ["s"], "y", output, grid=grid, **options))
            return Calibrator.from_json(output.read_bytes())

        return fit

    def of_engine(grid):
        options = {"grid": None} if grid == "none" else {}
        return lambda path, **more: engine.calibrate(path, score="s", target="y", **options, **more)

    for grid in ("none", "score"):
        yield grid, of_command(grid)
        yield grid, of_engine(grid)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(10, 4)])
def test_the_same_calibrator(tmp_path, write, kind):
    data = draw()
    s = data["s"]
    if pa.types.is_decimal(kind):
        s = [decimal.Decimal(f"{one:.4f}") for one in s]
    table = pa.table({"s": pa.array(s, kind), "y": data["y"], "w": data["w"]})
    path = tmp_path / "scores.parquet"
    write(table, path)
    new = np.asarray(data["s"], np.float32 if kind == pa.float32() else np.float64)
    found = {}
    for grid, fit in doors():
        for weight in (None, "w"):
            p = fit(path, weight=weight).predict_proba(new.astype(float))
            wanted = found.setdefault((grid, weight), p)
            assert np.abs(p - wanted).max() <= 1e-12


FLOATS = [
    ("s", None, f"finite scores, got {MISSING}"),
    ("s", np.nan, f"finite scores, got {MISSING}"),
    ("s", np.inf, "finite scores, got inf"),
    ("s", -np.inf, "finite scores, got -inf"),
    ("w", None, f"finite weights that are not negative, got {MISSING}"),
    ("w", np.nan, f"finite weights that are not negative, got {MISSING}"),
    ("w", np.inf, "finite weights that are not negative, got inf"),
    ("w", -1.0, "finite weights that are not negative, got -1"),
]
BAD = [(pa.float64(), *case) for case in FLOATS]
BAD += [(pa.float32(), *case) for case in FLOATS[:4]]
BAD += [(pa.decimal128(10, 4), *FLOATS[0])]
BAD += [(pa.decimal128(10, 4), "w", decimal.Decimal("-1"), FLOATS[-1][2])]
ROWS = [0, GROUP - 1, GROUP, N - 1]
"""The first row, the last of a group of rows, the first of another, and the last."""


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("place", "kind", "name", "value", "said"), [
    (place % 4, *case) for place, case in enumerate(BAD)
])  # fmt: skip
def test_the_same_refusal(tmp_path, write, place, kind, name, value, said):
    data, row = draw(), ROWS[place]
    kinds = {"s": pa.float64(), "y": pa.string(), "w": pa.float64()}
    if pa.types.is_decimal(kind):
        data[name] = [decimal.Decimal(f"{x:.4f}") for x in data[name]]
    data[name][row], kinds[name] = value, kind
    path = tmp_path / "scores.parquet"
    write(pa.table(data, pa.schema(kinds.items())), path)
    wanted = f"column {name!r} must contain {said} in row {row + 1:,} of {path}"
    for _, fit in doors():
        with pytest.raises(InputError) as refused:
            fit(path, weight="w")
        assert str(refused.value) == wanted


@SLOW
def test_a_folder_that_spark_wrote(tmp_path):
    """Partitions without rows before, between and behind others, and labels that come in one."""
    spark = local_spark()
    table = pa.table(draw())
    rows = [tuple(row.values()) for row in table.to_pylist()]
    cuts = [(0, 0), (0, 50), (50, 50), (50, 60), (60, N), (N, N)]

    def written(name, rows):
        parts = spark.sparkContext.parallelize(range(len(cuts)), len(cuts)).flatMap(
            lambda i: rows[slice(*cuts[i])]
        )
        frame = spark.createDataFrame(parts, "s double, y string, w double")
        frame.write.parquet(str(tmp_path / name))
        empty = spark.createDataFrame([], frame.schema).coalesce(1)
        empty.write.mode("append").parquet(str(tmp_path / name))
        return tmp_path / name

    good, alone = written("good", rows), tmp_path / "alone.parquet"
    assert 0 in [pq.read_metadata(path).num_rows for path in good.glob("*.parquet")]
    by_pyarrow(table, alone)
    for _, fit in doors():
        p, wanted = (fit(one, weight="w").predict_proba(table["s"]) for one in (good, alone))
        assert np.array_equal(p, wanted)
    rows[55] = (np.nan, *rows[55][1:])
    bad = written("bad", rows)
    (file,) = [one for one in bad.glob("*.parquet") if pq.read_metadata(one).num_rows == 10]
    for _, fit in doors():
        with pytest.raises(InputError) as refused:
            fit(bad)
        said = f"column 's' must contain finite scores, got {MISSING} in row 6 of {file}"
        assert str(refused.value) == said


@pytest.mark.parametrize("write", WRITERS)
def test_half_of_the_scores_are_nan(tmp_path, write):
    data = draw()
    data["s"][::2] = [np.nan] * (N // 2)
    path = tmp_path / "scores.parquet"
    write(pa.table(data), path)
    for _, fit in doors():
        with pytest.raises(InputError, match=f"got {MISSING} in row 1 of"):
            fit(path)


@pytest.mark.parametrize("write", WRITERS)
def test_labels_that_are_nan_are_missing(tmp_path, write):
    data = draw()
    y = [float(label == "yes") for label in data["y"]]
    y[GROUP + 3] = np.nan
    path = tmp_path / "scores.parquet"
    frame = pl.DataFrame({**data, "y": y}) if write is by_polars else None
    if frame is None:
        table = pa.table({**data, "y": y})
        if write is by_pandas:
            table.to_pandas().to_parquet(path, row_group_size=GROUP, index=False)
        else:
            write(table, path)
    else:
        frame.write_parquet(path, row_group_size=GROUP)
    done = calibrate_file(Calibrate(path, ["s"], "y", tmp_path / "c.json"))
    assert done["n_rows"] == N - 1
    with pytest.raises(InputError, match=rf"label in every row, got none in row {GROUP + 4} of"):
        engine.calibrate(path, score="s", target="y", grid=None)


@pytest.mark.parametrize("name", ["data[1].parquet", "d*.parquet", "q?.parquet", "it's.parquet"])
def test_names_that_look_like_patterns(tmp_path, name):
    data = draw()
    turned = {**data, "s": [1 - s for s in data["s"]]}
    for other in ("data1.parquet", "d.parquet", "dd.parquet", "qq.parquet", "its.parquet"):
        pq.write_table(pa.table(turned), tmp_path / other)
    plain = tmp_path / "alone"
    plain.mkdir()
    pq.write_table(pa.table(data), plain / "x.parquet")
    pq.write_table(pa.table(data), tmp_path / name)
    for _, fit in doors():
        got, wanted = fit(tmp_path / name), fit(plain / "x.parquet")
        assert np.array_equal(got.predict_proba(data["s"]), wanted.predict_proba(data["s"]))
    table = pa.table({**data, "id": list(range(N))})
    pq.write_table(table, tmp_path / name)
    calibrator = engine.calibrate(tmp_path / name, score="s", target="y")
    output = tmp_path / "out.parquet"
    engine.predict(tmp_path / name, calibrator, output, columns="s", carried=["id"])
    assert pd.read_parquet(output)["id"].tolist() == list(range(N))


def test_folders_are_no_columns(tmp_path):
    data = draw()
    folder = tmp_path / "y=no" / "run=7"
    folder.mkdir(parents=True)
    path = folder / "x.parquet"
    pq.write_table(pa.table({**data, "run": list(range(N))}), path)
    for _, fit in doors():
        assert fit(path).classes_.tolist() == ["no", "yes"]
    calibrator = engine.calibrate(path, score="s", target="y")
    output = tmp_path / "out.parquet"
    engine.predict(path, calibrator, output, columns="s", carried=["run"])
    assert pd.read_parquet(output)["run"].tolist() == list(range(N))
    pd.DataFrame({**data, "run": list(range(N))}).to_csv(folder / "x.csv", index=False)
    engine.predict(folder / "x.csv", calibrator, output, columns="s", carried=["run"])
    assert pd.read_parquet(output)["run"].tolist() == list(range(N))
