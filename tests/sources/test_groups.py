"""Groups stay whole: by folds, held-out parts, bags, and through searches."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.cases import fit
from vennforest import CalibratedClassifier
from vennforest.sources import model_scores


def copies(seed=0, size=30, each=6):
    """Coins, each thrown once and written down several times."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(size, 3)), rng.integers(0, 2, size)
    groups = np.repeat(np.arange(size), each)
    return X[groups] + rng.normal(scale=1e-3, size=(len(groups), 3)), y[groups], groups


def forest(trees=20, max_samples=0.1):
    return RandomForestClassifier(trees, max_samples=max_samples, random_state=0)


@pytest.mark.parametrize("options", [{"calibrate_on": "oob"}, {"cv": GroupKFold(3)}, {}])
def test_groups_are_taken_with_and_without_routing(options):
    X, y, groups = copies()
    model = CalibratedClassifier(forest(), merge="log", random_state=0, **options)
    model.fit(X, y, groups=groups)
    p = model.predict_proba(X)
    assert model.calibrate_on_ == ("oob" if "calibrate_on" in options else "cv")
    assert options or "groups were given" in model.calibrate_on_reason_
    assert log_loss(y, model.oob_probability_) > 0.6  # a coin is not known from its copies
    with sklearn.config_context(enable_metadata_routing=True):
        assert_array_equal(model.fit(X, y, groups=groups).predict_proba(X), p)


def test_a_search_hands_groups_on_where_they_are_requested():
    X, y, groups = copies()
    with sklearn.config_context(enable_metadata_routing=True):
        model = CalibratedClassifier(forest(), calibrate_on="oob", random_state=0)
        pipeline = make_pipeline(StandardScaler(), model.set_fit_request(groups=True))
        grid = {"calibratedclassifier__merge": ["log", "brier"]}
        search = GridSearchCV(pipeline, grid, cv=GroupKFold(2)).fit(X, y, groups=groups)
    best = search.best_estimator_[-1]
    assert_array_equal(best._state.row_groups, groups)
    assert log_loss(y, best.oob_probability_) > 0.6


@pytest.fixture(scope="module")
def data():
    return make_classification(300, 8, random_state=0)


def test_no_group_is_on_both_sides_of_a_split(data):
    X, y = data
    groups = np.random.default_rng(0).integers(0, 30, 300).astype(str)
    seen = []

    class Recorder(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, -1])
            return super().fit(X, y, sample_weight)

    numbered = np.column_stack([X, np.unique(groups, return_inverse=True)[1]])
    for parameters in ({"merge": "log"}, {"calibrate_on": "holdout"}, {"method": "platt"}):
        seen.clear()
        model = fit(Recorder(), numbered, y, groups, **parameters)
        for trained, part in zip(seen, model._state.folds, strict=True):
            tested = set(numbered[:, -1]) - set(trained)
            assert len(tested) >= 5
            assert len(part.scores) == np.isin(numbered[:, -1], list(tested)).sum()
    with pytest.raises(ValueError, match='groups must be left out with calibrate_on="training"'):
        fit(GaussianNB(), X, y, groups, calibrate_on="training")


def test_splitters_that_know_the_rows_are_not_dropped(data):
    X, y = data
    with pytest.warns(UserWarning, match="one of 3 models on .* with ensemble=False one model of"):
        model = fit(forest(), X, y, cv=TimeSeriesSplit(3), merge="log")
    assert model.calibrate_on_ == "cv" and "TimeSeriesSplit" in model.calibrate_on_reason_
    assert fit(forest(), X, y, cv=3, merge="log").calibrate_on_ == "oob"
    with pytest.raises(ValueError, match=r"cv must be left out .* got TimeSeriesSplit"):
        fit(forest(), X, y, cv=TimeSeriesSplit(3), calibrate_on="holdout")


def test_out_of_bag_by_groups_is_by_trees_that_saw_nobody_of_the_group(data):
    X, y = data
    groups = np.arange(300) // 3
    model = fit(forest(40, None), X, y, groups, calibrate_on="oob", method="none")
    saw = np.zeros((40, 300), bool)
    for tree, drawn in enumerate(model.estimator_.estimators_samples_):
        saw[tree] = np.isin(groups, groups[drawn])
    answers = np.array([tree.predict_proba(X)[:, 1] for tree in model.estimator_.estimators_])
    kept = (~saw).any(axis=0)
    expected = np.where(saw, 0, answers).sum(axis=0)[kept] / (~saw).sum(axis=0)[kept]
    assert 250 < kept.sum() < 300
    assert_allclose(model.calibration_scores_, expected, rtol=1e-12)
    assert_array_equal(model.calibration_y_, y[kept])


def test_groups_that_every_tree_saw_are_named(data):
    X, y = data
    with pytest.raises(ValueError, match=r"whole groups .*max_samples.* calibrate_on=.cv."):
        fit(forest(20, None), X, y, np.arange(300) // 100, calibrate_on="oob")
    groups = np.where(np.arange(300) < 200, np.arange(300) // 100, np.arange(300))
    with pytest.raises(ValueError, match="most groups out of bag as a whole, got 200 of 300"):
        fit(forest(15, None), X, y, groups, calibrate_on="oob")
    few = fit(forest(20, 2), X, y, np.arange(300) // 100, calibrate_on="oob", method="none")
    assert len(few.calibration_y_) == 300


def test_a_holdout_is_counted_in_groups_and_keeps_them_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + rng.normal(size=120) > 0.2).astype(int)
    group = np.random.default_rng(4).permutation(np.repeat(np.arange(10), 12))

    def hold_out(size):
        settings = {"calibrate_on": "holdout", "holdout_size": size, "merge": "log"}
        return fit(GaussianNB(), X, y, group, **settings)

    for size, held in ((0.3, 3), (1, 1), (9, 9)):
        (part,) = hold_out(size)._state.folds
        assert len(part.scores) == 12 * held
        rows = np.isin(model_scores(part.model, X, np.array([0, 1])), part.scores)
        assert_array_equal(np.sort(np.bincount(group[rows], minlength=10))[-held:], 12)
        assert rows.sum() == 12 * held
    for size in (10, 0.05):
        with pytest.raises(ValueError, match="groups on both sides of 10"):
            hold_out(size)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_folds_are_at_most_the_groups(estimator):
    X, y, _ = copies()
    hospital = np.array(["north", "south", "west"])[np.arange(len(y)) % 3]
    model = CalibratedClassifier(estimator, random_state=0)
    with pytest.warns(UserWarning, match="there are 3 groups: 3 folds instead of 5"):
        model.fit(X, y, groups=hospital)
    assert len(model.estimators_) == 3
    with pytest.raises(ValueError, match="groups must be at least two, got 1"):
        model.fit(X, y, groups=["all"] * len(y))
