"""A monitor as people use it: models of every source, delays, files, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
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
    options = {"subforest": "exchangeable"} if name == "draws" else {}
    source = "oob" if name == "draws" else name
    return CalibratedClassifier(forest, calibrate_on=source, random_state=0, **options).fit(X, y)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["oob", "draws", "holdout", "cv", "frozen"])
def test_every_source_is_watched(name, k):
    model, rng = make(name, k), np.random.default_rng(1)
    monitor = Monitor(model, random_state=0).fit()
    quiet = monitor.update(*draw(rng, 400, k=k))
    assert monitor.alarm_ is None and quiet.shape == (400,) and quiet.max() < 20
    monitor.update(*draw(rng, 400, shift=2.5, k=k))
    assert 400 <= monitor.alarm_ < 700
    assert monitor.max_evidence_ >= monitor.threshold_ == pytest.approx(20)
    first = monitor.explain()[0]
    assert first.evidence == monitor.evidence_ > 20
    assert 330 < first.since < 460
    assert len(monitor.explain()) == (3 if k == 2 else 9)


def test_margins_are_watched():
    monitor = Monitor(make("margins"), random_state=0).fit()
    rng = np.random.default_rng(2)
    monitor.update(*draw(rng, 300))
    assert monitor.alarm_ is None
    monitor.update(*draw(rng, 500, shift=2.5))
    assert monitor.alarm_ > 300


def test_any_classifier_with_a_reference():
    rng = np.random.default_rng(3)
    model = LogisticRegression().fit(*draw(rng, 300))
    with pytest.raises(InputError, match="X and y must be given for a model without calibration"):
        Monitor(model).fit()
    monitor = Monitor(model, random_state=0).fit(*draw(rng, 500))
    monitor.update(*draw(rng, 300))
    assert monitor.alarm_ is None
    monitor.update(*draw(rng, 400, shift=-3))
    assert monitor.explain()[0].what.endswith("less frequent")


def test_models_calibrated_within_groups_are_watched():
    rng = np.random.default_rng(15)
    X, y = draw(rng, 400)
    X[:, 2] = rng.integers(0, 2, 400)
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0)
    model = CalibratedClassifier(forest, by=2, random_state=0).fit(X, y)
    monitor = Monitor(model, random_state=0).fit()
    later, z = draw(rng, 200)
    later[:, 2] = rng.integers(0, 2, 200)
    monitor.update(later, z)
    assert monitor.n_seen_ == 200 and monitor.alarm_ is None


def test_reference_of_ones_own_beside_calibration_examples():
    rng = np.random.default_rng(4)
    monitor = Monitor(make("holdout"), random_state=0).fit(*draw(rng, 300))
    assert sum(monitor._channels[0].counts.ravel()) == 300  # all of it, design is calibration's


def test_objects_alone_need_no_labels():
    model, rng = make("frozen"), np.random.default_rng(5)
    monitor = Monitor(model, watch="objects", random_state=0).fit()
    monitor.update(draw(rng, 300)[0])
    assert monitor.alarm_ is None
    monitor.update(draw(rng, 300)[0] + 1.5)
    assert monitor.alarm_ >= 300
    assert monitor.explain()[0].kind == "scores"
    with pytest.raises(InputError, match="y must not be given"):
        monitor.update(*draw(rng, 10))
    with pytest.raises(InputError, match="y must be given"):
        Monitor(model).fit().update(draw(rng, 10)[0])


def test_rows_without_a_label_are_left_out():
    rng = np.random.default_rng(6)
    X, y = draw(rng, 200)
    model = make("frozen")
    whole, holes = (Monitor(model, random_state=0).fit() for _ in range(2))
    gaps = np.where(np.arange(200) % 50 == 0, None, y)
    expected = whole.update(X[gaps != None], y[gaps != None])  # noqa: E711
    found = holes.update(X, gaps)
    assert_array_equal(found[gaps != None], expected)  # noqa: E711
    assert found[0] == pytest.approx(1 / 15) and found[50] == found[49]
    assert holes.n_seen_ == 196 and holes.n_unlabelled_ == 4
    numbers = Monitor(random_state=0).fit_scores(rng.random(100), rng.integers(0, 2, 100))
    numbers.update_scores([0.1, 0.5, 0.7], [0, np.nan, 1.0])
    assert numbers.n_unlabelled_ == 1
    numbers.update_scores([0.2, 0.6], pd.array([1, None], dtype="Int64"))
    assert numbers.n_unlabelled_ == 2
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        numbers.update_scores([0.1, 0.5], [0.5, np.nan])
    assert numbers.n_seen_ == 3


def test_parts_of_a_stream_are_the_stream():
    rng = np.random.default_rng(7)
    scores, y = rng.random(400), rng.random(400) < 0.4
    whole, parts = (Monitor(random_state=0).fit_scores(scores[:100], y[:100]) for _ in range(2))
    expected = whole.update_scores(scores[100:], y[100:])
    found = [parts.update_scores(s, t) for s, t in zip(scores[100:], y[100:], strict=True)]
    assert_array_equal(np.concatenate(found), expected)
    assert parts.explain() == whole.explain()
    assert parts.max_evidence_ == whole.max_evidence_


def test_file_goes_on_where_the_monitor_was(tmp_path):
    rng = np.random.default_rng(8)
    for watch in ("labels", "objects"):
        monitor = Monitor(make("oob"), watch=watch, random_state=0).fit()
        X, y = draw(rng, 60)
        later, z = draw(rng, 40)
        if watch == "objects":
            y = z = None
        vennforest.save(monitor, tmp_path / "fresh.skops")
        fresh = vennforest.load(tmp_path / "fresh.skops")
        assert_array_equal(fresh.update(X, y), monitor.update(X, y))
        vennforest.save(monitor, tmp_path / "monitor.skops")
        read = vennforest.load(tmp_path / "monitor.skops")
        assert_array_equal(read.update(later, z), monitor.update(later, z))
        assert read.n_seen_ == 100 and read.alarm_ == monitor.alarm_
        assert read.explain() == monitor.explain()


def spoil(monitor, name, value):
    channel = monitor._channels[1]
    for part in (channel, channel.bets, monitor._recent_rows, monitor):
        if name in vars(part):
            object.__setattr__(part, name, value(getattr(part, name)))
            return
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("counts", lambda v: v[:-1]),
        ("counts", lambda v: -v),
        ("weights", lambda v: v * np.nan),
        ("log_capital", lambda v: v + np.inf),
        ("sums", lambda v: v[1:]),
        ("begins", lambda v: v - 5),
        ("times", lambda v: v.astype(np.float32)),
        ("code", lambda v: 7),
        ("seed", lambda v: -1),
        ("factors", lambda v: v * 1.01),
        ("limits", lambda v: v * 0),
        ("kind", lambda v: "luck"),
        ("hashes", lambda v: np.zeros(2, np.uint64)),
        ("_channels", lambda v: v[1:]),
        ("_log_evidence", lambda v: v + 1),
        ("n_seen_", lambda v: -1),
        ("alarm_", lambda v: 100),
        ("alpha", lambda v: 2.0),
        ("classes_", lambda v: np.arange(3)),
    ],
)
def test_spoilt_file_is_refused(tmp_path, name, value):
    monitor = Monitor(random_state=0)
    monitor.fit_scores(np.linspace(0, 1, 100), np.arange(100) % 2)
    spoil(monitor, name, value)
    with pytest.raises(InputError, match="as fit left it to be saved"):
        vennforest.save(monitor, tmp_path / "monitor.skops")
    save_spoilt(monitor, tmp_path / "monitor.skops")
    with pytest.raises(InputError, match="damaged"):
        vennforest.load(tmp_path / "monitor.skops")


@pytest.fixture
def small():
    rng = np.random.default_rng(9)
    scores = rng.random(200)
    return Monitor(random_state=0).fit_scores(scores, np.where(rng.random(200) < scores, "x", "o"))


def test_what_is_refused_changes_nothing(small):
    small.update_scores([0.5, 0.6], ["x", "o"], time=[3, 4])
    before = small.evidence_, small.n_seen_, small._channels[0].counts.copy()
    for scores, y, time, message in (
        ([0.1], ["z"], None, "y must contain labels of classes"),
        ([np.nan], ["x"], None, "scores must be finite"),
        ([0.1], ["x"], [2], "time must not run backwards, got .*2.* after the last update"),
        ([0.1, 0.2], ["x", "x"], [9, 8], "time must not run backwards, got .*8.* after row 0"),
        ([0.1], ["x"], [np.nan], "time must be known in every row"),
        ([0.1], ["x"], ["soon"], "time must be numbers or dates"),
        ([0.1], ["x"], [1, 2], "time must have shape"),
        ([0.1], ["x", "x"], None, "y must have 1 labels"),
        ([[0.1, 0.2, 0.7]], ["x"], None, "scores must have a column for each of 2"),
    ):
        with pytest.raises(ValueError, match=message):
            small.update_scores(scores, y, time=time)
    assert (small.evidence_, small.n_seen_) == before[:2]
    assert_array_equal(small._channels[0].counts, before[2])


def test_times_are_kept(small):
    days = pd.date_range("2024-01-01", periods=300, freq="D")
    rng = np.random.default_rng(10)
    scores = rng.random(300)
    chance = np.where(np.arange(300) < 150, scores, 1 - scores)
    small.update_scores(scores, np.where(rng.random(300) < chance, "x", "o"), time=days)
    assert small.alarm_ > 150
    assert small.alarm_time_ == days[small.alarm_].timestamp()
    first = small.explain()[0]
    assert first.since_time == days[first.since].timestamp()
    assert abs(first.since - 150) < 25
    small.update_scores([0.5], ["x"], time=["2025-01-01"])
    with pytest.raises(InputError, match="backwards"):
        small.update_scores([0.5], ["x"], time=[np.datetime64("2024-12-31T23:59:59")])


def test_a_stream_that_starts_again_is_left_out(small):
    rng = np.random.default_rng(11)
    scores, y = rng.random(50), np.array(["x", "o"] * 25)
    evidence = small.update_scores(scores, y)[-1]
    with pytest.warns(UserWarning, match="50 of 100 rows came before and are left out"):
        assert (small.update_scores(scores, y) == evidence).all()
    assert small.n_seen_ == small.n_repeated_ == 50 and not small.taken_.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"watch": "all"}, "watch must be one of"),
        ({"alpha": 0}, "alpha must lie between 0 and 1, both excluded, got 0"),
        ({"alpha": "x"}, "alpha must lie between 0 and 1, both excluded, got 'x'"),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        Monitor(**options).fit_scores(np.arange(50.0), np.arange(50) % 2)


def test_fit_refuses():
    X, y = draw(np.random.default_rng(12), 100)
    with pytest.raises(InputError, match="40 examples or more, got 30"):
        Monitor().fit_scores(np.arange(30.0), np.arange(30) % 2)
    with pytest.raises(InputError, match="two classes or more"):
        Monitor().fit_scores(np.arange(50.0), np.zeros(50))
    with pytest.raises(InputError, match="y must have 50 labels"):
        Monitor().fit_scores(np.arange(50.0), np.arange(49) % 2)
    with pytest.raises(InputError, match="use fit_scores"):
        Monitor().fit()
    with pytest.raises(InputError, match="X and y must be given together"):
        Monitor(make("frozen")).fit(X)
    with pytest.raises(InputError, match="must have predict_proba"):
        Monitor(SVC().fit(X, y)).fit(X, y)
    forest = RandomForestClassifier(5, random_state=0)
    weighted = CalibratedClassifier(forest, calibrate_on="holdout", random_state=0)
    weighted.fit(X, y, sample_weight=np.arange(1.0, 101))
    with pytest.raises(InputError, match="must not have weights"):
        Monitor(weighted).fit()
    Monitor(weighted).fit(*draw(np.random.default_rng(16), 100))
    with pytest.raises(InputError, match="must be of the shares that with_prior has set"):
        Monitor(make("holdout").with_prior({"a": 0.2, "b": 0.8})).fit()
    with pytest.raises(InputError, match='calibrate_on must not be "training"'):
        Monitor(CalibratedClassifier(forest, calibrate_on="training").fit(X, y)).fit()
    with pytest.raises(NotFittedError):
        Monitor().update_scores([0.1], [0])
    with pytest.raises(NotFittedError):
        Monitor(CalibratedClassifier()).fit()


def test_frames():
    rng = np.random.default_rng(13)
    X, y = draw(rng, 200)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = CalibratedClassifier(
        RandomForestClassifier(10, random_state=0), calibrate_on="cv", cv=2, random_state=0
    ).fit(frame, y)
    monitor = Monitor(model, random_state=0)
    later, z = draw(rng, 50)
    monitor.fit().update(pd.DataFrame(later, columns=["u", "v", "w"]), pd.Series(z))
    assert monitor.n_seen_ == 50
    empty = monitor.update_scores(np.empty(0), [])
    assert empty.shape == (0,) and monitor.n_seen_ == 50


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_scores_of_any_size(scale):
    rng = np.random.default_rng(14)
    scores = rng.normal(size=300) * scale
    y = rng.random(300) < 0.5
    monitor = Monitor(random_state=0).fit_scores(scores[:150], y[:150])
    assert np.isfinite(monitor.update_scores(scores[150:], y[150:])).all()


def test_constant_scores():
    y = np.arange(300) % 4 == 0
    monitor = Monitor(random_state=0).fit_scores(np.full(150, 0.5), y[:150])
    evidence = monitor.update_scores(np.full(150, 0.5), y[150:])
    assert np.isfinite(evidence).all() and monitor.alarm_ is None


def test_parameters_set_after_fit_change_nothing_before_the_next_fit():
    X, y = draw(np.random.default_rng(21), 300)
    one, other = (Monitor(random_state=0).fit_scores(X[:, 0], y) for _ in range(2))
    other.set_params(watch="objects")
    new, labels = draw(np.random.default_rng(22), 100)
    assert other.update_scores(new[:, 0], labels).tolist() == (
        one.update_scores(new[:, 0], labels).tolist()
    )
    assert other.threshold_ == one.threshold_ == pytest.approx(20)
