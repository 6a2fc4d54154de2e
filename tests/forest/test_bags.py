"""Bags are compared with the leaves of the trees."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from oracles import formulas as oracle
from support.cases import fit
from vennforest import CalibratedClassifier
from vennforest.forest import Membership
from vennforest.forest.bags import BagsError


class Resampled(RandomForestClassifier):
    """Draws a bootstrap of its own first."""

    def fit(self, X, y, sample_weight=None):
        rows = np.random.default_rng(1).integers(0, len(y), len(y))
        return super().fit(X[rows], y[rows])


class Lying(RandomForestClassifier):
    """Fits as scikit-learn does, and tells of other bags."""

    @property
    def estimators_samples_(self):
        return super().estimators_samples_[::-1]


@pytest.fixture(scope="module")
def data():
    return make_classification(200, 8, random_state=0)


def forest(n=20, **parameters):
    return RandomForestClassifier(n, **parameters)


@pytest.mark.parametrize("kind", [Resampled, Lying])
def test_forests_whose_bags_are_others_are_found_out(kind, data):
    X, y = data
    model = fit(kind(20), X, y, merge="log", cv=2)
    assert model.calibrate_on_ == "cv" and "bags" in model.calibrate_on_reason_
    with pytest.raises(ValueError, match=r'leaves contain other examples.* use calibrate_on="cv"'):
        fit(kind(20), X, y, calibrate_on="oob")


FOREST_SETTINGS = [
    {},
    {"criterion": "entropy"},
    {"class_weight": "balanced"},
    {"class_weight": "balanced_subsample"},
    {"max_samples": 0.4},
    {"min_samples_leaf": 4},
    {"ccp_alpha": 0.02},
    {"monotonic_cst": [1, -1, 0, 0, 0, 0, 0, 0]},
]


@pytest.mark.parametrize("settings", FOREST_SETTINGS, ids=str)
def test_true_bags_pass_and_one_label_changed_does_not(settings, data):
    X, y = data
    some = np.random.default_rng(3).random(200) + 0.1
    for kind, weight in product((RandomForestClassifier, ExtraTreesClassifier), (None, some)):
        ensemble = kind(20, bootstrap=True, random_state=0, **settings)
        model = CalibratedClassifier(ensemble, method="none", calibrate_on="oob", random_state=0)
        model.fit(X, y, sample_weight=weight)
        frozen = clone(model).set_params(estimator=FrozenEstimator(model.estimator_))
        frozen.fit(X, y, sample_weight=weight)
        assert_array_equal(frozen.calibration_scores_, model.calibration_scores_)
        others = [(X[::-1], y[::-1])]
        if "monotonic_cst" not in settings:  # whose leaves have clipped shares of the classes
            others.append((X, np.where(np.arange(200) % 10 == 0, 1 - y, y)))
        for rows, labels in others:
            with pytest.raises(ValueError, match="what the frozen model was trained on"):
                frozen.fit(rows, labels, sample_weight=weight)


def test_bags_of_missing_values_bagged_trees_and_pipelines_pass(data):
    X, y = data
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    labels = np.array(["no", "yes"])[y]
    for estimator in (
        forest(),
        BaggingClassifier(n_estimators=20, max_features=0.5, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(class_weight="balanced"), n_estimators=20),
        BaggingClassifier(n_estimators=20, bootstrap=False, max_samples=0.5),
        make_pipeline(StandardScaler(), forest()),
    ):
        model = fit(estimator, holes, labels, calibrate_on="oob", method="none")
        assert model.calibrate_on_ == "oob"


def test_a_class_that_every_tree_saw_is_named(data):
    X, _ = data
    y = (np.arange(200) < 12).astype(int)
    weight = np.where(y == 1, 1e4, 1.0)
    model = CalibratedClassifier(forest(), merge="log", cv=2).fit(X, y, sample_weight=weight)
    if model.calibrate_on_ == "oob":  # weights to scikit-learn 1.8 do not decide who is drawn
        assert np.isin(1, model.calibration_y_)
        return
    with pytest.raises(ValueError, match="examples of every class out of bag"):
        model.set_params(calibrate_on="oob", cv=None).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: make_pipeline(StandardScaler(), f)])
def test_a_frozen_forest_calibrates_out_of_bag_on_its_own_data_alone(wrap, data):
    X, y = data
    plain = wrap(forest(30, random_state=5)).fit(X, y)
    model = fit(FrozenEstimator(plain), X, y, calibrate_on="oob", method="none")
    assert model.estimator_.estimator is not plain  # a copy
    ensemble = plain[-1] if hasattr(plain, "steps") else plain
    rows = plain[:-1].transform(X) if hasattr(plain, "steps") else X
    out = np.ones((30, 200), bool)
    for tree, drawn in enumerate(ensemble.estimators_samples_):
        out[tree, drawn] = False
    answers = np.array([tree.predict_proba(rows)[:, 1] for tree in ensemble.estimators_])
    expected = (answers * out).sum(axis=0) / out.sum(axis=0)
    assert_allclose(model.calibration_scores_, expected, rtol=1e-12)
    for others in ((X[:150], y[:150]), (X + 1, y), (np.vstack([X, X]), np.append(y, y))):
        with pytest.raises(ValueError, match="what the frozen model was trained on"):
            fit(FrozenEstimator(plain), *others, calibrate_on="oob")
    for calibrate_on in ("cv", "holdout"):
        with pytest.raises(ValueError, match="with a FrozenEstimator"):
            fit(FrozenEstimator(plain), X, y, calibrate_on=calibrate_on)


@pytest.mark.parametrize(
    "member",
    [
        DecisionTreeClassifier(monotonic_cst=[1, 0]),
        DecisionTreeClassifier(monotonic_cst=[1, 0, 0]),
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3)),
    ],
    ids=["two features", "three features", "pipeline"],
)
def test_members_with_constraints_or_steps_pass(member, data):
    n_features = len(getattr(member, "monotonic_cst", "..."))
    bagging = BaggingClassifier(member, 20, max_features=n_features, random_state=0)
    X, y = data
    model = fit(bagging, X[:, :3], y, calibrate_on="oob", method="none")
    assert model.calibrate_on_ == "oob"


def test_members_of_another_package_that_are_no_trees_are_refused(data):
    class Bags(BaggingClassifier):
        pass

    with pytest.raises(BagsError, match="Bags over members that are not trees"):
        fit(Bags(GaussianNB(), 25), *data, calibrate_on="oob")


@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(7, random_state=0),
        RandomForestClassifier(7, random_state=0, max_samples=0.2),
        RandomForestClassifier(7, random_state=0, bootstrap=False),
        ExtraTreesClassifier(7, random_state=0, bootstrap=True),
        BaggingClassifier(n_estimators=7, random_state=0),
        BaggingClassifier(n_estimators=7, random_state=0, max_samples=0.3, bootstrap=False),
    ],
    ids=str,
)
def test_membership_of_every_ensemble(monkeypatch, ensemble):
    X, y = make_classification(83, random_state=0)
    ensemble = clone(ensemble).fit(X, y)
    expected = oracle.out_of_bag(ensemble, 83)
    for at_once in (1, 170, 10**6):
        monkeypatch.setattr("vennforest.forest.bags.INDICES_AT_ONCE", at_once)
        membership = Membership.from_forest(ensemble, 83).dense()
        assert [np.flatnonzero(row).tolist() for row in membership.T] == expected


def test_a_frozen_forest_that_was_trained_without_weights_is_recognised_with_weights_of_zero(data):
    X, y = data
    weight = (np.arange(200) % 3 > 0).astype(float)
    frozen = FrozenEstimator(forest(30, random_state=5).fit(X, y))
    model = CalibratedClassifier(frozen, method="none").fit(X, y, sample_weight=weight)
    assert model.calibrate_on_ == "oob" and len(model.calibration_y_) == weight.sum()
