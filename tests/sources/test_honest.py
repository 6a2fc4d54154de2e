"""Nothing invalid in silence: sources that would calibrate on labels already seen say no."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

from vennforest import CalibratedClassifier
from vennforest.sources import Folds, Holdout, OutOfBag
from vennforest.sources.row_hashes import hash_rows


class Permuted(RandomForestClassifier):
    """Reorders rows before it draws."""

    def fit(self, X, y, sample_weight=None):
        order = np.random.default_rng(1).permutation(len(y))
        return super().fit(X[order], y[order])


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
    return make_classification(300, 8, random_state=0)


def forest(n=20, **parameters):
    return RandomForestClassifier(n, **parameters)


def fitted(estimator, X, y, groups=None, **parameters):
    given = {} if groups is None else {"groups": groups}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*out of bag for no tree.*")
        return CalibratedClassifier(estimator, random_state=0, **parameters).fit(X, y, **given)


# --- supervised and resampling steps before a forest -------------------------------------------


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
    model = fitted(make_pipeline(step, forest()), X, y)
    assert model.calibrate_on_ == "cv"
    assert "labels" in model.calibrate_on_reason_
    with pytest.raises(ValueError, match=r'labels.* use calibrate_on="cv"'):
        fitted(make_pipeline(step, forest()), X, y, calibrate_on="oob")


@pytest.mark.parametrize("step", [StandardScaler(), PCA(3), "passthrough"], ids=str)
def test_steps_that_see_no_labels_leave_the_forest_out_of_bag(step, data):
    model = fitted(make_pipeline(step, forest()), *data)
    assert model.calibrate_on_ == "oob"
    deep = fitted(make_pipeline(step, make_pipeline(PCA(2), forest())), *data)
    assert deep.calibrate_on_ == "oob"


def test_noise_behind_a_selection_is_seen_to_be_noise():
    rng = np.random.default_rng(20261122)
    rights, bounds = [], []
    for _ in range(6):
        X, y = rng.normal(size=(100, 500)), rng.integers(0, 2, 100)
        model = fitted(make_pipeline(SelectKBest(k=10), forest(50)), X, y)
        new, labels = rng.normal(size=(200, 500)), rng.integers(0, 2, 200)
        m = model.predict_multiprobability(new)
        low, _ = m.of_label()
        rights.append((m.labels() == labels).mean())
        bounds.append(low.mean())
    # out of bag behind a selection on all rows the lower bounds averaged .67 for half right
    assert np.mean(bounds) < np.mean(rights) + 0.05


# --- groups and splitters ----------------------------------------------------------------------


def near_copies(rng, n_groups=40, size=10):
    centres, labels = rng.normal(size=(n_groups, 4)), rng.integers(0, 2, n_groups)
    X = centres.repeat(size, axis=0) + 0.01 * rng.normal(size=(n_groups * size, 4))
    return X, labels.repeat(size), np.arange(n_groups).repeat(size)


def test_groups_make_auto_mean_folds_that_keep_them_together():
    X, y, groups = near_copies(np.random.default_rng(20261122))
    assert fitted(forest(), X, y).calibrate_on_ == "oob"
    model = fitted(forest(), X, y, groups)
    assert model.calibrate_on_ == "cv" and "groups" in model.calibrate_on_reason_
    # labels are noise: whoever is not fooled by copies is right half of the time
    right = (model.calibration_scores_ > 0.5) == (model.calibration_y_ == 1)
    fooled = fitted(forest(), X, y)
    assert ((fooled.calibration_scores_ > 0.5) == (fooled.calibration_y_ == 1)).mean() > 0.95
    assert right.mean() < 0.75


def test_no_group_is_on_both_sides_of_a_split(data):
    X, y = data
    groups = np.random.default_rng(0).integers(0, 30, 300).astype(str)
    seen = []

    class Recorder(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, -1])
            return super().fit(X, y, sample_weight)

    numbered = np.column_stack([X, np.unique(groups, return_inverse=True)[1]])
    for parameters in ({"calibrate_on": "cv"}, {"calibrate_on": "holdout"}, {"method": "platt"}):
        seen.clear()
        model = fitted(Recorder(), numbered, y, groups, **parameters)
        for trained, part in zip(seen, model._state.folds, strict=True):
            tested = set(numbered[:, -1]) - set(trained)
            assert len(tested) >= 5
            assert len(part.scores) == np.isin(numbered[:, -1], list(tested)).sum()
    with pytest.raises(ValueError, match="cv must keep every group on one side"):
        fitted(GaussianNB(), X, y, groups, cv=StratifiedKFold(3))
    assert fitted(GaussianNB(), X, y, groups, cv=GroupKFold(3)).calibrate_on_ == "cv"
    with pytest.raises(ValueError, match='groups must be left out with calibrate_on="training"'):
        fitted(GaussianNB(), X, y, groups, calibrate_on="training")


def test_groups_rule_out_leaving_out_one_example_of_a_group(data):
    X, y = data
    groups = np.arange(len(X)) // 2
    for options in (
        {"calibrate_on": "oob", "subforest": "exchangeable"},
        {"calibrate_on": OutOfBag("exchangeable")},
    ):
        with pytest.raises(ValueError, match=r'subforest must be "all".*use calibrate_on="cv"'):
            fitted(forest(40), X, y, groups, **options)


def test_splitters_that_know_the_rows_are_not_dropped(data):
    X, y = data
    with pytest.warns(UserWarning, match="one of 3 models on .* with ensemble=False one model of"):
        model = fitted(forest(), X, y, cv=TimeSeriesSplit(3))
    assert model.calibrate_on_ == "cv" and "TimeSeriesSplit" in model.calibrate_on_reason_
    assert fitted(forest(), X, y, cv=KFold(3)).calibrate_on_ == "oob"
    for calibrate_on in ("oob", "holdout"):
        with pytest.raises(ValueError, match=r"cv must be left out .* got TimeSeriesSplit"):
            fitted(forest(), X, y, cv=TimeSeriesSplit(3), calibrate_on=calibrate_on)


def test_out_of_bag_by_groups_is_by_trees_that_saw_nobody_of_the_group(data):
    X, y = data
    groups = np.arange(300) // 3
    model = fitted(forest(40), X, y, groups, calibrate_on="oob", subforest="all")
    saw = np.zeros((40, 300), bool)
    for tree, drawn in enumerate(model.estimator_.estimators_samples_):
        saw[tree] = np.isin(groups, groups[drawn])
    answers = np.array([tree.predict_proba(X)[:, 1] for tree in model.estimator_.estimators_])
    kept = (~saw).any(axis=0)
    expected = np.where(saw, 0, answers).sum(axis=0)[kept] / (~saw).sum(axis=0)[kept]
    assert 250 < kept.sum() < 300
    assert_allclose(model.calibration_scores_, expected, rtol=1e-12)
    assert_array_equal(model.calibration_y_, y[kept])


def test_groups_that_every_tree_saw_are_named(data):
    X, y = data
    with pytest.raises(ValueError, match=r"whole groups .*max_samples.* calibrate_on=.cv."):
        fitted(forest(), X, y, np.arange(300) // 100, calibrate_on="oob")
    few = fitted(forest(max_samples=2), X, y, np.arange(300) // 100, calibrate_on="oob")
    assert len(few.calibration_y_) == 300


# --- bags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Permuted, Resampled, Lying])
def test_forests_whose_bags_are_others_are_found_out(kind, data):
    X, y = data
    model = fitted(kind(20), X, y)
    assert model.calibrate_on_ == "cv" and "bags" in model.calibrate_on_reason_
    with pytest.raises(ValueError, match=r'leaves contain other examples.* use calibrate_on="cv"'):
        fitted(kind(20), X, y, calibrate_on="oob")


FOREST_SETTINGS = [
    {},
    {"criterion": "entropy"},
    {"class_weight": "balanced"},
    {"class_weight": {0: 1, 1: 7}},
    {"class_weight": "balanced_subsample"},
    {"max_samples": 0.4},
    {"max_depth": 2},
    {"min_samples_leaf": 4},
    {"ccp_alpha": 0.02},
    {"monotonic_cst": [1, -1, 0, 0, 0, 0, 0, 0]},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("settings", FOREST_SETTINGS, ids=str)
def test_true_bags_pass_and_one_label_changed_does_not(settings, weighted, data):
    X, y = data
    rng = np.random.default_rng(3)
    weight = rng.random(300) + 0.1 if weighted else None
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        ensemble = kind(30, bootstrap=True, random_state=0, **settings)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*out of bag for no tree.*")
            model = CalibratedClassifier(ensemble, calibrate_on="oob", random_state=0)
            model.fit(X, y, sample_weight=weight)
            frozen = CalibratedClassifier(
                FrozenEstimator(model.estimator_), calibrate_on="oob", random_state=0
            )
            frozen.fit(X, y, sample_weight=weight)
            assert_array_equal(frozen.calibration_scores_, model.calibration_scores_)
            wrong = np.where(np.arange(300) % 10 == 0, 1 - y, y)
            with pytest.raises(ValueError, match="what the frozen model was trained on"):
                frozen.fit(X, wrong, sample_weight=weight)
            with pytest.raises(ValueError, match="what the frozen model was trained on"):
                frozen.fit(X[::-1], y[::-1], sample_weight=weight)


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
        assert fitted(estimator, holes, labels, calibrate_on="oob").calibrate_on_ == "oob"


def test_a_class_that_every_tree_saw_is_named(data):
    X, _ = data
    y = (np.arange(300) < 12).astype(int)
    weight = np.where(y == 1, 1e4, 1.0)
    model = CalibratedClassifier(forest(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=weight)
    before = CalibratedClassifier(forest(), calibrate_on="oob", random_state=0)
    if model.calibrate_on_ == "oob":  # weights to scikit-learn 1.8 do not decide who is drawn
        assert np.isin(1, model.calibration_y_)
        return
    with pytest.raises(ValueError, match="examples of every class out of bag"):
        before.fit(X, y, sample_weight=weight)


# --- frozen models ------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: make_pipeline(StandardScaler(), f)])
def test_a_frozen_forest_calibrates_out_of_bag_on_its_own_data_alone(wrap, data):
    X, y = data
    plain = wrap(forest(40, random_state=5)).fit(X, y)
    model = fitted(FrozenEstimator(plain), X, y, calibrate_on="oob")
    assert model.estimator_.estimator is plain
    ensemble = plain[-1] if hasattr(plain, "steps") else plain
    rows = plain[:-1].transform(X) if hasattr(plain, "steps") else X
    out = np.ones((40, 300), bool)
    for tree, drawn in enumerate(ensemble.estimators_samples_):
        out[tree, drawn] = False
    answers = np.array([tree.predict_proba(rows)[:, 1] for tree in ensemble.estimators_])
    expected = (answers * out).sum(axis=0) / out.sum(axis=0)
    assert_allclose(model.calibration_scores_, expected, rtol=1e-12)
    for others in ((X[:200], y[:200]), (X + 1, y), (np.vstack([X, X]), np.append(y, y))):
        with pytest.raises(ValueError, match="what the frozen model was trained on"):
            fitted(FrozenEstimator(plain), *others, calibrate_on="oob")
    for calibrate_on in ("cv", "holdout"):
        with pytest.raises(ValueError, match="with a FrozenEstimator"):
            fitted(FrozenEstimator(plain), X, y, calibrate_on=calibrate_on)


# --- splits behind bounds -----------------------------------------------------------------------


def test_splits_behind_bounds_are_random_and_others_are_stratified():
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 3 == 0
    counts = {"venn-abers": set(), "platt": set()}
    for method, found in counts.items():
        for seed in range(20):
            model = CalibratedClassifier(
                GaussianNB(), method=method, calibrate_on="holdout", random_state=seed
            ).fit(X, y)
            found.add(int(model.calibration_y_.sum()))
    assert counts["platt"] == {10}
    assert len(counts["venn-abers"]) > 4
    shares = {int(part.codes.sum()) for part in fitted(GaussianNB(), X, y)._state.folds}
    assert len(shares) > 1
    assert Holdout().stratify is False and Folds().stratify is False


def test_a_rare_class_makes_folds_stratified_and_says_so():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) < 4
    with pytest.warns(UserWarning, match="4 examples beside the largest class"):
        model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    assert len(model.estimators_) == 5


# --- repeated examples, hashes, labels ---------------------------------------------------------


def test_copies_are_warned_of_once_by_fit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
    with pytest.warns(UserWarning, match=r"100% of the rows are exact copies") as caught:
        CalibratedClassifier(forest(100), random_state=0).fit(np.vstack([X, X]), np.tile(y, 2))
    assert sum("exact copies" in str(w.message) for w in caught) == 1


def test_the_type_of_the_numbers_does_not_decide_the_draw(data):
    X, y = data
    single = X.astype(np.float32)
    bagging = BaggingClassifier(GaussianNB(), n_estimators=30, random_state=0)
    model = fitted(bagging, single.astype(np.float64), y, subforest="exchangeable")
    left_out = [model._state.folds[0].draw(rows)[1] for rows in (single, single.astype(float))]
    assert_array_equal(left_out[0], left_out[1])
    assert len(set(hash_rows(single.astype(np.float64)).tolist())) == 300


def test_large_labels_of_nullable_type_stay_apart():
    pandas = pytest.importorskip("pandas")
    y = pandas.Series([2**53, 2**53 + 1] * 20, dtype="Int64")
    X = np.arange(40.0)[:, None]
    model = CalibratedClassifier(GaussianNB(), random_state=0).fit(X, y)
    assert model.classes_.tolist() == [2**53, 2**53 + 1]
