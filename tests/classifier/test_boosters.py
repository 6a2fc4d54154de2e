"""Gradient boosting packages behind CalibratedClassifier, where they are installed."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import vennforest
from support.cases import score
from vennforest import CalibratedClassifier, VennAbers
from vennforest._validation import InputError

BOOSTERS = {
    "xgboost": ("XGBClassifier", {"n_estimators": 15, "n_jobs": 1}),
    "lightgbm": ("LGBMClassifier", {"n_estimators": 15, "n_jobs": 1, "verbose": -1}),
    "catboost": (
        "CatBoostClassifier",
        {"iterations": 15, "thread_count": 1, "verbose": 0, "allow_writing_files": False},
    ),
}


def booster(package):
    name, settings = BOOSTERS[package]
    return getattr(pytest.importorskip(package), name)(**settings)


def data(k):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=800), [0.0] if k == 2 else [-0.5, 0.5])
    X[::9, 1] = np.nan
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.parametrize("package", BOOSTERS)
@pytest.mark.parametrize(("k", "calibrate_on"), [(2, "auto"), (3, "auto"), (3, "holdout")])
def test_boosters_are_calibrated_on_folds_and_held_out_parts(package, k, calibrate_on):
    X, y, new, y_new = data(k)
    settings = {"calibrate_on": calibrate_on, "cv": 3, "random_state": 0}
    model = CalibratedClassifier(booster(package), **settings).fit(X, y)
    assert len(model.estimators_) == (3 if calibrate_on == "auto" else 1)
    p = model.predict_proba(new)
    assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    # The commonest class alone is .52 of two, .35 of three.
    assert (model.predict(new) == y_new).mean() > (0.6 if k == 2 else 0.45)
    m = model.predict_multiprobability(new)
    assert ((m.lower <= p + 1e-9) & (p <= m.upper + 1e-9)).all()
    weighted = CalibratedClassifier(booster(package), **settings)
    weighted.fit(X, y, sample_weight=1.0 + 20 * (y == 0))
    assert weighted.predict_proba(new)[:, 0].mean() > p[:, 0].mean() + 0.1


@pytest.mark.parametrize("package", BOOSTERS)
@pytest.mark.parametrize("k", [2, 3])
def test_fitted_boosters_are_calibrated_and_not_touched(package, k):
    X, y, new, _ = data(k)
    base = booster(package).fit(X[:150], y[:150])
    before = base.predict_proba(new)
    model = CalibratedClassifier(FrozenEstimator(base), merge="log").fit(X[150:], y[150:])
    assert_array_equal(base.predict_proba(new), before)
    scores, new_scores = (score(base, rows).astype(float) for rows in (X[150:], new))
    expected = VennAbers("log").fit(scores, y[150:]).predict_proba(new_scores)
    assert_allclose(model.predict_proba(new), expected, atol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(new), model.predict_proba(new))


@pytest.mark.parametrize("package", BOOSTERS)
def test_columns_in_another_order_are_refused(package):
    X, y, new, _ = data(2)
    frame, new = (pd.DataFrame(rows, columns=["a b", "c", "é", "d"]) for rows in (X, new))
    model = CalibratedClassifier(booster(package), calibrate_on="holdout").fit(frame, y)
    frozen = CalibratedClassifier(FrozenEstimator(booster(package).fit(frame, y))).fit(frame, y)
    for fitted in (model, frozen):
        p, others = fitted.predict_proba(new), new[["c", "a b", "é", "d"]]
        assert_array_equal(fitted.predict_proba(pl.from_pandas(new)), p)
        with pytest.raises(ValueError, match="columns of training"):
            fitted.predict_proba(others)


class Copying(LogisticRegression):
    """A classifier that copies a list, as CatBoost does."""

    def __init__(self, cat_features=None):
        super().__init__()
        self.cat_features = list(cat_features)


@pytest.mark.parametrize("calibrate_on", ["cv", "holdout"])
def test_parameters_that_the_constructor_changes_are_named(calibrate_on):
    X, y, _, _ = data(2)
    model = CalibratedClassifier(Copying(["colour"]), calibrate_on=calibrate_on)
    with pytest.raises(InputError, match=r"keep its .* parameter cat_features: .* keeps tuples"):
        model.fit(np.nan_to_num(X), y)


@pytest.mark.parametrize("package", BOOSTERS)
def test_a_saved_booster_is_read_when_its_package_is_trusted_by_name(package, tmp_path):
    pytest.importorskip("skops")
    X, y, new, _ = data(3)
    model = CalibratedClassifier(booster(package), cv=3).fit(X, y)
    vennforest.save(model, tmp_path / "model.skops")
    others = [name for name in BOOSTERS if name != package]
    with pytest.raises(InputError, match="which vennforest does not read by itself"):
        vennforest.load(tmp_path / "model.skops", trusted=others)
    again = vennforest.load(tmp_path / "model.skops", trusted=[package])
    assert_array_equal(again.predict_proba(new), model.predict_proba(new))
