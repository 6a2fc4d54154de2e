"""Settings chosen by the calibrated out-of-bag loss."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier

from oracles.search import bootstrap_corrected as slow
from vennforest import CalibratedClassifier, OutOfBagSearch
from vennforest.search import bootstrap_corrected

GRID = {"estimator__min_samples_leaf": [1, 15], "estimator__max_depth": [None, 1]}
FOREST = CalibratedClassifier(RandomForestClassifier(25))


def drawn(k=3, n=150):
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=k, flip_y=0.1, random_state=k, class_sep=1.5
    )
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("k", [2, 3])
def test_each_setting_has_the_loss_of_its_own_fit_and_the_best_is_kept(k):
    X, y = drawn(k)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    for given in ({}, {"sample_weight": weight}):
        search = OutOfBagSearch(FOREST.set_params(random_state=3), GRID).fit(X, y, **given)
        losses = []
        for setting in search.settings_:
            model = clone(FOREST).set_params(**setting).fit(X, y, **given)
            losses.append(log_loss(y, model.oob_probability_, **given))
        np.testing.assert_allclose(search.losses_, losses, rtol=1e-9)
        best = int(np.argmin(losses))
        assert search.best_params_ == search.settings_[best]
        assert search.best_loss_ == pytest.approx(min(losses))
        model = clone(FOREST).set_params(**search.best_params_).fit(X, y, **given)
        np.testing.assert_array_equal(search.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(search.predict(X), model.predict(X))
        bounds = model.predict_multiprobability(X)
        np.testing.assert_array_equal(search.predict_multiprobability(X).lower, bounds.lower)


@pytest.mark.parametrize("seed", range(60))
def test_the_honest_loss_agrees_with_the_oracle(seed):
    rng = np.random.default_rng(seed)
    n, settings = rng.integers(3, 12), rng.integers(1, 5)
    losses = rng.exponential(size=(n, settings))
    weight = rng.integers(1, 4, n).astype(float)
    state = np.random.RandomState(seed)
    found = bootstrap_corrected(losses, weight, state)
    assert found == pytest.approx(slow(losses, weight, np.random.RandomState(seed)))


def test_the_honest_loss_has_none_of_the_gain_of_choosing_among_equal_settings():
    rng = np.random.default_rng(1)
    best, honest = [], []
    for _ in range(40):
        losses = rng.exponential(size=(60, 8))  # every setting has an expected loss of 1
        best.append(losses.mean(axis=0).min())
        honest.append(bootstrap_corrected(losses, np.ones(60), np.random.RandomState(0)))
    error = np.std(honest) / np.sqrt(40)
    assert np.mean(best) < 0.9
    assert abs(np.mean(honest) - 1) < 4 * error


def test_groups_and_folds_are_those_of_the_model():
    X, y = drawn(2)
    groups = np.arange(len(y)) // 3
    model = CalibratedClassifier(LogisticRegression(), cv=3)
    search = OutOfBagSearch(model, {"estimator__C": [0.01, 1.0]}).fit(X, y, groups=groups)
    other = clone(model).set_params(**search.best_params_, random_state=0)
    assert search.best_estimator_.calibrate_on_ == "cv"
    assert search.best_loss_ < log_loss(y, other.fit(X, y).predict_proba(X)[:, ::-1])


def test_a_search_that_could_not_be_honest_is_refused():
    X, y = drawn(2)
    held_out = CalibratedClassifier(RandomForestClassifier(5), calibrate_on="holdout")
    with pytest.raises(ValueError, match=r"one of \['oob', 'cv'\], got 'holdout'"):
        OutOfBagSearch(held_out, {"estimator__max_depth": [1]}).fit(X, y)
    with pytest.raises(TypeError, match=r"use CalibratedClassifier\(KNeighborsClassifier\(…\)\)"):
        OutOfBagSearch(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(ValueError, match=r"param_grid must have a setting, got \[\]"):
        OutOfBagSearch(FOREST, []).fit(X, y)
    with pytest.raises(ValueError, match=r"param_grid must be given .* KNeighborsClassifier"):
        OutOfBagSearch(CalibratedClassifier(KNeighborsClassifier())).fit(X, y)


def test_without_a_grid_leaves_and_features_of_a_forest_are_tried():
    X, y = drawn(2, 60)
    model = CalibratedClassifier(RandomForestClassifier(20))
    first, again = (OutOfBagSearch(model, random_state=5).fit(X, y) for _ in range(2))
    assert len(first.settings_) == 6
    np.testing.assert_array_equal(first.losses_, again.losses_)
    assert first.honest_loss_ == again.honest_loss_
    assert model.random_state is None  # the user's model is untouched
    assert not hasattr(model, "classes_")
