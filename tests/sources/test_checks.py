"""Which steps rule out-of-bag scores out, and how often an estimator is trained."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    IsolationForest,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, TargetEncoder
from sklearn.svm import LinearSVC

from support.cases import fit
from vennforest import CalibratedClassifier
from vennforest._validation import InputError


@pytest.fixture(scope="module")
def data():
    return make_classification(150, 8, random_state=0)


SUPERVISED = {
    "selection": SelectKBest(k=3),
    "discriminant": LinearDiscriminantAnalysis(),
    "target encoder": TargetEncoder(),
    "from model": SelectFromModel(LogisticRegression()),
    "in columns": ColumnTransformer([("few", SelectKBest(k=1), [0, 1])], remainder="passthrough"),
    "in a union": FeatureUnion([("pca", PCA(2)), ("few", SelectKBest(k=1))]),
    "nested": make_pipeline(StandardScaler(), make_pipeline(PCA(4), SelectKBest(k=2))),
}


@pytest.mark.parametrize("step", SUPERVISED.values(), ids=SUPERVISED)
def test_steps_that_see_labels_make_auto_mean_folds_and_oob_an_error(step, data):
    X, y = data
    pipeline = make_pipeline(step, RandomForestClassifier(9))
    model = fit(pipeline, X, y, method="platt", cv=2)
    assert model.calibrate_on_ == "cv"
    assert "labels" in model.calibrate_on_reason_
    with pytest.raises(ValueError, match=r'labels.* use calibrate_on="cv"'):
        fit(pipeline, X, y, calibrate_on="oob")


class Select(BaseEstimator):
    """A stateless transformer without ``fit_transform``."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X)[:, :3]


STEPS = {
    "stateless": [Select()],
    "lambda": [FunctionTransformer(lambda X: np.asarray(X)[:, :2])],
    "passthrough": ["passthrough"],
    "nested": [make_pipeline(Select(), StandardScaler()), FunctionTransformer(np.negative)],
    "columns": [ColumnTransformer([("few", Select(), [0, 1, 2])], remainder="passthrough")],
    "set_output": [StandardScaler().set_output(transform="pandas")],
}


@pytest.mark.parametrize("name", STEPS)
def test_transformers_that_work_in_a_pipeline_calibrate(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    y = (X[:, 0] > rng.normal(size=150)).astype(int)
    estimator = make_pipeline(*STEPS[name], RandomForestClassifier(15, random_state=0))
    estimator.fit(X, y)  # scikit-learn takes it
    for source in ("oob", "cv"):
        settings = {"method": "platt", "cv": 2 if source == "cv" else None, "random_state": 0}
        model = CalibratedClassifier(estimator, calibrate_on=source, **settings).fit(X, y)
        assert ((model.predict_proba(X)[:, 1] > 0.5) == y).mean() > 0.6
    frozen = CalibratedClassifier(FrozenEstimator(estimator), method="platt").fit(X, y)
    assert frozen.calibrate_on_ == "oob"
    assert frozen.predict_proba(X).shape == (150, 2)


class CountingForest(RandomForestClassifier):
    """Counts the calls of its fits."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).n_fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("settings", "n_fits"),
    [
        ({"calibrate_on": "oob"}, 1),
        ({"calibrate_on": "auto"}, 1),
        ({"calibrate_on": "holdout"}, 1),
        ({"calibrate_on": "training"}, 1),
        ({"calibrate_on": "cv", "cv": 3}, 3),
        ({"calibrate_on": "cv", "cv": 3, "ensemble": False}, 4),
    ],
    ids=str,
)
def test_the_estimator_is_trained_as_often_as_documented(settings, n_fits):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 2
    CountingForest.n_fits = 0
    estimator = make_pipeline(StandardScaler(), CountingForest(15, random_state=0))
    model = CalibratedClassifier(estimator, merge="log", random_state=0, **settings)
    model.fit(X, y).predict_proba(X)
    assert CountingForest.n_fits == n_fits


@pytest.mark.parametrize("member", [Ridge(), KMeans(2, n_init=1), IsolationForest(n_estimators=5)])
@pytest.mark.parametrize("calibrate_on", ["oob", "cv"])
def test_a_bag_of_others_than_classifiers_is_refused(member, calibrate_on):
    X, y = make_classification(60, random_state=0)
    message = f"a bag of classifiers.* over {type(member).__name__}"
    for bagged in (member, make_pipeline(StandardScaler(), member)):
        model = CalibratedClassifier(BaggingClassifier(bagged), calibrate_on=calibrate_on)
        with pytest.raises(InputError, match=message):
            model.fit(X, y)


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        (Ridge(), "a classifier, which has classes_, got a Pipeline"),
        (BaggingClassifier(Ridge()), "a bag of classifiers.* over Ridge, a regressor"),
    ],
)
def test_frozen_regressors_are_refused(frozen, message):
    X, y = make_classification(60, random_state=0)
    model = make_pipeline(StandardScaler(), frozen).fit(X, y)
    with pytest.raises(InputError, match=message):
        CalibratedClassifier(FrozenEstimator(model)).fit(X, y)


def test_classifiers_without_scores_are_scored_by_votes_in_a_bag():
    X, y = make_classification(60, random_state=0)
    voting = VotingClassifier([("a", GaussianNB()), ("b", LinearSVC())])
    with pytest.raises(TypeError, match=r"predict_proba or decision_function.*a BaggingClassifier"):
        CalibratedClassifier(voting).fit(X, y)
    model = CalibratedClassifier(BaggingClassifier(voting, 20, random_state=0), random_state=0)
    assert model.fit(X, y).calibrate_on_ == "oob"
    assert (model.predict(X) == y).mean() > 0.8


class OneNumber(GaussianNB):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, 1]


def test_members_of_a_bag_must_give_a_column_for_each_class():
    X, y = make_classification(60, random_state=0)
    with pytest.raises(InputError, match=r"members .* shape \(\d+, 2\).*got \(\d+,\) of OneNumber"):
        CalibratedClassifier(BaggingClassifier(OneNumber(), 20), random_state=0).fit(X, y)
