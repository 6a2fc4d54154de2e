"""The same scores by any writer of Parquet: the same calibrator, or the same refusal."""

import decimal

import numpy as np
import pytest

from vennforest._validation import InputError
from vennforest.commands.calibrate import run
from vennforest.commands.options import Calibrate
from vennforest.export import from_json

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pl = pytest.importorskip("polars")

N = 120
ROW_GROUP = 40


def draw_columns():
    rng = np.random.default_rng(5)
    s = np.round(rng.random(N), 2)
    y = np.where(rng.random(N) < s, "yes", "no")
    return {"s": s.tolist(), "y": y.tolist(), "w": rng.integers(0, 4, N).astype(float).tolist()}


def by_pandas(table, path):
    frame = table.to_pandas()
    frame["y"] = frame["y"].astype("category")  # a dictionary column
    frame.to_parquet(path, row_group_size=ROW_GROUP, index=False)


def by_pyarrow(table, path):
    with pq.ParquetWriter(path, table.schema) as writer:
        for start in range(0, N, ROW_GROUP):
            writer.write_table(table.slice(start, 0))  # a row group without rows
            writer.write_table(table.slice(start, ROW_GROUP))


def by_polars(table, path):
    frame = pl.from_arrow(table).with_columns(pl.col("y").cast(pl.Categorical))
    frame.write_parquet(path, row_group_size=ROW_GROUP)


WRITERS = [by_pandas, by_pyarrow, by_polars]


def calibrate(path, **options):
    output = path.with_suffix(".json")
    run(Calibrate(path, ["s"], "y", output, **options))
    return from_json(output.read_bytes())


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(10, 4)], ids=str)
def test_every_writer_gives_the_same_calibrator(tmp_path, kind):
    columns = draw_columns()
    scores = columns["s"]
    if pa.types.is_decimal(kind):
        scores = [decimal.Decimal(f"{score:.4f}") for score in scores]
    table = pa.table({**columns, "s": pa.array(scores, kind)})
    probabilities = []
    for write in WRITERS:
        path = tmp_path / f"{write.__name__}.parquet"
        write(table, path)
        probabilities.append(calibrate(path, weight="w").predict_proba(columns["s"]))
    for p in probabilities[1:]:
        np.testing.assert_allclose(p, probabilities[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("name", "value", "row", "message"),
    [
        ("s", None, 0, "finite scores, got NaN or nothing"),
        ("s", np.nan, ROW_GROUP - 1, "finite scores, got NaN or nothing"),
        ("s", -np.inf, ROW_GROUP, "finite scores, got -inf"),
        ("w", None, N - 1, "finite weights that are not negative, got NaN or nothing"),
        ("w", -1.0, 0, "finite weights that are not negative, got -1"),
    ],
)
def test_every_writer_gets_the_same_refusal(tmp_path, write, name, value, row, message):
    columns = draw_columns()
    columns[name][row] = value
    path = tmp_path / "scores.parquet"
    write(pa.table(columns), path)
    with pytest.raises(InputError) as refused:
        calibrate(path, weight="w")
    assert (
        str(refused.value) == f"column {name!r} must contain {message} in row {row + 1:,} of {path}"
    )


@pytest.mark.parametrize("name", ["data[1].parquet", "d*.parquet", "it's.parquet"])
def test_names_that_look_like_patterns(tmp_path, name):
    columns = draw_columns()
    reversed_scores = {**columns, "s": [1 - s for s in columns["s"]]}
    for other in ("data1.parquet", "d.parquet", "dd.parquet", "its.parquet"):
        pq.write_table(pa.table(reversed_scores), tmp_path / other)
    pq.write_table(pa.table(columns), tmp_path / "alone.parquet")
    pq.write_table(pa.table(columns), tmp_path / name)
    p, alone = (
        calibrate(tmp_path / path).predict_proba(columns["s"]) for path in (name, "alone.parquet")
    )
    assert np.array_equal(p, alone)


def test_names_of_folders_are_no_columns(tmp_path):
    folder = tmp_path / "y=no" / "run=7"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(draw_columns()), folder / "x.parquet")
    assert calibrate(folder / "x.parquet").classes_.tolist() == ["no", "yes"]
