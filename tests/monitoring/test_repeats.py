"""Rows that a monitor must not count: sent before, of training, or with labels that come late."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import vennforest
from monitoring.drawing import draw
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.monitoring import Monitor
from vennforest.monitoring.monitor import remember_rows


def make(rng, n=400):
    linear = FrozenEstimator(LogisticRegression().fit(*draw(rng, 300)))
    return Monitor(CalibratedClassifier(linear).fit(*draw(rng, n)), random_state=0).fit()


def windows(monitor, rng):
    X, y = draw(rng, 1600)
    for first in range(0, 1500, 50):
        monitor.update(X[first : first + 100], y[first : first + 100])


def five_times(monitor, rng):
    X, y = draw(rng, 400)
    rows = np.repeat(np.arange(400), 5)
    monitor.update(X[rows], y[rows])


def late(monitor, rng):
    for _ in range(10):
        X, y = draw(rng, 200)
        given = y.astype(float)
        given[(y == 1) & (rng.random(200) < 0.3)] = np.nan
        monitor.update(X, given)


@pytest.mark.parametrize(("send", "message"), [
    *((send, "rows came before and are left out") for send in (windows, five_times)),
    (late, "not counted yet, since .* have no label"),
])  # fmt: skip
def test_alarms_are_no_more_than_stated(send, message):
    alarms = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        monitor = make(rng)
        with pytest.warns(UserWarning, match=message):
            send(monitor, rng)
        alarms += monitor.alarm_ is not None
    assert alarms <= 1  # P(more) = .007 at a rate of .05; the seeds are fixed


def test_rows_wait_from_where_labels_are_missing_and_count_when_these_are_known():
    rng = np.random.default_rng(10)
    X, y = draw(rng, 600)
    given = y.astype(float)
    given[400:][(y[400:] == 1) & (rng.random(200) < 0.5)] = np.nan
    first = 400 + int(np.isnan(given[400:]).argmax())
    monitor, whole = make(np.random.default_rng(11)), make(np.random.default_rng(11))
    with pytest.warns(UserWarning, match=f"{600 - first} of 600 rows, from row {first + 1} on"):
        found = monitor.update(X, given, time=np.arange(600))
    assert monitor.taken_.sum() == monitor.n_seen_ == first and monitor.n_unlabelled_ == 0
    assert (found[first:] == found[first - 1]).all()
    late_rows = slice(first, None)
    found[late_rows] = monitor.update(X[late_rows], y[late_rows], time=np.arange(600)[late_rows])
    assert monitor.n_repeated_ == 0
    assert_array_equal(found, whole.update(X, y))


def test_missing_labels_of_small_updates_add_up():
    rng = np.random.default_rng(12)
    X, y = draw(rng, 400)
    given = y.astype(float)
    given[np.arange(400) % 10 == 3] = np.nan
    monitor = make(rng)
    waited = 0
    with pytest.warns(UserWarning, match="not counted yet"):
        for first in range(0, 400, 20):
            monitor.update(X[first : first + 20], given[first : first + 20])
            waited += int((~monitor.taken_).sum())
    assert monitor.n_unlabelled_ < 10 and waited > 250
    rows = np.flatnonzero(~np.isnan(given))
    monitor = make(rng)
    monitor.update(X[rows], y[rows])  # a random sample that was labelled
    assert monitor.n_seen_ == len(rows)


@pytest.mark.parametrize("share_of_defaults", [1.0, 0.02])
def test_rows_that_are_many_by_nature_count(share_of_defaults):
    """Rows of three values in each column, or a few rows of zeros among measured ones."""
    rng = np.random.default_rng(4)

    def draw_some(n):
        X, y = draw(rng, n)
        rows = rng.random(n) < share_of_defaults
        X[rows] = rng.integers(0, 3, (rows.sum(), 3)) if share_of_defaults == 1 else 0
        return X, y

    linear = FrozenEstimator(LogisticRegression().fit(*draw_some(300)))
    monitor = Monitor(CalibratedClassifier(linear).fit(*draw_some(400)), random_state=0).fit()
    monitor.update(*draw_some(1500))
    assert monitor.n_seen_ > 1450  # of rows of zeros a few are left out


def test_a_row_counts_again_when_the_window_has_passed_and_files_remember(tmp_path):
    rng = np.random.default_rng(6)
    monitor = make(rng)
    window = monitor._window
    assert window == int(0.05 * 400 * 399 / 2 / 3)
    X, y = draw(rng, window + 10)
    monitor.update(X, y)
    monitor.update(X[:5], y[:5])
    assert monitor.n_repeated_ == 0
    vennforest.save(monitor, tmp_path / "monitor.skops")
    again = vennforest.load(tmp_path / "monitor.skops")
    for one in (monitor, again):
        evidence = one.update(X[-8:], y[-8:])
        assert one.n_repeated_ == 8 and not one.taken_.any()
        assert_array_equal(evidence, one.evidence_)


def test_one_after_the_other_is_all_at_once():
    rng = np.random.default_rng(7)
    X, y = draw(rng, 300)
    rows = rng.integers(0, 300, 500)
    one, all_ = make(np.random.default_rng(8)), make(np.random.default_rng(8))
    with pytest.warns(UserWarning, match="came before"):
        found = np.concatenate([one.update(X[[i]], y[[i]]) for i in rows])
    with pytest.warns(UserWarning, match="came before"):
        assert_array_equal(all_.update(X[rows], y[rows]), found)
    assert one.n_seen_ == all_.n_seen_ == len(np.unique(rows))
    assert one.explain() == all_.explain() and one.max_evidence_ == all_.max_evidence_


def test_a_repeated_row_is_remembered_from_its_latest_time_on():
    remembered = np.array([1, 2, 3], np.uint64)
    hashes, is_counted = np.array([1, 4], np.uint64), np.ones(2, bool)
    remembered, is_new = remember_rows(remembered, 3, hashes, is_counted)
    assert_array_equal(remembered, [3, 1, 4])
    assert_array_equal(is_new, [False, True])


def draw_scores(rng, n):
    scores = rng.beta(2, 8, n).round(4)
    return scores, (rng.random(n) < scores).astype(int)


def test_an_update_that_came_before_counts_once_with_scores_alone_too(tmp_path):
    rng = np.random.default_rng(21)
    monitor = Monitor(random_state=0).fit(*draw_scores(rng, 1000))
    months = [draw_scores(rng, 120) for _ in range(3)]
    for month in months:
        monitor.update(*month)
    vennforest.save(monitor, tmp_path / "monitor.skops")
    for one in (monitor, vennforest.load(tmp_path / "monitor.skops")):
        for scores, y in months:
            with pytest.warns(UserWarning, match="these 120 rows came before"):
                one.update(scores, y)
        one.update(months[0][0], 1 - months[0][1])  # other labels are other rows
        assert one.n_seen_ == 480 and one.n_repeated_ == 360


def test_updates_that_are_alike_by_chance_all_count():
    rng = np.random.default_rng(22)
    monitor = Monitor(random_state=0).fit(*draw_scores(rng, 1000))
    for _ in range(3):
        monitor.update(np.full(40, 0.2), np.zeros(40, int))
        monitor.update(*draw_scores(rng, 20))
    assert monitor.n_seen_ == 180 and monitor.n_repeated_ == 0


@pytest.mark.parametrize("with_model", [True, False])
def test_a_row_whose_key_came_before_is_left_out(with_model):
    rng = np.random.default_rng(24)
    draw_some = draw if with_model else draw_scores
    monitor = make(rng) if with_model else Monitor(random_state=0).fit(*draw_scores(rng, 1000))
    monitor.update(*draw_some(rng, 50), ids=[f"K{i}" for i in range(50)])
    monitor.update(*draw_some(rng, 50), ids=[f"K{i}" for i in range(30, 80)])
    assert monitor.n_seen_ == 80 and monitor.taken_.tolist() == [False] * 20 + [True] * 30


@pytest.mark.parametrize(
    "make_keys",
    [
        lambda i: i,
        lambda i: i.astype(np.float32),
        lambda i: [f" {key}" for key in i],
        lambda i: pd.Series(i, dtype="Int64"),
        lambda i: np.where(i < 0, 0, 2**60 + i),
    ],
)
def test_keys_of_every_kind_are_compared_as_text(make_keys):
    rng = np.random.default_rng(24)
    monitor = Monitor(random_state=0).fit(*draw_scores(rng, 1000))
    monitor.update(*draw_scores(rng, 50), ids=make_keys(np.arange(50)))
    assert (monitor.n_seen_, monitor.n_repeated_) == (50, 0)
    keys = [str(int(key)) for key in make_keys(np.arange(50))]
    monitor.update(*draw_scores(rng, 50), ids=keys)
    assert (monitor.n_seen_, monitor.n_repeated_) == (50, 50)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([None, *range(9)], "ids must have a value for every row, got none in row 0"),
        ([1], r"ids must have shape \(10,\), got \(1,\)"),
    ],
)
def test_keys_that_are_missing_are_refused(keys, message):
    rng = np.random.default_rng(24)
    monitor = Monitor(random_state=0).fit(*draw_scores(rng, 1000))
    with pytest.raises(InputError, match=message):
        monitor.update(*draw_scores(rng, 10), ids=keys)
