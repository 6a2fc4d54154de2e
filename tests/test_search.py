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
    unit = rng.integers(0, n, n) if seed % 2 else np.arange(n)
    unit[:2] = 0, 1
    found = bootstrap_corrected(losses, weight, unit, np.random.RandomState(seed))
    expected = slow(losses, weight, unit.tolist(), np.random.RandomState(seed))
    assert found == pytest.approx(expected)


def test_the_honest_loss_has_none_of_the_gain_of_choosing_among_equal_settings():
    rng = np.random.default_rng(1)
    best, honest = [], []
    for _ in range(40):
        losses = rng.exponential(size=(60, 8))  # every setting has an expected loss of 1
        best.append(losses.mean(axis=0).min())
        state = np.random.RandomState(0)
        honest.append(bootstrap_corrected(losses, np.ones(60), np.arange(60), state))
    error = np.std(honest) / np.sqrt(40)
    assert np.mean(best) < 0.9
    assert abs(np.mean(honest) - 1) < 4 * error


def test_groups_and_folds_are_those_of_the_model():
    X, y = drawn(2)
    groups = np.arange(len(y)) // 3
    model = CalibratedClassifier(LogisticRegression(), cv=3, random_state=0)
    search = OutOfBagSearch(model, {"estimator__C": [0.01, 1.0]}).fit(X, y, groups=groups)
    assert search.best_estimator_.calibrate_on_ == "cv"
    best = clone(model).set_params(**search.best_params_)
    apart = log_loss(y, clone(best).fit(X, y, groups=groups).oob_probability_)
    mixed = log_loss(y, clone(best).fit(X, y).oob_probability_)
    assert search.best_loss_ == pytest.approx(apart) != pytest.approx(mixed)


def test_copies_in_groups_do_not_make_the_honest_loss_look_better():
    rng = np.random.default_rng(2)
    found = {"rows": [], "groups": []}
    for _ in range(40):
        losses = np.repeat(rng.exponential(size=(30, 8)), 5, axis=0)
        for name, unit in (("rows", np.arange(150)), ("groups", np.arange(150) // 5)):
            state = np.random.RandomState(0)
            found[name].append(bootstrap_corrected(losses, np.ones(150), unit, state))
    error = np.std(found["groups"]) / np.sqrt(40)
    assert abs(np.mean(found["groups"]) - 1) < 4 * error
    assert np.mean(found["rows"]) < 1 - 4 * error


def test_settings_are_compared_on_rows_that_all_of_them_score():
    X, y = drawn(2)
    model = CalibratedClassifier(RandomForestClassifier(random_state=1), calibrate_on="oob")
    grid = {"estimator__n_estimators": [3, 40]}
    with pytest.warns(UserWarning, match="out of bag"):
        search = OutOfBagSearch(model, grid, random_state=0).fit(X, y)
        p = [
            clone(search.best_estimator_).set_params(**s).fit(X, y).oob_probability_
            for s in search.settings_
        ]
    both = np.isfinite(p[0][:, 0]) & np.isfinite(p[1][:, 0])
    assert not both.all()
    np.testing.assert_allclose(search.losses_, [log_loss(y[both], q[both]) for q in p])
    first = int(np.argmin(search.losses_))
    np.testing.assert_array_equal(search.best_estimator_.oob_probability_, p[first])


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
