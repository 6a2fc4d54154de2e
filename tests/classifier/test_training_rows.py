"""What a model says of its training rows, each without its own label."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB

import vennforest
from vennforest import CalibratedClassifier, VennAbers
from vennforest.calibrators import METHODS, PooledCalibration
from vennforest.classifier import prediction


def data(n=90, k=2, seed=0):
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=k, flip_y=0.2, random_state=seed
    )
    return X, np.array(["a", "b", "c"])[y]


def forest():
    return RandomForestClassifier(20, random_state=0, max_depth=4)


def flipped(y, i):
    other = y.copy()
    other[i] = next(label for label in np.unique(y) if label != y[i])
    return other


@pytest.fixture(autouse=True)
def fewer_folds(monkeypatch):
    monkeypatch.setattr(prediction, "N_PARTS", 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 3])
def test_no_row_is_predicted_with_its_own_label(method, k):
    # A frozen model scores a row whatever its label: the whole prediction has to stay.
    X, y = data(70, k)
    frozen = FrozenEstimator(GaussianNB().fit(X[:40], y[:40]))
    X, y = X[40:], y[40:]

    def fit(labels):
        merge = "log" if method == "venn-abers" else "auto"
        return CalibratedClassifier(frozen, method=method, merge=merge).fit(X, labels)

    before = fit(y)
    for i in (7,) if method in ("pooled", "spline") else (0, 7, 29):
        after = fit(flipped(y, i))
        assert_array_equal(before.oob_probability_[i], after.oob_probability_[i])
        if hasattr(before, "predict_multiprobability"):
            bounds, others = before.oob_multiprobability_, after.oob_multiprobability_
            assert_array_equal(bounds[i].lower, others[i].lower)
            assert_array_equal(bounds[i].upper, others[i].upper)
        if method not in ("none", "venn", "bostrom"):  # others do hear of it
            assert (before.oob_probability_ != after.oob_probability_).any()


@pytest.mark.parametrize("merge", ["auto", "log"])
def test_rows_are_calibrated_without_the_part_they_are_in(merge):
    X, y = data()
    model = CalibratedClassifier(forest(), merge=merge, random_state=0).fit(X, y)
    scores = model.calibration_scores_
    p, bounds = model.oob_probability_, model.oob_multiprobability_
    part = np.random.RandomState(0).permutation(90) % 2
    for held in range(2):
        rows, rest = part == held, part != held
        slow = VennAbers("log").fit(scores[rest], y[rest]).predict_multiprobability(scores[rows])
        expected = slow.merge("log")
        if merge == "auto":
            expected = PooledCalibration().fit(scores[rest], y[rest]).predict_proba(scores[rows])
            slow = slow.widen(expected)
        assert_allclose(p[rows], expected, atol=1e-12)
        assert_allclose(bounds.lower[rows], slow.lower, atol=1e-12)
        assert_allclose(bounds.upper[rows], slow.upper, atol=1e-12)


def test_each_row_has_the_score_of_the_model_that_did_not_see_it():
    X, y = data()
    folds = KFold(4, shuffle=True, random_state=1)
    proba = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    for ensemble in (True, False):
        model = CalibratedClassifier(GaussianNB(), method="none", cv=folds, ensemble=ensemble)
        assert_allclose(model.fit(X, y).oob_probability_, proba)
    weight = np.where(np.arange(90) % 10 == 3, 0.0, 1.0)
    model.fit(X, y, sample_weight=weight)
    assert_array_equal(np.isnan(model.oob_probability_).any(axis=1), weight == 0)
    several = [(np.arange(45), np.arange(45, 90)), (np.arange(60), np.arange(60, 90))]
    model = CalibratedClassifier(GaussianNB(), method="none", cv=several).fit(X, y)
    first, second = (GaussianNB().fit(X[a], y[a]) for a, _ in several)
    got = model.oob_probability_
    assert np.isnan(got[:45]).all()
    assert_allclose(got[45:60], first.predict_proba(X[45:60]))
    assert_allclose(got[60:], (first.predict_proba(X[60:]) + second.predict_proba(X[60:])) / 2)


@pytest.mark.parametrize(
    "options",
    [
        {"calibrate_on": "holdout", "merge": "brier"},
        {"subforest": "exchangeable", "merge": "log"},
        {"calibrate_on": "cv", "cv": 3, "method": "venn"},
        {"calibrate_on": "cv", "cv": 3, "ensemble": False, "method": "venn"},
        {"estimator": BaggingClassifier(GaussianNB(), 9, random_state=0)},  # the pool
        {"calibrate_on": "cv", "cv": ShuffleSplit(3, random_state=0), "merge": "log"},
    ],
    ids=str,
)
def test_every_source_says_which_rows_it_scored(options, tmp_path):
    X, y = data(120)
    model = CalibratedClassifier(**{"estimator": forest(), "random_state": 0, **options}).fit(X, y)
    p, bounds = model.oob_probability_, model.oob_multiprobability_
    assert p.shape == bounds.lower.shape == (120, 2)
    scored = ~np.isnan(p[:, 1])
    rows = np.concatenate([part.rows for part in model._state.folds])
    assert_array_equal(np.flatnonzero(scored), np.unique(rows))
    codes = np.concatenate([part.codes for part in model._state.folds])
    assert_array_equal(model.classes_[codes], y[rows])
    assert ((bounds.lower <= p) & (p <= bounds.upper))[scored].all()
    vennforest.save(model, tmp_path / "model.skops")
    again = vennforest.load(tmp_path / "model.skops")
    assert_array_equal(again.oob_probability_, p)
    platt = model.recalibrate("platt")
    assert_array_equal(np.isnan(platt.oob_probability_[:, 1]), ~scored)


def test_groups_leave_as_a_whole():
    X, y = data(60)
    groups = np.repeat(np.arange(15), 4)
    frozen = FrozenEstimator(GaussianNB().fit(*data(60, seed=1)))
    for method in ("venn-abers", "platt", "venn"):

        def fit(labels, method=method):
            own = CalibratedClassifier(frozen, method=method, merge="midpoint")
            return own.fit(X, labels, groups=groups)

        before, after = fit(y), fit(flipped(y, 8))
        mates = groups == groups[8]
        assert_array_equal(before.oob_probability_[mates], after.oob_probability_[mates])
        if method == "venn-abers":
            bounds, others = before.oob_multiprobability_, after.oob_multiprobability_
            assert_array_equal(bounds.lower[mates], others.lower[mates])
    model = CalibratedClassifier(GaussianNB(), cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert not np.isnan(model.oob_probability_).any()


def test_a_model_of_its_training_rows_predicts_none_of_them():
    X, y = data(60)
    model = CalibratedClassifier(forest(), calibrate_on="training").fit(X, y)
    with pytest.raises(AttributeError, match='calibrate_on must be "oob" or "cv"'):
        _ = model.oob_probability_
    model = CalibratedClassifier(forest(), method="platt", random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="PlattScaling gives no bounds: use VennAbers"):
        _ = model.oob_multiprobability_
