"""Weights are repeated observations; metadata goes to the estimator and splitter that take it."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.cases import draw_rows
from vennforest import CalibratedClassifier


def data(seed=0):
    X, y, new = draw_rows(seed=seed)
    return X, y, np.random.default_rng(seed).integers(0, 4, len(y)), new


class Recorder(GaussianNB):
    """Notes every call of ``fit`` in a list of the class."""

    calls = []  # noqa: RUF012

    def fit(self, X, y, flag=None):
        self.calls.append((len(y), flag))
        return super().fit(X, y)


@pytest.fixture(autouse=True)
def forget():
    Recorder.calls.clear()


@pytest.mark.parametrize("method", ["venn-abers", "venn", "platt", "isotonic", "temperature"])
def test_weights_are_repeated_observations_for_model_and_calibrator(method):
    X, y, weight, new = data()
    estimator = LogisticRegression(solver="newton-cholesky", tol=1e-12)
    twice, y_twice = X.repeat(weight, axis=0), y.repeat(weight)
    frozen = FrozenEstimator(estimator.fit(*data(seed=1)[:2]))
    for one, settings in ((estimator, {"calibrate_on": "training"}), (frozen, {})):
        weighted = CalibratedClassifier(one, method=method, **settings)
        weighted.fit(X, y, sample_weight=weight)
        repeated = CalibratedClassifier(one, method=method, **settings).fit(twice, y_twice)
        found, expected = weighted.predict_proba(new), repeated.predict_proba(new)
        assert_allclose(found, expected, rtol=0, atol=1e-6)
    plain = CalibratedClassifier(estimator, method=method, calibrate_on="training").fit(X, y)
    assert np.abs(plain.predict_proba(new) - found).max() > 0.01


@pytest.mark.parametrize("ensemble", [True, False])
def test_weights_are_repeated_observations_in_folds(ensemble):
    X, y, weight, new = data()
    group = np.arange(len(y)) % 4
    settings = {"merge": "log", "ensemble": ensemble}
    weighted = CalibratedClassifier(GaussianNB(), cv=GroupKFold(4), **settings)
    weighted.fit(X, y, sample_weight=weight, groups=group)
    splits = [
        [np.flatnonzero(part) for part in (group.repeat(weight) != g, group.repeat(weight) == g)]
        for g in range(4)
    ]
    repeated = CalibratedClassifier(GaussianNB(), cv=splits, **settings)
    repeated.fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert_allclose(weighted.predict_proba(new), repeated.predict_proba(new), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "setup",
    [
        {"estimator": BaggingClassifier(GaussianNB(), 9, random_state=0)},
        {"estimator": RandomForestClassifier(5, random_state=0), "calibrate_on": "holdout"},
        {"estimator": KNeighborsClassifier(), "calibrate_on": "training"},
        {"estimator": make_pipeline(StandardScaler(), RandomForestClassifier(9, random_state=0))},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:KNeighborsClassifier takes no")
@pytest.mark.filterwarnings("ignore:.*out of bag for no tree")
def test_a_weight_of_zero_is_absence_everywhere(setup):
    X, y, _, new = data()
    there = np.random.default_rng(0).random(len(y)) < 0.6
    setup = {"merge": "log", "random_state": 0, **setup}
    weighted = CalibratedClassifier(**setup).fit(X, y, sample_weight=there * 1.0)
    absent = CalibratedClassifier(**setup).fit(X[there], y[there])
    assert_array_equal(weighted.calibration_scores_, absent.calibration_scores_)
    assert_array_equal(weighted.predict_proba(new), absent.predict_proba(new))


def test_weights_reach_out_of_bag_forests_and_their_calibrator():
    X, y, weight, _ = data()
    weight = weight + 1
    forest = RandomForestClassifier(30, random_state=0)
    model = CalibratedClassifier(forest, merge="log", random_state=0)
    model.fit(X, y, sample_weight=weight)
    forest.fit(X, y, sample_weight=weight)
    assert_array_equal(model.estimator_.predict_proba(X), forest.predict_proba(X))
    totals = model.calibrator_.weights_[0].sum(axis=0)
    assert_allclose(totals, [weight[y == 0].sum(), weight[y == 1].sum()])


def test_class_weights_are_the_models_own_affair():
    X, y, _, new = data()
    names = np.array(["no", "yes"])
    settings = {"method": "platt", "random_state": 0}
    for estimator in (RandomForestClassifier(9, random_state=0), LogisticRegression()):
        for numbers, texts in (({0: 1, 1: 5}, {"no": 1, "yes": 5}), ("balanced", "balanced")):
            expected = CalibratedClassifier(estimator.set_params(class_weight=numbers), **settings)
            expected = expected.fit(X, y).predict_proba(new)
            model = CalibratedClassifier(estimator.set_params(class_weight=texts), **settings)
            assert_array_equal(model.fit(X, names[y]).predict_proba(new), expected)


def test_other_arguments_of_fit_reach_the_model_and_groups_the_splitter():
    X, y, _, _ = data()
    group = np.arange(len(y)) % 4
    flag = np.arange(len(y))
    model = CalibratedClassifier(Recorder(), merge="log", cv=LeaveOneGroupOut())
    model.fit(X, y, groups=group, flag=flag)
    for left, (n, got) in enumerate(Recorder.calls):
        assert n == 90
        assert_array_equal(got, flag[group != left])
    Recorder.calls.clear()
    model.fit(X, y, groups=group, flag="the same for all")
    assert {got for _, got in Recorder.calls} == {"the same for all"}
    with pytest.raises(TypeError, match="nonsense"):
        CalibratedClassifier(GaussianNB()).fit(X, y, nonsense=1)
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(9, random_state=0))
    model = CalibratedClassifier(pipeline, merge="log").fit(
        X, y, standardscaler__sample_weight=flag
    )
    scaler = StandardScaler().fit(X, sample_weight=flag)
    assert_allclose(model.estimator_[0].mean_, scaler.mean_)


@pytest.mark.parametrize("calibrate_on", ["auto", "holdout", "cv", "training"])
def test_routed_weights_reach_those_who_ask(calibrate_on):
    X, y, weight, new = data()
    weight = weight + 1.0
    settings = {"calibrate_on": calibrate_on, "merge": "log", "random_state": 0}
    forest = RandomForestClassifier(9, random_state=0)
    expected = CalibratedClassifier(make_pipeline(StandardScaler(), forest), **settings)
    expected = expected.fit(X, y, sample_weight=weight).predict_proba(new)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        unclear = CalibratedClassifier(make_pipeline(scaler, clone(forest)), **settings)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            unclear.fit(X, y, sample_weight=weight)
        asking = make_pipeline(scaler, forest.set_fit_request(sample_weight=True))
        model = CalibratedClassifier(asking, **settings).fit(X, y, sample_weight=weight)
        assert_array_equal(model.predict_proba(new), expected)
        model.fit(X, y)
