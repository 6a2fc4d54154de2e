"""Ensembles, groups and sums that are seldom met."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from vennforest import CalibratedClassifier, VennAbers
from vennforest.forest.bags import BagsError

rng = np.random.default_rng(20)
X = rng.normal(size=(120, 3))
y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
ONE_DRAW = {"subforest": "exchangeable", "calibrate_on": "oob", "random_state": 0}


@pytest.mark.parametrize("columns", [2, 3])
def test_monotone_trees_of_some_features_are_verified(columns):
    """Their constraints are those of the features that they see, not of all."""
    tree = DecisionTreeClassifier(monotonic_cst=[1] + [0] * (columns - 1))
    bagging = BaggingClassifier(tree, 30, max_features=columns, random_state=0)
    model = CalibratedClassifier(bagging, calibrate_on="oob").fit(X, y)
    assert model.calibrate_on_ == "oob"


def test_pipelines_in_bags_are_not_verified_and_calibrate():
    member = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3))
    model = CalibratedClassifier(BaggingClassifier(member, 25, random_state=0), **ONE_DRAW)
    assert model.fit(X, y).calibrate_on_ == "oob"


class Bags(BaggingClassifier):
    """Of another package, as far as anyone can see."""


def test_bags_of_another_package_that_cannot_be_verified():
    with pytest.raises(BagsError, match="Bags over members that are not trees"):
        CalibratedClassifier(Bags(GaussianNB(), 25, random_state=0), **ONE_DRAW).fit(X, y)


def test_groups_that_every_tree_saw():
    groups = np.where(np.arange(120) < 80, np.arange(120) // 40, np.arange(120))
    model = CalibratedClassifier(RandomForestClassifier(15, random_state=0), calibrate_on="oob")
    with pytest.raises(ValueError, match="most groups out of bag as a whole, got 80 of 120"):
        model.fit(X, y, groups=groups)


def test_scores_of_too_many_columns():
    model = CalibratedClassifier(RandomForestClassifier(20, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="a column for each of 2 classes"):
        model.calibrator_.predict_proba(np.full((4, 3), 1 / 3))
    p = np.full((6, 3), 1 / 3)
    three = VennAbers().fit(p, np.arange(6) % 3)
    for wrong in (p[:, :2], p[:, 0]):
        with pytest.raises(ValueError, match="a column for each of 3 classes"):
            three.predict_proba(wrong)


class CountsItems(ClassifierMixin, BaseEstimator):
    """Predict from the number of items in a row."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = np.array([len(row) for row in X]) / 10
        return np.column_stack([1 - p, p])


@pytest.mark.parametrize("frozen", [False, True])
def test_rows_may_be_lists_of_different_lengths(frozen):
    rng = np.random.default_rng(0)
    X = [list(range(int(n))) for n in rng.integers(1, 9, 120)]
    y = rng.integers(0, 2, 120)
    estimator = FrozenEstimator(CountsItems().fit(X, y)) if frozen else CountsItems()
    p = CalibratedClassifier(estimator).fit(X, y).predict_proba(X[:5])
    assert p.shape == (5, 2) and np.isfinite(p).all()
