"""Steps before a model that learn from labels without saying so."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_selection import SelectKBest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from auditing.findings import forest, kinds
from vennforest import audit
from vennforest.auditing.steps import sees_labels


class Moved(TransformerMixin, BaseEstimator):
    """Moves features by the share of label 1."""

    def fit(self, X, y=None):
        self.by_ = 0.0 if y is None else float(np.mean(y))
        return self

    def transform(self, X):
        return X + self.by_


def test_labels_in_features_are_found():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(600, 2)), np.arange(600) % 2
    for step in (StandardScaler(), FunctionTransformer(), "passthrough"):
        assert sees_labels(Pipeline([("step", step)]), X, y) is None
    for step, reason in (
        (Moved(), "other features with labels than without"),
        (FunctionTransformer(lambda X: X[::2]), "change which rows there are"),
        (SelectKBest(k=1), "cannot be fitted without labels"),
    ):
        assert reason in sees_labels(Pipeline([("step", step)]), X, y)
    (finding,) = audit(make_pipeline(StandardScaler(), Moved(), forest()), X, y)
    assert finding.kind == "steps that see labels" and "Moved" in finding.message
    assert kinds(make_pipeline(Moved(), GaussianNB()), X, y) == []  # on folds
