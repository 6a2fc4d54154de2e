"""Spark in local mode: what partitions add up to, and what comes of bad ones."""

import itertools
import os
import signal
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import vennforest
from support.engine_data import check_same, draw_scores, fit_rows, score_names
from support.partitions import Partitions
from vennforest import CalibratedClassifier, MixedForestClassifier
from vennforest._validation import InputError
from vennforest.engines import spark as engine

pytestmark = pytest.mark.slow  # a session and its workers take longer than all else


def cut(spark, frame, *sizes):
    """Return a Spark frame with partitions of these sizes, the last takes the rest."""
    ends = [0, *np.cumsum(sizes), len(frame)]
    parts = [frame.iloc[a:b] for a, b in itertools.pairwise(ends)]
    schema = spark.createDataFrame(frame).schema
    rows = [[tuple(row) for row in part.astype(object).to_numpy().tolist()] for part in parts]
    rdd = spark.sparkContext.parallelize(range(len(parts)), len(parts)).flatMap(
        lambda number: rows[number]
    )
    return spark.createDataFrame(rdd, schema)


@pytest.mark.parametrize(
    ("method", "k"),
    [("venn-abers", 2), ("temperature", 3)],
)
def test_partitions_add_up_to_the_fit_to_all_rows(spark, method, k):
    frame = draw_scores(600, k)
    parts = cut(spark, frame, 1, 400, 0)
    got = engine.calibrate(parts, score=score_names(k), target="y", method=method)
    check_same(got, fit_rows(frame, method, k), k, 1e-9)


def test_weights(spark):
    frame = draw_scores(400, seed=3070)
    frame["half"] = frame["w"] / 2
    got = engine.calibrate(cut(spark, frame, 100), score="s", target="y", weight="half")
    check_same(got, fit_rows(frame, "venn-abers", 2, "half"), 2, 1e-9)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("s", np.nan, "column 's' must contain finite scores, got NaN or nothing in"),
        ("w", -1, "column 'w' must contain finite weights that are not negative, got -1 in"),
    ],
)
def test_a_bad_row_is_named_by_its_partition(spark, column, value, said):
    frame = draw_scores(60)
    frame.loc[50, column] = value
    with pytest.raises(InputError, match=said + " row 21 of partition 2"):
        engine.calibrate(
            cut(spark, frame, 20, 10),
            score="s",
            target="y",
            weight="w",
        )


def test_columns_are_checked_first(spark):
    frame = spark.createDataFrame(draw_scores(30))
    with pytest.raises(InputError, match=r"there is no column 'S' in the data frame: did you mean"):
        engine.calibrate(frame, score="S", target="y")
    with pytest.raises(InputError, match=r"column 'y' must contain numbers, got"):
        engine.calibrate(frame, score="y", target="w", classes=[0, 1])
    with pytest.raises(InputError, match="frame must be a Spark DataFrame, got DataFrame"):
        engine.calibrate(draw_scores(30), score="s", target="y")
    with pytest.raises(InputError, match="must contain at least one row, got none"):
        engine.calibrate(frame.filter("s > 2"), score="s", target="y")


def features(n=240, seed=7):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(4), columns=["u", "v", "w"])
    return X.assign(y=np.where(X["u"] + rng.normal(size=n) > 0, "yes", "no"))


@pytest.mark.parametrize(
    ("kind", "subforest"),
    [
        (RandomForestClassifier, "exchangeable"),
        (MixedForestClassifier, "all"),
    ],
)
def test_a_forest_over_partitions_is_that_of_one_machine(spark, kind, subforest):
    frame = features()
    parts = cut(spark, frame, 60, 0, 90, 30)
    home = np.repeat([0, 2, 3, 4], [60, 90, 30, 60])
    forest = kind(10, max_depth=4) if kind is RandomForestClassifier else kind(10)
    model = CalibratedClassifier(forest, subforest=subforest, random_state=3)
    got = engine.fit(model, parts, target="y")
    alone = CalibratedClassifier(
        forest,
        calibrate_on=Partitions(home, subforest),
        random_state=3,
    ).fit(frame[["u", "v", "w"]].astype(np.float32), frame["y"])
    assert np.array_equal(got.calibration_scores_, alone.calibration_scores_)
    X = features(seed=8)[["u", "v", "w"]]
    assert np.array_equal(got.predict_proba(X), alone.predict_proba(X))
    m, n = got.predict_multiprobability(X), alone.predict_multiprobability(X)
    assert np.array_equal(m.lower, n.lower)
    out = engine.predict(parts, got, carried=["u"]).toPandas()
    assert np.array_equal(out["u"], frame["u"])
    assert np.array_equal(out["p(yes)"], got.predict_proba(frame[["u", "v", "w"]])[:, 1])
    assert list(out.columns) == ["u", "label"] + [
        f"{part}({label})"
        for label in ("no", "yes")
        for part in ("p", "lower", "upper", "low95", "high95")
    ]


def test_skewed_empty_and_one_sided_partitions(spark):
    """Nine rows in ten in one partition, none in two, and three rows of one class in another."""
    frame = features(300, seed=20261128)
    some = frame.index[frame["y"] == "no"][:3]
    frame = pd.concat([frame.drop(some), frame.loc[some]], ignore_index=True)
    parts = cut(spark, frame, 0, 270, 27, 0)
    home = np.repeat([1, 2, 4], [270, 27, 3])
    forest = RandomForestClassifier(12, max_depth=4)
    got = engine.fit(CalibratedClassifier(forest, random_state=3), parts, target="y")
    alone = CalibratedClassifier(forest, calibrate_on=Partitions(home), random_state=3)
    X = frame[["u", "v", "w"]]
    alone.fit(X.astype(np.float32), frame["y"])
    assert np.array_equal(got.predict_proba(X), alone.predict_proba(X))
    assert len(got.calibration_scores_) == 300


def test_partitions_that_change_are_refused(spark):
    def shaken(batches):  # other numbers in every pass
        import pyarrow as pa

        drawn = np.random.default_rng(int.from_bytes(os.urandom(4), "little"))
        for batch in batches:
            yield batch.set_column(0, "u", pa.array(drawn.random(batch.num_rows)))

    parts = cut(spark, features(90), 30, 30)
    changing = parts.mapInArrow(shaken, parts.schema)
    model = CalibratedClassifier(RandomForestClassifier(4))
    with pytest.raises(InputError, match=r"partition \d must contain the same rows each time"):
        engine.fit(model, changing, target="y")


def test_what_workers_refuse_is_one_sentence(spark):
    frame = features(60).astype({"y": object})
    frame.loc[50, "y"] = None
    parts = cut(spark, frame, 20, 20)
    model = CalibratedClassifier(RandomForestClassifier(4))
    with pytest.raises(
        InputError, match=r"^column 'y' must contain a label in every row, got none "
    ):
        engine.fit(model, parts, target="y")
    infinite = features(60)
    infinite.loc[50, "v"] = np.inf
    with pytest.raises(InputError, match=r"^column 'v' must contain finite numbers .* in row 11"):
        engine.fit(model, cut(spark, infinite, 20, 20), target="y")
    with pytest.raises(InputError, match="two partitions with rows or more, got 1"):
        engine.fit(model, parts.filter("y IS NOT NULL").coalesce(1), target="y")


def test_a_worker_that_is_killed_costs_time_and_no_answer(spark, tmp_path):
    frame = features()
    mark = str(tmp_path / "died")

    def die_once(batches):
        for batch in batches:
            first = batch.column(0)[0].as_py()
            if first == frame["u"].iloc[80] and not os.path.exists(mark):  # noqa: PTH110
                with open(mark, "w") as file:  # noqa: PTH123
                    file.write("x")
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    parts = cut(spark, frame, 80, 80)
    dying = parts.mapInArrow(die_once, parts.schema)
    model = CalibratedClassifier(RandomForestClassifier(6, max_depth=3), random_state=3)
    got = engine.fit(model, dying, target="y")
    assert os.path.exists(mark)  # noqa: PTH110
    alone = engine.fit(model, parts, target="y")
    X = frame[["u", "v", "w"]]
    assert np.array_equal(got.predict_proba(X), alone.predict_proba(X))


def test_millions_of_rows(spark):
    """Seven even partitions and one with a third of the rows."""
    n = 2_000_000
    frame = spark.range(0, n, 1, 8).selectExpr(
        "(id * 7919 % 1000003) / 1000003.0D AS s",
        "CAST((id * 104729 % 1000033) / 1000033.0D < (id * 7919 % 1000003) / 1000003.0D AS INT) y",
    )
    got = engine.calibrate(frame, score="s", target="y")
    i = np.arange(n, dtype=np.int64)
    s = (i * 7919 % 1000003) / 1000003.0
    y = ((i * 104729 % 1000033) / 1000033.0 < s).astype(int)
    counts = vennforest.ScoreCounts.from_scores(s, y)
    wanted = vennforest.VennAbers().fit_counts(counts)
    new = np.linspace(0, 1, 1001)
    assert np.array_equal(got.predict_proba(new), wanted.predict_proba(new))
    out = engine.predict(frame, got, columns="s", carried=[])
    mean = out.selectExpr("avg(`p(1)`) AS p", "count(*) AS n").first()
    assert mean["n"] == n
    assert mean["p"] == pytest.approx(got.predict_proba(s)[:, 1].mean(), rel=1e-9)


def test_without_pyspark_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ImportError, match=r"pip install 'vennforest\[spark\]'"):
        engine.calibrate(None, score="s", target="y")
