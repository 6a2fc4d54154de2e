"""Dask: data frames in partitions, on one process and on several."""

import os
import signal
import sys
import time

import numpy as np
import pandas as pd
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
)
from vennforest import CalibratedClassifier, VennAbers
from vennforest._validation import InputError
from vennforest.engines import dask as engine

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

FOREST = RandomForestClassifier(10, max_depth=4)


@pytest.fixture(scope="module")
def cluster():
    """Two processes, each with one thread."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 3}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


@pytest.fixture
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def dask_frame(frame, *sizes):
    parts = [dask.delayed(part) for part in cut(frame, *sizes)]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("carried", [None, ["v"], []])
def test_predictions_keep_partitions_and_index(carried):
    frame = draw_features()
    frame.index = frame.index * 2
    X = frame[FEATURES]
    model = CalibratedClassifier(FOREST, random_state=0).fit(X, frame["y"])
    lazy = engine.predict(dask_frame(frame, 100, 0), model, carried=carried)
    assert lazy.npartitions == 3
    answers = lazy.compute()
    assert list(answers.index) == list(frame.index)
    carried = list(frame.columns) if carried is None else carried
    assert list(answers.columns) == list(lazy.columns)
    assert list(answers.columns)[: len(carried) + 1] == [*carried, "label"]
    # Before pandas 3 Dask makes another type of text.
    pd.testing.assert_frame_equal(answers[carried], frame[carried], check_dtype=False)
    assert np.array_equal(answers["p(yes)"], model.predict_proba(X)[:, 1])
    assert np.array_equal(answers["upper(yes)"], model.predict_multiprobability(X).upper[:, 1])
    assert answers["label"].tolist() == model.predict(X).tolist()


@pytest.mark.usefixtures("one_process")
def test_a_score_that_is_refused_is_named_with_its_partition():
    frame = draw_scores(90)
    model = VennAbers().fit(frame["s"], frame["y"])
    frame.loc[44, "s"] = np.nan
    lazy = engine.predict(dask_frame(frame, 30), model, columns="s")
    with pytest.raises(InputError, match="got NaN or nothing in row 15 of partition 1"):
        lazy.compute()


def test_frames_and_columns_are_checked_first():
    frame = draw_scores(90)
    with pytest.raises(InputError, match="there is no column 'S' in the data frame: did you mean"):
        engine.calibrate(dask_frame(frame, 30), score="S", target="y")
    with pytest.raises(InputError, match="frame must be a Dask DataFrame, got DataFrame"):
        engine.fit(CalibratedClassifier(FOREST), frame, target="y")
    with pytest.raises(InputError, match="frame must be a Dask DataFrame, got DataFrame"):
        engine.predict(frame, VennAbers(), columns="s")


@pytest.mark.parametrize(
    "scheduler", ["one_process", pytest.param("cluster", marks=pytest.mark.slow)]
)
def test_partitions_come_out_as_one_machine(scheduler, request):
    """Forests, predictions and counts."""
    request.getfixturevalue(scheduler)
    frame = draw_features()
    X, parts = frame[FEATURES], dask_frame(frame, 80, 80)
    model = CalibratedClassifier(FOREST, random_state=2)
    fitted = engine.fit(model, parts, target="y")
    alone = CalibratedClassifier(
        FOREST, calibrate_on=Partitions(np.repeat([0, 1, 2], 80)), random_state=2
    ).fit(X, frame["y"])
    check_forest(fitted, alone, X)
    answers = engine.predict(parts, fitted).compute()
    assert np.array_equal(answers["p(yes)"], fitted.predict_proba(X)[:, 1])
    scores = draw_scores(500)
    calibrator = engine.calibrate(
        dask_frame(scores, 100, 300), score="s", target="y", weight="w", classes=["no", "yes"]
    )
    check_calibrator(calibrator, scores, weight="w")
    scores.loc[420, "s"] = np.nan
    with pytest.raises(InputError, match=r"partition 2: 's' must be finite, got"):
        engine.calibrate(dask_frame(scores, 100, 300), score="s", target="y")


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_result(cluster, tmp_path):
    frame = draw_features(240)
    mark = tmp_path / "died"

    def die_once(part, mark):  # travels by value: workers know no module of tests
        if not os.path.exists(mark):  # noqa: PTH110
            with open(mark, "w") as file:  # noqa: PTH123
                file.write("x")
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    parts = [dask.delayed(part) for part in cut(frame, 80, 80)]
    parts[1] = dask.delayed(die_once)(parts[1], str(mark))
    dying = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    model = CalibratedClassifier(FOREST, random_state=2)
    fitted = engine.fit(model, dying, target="y")
    assert mark.exists()
    expected = engine.fit(model, dask_frame(frame, 80, 80), target="y")
    X = frame[FEATURES]
    assert np.array_equal(fitted.predict_proba(X), expected.predict_proba(X))


def test_without_dask_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"pip install 'vennforest\[dask\]'"):
        engine.calibrate(None, score="s", target="y")


@pytest.mark.usefixtures("one_process")
def test_columns_are_of_the_classes_that_their_names_say():
    check_class_columns(engine, lambda frame: dask_frame(frame, 100), lambda lazy: lazy.compute())
