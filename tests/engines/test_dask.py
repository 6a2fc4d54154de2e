"""Dask: what partitions add up to, and what comes of bad ones."""

import itertools
import os
import signal
import sys
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

import vennforest
from support.engine_data import check_same, draw_scores, fit_rows, score_names
from support.partitions import Partitions
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.calibrators import METHODS
from vennforest.engines import _forest
from vennforest.engines import dask as engine

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    """Two processes, each with one thread."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 3}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as two,
        distributed.Client(two) as client,
    ):
        yield client


@pytest.fixture
def here():
    """Tasks in this process, so that each test is quick."""
    with dask.config.set(scheduler="synchronous"):
        yield


def cut(frame, *sizes):
    """Return a Dask frame with partitions of these sizes, the last takes the rest."""
    ends = [0, *np.cumsum(sizes), len(frame)]
    parts = [frame.iloc[a:b] for a, b in itertools.pairwise(ends)]
    return delayed_frame(parts, frame.iloc[:0])


def delayed_frame(parts, meta):
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=meta, verify_meta=False)


@pytest.mark.parametrize("method", ["venn-abers", "venn", "isotonic", "matrix"])
@pytest.mark.parametrize("k", [2, 3])
def test_partitions_add_up_to_the_fit_to_all_rows(here, method, k):
    frame = draw_scores(900, k)
    parts = cut(frame, 1, 500, 0)  # skewed, and an empty one
    got = engine.calibrate(parts, score=score_names(k), target="y", method=method)
    check_same(got, fit_rows(frame, method, k), k, 1e-6 if method == "matrix" else 1e-9)


@pytest.mark.parametrize("weight", [None, "w", "half"])
@pytest.mark.parametrize("classes", [None, ["no", "yes"]])
def test_weights_and_named_classes(here, weight, classes):
    frame = draw_scores(900, seed=3070)
    frame["half"] = frame["w"] / 2
    frame.loc[:9, ["w", "half"]] = 0  # a partition of no weight
    got = engine.calibrate(
        cut(frame, 10, 300), score="s", target="y", weight=weight, classes=classes
    )
    check_same(got, fit_rows(frame, "venn-abers", 2, weight), 2, 1e-9)


def test_a_class_in_one_partition_only(here):
    frame = draw_scores(300)
    frame = pd.concat([frame[frame["y"] == "no"], frame[frame["y"] == "yes"]])
    n = int((frame["y"] == "no").sum())
    got = engine.calibrate(cut(frame, n // 2, n - n // 2), score="s", target="y")
    check_same(got, fit_rows(frame, "venn-abers"))


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("s", np.nan, "column 's' must contain finite scores, got NaN or nothing in row 5 of"),
        ("y", None, "column 'y' must contain a label in every row, got none in row 5 of"),
        ("y", "maybe", r"must contain labels of classes \['no', 'yes'\], got 'maybe' in row 5 of"),
        (
            "w",
            np.inf,
            "column 'w' must contain finite weights that are not negative, got inf in row 5 of",
        ),
    ],
)
def test_a_bad_row_is_named_with_its_partition(here, column, value, said):
    frame = draw_scores(90).astype({"w": float})
    frame.loc[44, column] = value
    with pytest.raises(InputError, match=said + " partition 2"):
        engine.calibrate(
            cut(frame, 30, 10), score="s", target="y", weight="w", classes=["no", "yes"]
        )


def test_partitions_that_are_not_alike(here):
    frame = draw_scores(90)
    good, meta = frame.iloc[:50], frame.iloc[:0]

    def calibrate(other):
        engine.calibrate(delayed_frame([good, other], meta), score="s", target="y")

    other = frame.iloc[50:]
    calibrate(other.astype({"s": "float32"}))
    calibrate(other.astype({"s": str}))
    with pytest.raises(InputError, match="'s' must contain numbers, got 'x' in row 1 of partiti"):
        calibrate(other.assign(s="x"))
    with pytest.raises(InputError, match="one kind, got text in partition 0 and numbers in part"):
        calibrate(other.assign(y=1))
    with pytest.raises(InputError, match="there is no column 'S' in the data frame: did you mean"):
        engine.calibrate(cut(frame, 30), score="S", target="y")
    with pytest.raises(InputError, match="there is no column 's' in partition 1"):
        calibrate(other.rename(columns={"s": "t"}))


def features(n=240, k=2, seed=7):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)).astype(np.float32), columns=["u", "v", "w"])
    y = np.digitize(X["u"] + rng.normal(size=n), np.linspace(-1, 1, k - 1) if k > 2 else [0])
    return X.assign(y=np.array(["no", "yes", "zero"])[y])


def same_forest(model, alone, X):
    assert np.array_equal(model.classes_, alone.classes_)
    assert np.array_equal(model.predict_proba(X), alone.predict_proba(X))
    m, n = model.predict_multiprobability(X), alone.predict_multiprobability(X)
    assert np.array_equal(m.lower, n.lower)
    assert np.array_equal(m.upper, n.upper)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
def test_a_forest_over_partitions_is_that_of_one_machine(here, k, subforest):
    frame = features(k=k)
    parts = cut(frame, 60, 0, 90, 30)
    home = np.repeat([0, 2, 3, 4], [60, 90, 30, 60])
    kind = RandomForestClassifier if k == 2 else ExtraTreesClassifier
    forest = kind(10, max_depth=4)
    model = CalibratedClassifier(forest, subforest=subforest, random_state=3)
    got = engine.fit(model, parts, target="y")
    alone = CalibratedClassifier(
        forest,
        calibrate_on=Partitions(home, subforest),
        random_state=3,
    ).fit(frame[["u", "v", "w"]], frame["y"])
    assert np.array_equal(got.calibration_scores_, alone.calibration_scores_)
    same_forest(got, alone, features(seed=8)[["u", "v", "w"]])
    assert got.calibrate_on_ == "partitions"
    assert "4 partitions" in got.calibrate_on_reason_


@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
@pytest.mark.parametrize("method", ["venn-abers", "venn", "isotonic"])
def test_counts_and_drawn_examples_say_what_all_rows_say(here, subforest, method, monkeypatch):
    monkeypatch.setattr(_forest, "MAX_DRAWN", 50)
    frame = features(300)
    home = np.repeat([0, 1, 2], [100, 150, 50])
    model = CalibratedClassifier(
        RandomForestClassifier(9, max_depth=3),
        method=method,
        subforest=subforest,
        merge="log" if method != "isotonic" else "auto",
        random_state=1,
    )
    got = engine.fit(model, cut(frame, 100, 150), target="y")
    part = got._state.folds[0]
    assert part.weight.sum() == 300
    assert len(part.scorer.homes) == (50 if subforest == "exchangeable" else 0)
    alone = CalibratedClassifier(
        RandomForestClassifier(9, max_depth=3),
        method=method,
        calibrate_on=Partitions(home),
        merge=model.merge,
        random_state=1,
    ).fit(frame[["u", "v", "w"]], frame["y"])
    X = features(seed=9)[["u", "v", "w"]]
    if subforest == "all":
        assert np.abs(got.predict_proba(X) - alone.predict_proba(X)).max() < 1e-12
        return
    # Each answer is that of a calibrator without the example that it leaves out.
    (draw,) = list(part.scorer.sampled_scores(X))
    scores, y = alone.calibration_scores_, alone.calibration_y_
    if method == "isotonic":
        return
    bounds = got.predict_multiprobability(X)
    for i in range(0, len(X), 13):
        left = draw.left_out[i]
        assert part.weight[left] == 1
        same = (scores == part.scores[left]) & (y == got.classes_[part.codes[left]])
        there = np.flatnonzero(same & (home == part.scorer.homes[left]))
        assert len(there)
        keep = np.arange(300) != there[0]
        one = METHODS[method]().fit(scores[keep], y[keep])
        wanted = one.predict_multiprobability(draw.scores[i : i + 1])
        assert np.allclose(bounds.lower[i], wanted.lower[0], rtol=0, atol=1e-9)
        assert np.allclose(bounds.upper[i], wanted.upper[0], rtol=0, atol=1e-9)


def test_partitions_that_change_are_refused(here):
    frame = features(100)
    drawn = []

    def other_each_time():
        drawn.append(1)
        return frame.sample(50, random_state=len(drawn))

    parts = [dask.delayed(frame.iloc[:50]), dask.delayed(other_each_time, pure=False)()]
    changing = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    model = CalibratedClassifier(RandomForestClassifier(4))
    message = "partition 1 must contain the same rows each time .*, got rows with other values"
    with pytest.raises(InputError, match=message):
        engine.fit(model, changing, target="y")


@pytest.mark.parametrize("value", [np.inf, 1e39])
def test_an_infinite_feature_is_named_by_its_row(here, value):
    frame = features(100).astype({"v": float})
    frame.loc[60, "v"] = value
    model = CalibratedClassifier(RandomForestClassifier(4))
    with pytest.raises(InputError, match=r"'v' must contain finite numbers .* row 11 of partit"):
        engine.fit(model, cut(frame, 50), target="y")


def test_missing_features_are_scored_as_by_the_forest(here):
    frame = features(100)
    frame.loc[::7, "v"] = np.nan
    model = CalibratedClassifier(RandomForestClassifier(4), random_state=0)
    fitted = engine.fit(model, cut(frame, 50), target="y")
    assert np.isfinite(fitted.predict_proba(frame[["u", "v", "w"]])).all()


def test_what_a_forest_over_partitions_refuses(here):
    frame = features(100)
    forest = RandomForestClassifier(4)

    def fit(model, parts, **options):
        engine.fit(model, parts, **{"target": "y", **options})

    model = CalibratedClassifier(forest)
    with pytest.raises(InputError, match="two partitions with rows or more, got 1"):
        fit(model, cut(frame, 0))
    with pytest.raises(InputError, match="must contain two classes or more"):
        fit(model, cut(frame.assign(y="no"), 50))
    with pytest.raises(InputError, match="column 'y' must contain numbers"):
        fit(model, cut(frame, 50), target="u", features=["y", "v"])
    with pytest.raises(InputError, match='calibrate_on must be "auto" or "oob"'):
        fit(CalibratedClassifier(forest, calibrate_on="cv"), cut(frame, 50))
    with pytest.raises(InputError, match="by must be left out where trees are grown on part"):
        fit(CalibratedClassifier(forest, by="u"), cut(frame, 50))
    with pytest.raises(InputError, match="model must be a CalibratedClassifier"):
        fit(forest, cut(frame, 50))
    with pytest.raises(ValueError, match="estimator must be a RandomForestClassifier"):
        fit(CalibratedClassifier(vennforest.VennAbers()), cut(frame, 50))
    with pytest.raises(InputError, match="frame must be a Dask DataFrame, got DataFrame"):
        fit(model, frame)


@pytest.mark.parametrize("carried", [None, ["v"], []])
def test_predictions_keep_partitions_and_index(here, carried):
    frame = features()
    frame.index = frame.index * 2
    X = frame[["u", "v", "w"]]
    model = CalibratedClassifier(RandomForestClassifier(10), random_state=0).fit(X, frame["y"])
    lazy = engine.predict(cut(frame, 100, 0), model, carried=carried)
    assert lazy.npartitions == 3
    got = lazy.compute()
    assert list(got.index) == list(frame.index)
    kept = list(frame.columns) if carried is None else carried
    assert list(got.columns) == list(lazy.columns)
    assert list(got.columns)[: len(kept) + 1] == [*kept, "label"]
    assert np.array_equal(got["p(yes)"], model.predict_proba(X)[:, 1])
    m = model.predict_multiprobability(X)
    assert np.array_equal(got["upper(yes)"], m.upper[:, 1])
    assert got["label"].tolist() == model.predict(X).tolist()


def test_a_bad_score_is_named_with_its_partition_when_it_is_predicted(here):
    frame = draw_scores(90)
    model = fit_rows(frame, "venn-abers")
    frame.loc[44, "s"] = np.nan
    lazy = engine.predict(cut(frame, 30), model, columns="s")
    with pytest.raises(InputError, match="got NaN or nothing in row 15 of partition 1"):
        lazy.compute()


def test_on_processes_of_their_own(cluster):
    """The model is sent once a worker; forests, folds and counts come out the same."""
    frame = features()
    X = frame[["u", "v", "w"]]
    parts = cut(frame, 80, 80)
    model = CalibratedClassifier(RandomForestClassifier(12, max_depth=4), random_state=2)
    got = engine.fit(model, parts, target="y")
    home = np.repeat([0, 1, 2], 80)
    alone = CalibratedClassifier(
        RandomForestClassifier(12, max_depth=4), calibrate_on=Partitions(home), random_state=2
    ).fit(X, frame["y"])
    same_forest(got, alone, X)
    out = engine.predict(parts, got).compute()
    assert np.array_equal(out["p(yes)"], alone.predict_proba(X)[:, 1])
    scores = draw_scores(500)
    calibrated = engine.calibrate(cut(scores, 100, 300), score="s", target="y")
    check_same(calibrated, fit_rows(scores, "venn-abers", 2), 2)
    bad = scores.assign(s=np.where(np.arange(500) == 420, np.nan, scores["s"]))
    with pytest.raises(InputError, match="got NaN or nothing in row 21 of partition 2"):
        engine.calibrate(cut(bad, 100, 300), score="s", target="y")


@pytest.mark.slow
def test_joblib_fits_forests_and_folds_on_the_cluster(cluster):
    frame = features(150)
    X, y = frame[["u", "v", "w"]], frame["y"]
    for options in ({}, {"calibrate_on": "cv", "cv": 3, "n_jobs": 2}):
        forest = RandomForestClassifier(12, n_jobs=2)
        model = CalibratedClassifier(forest, random_state=4, **options)
        with joblib.parallel_config(backend="dask"):
            got = vennforest.CalibratedClassifier(**model.get_params(deep=False)).fit(X, y)
        same_forest(got, model.fit(X, y), X)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_time_and_no_answer(cluster, tmp_path):
    frame = features(240)
    mark = tmp_path / "died"

    def die_once(part, mark):  # travels by value: workers know no module of tests
        if not os.path.exists(mark):  # noqa: PTH110
            with open(mark, "w") as file:  # noqa: PTH123
                file.write("x")
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    parts = [dask.delayed(frame.iloc[a : a + 80]) for a in (0, 80, 160)]
    parts[1] = dask.delayed(die_once)(parts[1], str(mark))
    dying = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    model = CalibratedClassifier(RandomForestClassifier(9, max_depth=4), random_state=2)
    got = engine.fit(model, dying, target="y")
    assert mark.exists()
    alone = CalibratedClassifier(
        RandomForestClassifier(9, max_depth=4),
        calibrate_on=Partitions(np.repeat([0, 1, 2], 80)),
        random_state=2,
    ).fit(frame[["u", "v", "w"]], frame["y"])
    same_forest(got, alone, frame[["u", "v", "w"]])


def test_a_model_newer_than_the_workers_library(here, monkeypatch):
    frame = draw_scores(60)
    model = fit_rows(frame, "venn-abers")
    lazy = engine.predict(cut(frame, 30), model, columns="s")
    from vennforest.engines import _workers

    monkeypatch.setattr(_workers, "_open", {})
    monkeypatch.setattr(
        _workers, "_versions", lambda: {"vennforest": "0.0.9", "scikit-learn": "1.9"}
    )
    with pytest.raises(InputError, match=r"workers must have vennforest 0.*, got 0\.0\.9 on "):
        lazy.compute()


def test_without_dask_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"pip install 'vennforest\[dask\]'"):
        engine.calibrate(None, score="s", target="y")
