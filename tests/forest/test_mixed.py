"""A forest of several kinds of trees: what its seeds promise, and all that forests can."""

from itertools import product

import numpy as np
import pytest
import sklearn
from packaging.version import Version
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from vennforest import CalibratedClassifier, MixedForestClassifier

X, Y = load_breast_cancer(return_X_y=True)
KIND = ("splitter", "min_samples_leaf", "max_features")


@parametrize_with_checks(
    [MixedForestClassifier(8, min_samples_leaf=[1, 2], random_state=0)],
    expected_failed_checks=lambda estimator: {  # as scikit-learn expects of its own forests
        f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn in proportion to weights"
        for kind in ("dense", "sparse")
    },
)
def test_estimator_checks(estimator, check):
    check(estimator)


def kinds(forest):
    return [tuple(getattr(tree, name) for name in KIND) for tree in forest.estimators_]


def test_with_one_kind_it_is_the_random_forest():
    one = {"min_samples_leaf": 3, "max_features": 0.4, "class_weight": {0: 1, 1: 1}}
    mixed = MixedForestClassifier(20, splitter="best", random_state=7, **one).fit(X, Y)
    plain = RandomForestClassifier(20, random_state=7, **one).fit(X, Y)
    np.testing.assert_array_equal(mixed.predict_proba(X), plain.predict_proba(X))


def test_every_tree_is_one_of_its_kind_grown_on_its_bag():
    """The slow way: each tree anew, by itself, from its seed and its bag."""
    forest = MixedForestClassifier(
        12, min_samples_leaf=(1, 4), max_features=["sqrt", 0.5], random_state=3
    ).fit(X, Y)
    for tree, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        alone = DecisionTreeClassifier(**tree.get_params())
        counts = np.bincount(bag, minlength=len(Y))
        alone.fit(X.astype(np.float32), Y, sample_weight=counts)
        np.testing.assert_array_equal(alone.predict_proba(X), tree.predict_proba(X))


def test_kinds_are_drawn_evenly_and_independently():
    leaves, features = (1, 2, 5), ("sqrt", 1.0)
    forest = MixedForestClassifier(
        240, min_samples_leaf=leaves, max_features=features, max_depth=1, random_state=20_417
    ).fit(X[:40], Y[:40])
    wanted = list(product(("best", "random"), leaves, features))
    found = [kinds(forest).count(kind) for kind in wanted]
    assert sum(found) == 240
    assert stats.chisquare(found).pvalue > 0.001
    # The draw says nothing of the bag, which comes from the same seed.
    first = [int(np.isin(0, bag)) for bag in forest.estimators_samples_]
    random = [kind[0] == "random" for kind in kinds(forest)]
    assert stats.fisher_exact(np.histogram2d(first, random, 2)[0]).pvalue > 0.001


def test_a_forest_that_grows_is_the_forest_grown_at_once():
    once = MixedForestClassifier(30, random_state=1).fit(X, Y)
    steps = MixedForestClassifier(10, random_state=1, warm_start=True).fit(X, Y)
    steps.set_params(n_estimators=30).fit(X, Y)
    assert kinds(once) == kinds(steps)
    np.testing.assert_array_equal(once.predict_proba(X), steps.predict_proba(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [("splitter", "worst"), ("min_samples_leaf", [1, 0]), ("max_features", ("sqrt", "all"))],
)
def test_values_that_there_are_none_of(name, value):
    with pytest.raises(ValueError, match=name):
        MixedForestClassifier(5, **{name: value}).fit(X, Y)


def test_missing_values_and_monotone_features_are_calibrated_out_of_bag():
    rows = X[:, :6].copy()
    if Version(sklearn.__version__) >= Version("1.9"):  # earlier trees take one or the other
        rows[::7, 2] = np.nan
    monotone = [-1, 0, 0, 0, 0, 0]
    forest = MixedForestClassifier(30, monotonic_cst=monotone, random_state=0)
    model = CalibratedClassifier(forest, random_state=0, merge="log").fit(rows, Y)
    assert model.calibrate_on_ == "oob"  # bags verified, leaves within monotone bounds
    grid = np.tile(np.nanmedian(rows, axis=0), (50, 1))
    grid[:, 0] = np.linspace(rows[:, 0].min(), rows[:, 0].max(), 50)
    assert (np.diff(model.estimator_.predict_proba(grid)[:, 1]) <= 1e-12).all()
