"""Weights are repeated observations; metadata goes to the estimator and splitter that take it."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from vennforest import CalibratedClassifier


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, 3))
    y = (X[:, 0] + rng.normal(size=n + 40) > 0.2).astype(int)
    return X[:n], y[:n], rng.integers(0, 4, n), X[n:]


class Recorder(ClassifierMixin, BaseEstimator):
    """A nearest-mean classifier that notes every call of ``fit`` in a list of the class."""

    calls = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, flag=None):
        X, y = validate_data(self, X, y)
        self.calls.append((len(y), sample_weight, flag))
        self.classes_ = np.unique(y)
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.means_ = np.array(
            [np.average(X[y == c], axis=0, weights=weight[y == c]) for c in self.classes_]
        )
        return self

    def decision_function(self, X):
        X = validate_data(self, X, reset=False)
        return X @ (self.means_[1] - self.means_[0])


@pytest.fixture(autouse=True)
def forget():
    Recorder.calls.clear()


@pytest.mark.parametrize("method", ["venn-abers", "venn", "platt", "isotonic", "temperature"])
@pytest.mark.parametrize(
    "estimator", [GaussianNB(), LogisticRegression(solver="newton-cholesky", tol=1e-12)], ids=repr
)
def test_weights_are_repeated_observations_for_model_and_calibrator(estimator, method):
    X, y, weight, new = data()
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
    setup = {"cv": GroupKFold(4), "ensemble": ensemble}
    weighted = CalibratedClassifier(GaussianNB(), **setup)
    weighted.fit(X, y, sample_weight=weight, groups=group)
    splits = [
        [np.flatnonzero(part) for part in (group.repeat(weight) != g, group.repeat(weight) == g)]
        for g in range(4)
    ]
    repeated = CalibratedClassifier(GaussianNB(), cv=splits, ensemble=ensemble)
    repeated.fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert_allclose(weighted.predict_proba(new), repeated.predict_proba(new), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "setup",
    [
        {"estimator": RandomForestClassifier(20, random_state=0)},
        {"estimator": BaggingClassifier(GaussianNB(), 20, random_state=0)},
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
    weighted = CalibratedClassifier(random_state=0, **setup).fit(X, y, sample_weight=there * 1.0)
    absent = CalibratedClassifier(random_state=0, **setup).fit(X[there], y[there])
    assert_array_equal(weighted.calibration_scores_, absent.calibration_scores_)
    assert_array_equal(weighted.predict_proba(new), absent.predict_proba(new))


def test_weights_reach_out_of_bag_forests_and_their_calibrator():
    X, y, weight, _ = data()
    weight = weight + 1
    model = CalibratedClassifier(RandomForestClassifier(30, random_state=0), random_state=0)
    model.fit(X, y, sample_weight=weight)
    forest = RandomForestClassifier(30, random_state=0).fit(X, y, sample_weight=weight)
    assert_array_equal(model.estimator_.predict_proba(X), forest.predict_proba(X))
    totals = model.calibrator_.weights_[0].sum(axis=0)
    assert_allclose(totals, [weight[y == 0].sum(), weight[y == 1].sum()])


def test_class_weights_are_the_models_own_affair():
    X, y, _, new = data()
    names = np.array(["no", "yes"])
    settings = {"method": "platt", "random_state": 0}
    for estimator in (RandomForestClassifier(40, random_state=0), LogisticRegression()):
        for numbers, texts in (({0: 1, 1: 5}, {"no": 1, "yes": 5}), ("balanced", "balanced")):
            expected = CalibratedClassifier(estimator.set_params(class_weight=numbers), **settings)
            expected = expected.fit(X, y).predict_proba(new)
            model = CalibratedClassifier(estimator.set_params(class_weight=texts), **settings)
            assert_array_equal(model.fit(X, names[y]).predict_proba(new), expected)


def test_other_arguments_of_fit_reach_the_model_and_groups_the_splitter():
    X, y, _, _ = data()
    group = np.arange(len(y)) % 4
    flag = np.arange(len(y))
    model = CalibratedClassifier(Recorder(), cv=LeaveOneGroupOut())
    model.fit(X, y, groups=group, flag=flag)
    for left, (n, _, got) in enumerate(Recorder.calls):
        assert n == 90
        assert_array_equal(got, flag[group != left])
    Recorder.calls.clear()
    model.fit(X, y, groups=group, flag="the same for all")
    assert {got for _, _, got in Recorder.calls} == {"the same for all"}
    with pytest.raises(TypeError, match="nonsense"):
        CalibratedClassifier(GaussianNB()).fit(X, y, nonsense=1)


def test_arguments_of_pipelines_go_by_the_names_of_their_steps():
    X, y, weight, _ = data()
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0))
    heavy = CalibratedClassifier(pipeline, random_state=0)
    heavy.fit(X, y, standardscaler__sample_weight=weight + 1.0)
    scaler = StandardScaler().fit(X, sample_weight=weight + 1.0)
    assert_allclose(heavy.estimator_[0].mean_, scaler.mean_)


@pytest.mark.parametrize("calibrate_on", ["auto", "holdout", "cv", "training"])
@pytest.mark.parametrize("piped", [False, True])
def test_routed_weights_reach_those_who_ask(calibrate_on, piped):
    X, y, weight, new = data()
    weight = weight + 1.0
    settings = {"calibrate_on": calibrate_on, "random_state": 0}
    before = [StandardScaler()] if piped else []

    def behind(forest):
        deaf = [clone(one).set_fit_request(sample_weight=False) for one in before]
        return make_pipeline(*deaf, forest) if piped else forest

    forest = RandomForestClassifier(20, random_state=0)
    expected = CalibratedClassifier(make_pipeline(*before, forest), **settings)
    expected.fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = behind(clone(forest).set_fit_request(sample_weight=True))
        model = CalibratedClassifier(asking, calibrate_on=calibrate_on, random_state=0)
        model.fit(X, y, sample_weight=weight)
        assert_array_equal(model.predict_proba(new), expected.predict_proba(new))
        unclear = behind(clone(forest))
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            CalibratedClassifier(unclear).fit(X, y, sample_weight=weight)
        model.fit(X, y)
