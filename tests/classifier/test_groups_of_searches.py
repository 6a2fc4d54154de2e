"""Groups as an argument of fit, and through searches and cross-validations."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest import CalibratedClassifier

GRID = {"merge": ["log", "brier"]}


def copies(seed=0, size=30, each=6):
    """Coins, each thrown once and written down several times."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(size, 3)), rng.integers(0, 2, size)
    groups = np.repeat(np.arange(size), each)
    return X[groups] + rng.normal(scale=1e-3, size=(len(groups), 3)), y[groups], groups


def forest(trees=30):
    return RandomForestClassifier(trees, max_samples=0.1, random_state=0)


def calibrated(**params):
    return CalibratedClassifier(forest(), calibrate_on="oob", random_state=0, **params)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("options", [{"calibrate_on": "oob"}, {"cv": GroupKFold(3)}, {}])
def test_groups_are_taken_with_and_without_routing(routing, options):
    X, y, groups = copies()
    plain = CalibratedClassifier(forest(), random_state=0, **options).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = CalibratedClassifier(forest(), random_state=0, **options).fit(X, y, groups=groups)
    assert model.calibrate_on_ == ("oob" if "calibrate_on" in options else "cv")
    assert_array_equal(model.calibration_scores_, plain.calibration_scores_)
    assert_array_equal(model.fit(X, y, groups=groups).predict_proba(X), plain.predict_proba(X))
    assert log_loss(y, model.oob_probability_) > 0.6  # a coin is not known from its copies


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_search_hands_groups_on_where_they_are_requested(wrapped):
    X, y, groups = copies()
    with sklearn.config_context(enable_metadata_routing=True):
        model = calibrated().set_fit_request(groups=True)
        grid = {f"calibratedclassifier__{k}": v for k, v in GRID.items()} if wrapped else GRID
        estimator = make_pipeline(StandardScaler(), model) if wrapped else model
        search = GridSearchCV(estimator, grid, cv=GroupKFold(3)).fit(X, y, groups=groups)
    best = search.best_estimator_[-1] if wrapped else search.best_estimator_
    assert_array_equal(best._state.row_groups, groups)
    assert log_loss(y, best.oob_probability_) > 0.6


def test_cross_validation_hands_groups_on_where_they_are_requested():
    X, y, groups = copies()
    with sklearn.config_context(enable_metadata_routing=True):
        model = calibrated().set_fit_request(groups=True)
        params = {"groups": groups}
        found = cross_validate(model, X, y, params=params, cv=GroupKFold(3), return_estimator=True)[
            "estimator"
        ]
        p = cross_val_predict(model, X, y, params=params, cv=GroupKFold(3), method="predict_proba")
    assert all(len(np.unique(one._state.row_groups)) == 20 for one in found)
    assert log_loss(y, p) > 0.6


def test_with_routing_groups_that_nobody_asked_for_are_refused():
    X, y, groups = copies()
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(calibrated(), GRID, cv=GroupKFold(3), error_score="raise")
        with pytest.raises(UnsetMetadataPassedError, match="groups"):
            search.fit(X, y, groups=groups)
        declined = GridSearchCV(calibrated().set_fit_request(groups=False), GRID, cv=GroupKFold(3))
        declined.fit(X, y, groups=groups)


def test_settings_that_change_after_fit_wait_for_the_next():
    X, y, _ = copies()
    model = CalibratedClassifier(GaussianNB(), random_state=0).fit(X, y)
    p, bounds = model.predict_proba(X), model.predict_multiprobability(X)
    model.set_params(method="platt", merge="auto")
    assert_array_equal(model.predict_proba(X), p)
    assert_array_equal(model.predict_multiprobability(X).lower, bounds.lower)
    model.fit(X, y)
    assert not hasattr(model, "predict_multiprobability")
    model.set_params(method="venn-abers")
    with pytest.raises(AttributeError, match="PlattScaling gives no bounds"):
        model.predict_multiprobability(X)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y, _ = copies()
    model = CalibratedClassifier(GaussianNB(), random_state=0).fit(X, y)
    p = model.predict_proba(X)
    with pytest.raises(ValueError, match="two classes"):
        model.fit(X, np.zeros(len(y)))
    assert_array_equal(model.predict_proba(X), p)
