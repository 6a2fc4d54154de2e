"""Held-out parts, folds and the training set as sources of scores."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from oracles import formulas as oracle
from support.cases import COMMON_METHODS, draw_rows, score
from vennforest import CalibratedClassifier, VennAbers
from vennforest.calibrators import METHODS


class Counter(GaussianNB):
    """Counts its fits, and its predictions, in the class."""

    fits, predictions = [], []

    def fit(self, X, y):
        self.fits.append(len(y))
        return super().fit(X, y)

    def predict_proba(self, X):
        self.predictions.append(len(X))
        return super().predict_proba(X)


@pytest.fixture(autouse=True)
def forget():
    Counter.fits.clear()
    Counter.predictions.clear()


@pytest.mark.parametrize(("size", "k"), [(1 / 3, 2), (0.25, 3), (50, 2)])
def test_holdout_is_a_model_and_a_calibrator_on_two_parts(size, k):
    X, y, new = draw_rows(k)
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
    m = model.predict_multiprobability(new)
    expected = calibrator.predict_multiprobability(score(base, new))
    assert_array_equal(m.lower, expected.lower)
    assert_array_equal(m.upper, expected.upper)


def test_holdout_with_a_class_of_one_example():
    X, y, new = draw_rows()
    y[0] = 2
    settings = {"calibrate_on": "holdout", "merge": "log"}
    for seed in range(4):
        model = CalibratedClassifier(GaussianNB(), random_state=seed, **settings)
        assert model.fit(X, y).predict_proba(new).shape == (40, 3)
    few = CalibratedClassifier(GaussianNB(), holdout_size=2, random_state=0, **settings)
    assert len(few.fit(X, np.where(y == 2, 0, y)).calibration_y_) == 2


def test_training_calibrates_on_what_it_was_trained_on():
    X, y, new = draw_rows(n=30)
    base = GaussianNB().fit(X, y)
    model = CalibratedClassifier(GaussianNB(), calibrate_on="training", merge="log").fit(X, y)
    for i in range(6):
        p0, p1 = oracle.venn_abers(score(base, X), y, score(base, new)[i])
        m = model.predict_multiprobability(new[i : i + 1])
        assert_allclose([m.p0[0], m.p1[0]], [float(p0), float(p1)], atol=1e-12)
    stepped = CalibratedClassifier(GaussianNB(), method="isotonic", calibrate_on="training")
    direct = stepped.fit(X, y)
    fitted = oracle.isotonic_max_min(score(base, X), y)
    expected = [float(oracle.isotonic_read(fitted, s)) for s in score(base, new)]
    assert_allclose(direct.predict_proba(new)[:, 1], expected, atol=1e-12)


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
    X, y, new = draw_rows(n=30)
    model = CalibratedClassifier(Counter(), merge="log", cv=cv, ensemble=ensemble).fit(X, y)
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
    X, y, _ = draw_rows(3, n=60)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    counts = []
    for seed in range(25):
        model = CalibratedClassifier(GaussianNB(), merge="log", cv=3, random_state=seed).fit(X, y)
        folds = [part.codes for part in model._state.folds]
        assert [len(fold) for fold in folds] == [20, 20, 20]
        counts += [np.bincount(fold, minlength=3) for fold in folds]
    # the class counts of a fold vary as drawn without replacement: hypergeometric
    n, share = 60, np.bincount(y) / 60
    variance = 20 * share * (1 - share) * (n - 20) / (n - 1)
    assert_allclose(np.var(counts, axis=0), variance, rtol=0.5)


@pytest.mark.filterwarnings("ignore:y contains 2 examples beside")
@pytest.mark.parametrize(
    "source", [{"calibrate_on": "holdout", "holdout_size": 0.5}, {"cv": 2}], ids=str
)
def test_a_split_never_trains_on_one_class_alone_where_there_are_two(source):
    X, y, new = draw_rows(n=8)
    y[:] = 0
    y[:2] = 1
    for seed in range(12):
        model = CalibratedClassifier(LinearSVC(), merge="log", random_state=seed, **source)
        assert np.isfinite(model.fit(X, y).predict_proba(new)).all()


def test_splitters_that_cannot_calibrate_are_refused():
    X, y, _ = draw_rows(n=30)
    for cv in ([(np.arange(30), [])], []):
        with pytest.raises(ValueError, match="cv must leave examples out, got no test indices"):
            CalibratedClassifier(GaussianNB(), cv=cv).fit(X, y)


@pytest.mark.parametrize("method", COMMON_METHODS)
@pytest.mark.parametrize("ensemble", [True, False])
def test_a_class_missing_from_a_fold_and_a_fold_of_one_class(method, ensemble):
    X, y, new = draw_rows(3, n=60)
    order = np.argsort(y, kind="stable")  # the folds of KFold: classes nearly one by one
    X, y = X[order], y[order]
    for base in (GaussianNB(), LinearSVC()):
        if isinstance(base, LinearSVC) and method in ("bostrom", "beta", "none"):
            continue
        merge = "log" if method == "venn-abers" else "auto"
        settings = {"method": method, "merge": merge, "cv": KFold(4), "ensemble": ensemble}
        model = CalibratedClassifier(base, **settings)
        p = model.fit(X, y).predict_proba(new)
        assert p.shape == (40, 3)
        assert_allclose(p.sum(axis=1), 1, atol=1e-9)
        assert (p >= 0).all()
        if hasattr(model, "predict_multiprobability"):
            m = model.predict_multiprobability(new)
            assert ((m.lower <= p + 1e-12) & (p <= m.upper + 1e-12)).all()


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    "source",
    [
        {"calibrate_on": "holdout"},
        {"calibrate_on": "cv"},
        {"calibrate_on": "cv", "ensemble": False},
    ],
    ids=str,
)
def test_every_method_is_calibrated_on_the_same_random_rows(source, grouped):
    """Not stratified, drawn by ``random_state``, so that any of them can take another's place."""
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 3 == 0
    groups = np.arange(90) // 2 if grouped else None
    shares = set()
    for seed in range(12):
        folds = []
        for method in METHODS if seed < 2 else ["platt"]:
            model = CalibratedClassifier(GaussianNB(), method=method, random_state=seed, **source)
            folds.append([f.rows for f in model.fit(X, y, groups=groups)._fitted.folds])
        for other in folds[1:]:
            for rows, expected in zip(other, folds[0], strict=True):
                assert_array_equal(rows, expected)
        shares.add(tuple(int(y[rows].sum()) for rows in folds[0]))
    assert len(shares) > 2 or source.get("ensemble") is False


@pytest.mark.parametrize("grouped", [False, True])
def test_stratified_folds_are_drawn_at_random_too(grouped):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) < 5
    drawn = set()
    for seed in range(4):
        model = CalibratedClassifier(GaussianNB(), method="platt", random_state=seed)
        with pytest.warns(UserWarning, match=r"5 (examples|groups with examples) beside"):
            model.fit(X, y, groups=np.arange(60) if grouped else None)
        assert all(y[fold.rows].sum() == 1 for fold in model._fitted.folds)
        drawn.add(tuple(model._fitted.folds[0].rows))
    assert len(drawn) == 4


def test_a_class_that_a_fold_never_trains_on_is_named():
    X, y, _ = draw_rows(k=3, n=60)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    site = np.where(y == 2, 99, np.arange(60) % 8)
    with pytest.warns(UserWarning, match=r"without a training row of class \[2\]"):
        CalibratedClassifier(GaussianNB(), calibrate_on="cv", cv=3).fit(X, y, groups=site)
    with pytest.warns(UserWarning, match=r"3 of 3 folds .* class \[0, 2\]"):
        splits = [(np.flatnonzero(y != c), np.flatnonzero(y == c)[:5]) for c in (0, 2, 2)]
        CalibratedClassifier(GaussianNB(), calibrate_on="cv", cv=splits).fit(X, y)
    with pytest.raises(ValueError, match=r"two classes or more to train on .* got .* \[1\] alone"):
        splits = [(np.flatnonzero(y == 1), np.flatnonzero(y != 1))]
        CalibratedClassifier(GaussianNB(), calibrate_on="cv", cv=splits).fit(X, y)


class Warns(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        warnings.warn("slow to fit", UserWarning, stacklevel=1)
        return super().fit(X, y, sample_weight)


def test_models_of_folds_warn_once():
    """So do worker processes, which would print on their own."""
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    model = CalibratedClassifier(Warns(), calibrate_on="cv", method="platt")
    with pytest.warns(UserWarning) as caught:
        model.fit(X, y)
    assert [str(w.message) for w in caught].count("slow to fit") == 1
