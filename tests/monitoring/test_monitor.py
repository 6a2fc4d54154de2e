"""A monitor as people use it: models of every source, delays, files, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import vennforest
from support.forging import save_spoilt
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.monitoring import Monitor


def draw(rng, n, shift=0.0, k=2):
    X = rng.normal(size=(n, 3))
    line = 1.5 * X[:, 0] + shift + rng.logistic(size=n)
    return X, np.array(["a", "b", "c"])[np.digitize(line, [0, 2][: k - 1])]


def make(name, k=2):
    rng = np.random.default_rng(0)
    X, y = draw(rng, 500, k=k)
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0)
    if name == "frozen":
        linear = FrozenEstimator(LogisticRegression().fit(*draw(rng, 400, k=k)))
        return CalibratedClassifier(linear).fit(X, y)
    if name == "margins":
        return CalibratedClassifier(SVC(), calibrate_on="holdout", random_state=0).fit(X, y)
    if name == "groups":
        return CalibratedClassifier(forest, by=lambda X: X[:, 2] > 0, random_state=0).fit(X, y)
    options = {"subforest": "exchangeable"} if name == "draws" else {}
    source = "oob" if name == "draws" else name
    return CalibratedClassifier(forest, calibrate_on=source, random_state=0, **options).fit(X, y)


@pytest.mark.parametrize(("name", "k"), [
    *((name, 2) for name in ("oob", "draws", "holdout", "cv", "frozen", "margins", "groups")),
    ("oob", 3),
    ("cv", 3),
])  # fmt: skip
def test_every_source_is_watched(name, k):
    monitor, rng = Monitor(make(name, k), random_state=0).fit(), np.random.default_rng(1)
    quiet = monitor.update(*draw(rng, 400, k=k))
    assert monitor.alarm_ is None and quiet.shape == (400,) and quiet.max() < 20
    path = monitor.update(*draw(rng, 400, shift=2.5, k=k))
    assert monitor.alarm_ == 400 + np.flatnonzero(path >= 20)[0] < 700
    assert monitor.max_evidence_ >= monitor.threshold_ == pytest.approx(20)
    first = monitor.explain()[0]
    assert first.evidence == pytest.approx(monitor.evidence_) and first.evidence > 20
    assert 330 < first.since < 460
    assert len(monitor.explain()) == (3 if k == 2 else 9)


def test_any_classifier_with_a_reference():
    rng = np.random.default_rng(3)
    model = LogisticRegression().fit(*draw(rng, 300))
    with pytest.raises(InputError, match="X and y must be given for a model without calibration"):
        Monitor(model).fit()
    monitor = Monitor(model, random_state=0).fit(*draw(rng, 500))
    monitor.update(*draw(rng, 300))
    assert monitor.alarm_ is None
    monitor.update(*draw(rng, 400, shift=-3))
    assert monitor.explain()[0].description.endswith("less frequent")


def test_objects_alone_need_no_labels():
    model, rng = make("frozen"), np.random.default_rng(5)
    monitor = Monitor(model, watch="objects", random_state=0).fit()
    monitor.update(draw(rng, 300)[0])
    assert monitor.alarm_ is None
    monitor.update(draw(rng, 300)[0] + 1.5)
    assert monitor.alarm_ >= 300
    assert monitor.explain()[0].kind == "scores"
    with pytest.raises(InputError, match="y must be given with"):
        monitor.update(*draw(rng, 10))
    with pytest.raises(InputError, match="y must be given"):
        Monitor(model).fit().update(draw(rng, 10)[0])


@pytest.fixture
def small():
    rng = np.random.default_rng(9)
    scores = rng.random(200)
    return Monitor(random_state=0).fit(scores, np.where(rng.random(200) < scores, "x", "o"))


def test_times_are_kept(small):
    days = pd.date_range("2024-01-01", periods=300, freq="D")
    rng = np.random.default_rng(10)
    scores = rng.random(300)
    chance = np.where(np.arange(300) < 150, scores, 1 - scores)
    small.update(scores, np.where(rng.random(300) < chance, "x", "o"), time=days)
    assert small.alarm_ > 150
    assert small.alarm_time_ == days[small.alarm_].timestamp()
    first = small.explain()[0]
    assert first.since_time == days[first.since].timestamp()
    assert abs(first.since - 150) < 25
    small.update([0.5], ["x"], time=["2025-01-01"])
    with pytest.raises(InputError, match="backwards"):
        small.update([0.5], ["x"], time=[np.datetime64("2024-12-31T23:59:59")])


def test_rows_without_a_label_are_left_out():
    rng = np.random.default_rng(6)
    X, y = draw(rng, 200)
    model, has_label = make("frozen"), np.arange(200) % 50 > 0
    complete, gaps = (Monitor(model, random_state=0).fit() for _ in range(2))
    expected = complete.update(X[has_label], y[has_label])
    evidence = gaps.update(X, np.where(has_label, y, None))
    assert_array_equal(evidence[has_label], expected)
    assert evidence[0] == pytest.approx(1 / 15) and evidence[50] == evidence[49]
    assert gaps.n_seen_ == 196 and gaps.n_unlabelled_ == 4


@pytest.mark.parametrize(("classes", "labels"), [
    ([0, 1], pd.array([0, None, 1], dtype="Int64")),
    ([False, True], [False, None, True]),
    (["o", "x"], np.array(["o", pd.NA, "x"], dtype=object)),
])  # fmt: skip
def test_missing_labels_of_any_type(classes, labels):
    monitor = Monitor(random_state=0).fit(np.arange(50.0), np.array(classes)[np.arange(50) % 2])
    monitor.update([0.1, 0.5, 0.7], labels)
    assert monitor.taken_.tolist() == [True, False, True]


@pytest.mark.parametrize("watch", ["labels", "objects"])
def test_file_goes_on_where_the_monitor_was(tmp_path, watch):
    rng = np.random.default_rng(8)
    monitor = Monitor(make("oob"), watch=watch, random_state=0).fit()
    for n in (60, 40):
        vennforest.save(monitor, tmp_path / "monitor.skops")
        saved = vennforest.load(tmp_path / "monitor.skops")
        X, y = draw(rng, n)
        y = y if watch == "labels" else None
        assert_array_equal(saved.update(X, y), monitor.update(X, y))
    assert saved.n_seen_ == 100 and saved.alarm_ == monitor.alarm_
    assert saved.explain() == monitor.explain()


@pytest.mark.parametrize("change", [
    lambda monitor: monitor._state["counts"].__setitem__((1, 0), -1),
    lambda monitor: monitor._state["weights"].__setitem__((1, 0), np.nan),
    lambda monitor: monitor._history.counts.__setitem__(..., -1),
    lambda monitor: setattr(monitor, "classes_", np.arange(3)),
])  # fmt: skip
def test_spoilt_file_is_refused(tmp_path, change):
    monitor = Monitor(random_state=0).fit(np.linspace(0, 1, 100), np.arange(100) % 2)
    change(monitor)
    with pytest.raises(InputError, match="as fit left it to be saved"):
        vennforest.save(monitor, tmp_path / "monitor.skops")
    save_spoilt(monitor, tmp_path / "monitor.skops")
    with pytest.raises(InputError, match="damaged"):
        vennforest.load(tmp_path / "monitor.skops")


@pytest.mark.parametrize(("scores", "y", "time", "message"), [
    ([0.1], ["z"], None, "y must contain labels of classes"),
    ([np.nan], ["x"], None, "scores must be finite"),
    ([0.1], ["x"], [2], "time must not run backwards or be missing, got 2 in row 0"),
    ([0.1], ["x"], [np.nan], "time must not run backwards or be missing, got nan"),
    ([0.1], ["x", "x"], None, r"y must have shape \(1,\), got \(2,\)"),
    ([[0.1, 0.2, 0.7]], ["x"], None, "scores must have a column for each of 2"),
])  # fmt: skip
def test_refused_rows_change_nothing(small, scores, y, time, message):
    small.update([0.5, 0.6], ["x", "o"], time=[3, 4])
    evidence, state = small.evidence_, small._state.copy()
    with pytest.raises(ValueError, match=message):
        small.update(scores, y, time=time)
    assert small.evidence_ == evidence and small.n_seen_ == 2
    assert_array_equal(small._state, state)


HALF = np.arange(50.0), np.arange(50) % 2


@pytest.mark.parametrize(("options", "examples", "message"), [
    ({"watch": "all"}, HALF, "watch must be one of"),
    ({"alpha": 0}, HALF, "alpha must lie between 0 and 1, both excluded, got 0"),
    ({}, (HALF[0][:30], HALF[1][:30]), "40 rows or more, got 30"),
    ({}, (HALF[0], np.zeros(50)), "two classes or more"),
    ({}, (HALF[0], HALF[1][:49]), r"y must have shape \(50,\)"),
    ({}, (), "X and y must be given without a model"),
    ({}, (HALF[0],), "X and y must be given together"),
    ({"model": SVC().fit(HALF[0][:, None], HALF[1])}, HALF, "must have predict_proba"),
])  # fmt: skip
def test_fit_refuses(options, examples, message):
    with pytest.raises(InputError, match=message):
        Monitor(**options).fit(*examples)


def test_few_calibration_examples_of_a_model_are_called_so():
    X, y = draw(np.random.default_rng(12), 100)
    model = CalibratedClassifier(GaussianNB(), calibrate_on="holdout", random_state=0).fit(X, y)
    with pytest.raises(InputError, match="the calibration examples must have 40 rows or more"):
        Monitor(model).fit()


def test_calibration_examples_that_no_new_row_is_like_are_refused():
    X, y = draw(np.random.default_rng(12), 100)
    forest = RandomForestClassifier(5, random_state=0)
    weighted = CalibratedClassifier(forest, calibrate_on="holdout", random_state=0)
    weighted.fit(X, y, sample_weight=np.arange(1.0, 101))
    moved = make("holdout").with_prior({"a": 0.2, "b": 0.8})
    training = CalibratedClassifier(forest, calibrate_on="training").fit(X, y)
    for model, message in (
        (weighted, "must not have weights"),
        (moved, "must be of the shares that with_prior has set"),
        (training, 'calibrate_on must not be "training"'),
    ):
        with pytest.raises(InputError, match=message):
            Monitor(model).fit()
    Monitor(weighted).fit(*draw(np.random.default_rng(16), 100))
    with pytest.raises(NotFittedError):
        Monitor().update([0.1], [0])


@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
def test_scores_of_any_size(scale):
    rng = np.random.default_rng(14)
    scores, y = rng.normal(size=300) * scale, rng.random(300) < 0.5
    monitor = Monitor(random_state=0).fit(scores[:150], y[:150])
    assert np.isfinite(monitor.update(scores[150:], y[150:])).all() and monitor.alarm_ is None
    assert monitor.update(np.empty(0), []).shape == (0,)


def streams(n_streams, n_reference, n, seed):
    """Exchangeable streams of calibrated scores."""
    rng = np.random.default_rng(seed)
    for _ in range(n_streams):
        scores = rng.beta(1, 4, n_reference + n)
        yield scores, rng.random(len(scores)) < scores


@pytest.mark.parametrize("watch", ["labels", "objects"])
def test_alarms_are_as_rare_as_promised(watch):
    alarms = 0
    for case, (scores, y) in enumerate(streams(50, 100, 200, 6)):
        monitor = Monitor(watch=watch, alpha=0.1, random_state=case).fit(
            scores[:100], y[:100], classes=[False, True]
        )
        monitor.update(scores[100:], y[100:] if watch == "labels" else None)
        alarms += monitor.alarm_ is not None
    assert alarms <= 50 * 0.1 + 2.6 * np.sqrt(50 * 0.1 * 0.9)


def test_examples_that_design_the_bets_are_not_counted_against_the_stream():
    scores = np.random.default_rng(0).random(200)
    monitor = Monitor(random_state=0).fit(scores, scores > 0.5)
    assert (monitor._state["counts"].sum(axis=(-2, -1)) == 160).all()


def test_columns_with_the_index_of_the_rows_in_another_order_are_warned_of():
    rng = np.random.default_rng(6)
    rows = pd.DataFrame(
        {"p": rng.random(100), "time": range(100)}, [f"row {i}" for i in range(100)]
    )
    y = rows["p"] > rng.random(100)
    with pytest.warns(UserWarning, match="y has the index of the rows in another order"):
        monitor = Monitor(random_state=0).fit(rows["p"], y.iloc[::-1])
    moved = pd.Series(range(100), rows.index[::-1])
    for arguments in ({"y": y.iloc[::-1]}, {"y": y, "time": moved}, {"y": y, "ids": moved}):
        with pytest.warns(UserWarning, match="has the index of the rows in another order"):
            monitor.update(rows["p"], **arguments)
    X = pd.DataFrame(rng.random((100, 2)), rows.index).set_axis(["a", "b"], axis=1)
    model = LogisticRegression().fit(X, y)
    with pytest.warns(UserWarning, match="labels of reference has the index of the rows"):
        vennforest.estimate_performance(model, X, reference=(X, y.iloc[::-1]))
