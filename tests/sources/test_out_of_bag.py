"""Out-of-bag scores and exchangeable predictions by hand, and which ensembles have them."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from oracles import formulas as oracle
from oracles.hashes import draw_by_hand, hash_by_hand
from support.cases import rounded
from vennforest import CalibratedClassifier, Venn, VennAbers
from vennforest.metrics import calibration_line


def data(k=2, n=90):
    X, y = make_classification(
        n + 40, 4, n_informative=3, n_redundant=0, n_classes=k, flip_y=0.2, random_state=0
    )
    X = X.astype(np.float32).astype(float)
    return X[:n], y[:n], X[n:]


def calibration_set(model, X, votes):
    """Out-of-bag scores (n, k) of those who have any tree, their indices, and their trees."""
    ensemble = model.estimator_
    trees = oracle.out_of_bag(ensemble, len(X))
    kept = [i for i in range(len(X)) if trees[i]]
    scores = np.array(oracle.forest_scores(ensemble, X[kept], [trees[i] for i in kept], votes))
    return scores, kept, [trees[i] for i in kept]


def column(scores):
    scores = rounded(scores)
    return scores[:, 1] if scores.shape[1] == 2 else scores


@pytest.mark.parametrize(
    ("make", "votes", "k", "trees"),
    [
        (VennAbers, "soft", 2, 25),
        (VennAbers, "hard", 3, 4),
        (VennAbers, "soft", 3, 4),
        (Venn, "soft", 2, 4),
        (Venn, "hard", 2, 25),
        (Venn, "soft", 3, 25),
    ],
)
def test_exchangeable_predictions_are_those_of_one_left_out_example(make, votes, k, trees):
    X, y, new = data(k)
    forest = RandomForestClassifier(trees, random_state=3)
    settings = {"subforest": "exchangeable", "merge": "log", "votes": votes}
    model = CalibratedClassifier(forest, method=make(), random_state=0, **settings)
    model.fit(X, y)
    scores, kept, trees_of = calibration_set(model, X, votes)
    assert (len(kept) < len(X)) == (trees == 4)
    assert_array_equal(model.calibration_scores_, column(scores))
    assert_array_equal(model.calibration_y_, y[kept])
    m, p = model.predict_multiprobability(new), model.predict_proba(new)
    for i, row in enumerate(new.astype(np.float32)):
        hashed = hash_by_hand(row.tolist(), np.float32)
        r = draw_by_hand(hashed, model._state.folds[0].seed, len(kept))
        rest = np.arange(len(kept)) != r
        calibrator = make(merge="log").fit(column(scores)[rest], y[kept][rest], classes=range(k))
        own = oracle.forest_scores(model.estimator_, new[i : i + 1], [trees_of[r]], votes)
        expected = calibrator.predict_multiprobability(column(np.array(own)))
        assert_allclose(m.lower[i], expected.lower[0], rtol=0, atol=1e-12)
        assert_allclose(m.upper[i], expected.upper[0], rtol=0, atol=1e-12)
        assert_allclose(p[i], expected.merge("log")[0], rtol=0, atol=1e-12)


def test_noise_is_that_of_a_mean_over_some_of_the_trees_around_that_over_all():
    X, y, _ = data()
    model = CalibratedClassifier(RandomForestClassifier(40), random_state=0).fit(X, y)
    fold = model._state.folds[0]
    n_trees = np.array([len(trees) for trees in calibration_set(model, X, "soft")[2]])
    assert fold.variance > 0
    assert_allclose(fold.noise, fold.variance * (1 / n_trees - 1 / 40), rtol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "oob"),
    [
        (None, True),
        (ExtraTreesClassifier(10), False),
        (ExtraTreesClassifier(10, bootstrap=True), True),
        (RandomForestClassifier(10, bootstrap=False), False),
        (BaggingClassifier(GaussianNB(), 10), True),
        (BaggingClassifier(GaussianNB(), 10, bootstrap=False), False),
        (BaggingClassifier(GaussianNB(), 10, bootstrap=False, max_samples=0.6), True),
        (LinearSVC(), False),
    ],
    ids=repr,
)
def test_auto_is_out_of_bag_for_bagged_ensembles_and_folds_for_others(estimator, oob):
    X, y, new = data()
    model = CalibratedClassifier(estimator, merge="log", random_state=0).fit(X, y)
    assert len(model.estimators_) == (1 if oob else 5)
    assert hasattr(model, "estimator_") == hasattr(model, "calibrator_") == oob
    assert_allclose(model.predict_proba(new).sum(axis=1), 1, atol=1e-12)
    if not oob:
        with pytest.raises(ValueError, match=r'estimator must leave.*got.*use calibrate_on="cv"'):
            CalibratedClassifier(estimator, calibrate_on="oob").fit(X, y)


def test_members_that_leave_nobody_out_are_refused():
    X, y, _ = data(n=10)
    everyone = BaggingClassifier(DecisionTreeClassifier(), max_samples=10, bootstrap=False)
    with pytest.raises(ValueError, match="estimator must leave examples out of bag, got none that"):
        CalibratedClassifier(everyone, calibrate_on="oob").fit(X, y)


@pytest.mark.parametrize(
    ("base", "settings"),
    [
        (GaussianNB(), {}),
        (GaussianNB(), {"max_features": 2, "bootstrap_features": True}),
        (DecisionTreeClassifier(max_depth=2), {"max_samples": 0.5, "bootstrap": False}),
        (DecisionTreeClassifier(max_depth=2), {"bootstrap_features": True, "max_samples": 0.4}),
        (SVC(), {"max_features": 2, "bootstrap_features": True}),
        (SVC(), {"max_samples": 0.5, "bootstrap": False}),
    ],
    ids=str,
)
@pytest.mark.parametrize("votes", ["soft", "hard"])
def test_bagging_over_any_base_by_hand(base, settings, votes):
    X, y, new = data(3, n=80)
    names = np.array(["ant", "bee", "cat"])[y]
    bagging = BaggingClassifier(base, 15, random_state=0, **settings)
    model = CalibratedClassifier(bagging, method="none", subforest="all", votes=votes).fit(X, names)
    ensemble = model.estimator_

    def answer(member, rows):
        one, columns = ensemble.estimators_[member], ensemble.estimators_features_[member]
        if votes == "soft" and hasattr(one, "predict_proba"):
            return one.predict_proba(rows[:, columns])
        if hasattr(one, "predict_proba"):
            return np.eye(3)[one.predict_proba(rows[:, columns]).argmax(axis=1)]
        return np.eye(3)[one.predict(rows[:, columns])]

    members = oracle.out_of_bag(ensemble, len(X))
    every = np.array([answer(t, X) for t in range(15)])
    expected = [np.mean([every[t, i] for t in free], axis=0) for i, free in enumerate(members)]
    assert_allclose(model.calibration_scores_, expected, rtol=0, atol=1e-12)
    whole = np.mean([answer(t, new) for t in range(15)], axis=0)
    assert_allclose(model.predict_proba(new), whole, rtol=0, atol=1e-12)
    if votes == "soft" and hasattr(base, "predict_proba"):
        assert_allclose(whole, ensemble.predict_proba(new), atol=1e-12)


def test_members_over_text_are_scored_out_of_bag():
    rng = np.random.default_rng(3)
    X = rng.choice(list("xyz"), (150, 4))
    y = ((X[:, 0] == "x") + rng.normal(size=150) > 0.5).astype(int)
    members = make_pipeline(OneHotEncoder(handle_unknown="ignore"), GaussianNB())
    members.steps.insert(1, ("dense", FunctionTransformer(np.asarray)))
    members.set_params(onehotencoder__sparse_output=False)
    bagging = BaggingClassifier(members, 30, random_state=0)
    model = CalibratedClassifier(bagging, random_state=0).fit(X, y)
    fitted = model.estimator_
    for i in (0, 7, 91):
        own = [m for m, bag in zip(fitted.estimators_, fitted.estimators_samples_, strict=True)
               if i not in bag]  # fmt: skip
        expected = np.mean([m.predict_proba(X[i : i + 1])[0, 1] for m in own])
        assert_allclose(model.calibration_scores_[i], expected, rtol=1e-11)
    assert np.isfinite(model.predict_proba(X)).all()


def test_forests_of_few_trees_are_too_cautious():
    slopes = {}
    for trees in (8, 100):
        lines = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(3400, 6))
            y = (rng.random(3400) < 1 / (1 + np.exp(-1.5 * X[:, 0] - X[:, 1]))).astype(int)
            forest = RandomForestClassifier(trees, random_state=seed)
            model = CalibratedClassifier(forest, random_state=0).fit(X[:400], y[:400])
            lines.append(calibration_line(y[400:], model.predict_proba(X[400:])[:, 1]))
        slopes[trees] = np.mean([line.slope.value for line in lines])
    assert slopes[8] > 1.4 and slopes[8] > slopes[100] + 0.2


@pytest.mark.parametrize(("trees", "is_told"), [(12, True), (20, False)])
def test_forests_of_few_trees_are_announced(trees, is_told):
    X, y, _ = data()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CalibratedClassifier(RandomForestClassifier(trees, random_state=0)).fit(X, y)
    told = [w for w in caught if f"the ensemble has {trees} members" in str(w.message)]
    assert bool(told) == is_told


def categories(n, n_values, seed=0):
    """Draw rows (n, 3) of n_values**3 kinds and labels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (n, 3)).astype(float)
    return X, (rng.random(n) < 1 / (1 + np.exp(1 - X[:, 0] + X[:, 1] * X[:, 2]))).astype(int)


def test_rows_of_which_few_are_distinct_are_calibrated_in_folds():
    X, y = categories(200, 3)
    with pytest.warns(UserWarning, match="27 of 200 rows are distinct"):
        model = CalibratedClassifier(RandomForestClassifier(20), random_state=0).fit(X, y)
    assert model.calibrate_on_ == "cv" and "distinct" in model.calibrate_on_reason_
    for fold in model._state.folds:
        kind = X[fold.rows] @ [9, 3, 1]
        assert len(np.unique(np.column_stack([kind, fold.scores]), axis=0)) == len(np.unique(kind))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (categories(200, 12), categories(90, 2)):  # many are distinct; few rows
            model = CalibratedClassifier(RandomForestClassifier(30), random_state=0).fit(*rows)
            assert model.calibrate_on_ == "oob"


def test_out_of_bag_scores_of_copies_have_a_warning():
    X, y = categories(200, 3)
    forest = RandomForestClassifier(30, random_state=0)
    with pytest.warns(UserWarning, match="lean against their own labels"):
        model = CalibratedClassifier(forest, calibrate_on="oob").fit(X, y)
    assert model.calibrate_on_ == "oob"
    kind = X @ [9, 3, 1]
    lean = [
        model.calibration_scores_[(kind == k) & (y == 1)].mean()
        - model.calibration_scores_[(kind == k) & (y == 0)].mean()
        for k in np.unique(kind)
        if len(np.unique(y[kind == k])) == 2
    ]
    assert np.mean(lean) < 0
