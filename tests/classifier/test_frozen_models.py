"""Fitted models are only calibrated, and never touched."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.cases import COMMON_METHODS, draw_rows, score
from vennforest import CalibratedClassifier, load, save


@pytest.mark.parametrize("method", COMMON_METHODS)
@pytest.mark.parametrize("k", [2, 3])
def test_a_fitted_model_is_only_calibrated_and_never_touched(method, k):
    X, y, new = draw_rows(k)
    for base in (
        GaussianNB(),
        RandomForestClassifier(10, random_state=0),
        make_pipeline(StandardScaler(), GaussianNB()),
        BaggingClassifier(GaussianNB(), 5, random_state=0),
    ):
        before = pickle.dumps(base.fit(X[:60], y[:60]))
        merge = "log" if method == "venn-abers" else "auto"
        model = CalibratedClassifier(FrozenEstimator(base), method=method, merge=merge)
        p = model.fit(X[60:], y[60:]).predict_proba(new)
        assert pickle.dumps(base) == before
        assert model.estimator_.estimator is not base  # fitting it again changes no answer
        assert_array_equal(model.calibration_scores_, score(base, X[60:]))
        expected = clone(model.calibrator_).fit(score(base, X[60:]), y[60:])
        assert_array_equal(p, expected.predict_proba(score(base, new)))


@pytest.mark.parametrize("method", COMMON_METHODS)
def test_classes_that_the_calibration_data_lack_keep_their_columns(method):
    X, y, new = draw_rows(3)
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


def test_labels_that_cannot_be_sorted_or_are_unknown_are_refused():
    X, y, _ = draw_rows()
    numbers, texts = (
        FrozenEstimator(GaussianNB().fit(X, labels[y]))
        for labels in (np.arange(2), np.array([*"ab"]))
    )
    for model, labels, message in (
        (GaussianNB(), [None, "a"], "must have a label in every row"),
        (GaussianNB(), np.array([1, "a"], object), "must contain labels .* got int and str"),
        (numbers, [1, 2], r"y must contain labels of classes \[0, 1\], got 2"),
        (texts, [0, 1], r"labels of classes \['a', 'b'\], got [01]"),
    ):
        with pytest.raises(ValueError, match=message):
            CalibratedClassifier(model).fit(X, np.asarray(labels)[y])


@pytest.mark.parametrize("calibrate_on", ["auto", "oob"])
def test_fitting_the_frozen_forest_again_changes_no_answer_and_no_copy(calibrate_on, tmp_path):
    X, y, new = draw_rows()
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    rows = (X, y) if calibrate_on == "oob" else draw_rows(seed=1)[:2]
    model = CalibratedClassifier(FrozenEstimator(forest), calibrate_on=calibrate_on).fit(*rows)
    before = model.predict_proba(new)
    forest.fit(X, 1 - y)
    path = tmp_path / "model.skops"
    save(model, path)
    for again in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), load(path)):
        assert_array_equal(again.predict_proba(new), before)


class Copying(GaussianNB):
    """A model with a ``__deepcopy__`` of its own, as CatBoost's have."""

    def __deepcopy__(self, memo):
        return pickle.loads(pickle.dumps(self))


def test_a_frozen_model_that_copies_itself_stays_frozen():
    X, y, new = draw_rows()
    base = Copying().fit(X[:60], y[:60])
    model = CalibratedClassifier(FrozenEstimator(base), merge="log").fit(X[60:], y[60:])
    assert model.calibrate_on_ == "frozen"
    assert_array_equal(model.calibration_scores_, score(base, X[60:]))
    base.fit(X, 1 - y)  # the model has a copy
    expected = clone(model.calibrator_).fit(model.calibration_scores_, y[60:])
    own = model.estimator_.estimator
    assert_array_equal(model.predict_proba(new), expected.predict_proba(score(own, new)))
    assert (own.theta_ != base.theta_).any()
