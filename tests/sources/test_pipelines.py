"""Which pipelines keep labels from features, and how that is found out."""

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import Pipeline as ResamplingPipeline
from imblearn.under_sampling import RandomUnderSampler
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from vennforest.sources.base import TrainingData, _alike, obstacle, sees_labels
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
    assert obstacle(resampled) == "RandomUnderSampler changes which rows there are"
    own = Steps([("scale", StandardScaler()), ("forest", forest)])
    assert obstacle(own) == "Steps fits its steps in a way of its own"
    assert obstacle(Pipeline([("own", WithoutTags()), ("forest", forest)])) is None
    assert obstacle(Pipeline([("same", "passthrough"), ("forest", forest)])) is None
    assert (
        obstacle(Pipeline([("bare", Bare()), ("scale", StandardScaler()), ("f", forest)])) is None
    )


def shared(X, y=None):
    return X


class Fewer(WithoutTags):
    def transform(self, X):
        return X[: len(X) // 2]


class Moved(TransformerMixin, BaseEstimator):
    """Moves features by how often a label is 1: the same up to a number where it is never."""

    def fit(self, X, y=None):
        self.by_ = 0.0 if y is None else float(np.mean(y))
        return self

    def transform(self, X):
        return X + self.by_


def test_labels_are_found_in_many_rows_too():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(6000, 2)), np.arange(6000) % 2
    params = {"weights": np.ones(6000), "level": 3}

    def said(step, params=None):
        data = TrainingData(X, y, y, np.unique(y), fit_params=params or {})
        return sees_labels(Pipeline([("step", step)]), data)

    assert said(StandardScaler()) is None
    assert said(StandardScaler(), {"step__sample_weight": np.ones(6000)}) is None
    assert said(Moved()).endswith("make other features with labels than without them")
    assert said(Fewer()).endswith("change which rows there are")
    assert params["weights"].shape == (6000,)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]}), False),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1.0]}), True),
        (np.array([["x"], ["y"]], object), np.array([["x"], ["y"]], object), True),
        (np.array([["x"], ["y"]], object), np.array([["x"], ["z"]], object), False),
        (np.array([["x"], [np.nan]], object), np.array([["x"], [np.nan]], object), True),
        (np.array([[1.0, np.nan]]), np.array([[1.0, np.nan]]), True),
        (np.array([[1.0]]), csr_array([[1.0]]), False),
        (csr_array([[0.0, 2.0]]), csr_array([[0.0, 2.0]]), True),
        (csr_array([[0.0, 2.0]]), csr_array([[0.0, 2.1]]), False),
        (csr_array([[0.0, 0.0]]), csr_array([[0.0, 1e-300]]), False),
    ],
)
def test_tables_of_any_kind_are_compared(one, other, alike):
    assert _alike(one, other) is alike


def test_a_sparse_table_with_a_cell_in_two_parts_has_the_hashes_of_the_sum():
    parts = csr_array((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 2))
    assert not parts.has_canonical_format
    whole = csr_array(np.array([[0.0, 3.0], [5.0, 0.0]]))
    assert (hash_rows(parts) == hash_rows(whole)).all()
    assert parts.nnz == 3  # the user's table stays as it was


def test_a_function_without_labels_is_plain():
    steps = Pipeline([("same", FunctionTransformer(shared)), ("forest", RandomForestClassifier())])
    assert obstacle(steps) is None
