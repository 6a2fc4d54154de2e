"""CalibratedClassifier over whole models: holdout, folds, training set, fitted models, bagging."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from oracles import formulas as oracle
from vennforest import (
    CalibratedClassifier,
    IsotonicCalibration,
    VennAbers,
)
from vennforest.calibrators import make_calibrator
from vennforest.calibrators.intervals import interval_curves, mean_intervals, read_intervals
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.classifier.fitted import predict_once, predict_together
from vennforest.classifier.intervals import forest_spread
from vennforest.sources import Folds, Holdout

ALL_METHODS = [
    "venn-abers", "venn", "platt", "isotonic", "bostrom", "beta", "temperature", "none",
]  # fmt: skip


def data(k=2, n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=n + 40), [0.2] if k == 2 else [-0.6, 0.6])
    return X[:n], y[:n], X[n:]


def score(model, X):
    p = model.predict_proba(X)
    return p[:, 1] if p.shape[1] == 2 else p


class Counter(ClassifierMixin, BaseEstimator):
    """GaussianNB that counts its fits, and its predictions, in the class."""

    fits, predictions = [], []

    def fit(self, X, y):
        self.fits.append(len(y))
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        self.predictions.append(len(X))
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.model_.predict(X)


@pytest.fixture(autouse=True)
def forget():
    Counter.fits.clear()
    Counter.predictions.clear()


# --- holdout, training -----------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("size", [1 / 3, 0.25, 50])
def test_holdout_is_a_model_and_a_calibrator_on_two_parts(size, k):
    X, y, new = data(k)
    model = CalibratedClassifier(
        GaussianNB(), calibrate_on="holdout", holdout_size=size, merge="log", random_state=7
    ).fit(X, y)
    n_held = size if size >= 1 else round(size * len(y))
    assert len(model.calibration_y_) == n_held
    # The parts are found again by the model that was trained on one of them.
    rng = np.random.RandomState(7)
    rng.randint(2**31 - 1)  # the seed of draws
    train, held = train_test_split(np.arange(len(y)), test_size=size, random_state=rng)
    train, held = np.sort(train), np.sort(held)
    base = GaussianNB().fit(X[train], y[train])
    calibrator = VennAbers("log").fit(score(base, X[held]), y[held])
    assert_array_equal(model.calibration_scores_, score(base, X[held]))
    assert_array_equal(model.calibration_y_, y[held])
    assert_array_equal(model.predict_proba(new), calibrator.predict_proba(score(base, new)))
    m, expected = (
        model.predict_multiprobability(new),
        calibrator.predict_multiprobability(score(base, new)),
    )
    assert_array_equal(m.lower, expected.lower)
    assert_array_equal(m.upper, expected.upper)


def test_holdout_with_a_class_of_one_example():
    X, y, new = data()
    y[0] = 2
    for seed in range(4):
        model = CalibratedClassifier(GaussianNB(), calibrate_on="holdout", random_state=seed)
        assert model.fit(X, y).predict_proba(new).shape == (40, 3)
    few = CalibratedClassifier(GaussianNB(), calibrate_on="holdout", holdout_size=2, random_state=0)
    assert len(few.fit(X, np.where(y == 2, 0, y)).calibration_y_) == 2


def test_training_calibrates_on_what_it_was_trained_on():
    X, y, new = data(n=30)
    base = GaussianNB().fit(X, y)
    model = CalibratedClassifier(GaussianNB(), calibrate_on="training", merge="log").fit(X, y)
    for i in range(6):
        p0, p1 = oracle.venn_abers(score(base, X), y, score(base, new)[i])
        m = model.predict_multiprobability(new[i : i + 1])
        assert_allclose([m.p0[0], m.p1[0]], [float(p0), float(p1)], atol=1e-12)
    direct = CalibratedClassifier(
        GaussianNB(), method=IsotonicCalibration(between="nearest"), calibrate_on="training"
    ).fit(X, y)
    fitted = oracle.isotonic_max_min(score(base, X), y)
    expected = [float(oracle.isotonic_read(fitted, s, "nearest")) for s in score(base, new)]
    assert_allclose(direct.predict_proba(new)[:, 1], expected, atol=1e-12)


# --- folds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", ["venn-abers", "venn", "platt", "isotonic", "none"])
@pytest.mark.parametrize("merge", ["log", "brier", "midpoint"])
def test_an_ensemble_of_folds_is_merged_by_the_formulas(method, k, merge):
    X, y, new = data(k)
    model = CalibratedClassifier(GaussianNB(), method=method, merge=merge, cv=4).fit(X, y)
    singles, lower, upper = [], [], []
    bounded = method in ("venn-abers", "venn")
    folds = KFold(4, shuffle=True, random_state=np.random.RandomState(0))
    for train, test in (folds if bounded else StratifiedKFold(4)).split(X, y):
        base = GaussianNB().fit(X[train], y[train])
        if method == "none":
            singles.append(base.predict_proba(new))
            continue
        calibrator = make_calibrator(method).fit(score(base, X[test]), y[test], classes=range(k))
        if bounded:
            m = calibrator.predict_multiprobability(score(base, new))
            singles.append(m.merge(merge))
            lower.append(m.lower)
            upper.append(m.upper)
        else:
            singles.append(calibrator.predict_proba(score(base, new)))
    if lower and merge == "log":
        gm1 = np.prod(upper, axis=0) ** (1 / 4)
        gm0 = np.prod(1 - np.array(lower), axis=0) ** (1 / 4)
        expected = gm1 / (gm0 + gm1)
        expected /= expected.sum(axis=1, keepdims=True)
    else:
        expected = np.mean(singles, axis=0)
    assert_allclose(model.predict_proba(new), expected, rtol=0, atol=1e-12)
    if lower:
        m = model.predict_multiprobability(new)
        assert_allclose(m.lower, np.minimum(np.mean(lower, axis=0), expected), atol=1e-12)
        assert_allclose(m.upper, np.maximum(np.mean(upper, axis=0), expected), atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", ["venn-abers", "platt", "temperature"])
def test_pooled_folds_calibrate_one_model_trained_on_everybody(method, k):
    X, y, new = data(k)
    splitter = KFold(5, shuffle=True, random_state=1)
    merge = "log" if method == "venn-abers" else "auto"
    model = CalibratedClassifier(
        GaussianNB(), method=method, merge=merge, cv=splitter, ensemble=False
    ).fit(X, y)
    scores = np.empty(len(y)) if k == 2 else np.empty((len(y), k))
    for train, test in splitter.split(X):
        scores[test] = score(GaussianNB().fit(X[train], y[train]), X[test])
    assert_array_equal(model.calibration_scores_, scores)
    assert_array_equal(model.calibration_y_, y)
    base = GaussianNB().fit(X, y)
    expected = clone(model.calibrator_).fit(scores, y).predict_proba(score(base, new))
    assert_array_equal(model.predict_proba(new), expected)


@pytest.mark.parametrize(
    ("cv", "ensemble", "folds"),
    [
        (3, True, 3),
        (3, False, 3),
        (LeaveOneOut(), False, 30),
        (RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0), True, 6),
        (ShuffleSplit(4, test_size=0.3, random_state=0), True, 4),
        ([(np.arange(20), np.arange(20, 30)), (np.arange(10, 30), np.arange(10))], False, 2),
        ([(np.arange(30) < 20, np.arange(30) >= 20)], True, 1),
    ],
    ids=str,
)
def test_any_splitter_and_one_fit_a_fold(cv, ensemble, folds):
    X, y, new = data(n=30)
    model = CalibratedClassifier(Counter(), cv=cv, ensemble=ensemble).fit(X, y)
    assert len(Counter.fits) == folds + (not ensemble)
    assert len(Counter.predictions) == folds  # each left-out part is scored once
    assert len(model.estimators_) == (folds if ensemble else 1)
    assert len(model.calibrators_) == (folds if ensemble else 1)
    calibrators = list(model.calibrators_)
    state = pickle.dumps(calibrators)
    Counter.predictions.clear()
    assert_allclose(model.predict_proba(new).sum(axis=1), 1)
    assert len(Counter.fits) == folds + (not ensemble)  # nobody is fitted at prediction
    assert len(Counter.predictions) == len(model.estimators_)
    assert all(a is b for a, b in zip(model.calibrators_, calibrators, strict=True))
    assert pickle.dumps(model.calibrators_) == state


def test_a_number_of_folds_is_drawn_at_random_also_from_sorted_rows():
    X, y, _ = data(3, n=60)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    counts = []
    for seed in range(30):
        model = CalibratedClassifier(GaussianNB(), cv=3, random_state=seed).fit(X, y)
        folds = [part.codes for part in model._state.folds]
        assert [len(fold) for fold in folds] == [20, 20, 20]
        counts += [np.bincount(fold, minlength=3) for fold in folds]
        again = CalibratedClassifier(GaussianNB(), cv=3, random_state=seed).fit(X, y)
        assert_array_equal(model.calibration_scores_, again.calibration_scores_)
    # the class counts of a fold vary as drawn without replacement: hypergeometric
    n, share = 60, np.bincount(y) / 60
    variance = 20 * share * (1 - share) * (n - 20) / (n - 1)
    assert_allclose(np.var(counts, axis=0), variance, rtol=0.5)


@pytest.mark.filterwarnings("ignore:y contains 2 examples beside")
@pytest.mark.parametrize("source", [Holdout(0.5), Folds(2)])
def test_a_split_never_trains_on_one_class_alone_where_there_are_two(source):
    X, y, new = data(n=8)
    y[:] = 0
    y[:2] = 1
    for seed in range(40):
        model = CalibratedClassifier(LinearSVC(), calibrate_on=source, random_state=seed)
        assert np.isfinite(model.fit(X, y).predict_proba(new)).all()


def test_a_stratified_part_is_there_for_who_asks():
    X, y, _ = data(n=60)
    for seed in range(10):
        source = Holdout(1 / 3, stratify=True)
        model = CalibratedClassifier(GaussianNB(), calibrate_on=source, random_state=seed)
        held = model.fit(X, y).calibration_y_
        assert abs(held.mean() - y.mean()) < 1 / 20
        source = Holdout(2, stratify=True)
        y_rare = np.where(np.arange(60) == 0, 2, y)
        assert len(model.set_params(calibrate_on=source).fit(X, y_rare).calibration_y_) == 2


def test_splitters_that_cannot_calibrate_are_refused():
    X, y, _ = data(n=30)
    twice = RepeatedStratifiedKFold(n_splits=2, n_repeats=2)
    with pytest.raises(ValueError, match="cv must leave each example out at most once"):
        CalibratedClassifier(GaussianNB(), cv=twice, ensemble=False).fit(X, y)
    with pytest.raises(ValueError, match="cv must leave examples out, got no test indices"):
        CalibratedClassifier(GaussianNB(), cv=[(np.arange(30), [])]).fit(X, y)
    with pytest.raises(ValueError, match="cv must leave examples out, got no test indices"):
        CalibratedClassifier(GaussianNB(), cv=[]).fit(X, y)


def test_one_fit_elsewhere_too():
    X, y, new = data(n=60)
    for calibrate_on in ("holdout", "training"):
        Counter.fits.clear()
        model = CalibratedClassifier(Counter(), calibrate_on=calibrate_on).fit(X, y)
        model.predict_proba(new)
        model.predict_multiprobability(new)
        assert len(Counter.fits) == 1
    Counter.fits.clear()
    CalibratedClassifier(BaggingClassifier(Counter(), 7)).fit(X, y).predict(new)
    assert len(Counter.fits) == 7


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("ensemble", [True, False])
def test_a_class_missing_from_a_fold_and_a_fold_of_one_class(method, ensemble):
    X, y, new = data(3, n=60)
    order = np.argsort(y, kind="stable")  # the folds of KFold: classes nearly one by one
    X, y = X[order], y[order]
    for base in (GaussianNB(), LinearSVC()):
        if isinstance(base, LinearSVC) and method in ("bostrom", "beta", "none"):
            continue
        model = CalibratedClassifier(base, method=method, cv=KFold(4), ensemble=ensemble)
        p = model.fit(X, y).predict_proba(new)
        assert p.shape == (40, 3)
        assert_allclose(p.sum(axis=1), 1, atol=1e-9)
        assert (p >= 0).all()
        if hasattr(model, "predict_multiprobability"):
            m = model.predict_multiprobability(new)
            assert (m.lower <= p + 1e-12).all()
            assert (p <= m.upper + 1e-12).all()


def test_a_class_unknown_to_a_model_has_score_zero_in_its_own_column():
    X, y, new = data(3)
    even = np.arange(len(y)) % 2 == 0
    train, test = np.flatnonzero(even & (y != 1)), np.flatnonzero(~even)
    without = [(train, test)]
    model = CalibratedClassifier(GaussianNB(), method="none", cv=without).fit(X, y)
    base = GaussianNB().fit(X[train], y[train]).predict_proba(new)
    expected = np.column_stack([base[:, 0], np.zeros(len(new)), base[:, 1]])
    assert_allclose(model.predict_proba(new), expected, rtol=1e-12)
    svc = CalibratedClassifier(LinearSVC(random_state=0), method="venn", cv=without).fit(X, y)
    decision = LinearSVC(random_state=0).fit(X[train], y[train]).decision_function(X[test])
    found = svc.calibration_scores_
    assert_allclose(found, np.column_stack([-decision, -np.abs(decision), decision]), atol=1e-12)


# --- fitted models ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("k", [2, 3])
def test_a_fitted_model_is_only_calibrated_and_never_touched(method, k):
    X, y, new = data(k)
    for base in (
        GaussianNB(),
        RandomForestClassifier(10, random_state=0),
        make_pipeline(StandardScaler(), GaussianNB()),
        BaggingClassifier(GaussianNB(), 5, random_state=0),
    ):
        base.fit(X[:60], y[:60])
        before = pickle.dumps(base)
        merge = "log" if method == "venn-abers" else "auto"
        model = CalibratedClassifier(FrozenEstimator(base), method=method, merge=merge)
        model.fit(X[60:], y[60:])
        p = model.predict_proba(new)
        assert pickle.dumps(base) == before
        assert model.estimator_.estimator is base
        assert_array_equal(model.calibration_scores_, score(base, X[60:]))
        expected = clone(model.calibrator_).fit(score(base, X[60:]), y[60:])
        assert_array_equal(p, expected.predict_proba(score(base, new)))


@pytest.mark.parametrize("method", ALL_METHODS)
def test_classes_that_the_calibration_data_lack_keep_their_columns(method):
    X, y, new = data(3)
    names = np.array(["ant", "bee", "cat"])[y]
    base = GaussianNB().fit(X, names)
    for present in (["ant", "cat"], ["bee", "cat"], ["bee"]):
        some = np.isin(names, present)
        model = CalibratedClassifier(FrozenEstimator(base), method=method).fit(X[some], names[some])
        assert model.classes_.tolist() == ["ant", "bee", "cat"]
        p = model.predict_proba(new)
        assert p.shape == (40, 3)
        assert_allclose(p.sum(axis=1), 1, atol=1e-9)
        if method == "none":
            assert_allclose(p, base.predict_proba(new), atol=1e-12)


def test_labels_that_cannot_be_sorted_are_refused():
    X, y, _ = data()
    for labels, kinds in (([None, "a"], "NoneType and str"), ([1, "a"], "int and str")):
        mixed = np.array(labels, object)[y]
        with pytest.raises(ValueError, match=f"y must contain labels .* got {kinds}: leave out"):
            CalibratedClassifier(GaussianNB()).fit(X, mixed)


def test_labels_unknown_to_a_fitted_model_are_refused():
    X, y, _ = data()
    numbers, texts = GaussianNB().fit(X, y), GaussianNB().fit(X, np.array(["a", "b"])[y])
    for base, labels, message in (
        (numbers, y + 1, r"y must contain labels of classes \[0, 1\], got 2"),
        (
            numbers,
            np.array(["a", "b"])[y],
            r"y must contain labels of classes \[0, 1\], got '[ab]'",
        ),
        (numbers, np.array(["a", "b"], object)[y], r"labels of classes \[0, 1\], got '[ab]'"),
        (texts, np.array(["a", "c"])[y], r"y must contain labels of classes \['a', 'b'\], got 'c'"),
        (texts, y, r"y must contain labels of classes \['a', 'b'\], got [01]"),
    ):
        with pytest.raises(ValueError, match=message):
            CalibratedClassifier(FrozenEstimator(base)).fit(X, labels)


def test_columns_of_a_fitted_model_may_come_in_any_order():
    X, y, new = data()

    class Reversed(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.model_ = GaussianNB().fit(X, y)
            self.classes_ = self.model_.classes_[::-1]
            return self

        def predict_proba(self, X):
            return self.model_.predict_proba(X)[:, ::-1]

    base = Reversed().fit(X, y)
    model = CalibratedClassifier(FrozenEstimator(base), method="none").fit(X, y)
    assert_allclose(model.predict_proba(new), base.model_.predict_proba(new), rtol=1e-12)


# --- bagging ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "base", [GaussianNB(), DecisionTreeClassifier(max_depth=2), SVC()], ids=repr
)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_samples": 0.5, "bootstrap": False},
        {"max_samples": 30},
        {"max_features": 2},
        {"max_features": 2, "bootstrap_features": True},
        {"bootstrap_features": True, "max_samples": 0.4},
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

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        members = oracle.out_of_bag(ensemble, len(X))
    every = np.array([answer(t, X) for t in range(15)])
    expected = [np.mean([every[t, i] for t in free], axis=0) for i, free in enumerate(members)]
    assert_allclose(model.calibration_scores_, expected, rtol=0, atol=1e-12)
    whole = np.mean([answer(t, new) for t in range(15)], axis=0)
    assert_allclose(model.predict_proba(new), whole, rtol=0, atol=1e-12)
    if votes == "soft" and hasattr(base, "predict_proba"):
        assert_allclose(whole, ensemble.predict_proba(new), atol=1e-12)
    exchangeable = CalibratedClassifier(bagging, votes=votes, random_state=0).fit(X, names)
    p = exchangeable.predict_proba(new)
    alone = [exchangeable.predict_proba(new[i : i + 1])[0] for i in range(8)]
    assert_array_equal(p[:8], alone)


# --- one answer: the point and its bounds -------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
def test_the_point_is_a_pool_of_all_trees_and_the_bounds_hold_it(subforest, k):
    X, y, new = data(k)
    forest = RandomForestClassifier(60, random_state=0)
    model = CalibratedClassifier(forest, subforest=subforest, random_state=0).fit(X, y)
    by_hand = PooledCalibration().fit(model.calibration_scores_, y)
    whole = model.estimator_.predict_proba(new)
    expected = by_hand.predict_proba(whole[:, 1] if k == 2 else whole)
    p = model.predict_proba(new)
    assert_allclose(p, expected, rtol=0, atol=1e-12)
    assert model.point_calibrator_.weights_ == by_hand.weights_
    m = model.predict_multiprobability(new)
    plain = model.recalibrate("venn-abers", merge="log").predict_multiprobability(new)
    assert_allclose(m.lower, np.minimum(plain.lower, p), rtol=0, atol=1e-15)
    assert_allclose(m.upper, np.maximum(plain.upper, p), rtol=0, atol=1e-15)
    if k == 2 and subforest == "all":  # what can be exported alone, as the page on it says
        alone = model.calibrator_.predict_multiprobability(whole[:, 1])
        assert_array_equal(np.minimum(alone.p0, p[:, 1]), m.p0)
        assert_array_equal(np.maximum(alone.p1, p[:, 1]), m.p1)
    outside = ((p < plain.lower) | (p > plain.upper)).any(axis=1)
    assert_array_equal(m.widened, outside)
    assert 0 < outside.mean() < 1
    assert_array_equal(m[outside].widened, np.ones(outside.sum(), bool))
    assert plain.widened is None


@pytest.mark.parametrize("k", [2, 3])
def test_over_folds_one_pool_of_all_their_scores_makes_the_point(k):
    X, y, new = data(k)
    weight = np.linspace(0.5, 2, len(y))
    model = CalibratedClassifier(LogisticRegression(), cv=3, random_state=0)
    model.fit(X, y, sample_weight=weight)
    order = np.concatenate([part.weight for part in model._state.folds])
    assert_array_equal(np.sort(order), weight)
    pool = PooledCalibration().fit(
        model.calibration_scores_, model.calibration_y_, sample_weight=order
    )
    assert model.point_calibrator_.weights_ == pool.weights_
    scores = [one.predict_proba(new) for one in model.estimators_]
    each = [pool.predict_proba(s[:, 1] if k == 2 else s) for s in scores]
    p = model.predict_proba(new)
    means = np.prod(each, axis=0) ** (1 / 3)
    assert_allclose(p, means / means.sum(axis=1, keepdims=True), rtol=0, atol=1e-12)
    m = model.predict_multiprobability(new)
    assert ((m.lower <= p) & (p <= m.upper)).all()


@pytest.mark.parametrize("k", [2, 3])
def test_few_trees_that_are_certain_of_different_classes(k):
    X, y, new = data(k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # out of bag for no tree
        model = CalibratedClassifier(RandomForestClassifier(5, random_state=0)).fit(X, y)

    class Certain:
        """Says of every row that it is of the class with the largest score."""

        def predict_proba(self, scores):
            return np.eye(k)[np.argmax(scores, axis=1) if k > 2 else np.round(scores).astype(int)]

    object.__setattr__(model._state, "point_calibrator", Certain())
    (part,) = model._state.folds
    certain = [Certain().predict_proba(s) for s in part.scorer.point_scores(new)]
    both = np.array(certain).max(axis=0) > 0
    assert (both.sum(axis=1) > 1).any() and (both.sum(axis=1) == 1).any()
    p = model.predict_proba(new)
    assert_allclose(p.sum(axis=1), 1)
    never = np.where(both, 0, p).max(axis=1)
    assert (never < np.where(both, p, 1).min(axis=1)).all() and (never < 1e-10).all()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(12, random_state=0),
        make_pipeline(StandardScaler(), RandomForestClassifier(19, random_state=0)),
        BaggingClassifier(GaussianNB(), 9, random_state=0),
    ],
    ids=["forest", "pipeline", "bagging"],
)
def test_with_few_trees_the_point_is_averaged_over_subforests_of_out_of_bag_size(
    ensemble, subforest, k
):
    X, y, new = data(k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # out of bag for no tree
        model = CalibratedClassifier(ensemble, subforest=subforest, random_state=0).fit(X, y)
    fitted = model.estimator_
    trees, rows, seen = fitted, new, X
    if isinstance(fitted, Pipeline):
        trees, rows, seen = fitted[-1], fitted[:-1].transform(new), fitted[:-1].transform(X)
    members = [free for free in oracle.out_of_bag(trees, len(seen)) if len(free)]
    assert len(members) == len(model.calibration_y_)
    answers = np.array([tree.predict_proba(rows) for tree in trees.estimators_])
    chosen = sorted({round(i) for i in np.linspace(0, len(members) - 1, 20)})
    logs = []
    for i in chosen:
        score = answers[members[i]].mean(axis=0)
        logs.append(np.log(model.point_calibrator_.predict_proba(score[:, 1] if k == 2 else score)))
    expected = np.exp(np.mean(logs, axis=0))
    expected /= expected.sum(axis=1, keepdims=True)
    p = model.predict_proba(new)
    assert_allclose(p, expected, rtol=0, atol=1e-9)
    assert_array_equal(model.predict_proba(new[3:4])[0], p[3])
    bounds, same = predict_once(model, new)
    assert_array_equal(same, p)
    assert ((bounds.lower <= p) & (p <= bounds.upper)).all()
    (_, together), _ = predict_together([model, model.recalibrate("platt")], new)
    assert_array_equal(together, p)
    other = clone(model).set_params(random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert_array_equal(
            other.fit(X, y).predict_proba(new), p
        )  # the seed of draws is of no account


def test_no_seed_of_a_draw_moves_the_answer():
    X, y, new = data()
    forest = RandomForestClassifier(60, random_state=0)
    answers = []
    for seed in range(5):
        model = CalibratedClassifier(forest, random_state=seed).fit(X, y)
        m = model.predict_multiprobability(new)
        answers.append([model.predict_proba(new)[:, 1], m.p0, m.p1])
    assert_array_equal(np.ptp(answers, axis=0), 0)
    draws = [
        CalibratedClassifier(forest, subforest="exchangeable", merge="log", random_state=seed)
        .fit(X, y)
        .predict_proba(new)[:, 1]
        for seed in range(5)
    ]
    assert np.ptp(draws, axis=0).mean() > 0.05


# --- confidence intervals -----------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
def test_confidence_is_that_of_the_calibration_scores(subforest, k):
    X, y, new = data(k)
    names = np.array(["a", "b", "c"])[y]
    forest = RandomForestClassifier(40, random_state=0)
    model = CalibratedClassifier(forest, subforest=subforest, random_state=0).fit(X, names)
    whole = model.estimator_.predict_proba(new)
    p = model.predict_proba(new)
    found = model.predict_confidence(new, 0.9, "exact")
    codes = np.searchsorted(model.classes_, model.calibration_y_)
    curves = interval_curves(model.calibration_scores_, codes, k, 0.9, "exact")
    expected = read_intervals(curves, whole[:, 1] if k == 2 else whole, model.classes_, 0.9).widen(
        p
    )
    assert_array_equal(found.lower, expected.lower)
    assert_array_equal(found.upper, expected.upper)
    assert_array_equal(found.widened, expected.widened)
    assert found.classes.tolist() == sorted(set(names))
    assert found.width.mean() > model.predict_confidence(new, 0.9).width.mean()


@pytest.mark.parametrize("k", [2, 3])
def test_likelihood_ratio_reads_scores_as_all_trees_are_expected_to_give_them(k):
    X, y, new = data(k)
    model = CalibratedClassifier(RandomForestClassifier(40, random_state=0), random_state=0).fit(
        X, y
    )
    (fold,) = model._state.folds
    whole = model.estimator_.predict_proba(new)
    curves = interval_curves(model.calibration_scores_, y, k, 0.9, noise=fold.noise)
    wanted = read_intervals(curves, whole[:, 1] if k == 2 else whole, model.classes_, 0.9)
    wanted = wanted.widen(model.predict_proba(new))
    found = model.predict_confidence(new, 0.9)
    assert_allclose(found.lower, wanted.lower, rtol=0, atol=1e-12)
    assert_allclose(found.upper, wanted.upper, rtol=0, atol=1e-12)


def test_confidence_over_folds_is_the_mean_over_their_models():
    X, y, new = data()
    model = CalibratedClassifier(GaussianNB(), random_state=0).fit(X, y)
    curves = interval_curves(model.calibration_scores_, model.calibration_y_, 2)
    expected = mean_intervals(
        [
            read_intervals(curves, one.predict_proba(new)[:, 1], model.classes_, 0.95)
            for one in model.estimators_
        ]
    ).widen(model.predict_proba(new))
    assert_array_equal(model.predict_confidence(new).lower, expected.lower)


def test_exact_confidence_is_refused_where_it_is_not_proved():
    X, y, new = data()
    with pytest.raises(ValueError, match=r"ensemble must be False .* got 5 models"):
        CalibratedClassifier(GaussianNB()).fit(X, y).predict_confidence(new, method="exact")
    pooled = CalibratedClassifier(GaussianNB(), ensemble=False).fit(X, y)
    assert pooled.predict_confidence(new, method="exact").lower.shape == (40, 2)
    weight = np.arange(len(y)) % 3 + 1.0
    weighted = CalibratedClassifier(GaussianNB(), ensemble=False).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="sample_weight must be None for exact"):
        weighted.predict_confidence(new, method="exact")
    assert (
        weighted.predict_confidence(new).width.mean() < pooled.predict_confidence(new).width.mean()
    )


def test_forest_spread_is_what_other_seeds_show():
    X, y, new = data()
    models = [
        CalibratedClassifier(RandomForestClassifier(50), random_state=seed).fit(X, y)
        for seed in range(8)
    ]
    observed = np.var([model.predict_proba(new)[:, 1] for model in models], axis=0, ddof=1)
    spreads = [forest_spread(model._state, new).deviation for model in models]
    assert 0.7 < np.mean(spreads) / np.sqrt(observed.mean()) < 1.4
    assert forest_spread(CalibratedClassifier(GaussianNB()).fit(X, y)._state) is None


def test_what_was_taken_is_told_after_recalibration_too():
    X, y, _ = data()
    model = CalibratedClassifier(RandomForestClassifier(20, random_state=0)).fit(X, y)
    other = model.recalibrate("platt")
    assert other.calibrate_on_ == "oob"
    assert other.calibrate_on_reason_ == model.calibrate_on_reason_
