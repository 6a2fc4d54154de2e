"""A forest of several kinds of trees: what its seeds promise, and all that forests can."""

import warnings
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
    [MixedForestClassifier(8, random_state=0)],
    expected_failed_checks=lambda estimator: {  # as scikit-learn expects of its own forests
        f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn in proportion to weights"
        for kind in ("dense", "sparse")
    },
)
def test_estimator_checks(estimator, check):
    check(estimator)


class SecondGroup(MixedForestClassifier):
    """The trees with larger leaves alone."""

    _is_second_group = True


def kinds(forest):
    return [tuple(getattr(tree, name) for name in KIND) for tree in forest.estimators_]


def test_with_the_best_splits_alone_it_is_the_random_forest(monkeypatch):
    monkeypatch.setattr("vennforest.forest.mixed.TREE_SPLITTERS", ("best",))
    one = {"min_samples_leaf": 3, "max_features": 0.4, "class_weight": {0: 1, 1: 1}}
    mixed = MixedForestClassifier(20, random_state=7, **one).fit(X, Y)
    plain = RandomForestClassifier(20, random_state=7, **one).fit(X, Y)
    np.testing.assert_array_equal(mixed.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("value", ["balanced", "balanced_subsample"])
def test_balanced_weights_give_no_warning_of_warm_start(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MixedForestClassifier(8, class_weight=value, random_state=0).fit(X, Y)


def test_every_tree_is_one_of_its_kind_grown_on_its_bag():
    """The slow way: each tree anew, by itself, from its seed and its bag."""
    forest = SecondGroup(12, min_samples_leaf=1, random_state=3).fit(X, Y)
    for tree, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        alone = DecisionTreeClassifier(**tree.get_params())
        counts = np.bincount(bag, minlength=len(Y))
        alone.fit(X.astype(np.float32), Y, sample_weight=counts)
        np.testing.assert_array_equal(alone.predict_proba(X), tree.predict_proba(X))


def test_kinds_are_drawn_evenly_and_independently():
    forest = SecondGroup(240, min_samples_leaf=1, max_depth=1, random_state=20_417)
    forest.fit(X[:40], Y[:40])
    wanted = list(product(("best", "random"), (5, 20), ("sqrt", 0.5)))
    found = [kinds(forest).count(kind) for kind in wanted]
    assert sum(found) == 240
    assert stats.chisquare(found).pvalue > 0.001
    # The draw says nothing of the bag, which comes from the same seed.
    first = [int(np.isin(0, bag)) for bag in forest.estimators_samples_]
    random = [kind[0] == "random" for kind in kinds(forest)]
    assert stats.fisher_exact(np.histogram2d(first, random, 2)[0]).pvalue > 0.001


def test_a_forest_that_grows_is_the_forest_grown_at_once():
    leaf = {"min_samples_leaf": 3, "random_state": 1}
    once = MixedForestClassifier(30, **leaf).fit(X, Y)
    steps = MixedForestClassifier(10, warm_start=True, **leaf).fit(X, Y)
    steps.set_params(n_estimators=30).fit(X, Y)
    assert kinds(once) == kinds(steps)
    np.testing.assert_array_equal(once.predict_proba(X), steps.predict_proba(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [("min_samples_leaf", 0), ("min_samples_leaf", "least"), ("max_features", "all")],
)
def test_values_that_there_are_none_of(name, value):
    with pytest.raises(ValueError, match=name):
        MixedForestClassifier(5, **{name: value}).fit(X, Y)


def out_of_bag(forest, rows, labels):
    """The slow way: probabilities of the labels by the trees that did not see the row."""
    sums, counts = np.zeros(len(labels)), np.zeros(len(labels))
    for tree, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        unseen = np.setdiff1d(np.arange(len(labels)), bag)
        p = tree.predict_proba(rows[unseen].astype(np.float32))
        sums[unseen] += p[np.arange(len(unseen)), labels[unseen]]
        counts[unseen] += 1
    with np.errstate(invalid="ignore"):
        return sums / counts


@pytest.mark.parametrize("weights", [None, 0.25, "drawn"])
def test_shares_are_the_mean_under_the_likelihood_out_of_bag(weights):
    rows, labels = X[:120, :4], Y[:120]
    weight = np.full(120, weights) if weights == 0.25 else None
    if weights == "drawn":
        weight = np.random.default_rng(51_877).integers(0, 3, 120).astype(float)
    forest = MixedForestClassifier(24, random_state=5).fit(rows, labels, weight)
    seeds = np.random.RandomState(5).randint(2**31 - 1, size=2)
    groups = (MixedForestClassifier, SecondGroup)
    first = [
        group(6, min_samples_leaf=1, random_state=int(seed)).fit(rows, labels, weight)
        for seed, group in zip(seeds, groups, strict=True)
    ]
    p = np.array([out_of_bag(group, rows, labels) for group in first])
    of_row = np.ones(120) if weight is None else weight / weight[weight > 0].mean()
    shares = np.arange(21) / 20
    logs = np.zeros(21)
    for i in np.flatnonzero(np.isfinite(p).all(axis=0) & (of_row > 0)):
        for j, share in enumerate(shares):
            mixed = share * p[0, i] + (1 - share) * p[1, i]
            logs[j] += of_row[i] * np.log(max(mixed, 1 / 12))
    likelihood = np.exp(logs - logs.max())
    assert forest.full_share_ == pytest.approx((likelihood @ shares) / likelihood.sum(), rel=1e-9)
    n_full = round(forest.full_share_ * 24)
    counts = [n_full, 24 - n_full]
    grown = [
        group(max(n, 6), min_samples_leaf=1, random_state=int(seed)).fit(rows, labels, weight)
        for n, seed, group in zip(counts, seeds, groups, strict=True)
    ]
    trees = [tree for group, n in zip(grown, counts, strict=True) for tree in group.estimators_[:n]]
    expected = np.mean([tree.predict_proba(rows.astype(np.float32)) for tree in trees], axis=0)
    np.testing.assert_allclose(forest.predict_proba(rows), expected, rtol=1e-12)
    assert len(forest.estimators_) == 24


def test_clean_classes_have_full_trees_and_noisy_ones_larger_leaves():
    rng = np.random.default_rng(903_114)
    rows = rng.uniform(size=(400, 3))
    is_high = rows[:, 0] + rows[:, 1] > 1
    clean = MixedForestClassifier(40, random_state=0).fit(rows, is_high)
    noisy = MixedForestClassifier(40, random_state=0).fit(rows, is_high ^ (rng.random(400) < 0.3))
    assert clean.full_share_ > 0.8
    assert noisy.full_share_ < 0.2
    assert {tree.min_samples_leaf for tree in noisy.estimators_} >= {5, 20}


def test_both_groups_are_calibrated_out_of_bag_and_scored_by_each_row():
    forest = MixedForestClassifier(30, random_state=0, oob_score=True)
    model = CalibratedClassifier(forest, random_state=0, merge="log").fit(X[:300], Y[:300])
    assert model.calibrate_on_ == "oob"
    own = model.estimator_
    p = out_of_bag(own, X[:300], Y[:300])
    is_scored = np.isfinite(p)
    decision = own.oob_decision_function_[np.arange(300), Y[:300]]
    np.testing.assert_allclose(decision[is_scored], p[is_scored], rtol=1e-12)
    assert own.oob_score_ == pytest.approx(
        (own.oob_decision_function_.argmax(axis=1) == Y[:300]).mean()
    )


def test_few_rows_one_class_and_several_columns_of_labels():
    assert MixedForestClassifier(5, random_state=0).fit([[0.0], [1.0]], [0, 1]).n_classes_ == 2
    one = MixedForestClassifier(5, random_state=0).fit(X[:30], np.zeros(30))
    assert one.full_share_ == 0.5
    both = np.column_stack([Y, 1 - Y])[:60]
    several = MixedForestClassifier(6, random_state=0, oob_score=True)
    with pytest.warns(UserWarning, match="OOB"):
        several.fit(X[:60], both)
    assert several.full_share_ == 1
    assert several.predict(X[:5]).shape == (5, 2)


def test_groups_that_are_chosen_by_rows_do_not_grow_later():
    forest = MixedForestClassifier(5, warm_start=True)
    with pytest.raises(ValueError, match="warm_start must be False"):
        forest.fit(X, Y)
    forest.set_params(min_samples_leaf=1).fit(X, Y)


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
