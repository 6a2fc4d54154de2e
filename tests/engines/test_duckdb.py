"""DuckDB: the calibrators of a GROUP BY, and predictions in the order of the rows."""

import itertools
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import vennforest
from support.engine_data import CELLS, check_same, draw_scores, fit_rows, score_names
from vennforest import CalibratedClassifier, MixedForestClassifier, ScoreGrid
from vennforest._validation import InputError
from vennforest.calibrators.core.interface import METHODS
from vennforest.engines import duckdb as engine

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")


def written(folder, frame, parts=3, **options):
    """Write a frame as several Parquet files, the last one empty."""
    cuts = np.linspace(0, len(frame), parts + 1).astype(int)
    for i, (a, b) in enumerate(itertools.pairwise(cuts)):
        frame.iloc[a:b].to_parquet(folder / f"part{i}.parquet", index=False, **options)
    frame.iloc[:0].astype({"y": frame["y"].dtype}).to_parquet(
        folder / f"part{parts}.parquet", index=False
    )
    return folder / "part*.parquet"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 3])
def test_a_group_by_is_the_fit_to_all_rows(tmp_path, method, k):
    frame = draw_scores(1500, k)
    files = written(tmp_path, frame)
    got = engine.calibrate(files, score=score_names(k), target="y", method=method)
    vectors = k == 3 and method in ("none", "temperature", "matrix", "bostrom", "pooled", "venn")
    grid = None if vectors else CELLS
    tolerance = 1e-6 if method in ("matrix", "pooled") else 1e-9
    check_same(got, fit_rows(frame, method, k, grid), k, grid, tolerance)


@pytest.mark.parametrize("grid", [None, ScoreGrid(64), ScoreGrid(1 << 12, on="logit")])
@pytest.mark.parametrize("weight", [None, "w", "half"])
def test_grids_and_weights(tmp_path, grid, weight):
    frame = draw_scores(3000, seed=3070)
    frame["half"] = frame["w"] / 2
    files = written(tmp_path, frame)
    got = engine.calibrate(files, score="s", target="y", grid=grid, weight=weight)
    check_same(got, fit_rows(frame, "venn-abers", 2, grid, weight), 2, grid, 1e-9)


def test_a_relation_csv_and_other_labels(tmp_path):
    frame = draw_scores(500)
    wanted = fit_rows(frame, "venn-abers", 2, CELLS)
    frame.to_csv(tmp_path / "all.csv", index=False)
    check_same(engine.calibrate(tmp_path / "all.csv", score="s", target="y"), wanted, 2, CELLS)
    relation = duckdb.connect().from_df(frame)
    check_same(engine.calibrate(relation, score=["other", "s"], target="y"), wanted, 2, CELLS)
    for labels in ([0, 1], [False, True], [-1.0, 1.0]):
        y = np.array(labels)[(frame["y"] == "yes").astype(int)]
        other = duckdb.connect().from_df(frame.assign(y=y))
        got = engine.calibrate(other, score="s", target="y")
        assert got.classes_.tolist() == labels
        assert np.array_equal(
            got.predict_proba([0.3, 0.7]), wanted.predict_proba(CELLS([0.3, 0.7]))
        )


def test_names_that_need_quotes(tmp_path):
    frame = draw_scores(300).rename(columns={"s": 'a "score"', "y": "select"})
    path = tmp_path / "it's.parquet"
    frame.to_parquet(path)
    got = engine.calibrate(path, score='a "score"', target="select")
    check_same(got, fit_rows(draw_scores(300), "venn-abers", 2, CELLS), 2, CELLS)


def test_counts_beyond_floats_are_exact():
    most = 1 << 53
    rows = f"(VALUES (0.25, 0, {most + 1}), (0.25, 1, 1), (0.75, 1, {most + 3})) t(s, y, w)"
    relation = duckdb.connect().sql(f"SELECT * FROM {rows}")
    got = engine.calibrate(relation, score="s", target="y", weight="w", method="isotonic")
    assert got.predict_proba([0.25])[0, 1] == pytest.approx(1 / (most + 2), rel=1e-12)
    huge = duckdb.connect().sql(f"SELECT 0.5 AS s, i % 2 AS y, {1 << 62} AS w FROM range(4) t(i)")
    with pytest.raises(InputError, match=r"column 'w' must sum to at most 2\*\*63 - 1, got 18446"):
        engine.calibrate(huge, score="s", target="y", weight="w")


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("s", np.nan, "column 's' must contain finite scores, got NaN or nothing in row 18 of "),
        ("s", np.inf, "column 's' must contain finite scores, got inf in row 18 of "),
        (
            "s",
            1.25,
            r"must contain scores in \[0, 1\], the range of the grid, got 1.25 in row 18 of ",
        ),
        ("y", None, "column 'y' must contain a label in every row, got none in row 18 of "),
        (
            "w",
            -1,
            "column 'w' must contain finite weights that are not negative, got -1 in row 18 of ",
        ),
    ],
)
def test_a_bad_row_is_named(tmp_path, column, value, said):
    frame = draw_scores(90)
    frame.loc[30 + 17, column] = value
    files = written(tmp_path, frame)
    with pytest.raises(InputError, match=said + r".*part1\.parquet"):
        engine.calibrate(files, score="s", target="y", weight="w")


def test_labels_that_are_none(tmp_path):
    frame = draw_scores(60)
    codes = (frame["y"] == "yes").astype(float)
    frame.assign(y=codes.where(frame.index != 40)).to_parquet(tmp_path / "nan.parquet")
    duckdb.connect().execute(
        f"COPY (SELECT 0.5 AS s, 'nan'::DOUBLE AS y) TO '{tmp_path / 'one.parquet'}'"
    )
    with pytest.raises(InputError, match=r"contain a label in every row, got none in row 41 of"):
        engine.calibrate(tmp_path / "nan.parquet", score="s", target="y")
    with pytest.raises(InputError, match=r"contain a label in every row, got none in row 1 of"):
        engine.calibrate(tmp_path / "one.parquet", score="s", target="y")
    days = pd.to_datetime("2026-01-01") + pd.to_timedelta(codes, unit="D")
    frame.assign(y=days).to_parquet(tmp_path / "days.parquet")
    with pytest.raises(InputError, match="must contain numbers, booleans or text as labels"):
        engine.calibrate(tmp_path / "days.parquet", score="s", target="y")


def test_other_columns_and_types(tmp_path):
    frame = draw_scores(60)
    files = written(tmp_path, frame)
    with pytest.raises(InputError, match=r"there is no column 'S' in .*part0.* 3 more files: did"):
        engine.calibrate(files, score="S", target="y")
    with pytest.raises(InputError, match="column 'y' must contain numbers, got string"):
        engine.calibrate(files, score="y", target="s")
    with pytest.raises(InputError, match="score, target and weight must be different columns"):
        engine.calibrate(files, score="s", target="s")
    with pytest.raises(
        InputError, match="column 'y' must contain 2 classes for one column of score"
    ):
        engine.calibrate(files, score="s", target="y", classes=["no", "yes", "never"])
    with pytest.raises(
        InputError, match=r"must contain labels of classes \['no', 'now'\], got 'yes'"
    ):
        engine.calibrate(files, score="s", target="y", classes=["no", "now"])
    with pytest.raises(InputError, match="grid must be left out with more than two classes"):
        engine.calibrate(files, score=["s", "w", "v"], target="y", method="venn", grid=CELLS)
    frame.rename(columns={"s": "t"}).to_parquet(tmp_path / "part9.parquet")
    with pytest.raises(InputError, match=r"same columns, got none called 's' in .*part9\.parquet"):
        engine.calibrate(files, score="s", target="y")
    with pytest.raises(InputError, match=r"there is no file .*nowhere"):
        engine.calibrate(tmp_path / "nowhere*.parquet", score="s", target="y")
    (tmp_path / "text.parquet").write_text("PAR1 and nothing else")
    with pytest.raises(InputError, match=r"DuckDB cannot read .*text"):
        engine.calibrate(tmp_path / "text.parquet", score="s", target="y")


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_whole_numbers_in_one_file_do_not_round_those_of_another(tmp_path, order, suffix):
    whole = pd.DataFrame({"s": [0, 1, 0, 1, 1], "y": [0, 1, 1, 1, 0]})
    parts = [whole, pd.DataFrame({"s": [0.3, 0.7, 0.6, 0.4, 1.0], "y": [0, 1, 0, 1, 1]})]
    for name, i in zip("ab", order, strict=True):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "csv":
            parts[i].to_csv(path, index=False)
        else:
            parts[i].to_parquet(path, index=False)
    every = pd.concat(parts)
    got = engine.calibrate(tmp_path / f"*.{suffix}", score="s", target="y", grid=None)
    check_same(got, fit_rows(every, "venn-abers"), tolerance=0)
    engine.predict(tmp_path / f"*.{suffix}", got, tmp_path / "out.parquet", columns="s")
    p = pd.read_parquet(tmp_path / "out.parquet")["p(1)"]
    assert np.array_equal(p, got.predict_proba(pd.concat([parts[i] for i in order])["s"])[:, 1])


def test_one_class_and_no_rows(tmp_path):
    frame = draw_scores(60)
    frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="must contain at least one row, got none"):
        engine.calibrate(tmp_path / "none.parquet", score="s", target="y")
    frame[frame["y"] == "yes"].to_parquet(tmp_path / "one.parquet")
    with pytest.raises(InputError, match=r"must contain 2 classes .* got 1: \['yes'\] \(classes="):
        engine.calibrate(tmp_path / "one.parquet", score="s", target="y")
    got = engine.calibrate(tmp_path / "one.parquet", score="s", target="y", classes=["no", "yes"])
    assert got.classes_.tolist() == ["no", "yes"]
    frame.assign(w=0).to_parquet(tmp_path / "zero.parquet")
    with pytest.raises(InputError, match="row of weight above zero, got none"):
        engine.calibrate(tmp_path / "zero.parquet", score="s", target="y", weight="w")


def test_settings_that_are_none(tmp_path):
    draw_scores(60).to_parquet(tmp_path / "some.parquet")
    with pytest.raises(InputError, match=r"DuckDB cannot read .*some\.parquet: .*nonsense"):
        engine.calibrate(tmp_path / "some.parquet", score="s", target="y", config={"nonsense": 1})
    relation = duckdb.connect().from_df(draw_scores(60))
    with pytest.raises(InputError, match="config must be left out for a relation"):
        engine.calibrate(relation, score="s", target="y", config={"threads": 1})


def test_too_little_memory_is_said(tmp_path):
    relation = "SELECT random() AS s, i % 2 AS y FROM range(3000000) t(i)"
    path = tmp_path / "large.parquet"
    duckdb.connect().execute(f"COPY ({relation}) TO '{path}'")
    with pytest.raises(InputError, match="ran out of memory"):
        engine.calibrate(
            path,
            score="s",
            target="y",
            grid=None,
            config={"memory_limit": "30MB", "temp_directory": "", "threads": 1},
        )


@pytest.mark.parametrize("kind", [RandomForestClassifier, MixedForestClassifier])
@pytest.mark.parametrize("rows_at_once", [100, 1 << 17])
def test_predictions_are_the_models_in_the_order_of_the_rows(tmp_path, rows_at_once, kind):
    rng = np.random.default_rng(11)
    X = pd.DataFrame(rng.normal(size=(1000, 3)), columns=["u", "v", "w"])
    y = np.where(X["u"] + rng.normal(size=1000) > 0, "yes", "no")
    model = CalibratedClassifier(kind(10, random_state=0), random_state=0)
    model.fit(X, y)
    frame = X.assign(number=np.arange(1000), y=y)
    files = written(tmp_path, frame)
    n = engine.predict(
        files,
        model,
        tmp_path / "out.parquet",
        carried=["number"],
        rows_at_once=rows_at_once,
    )
    out = pd.read_parquet(tmp_path / "out.parquet")
    assert n == len(out) == 1000
    assert out["number"].tolist() == list(range(1000))
    m = model.predict_multiprobability(X)
    assert np.array_equal(out["p(yes)"], model.predict_proba(X)[:, 1])
    assert np.array_equal(out["lower(yes)"], m.lower[:, 1])
    assert np.array_equal(out["upper(no)"], m.upper[:, 0])
    known = model.predict_confidence(X)
    assert np.array_equal(out["low95(yes)"], known.lower[:, 1])
    assert np.array_equal(out["label"], model.predict(X))


def test_what_predict_refuses_leaves_no_file(tmp_path):
    frame = draw_scores(90)
    model = fit_rows(frame, "venn-abers")
    frame.loc[50, "s"] = np.nan
    files = written(tmp_path, frame)
    output = tmp_path / "out.parquet"
    with pytest.raises(InputError, match=r"'s' must contain finite scores, got NaN .* in row 51"):
        engine.predict(files, model, output, columns="s")
    assert not output.exists()
    with pytest.raises(InputError, match="the output must not be the data"):
        engine.predict(files, model, tmp_path / "part1.parquet", columns="s")
    with pytest.raises(InputError, match="the output must end in"):
        engine.predict(files, model, tmp_path / "out.txt", columns="s")


def test_without_duckdb_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"pip install 'vennforest\[duckdb\]'"):
        engine.calibrate(tmp_path, score="s", target="y")
    assert vennforest.VennAbers is not None
