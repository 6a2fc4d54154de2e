"""Spark in local mode: data frames in partitions, and what comes of workers that die."""

import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from support.partitions import (
    FEATURES,
    Partitions,
    check_calibrator,
    check_class_columns,
    check_forest,
    cut,
    draw_features,
    draw_scores,
    score_names,
)
from vennforest import CalibratedClassifier, MixedForestClassifier
from vennforest._validation import InputError
from vennforest.engines import spark as engine

pytestmark = pytest.mark.slow  # a session and its workers take longer than all else


def spark_frame(spark, frame, *sizes):
    schema = spark.createDataFrame(frame).schema
    parts = cut(frame, *sizes)
    rows = [[tuple(row) for row in part.astype(object).to_numpy().tolist()] for part in parts]
    rdd = spark.sparkContext.parallelize(range(len(parts)), len(parts)).flatMap(
        lambda number: rows[number]
    )
    return spark.createDataFrame(rdd, schema)


@pytest.mark.parametrize(("k", "weight"), [(2, "half"), (3, None)])
def test_counts_add_up_to_the_fit_to_all_rows(spark, k, weight):
    frame = draw_scores(600, k, seed=3070)
    frame["half"] = frame["w"] / 2
    parts = spark_frame(spark, frame, 1, 400, 0)
    calibrator = engine.calibrate(parts, score=score_names(k), target="y", weight=weight)
    check_calibrator(calibrator, frame, k=k, weight=weight)


@pytest.mark.parametrize(("forest", "sizes"), [
    (RandomForestClassifier(10, max_depth=4), [60, 0, 90, 30]),
    (MixedForestClassifier(10), [0, 210, 27, 0]),  # nearly all rows in one partition
])  # fmt: skip
def test_a_forest_over_partitions_is_that_of_one_machine(spark, forest, sizes):
    frame = draw_features()
    parts = spark_frame(spark, frame, *sizes)
    fitted = engine.fit(CalibratedClassifier(forest, random_state=3), parts, target="y")
    home = np.repeat(np.arange(5), [*sizes, 240 - sum(sizes)])
    alone = CalibratedClassifier(forest, calibrate_on=Partitions(home), random_state=3)
    alone.fit(frame[FEATURES], frame["y"])
    check_forest(fitted, alone, draw_features(seed=8)[FEATURES])
    answers = engine.predict(parts, fitted, carried=["u"]).toPandas()
    assert np.array_equal(answers["u"], frame["u"])
    assert np.array_equal(answers["p(yes)"], fitted.predict_proba(frame[FEATURES])[:, 1])
    assert list(answers.columns) == ["u", "label"] + [
        f"{part}({label})"
        for label in ("no", "yes")
        for part in ("p", "lower", "upper", "low95", "high95")
    ]


def test_columns_are_of_the_classes_that_their_names_say(spark):
    check_class_columns(
        engine, lambda frame: spark_frame(spark, frame, 100), lambda lazy: lazy.toPandas()
    )


def test_what_workers_refuse_is_one_sentence(spark):
    scores = draw_scores(60)
    scores.loc[50, "s"] = np.nan
    parts = spark_frame(spark, scores, 20, 10)
    with pytest.raises(InputError, match=r"^partition 2: 's' must be finite, got nan"):
        engine.calibrate(parts, score="s", target="y")
    with pytest.raises(InputError, match="frame must be a Spark DataFrame, got DataFrame"):
        engine.calibrate(scores, score="s", target="y")


def test_without_pyspark_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ImportError, match=r"pip install 'vennforest\[spark\]'"):
        engine.calibrate(None, score="s", target="y")
