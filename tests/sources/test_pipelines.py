"""Which steps rule out-of-bag scores out, and transformers that work in any pipeline."""

import numpy as np
import pytest
from imblearn.pipeline import Pipeline as ResamplingPipeline
from imblearn.under_sampling import RandomUnderSampler
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from vennforest import CalibratedClassifier
from vennforest.sources.checks import steps_obstacle
from vennforest.sources.row_hashes import hash_rows


class Steps(Pipeline):
    """A pipeline that is fitted in a way of its own."""

    def fit(self, X, y=None, **params):
        return super().fit(X, y, **params)


class WithoutTags(TransformerMixin, BaseEstimator):
    """Its kind is given as a parameter, and it cannot say what it needs."""

    def __init__(self, kind=StandardScaler):
        self.kind = kind

    def __sklearn_tags__(self):
        raise RuntimeError

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Bare:
    """Has all that a pipeline asks for, and no parameters."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def test_what_stands_in_the_way():
    forest = RandomForestClassifier()
    resampled = ResamplingPipeline([("fewer", RandomUnderSampler()), ("forest", forest)])
    assert steps_obstacle(resampled) == "RandomUnderSampler changes which rows there are"
    own = Steps([("scale", StandardScaler()), ("forest", forest)])
    assert steps_obstacle(own) == "Steps fits its steps in a way of its own"
    assert steps_obstacle(Pipeline([("own", WithoutTags()), ("forest", forest)])) is None
    assert steps_obstacle(Pipeline([("same", "passthrough"), ("forest", forest)])) is None
    assert (
        steps_obstacle(Pipeline([("bare", Bare()), ("scale", StandardScaler()), ("f", forest)]))
        is None
    )


def shared(X, y=None):
    return X


def test_a_sparse_table_with_a_cell_in_two_parts_has_the_hashes_of_the_sum():
    parts = csr_array((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 2))
    assert not parts.has_canonical_format
    whole = csr_array(np.array([[0.0, 3.0], [5.0, 0.0]]))
    assert (hash_rows(parts) == hash_rows(whole)).all()
    assert parts.nnz == 3  # the user's table stays as it was


def test_a_function_without_labels_is_plain():
    steps = Pipeline([("same", FunctionTransformer(shared)), ("forest", RandomForestClassifier())])
    assert steps_obstacle(steps) is None


def select(X):
    return np.asarray(X)[:, :3]


class Select(BaseEstimator):
    """A stateless transformer without ``fit_transform``."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return select(X)


class Mixed(TransformerMixin, Select):
    """A stateless transformer with the mixin's ``fit_transform``."""


class WithoutLabels(BaseEstimator):
    """Its ``fit`` takes no labels, as ``fit_transform`` calls it."""

    def fit(self, X):
        self.mean_ = np.mean(X, axis=0)
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X)

    def transform(self, X):
        return X - self.mean_


STEPS = {
    "stateless": [Select()],
    "mixin": [Mixed()],
    "bare": [Bare()],
    "without labels": [WithoutLabels()],
    "function": [FunctionTransformer(select)],
    "lambda": [FunctionTransformer(lambda X: np.asarray(X)[:, :2])],
    "passthrough": ["passthrough"],
    "all": [StandardScaler(), Select(), FunctionTransformer(np.negative), "passthrough"],
    "nested": [make_pipeline(Select(), StandardScaler()), Select()],
    "columns": [ColumnTransformer([("few", Select(), [0, 1, 2])], remainder="passthrough")],
    "set_output": [StandardScaler().set_output(transform="pandas")],
}


@pytest.mark.parametrize("settings", [{}, {"calibrate_on": "cv", "cv": 2}], ids=["oob", "cv"])
@pytest.mark.parametrize("name", STEPS)
def test_transformers_that_work_in_a_pipeline_calibrate(name, settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    y = (X[:, 0] > rng.normal(size=150)).astype(int)
    estimator = make_pipeline(*STEPS[name], RandomForestClassifier(15, random_state=0))
    estimator.fit(X, y)  # scikit-learn takes it
    model = CalibratedClassifier(estimator, method="platt", random_state=0, **settings).fit(X, y)
    assert model.calibrate_on_ == settings.get("calibrate_on", "oob")
    assert ((model.predict_proba(X)[:, 1] > 0.5) == y).mean() > 0.6
    frozen = CalibratedClassifier(FrozenEstimator(estimator), method="platt").fit(X, y)
    assert frozen.calibrate_on_ == "oob"
    assert frozen.predict_proba(X).shape == (150, 2)


class Counting(StandardScaler):
    """Counts the calls of its fits."""

    n_fits = 0

    def fit(self, X, y=None, sample_weight=None):
        type(self).n_fits += 1
        return super().fit(X, y, sample_weight)


class CountingForest(RandomForestClassifier):
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
    ids=lambda value: str(value),
)
def test_the_estimator_is_trained_as_often_as_documented(settings, n_fits):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 2
    steps = make_pipeline(Counting(), CountingForest(15, random_state=0))
    for calls in (Counting, CountingForest):
        calls.n_fits = 0
    CalibratedClassifier(steps, random_state=0, **settings).fit(X, y).predict_proba(X)
    assert (Counting.n_fits, CountingForest.n_fits) == (n_fits, n_fits)


class OtherRows(CountingForest):
    """Trains on other rows than its bags say."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X[::-1], y[::-1])


def test_a_forest_that_names_other_bags_is_trained_again_in_folds():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 2
    OtherRows.n_fits = 0
    model = CalibratedClassifier(OtherRows(15, random_state=0), cv=3, method="platt").fit(X, y)
    assert (model.calibrate_on_, OtherRows.n_fits) == ("cv", 4)


@pytest.mark.parametrize("estimator", [Counting(), None], ids=["pipeline", "forest"])
def test_a_frozen_model_is_not_trained(estimator):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 2
    forest = CountingForest(15, random_state=0)
    model = (forest if estimator is None else make_pipeline(estimator, forest)).fit(X, y)
    before = CountingForest.n_fits, Counting.n_fits
    for table in (X, rng.normal(size=(120, 3))):
        CalibratedClassifier(FrozenEstimator(model), method="platt").fit(table, y).predict(X)
    assert (CountingForest.n_fits, Counting.n_fits) == before
