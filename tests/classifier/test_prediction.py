"""Probabilities and bounds from the scores of folds and subforests, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

from support.cases import draw_rows, rounded, score
from vennforest import CalibratedClassifier
from vennforest.calibrators import make_calibrator
from vennforest.calibrators.pool import PooledCalibration


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("method", "merge"),
    [
        ("venn-abers", "log"),
        ("venn-abers", "brier"),
        ("venn", "midpoint"),
        ("isotonic", "auto"),
        ("none", "auto"),
    ],
)
def test_an_ensemble_of_folds_is_merged_by_the_formulas(method, k, merge):
    X, y, new = draw_rows(k)
    model = CalibratedClassifier(GaussianNB(), method=method, merge=merge, cv=4).fit(X, y)
    singles, lower, upper = [], [], []
    bounded = method in ("venn-abers", "venn")
    for train, test in KFold(4, shuffle=True, random_state=0).split(X, y):
        base = GaussianNB().fit(X[train], y[train])
        if method == "none":
            singles.append(base.predict_proba(new))
            continue
        calibrator = make_calibrator(method)
        if bounded:
            calibrator.set_params(merge=merge)
        calibrator.fit(score(base, X[test]), y[test], classes=range(k))
        if bounded:
            m = calibrator.predict_multiprobability(score(base, new))
            singles.append(m.merge(merge))
            lower.append(m.lower)
            upper.append(m.upper)
        else:
            singles.append(calibrator.predict_proba(score(base, new)))
    if merge == "log":
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
    X, y, new = draw_rows(k)
    splitter = KFold(5, shuffle=True, random_state=1)
    merge = "log" if method == "venn-abers" else "auto"
    settings = {"method": method, "merge": merge, "cv": splitter, "ensemble": False}
    model = CalibratedClassifier(GaussianNB(), **settings).fit(X, y)
    scores = np.empty(len(y)) if k == 2 else np.empty((len(y), k))
    for train, test in splitter.split(X):
        scores[test] = score(GaussianNB().fit(X[train], y[train]), X[test])
    assert_array_equal(model.calibration_scores_, scores)
    assert_array_equal(model.calibration_y_, y)
    base = score(GaussianNB().fit(X, y), new)
    expected = clone(model.calibrator_).fit(scores, y).predict_proba(base)
    assert_array_equal(model.predict_proba(new), expected)


@pytest.mark.parametrize(("subforest", "k"), [("all", 2), ("exchangeable", 3)])
def test_the_point_is_a_pool_of_all_trees_and_the_bounds_hold_it(subforest, k):
    X, y, new = draw_rows(k)
    forest = RandomForestClassifier(60, random_state=0)
    model = CalibratedClassifier(forest, subforest=subforest, random_state=0).fit(X, y)
    by_hand = PooledCalibration().fit(model.calibration_scores_, y)
    whole = rounded(model.estimator_.predict_proba(new))
    expected = by_hand.predict_proba(whole[:, 1] if k == 2 else whole)
    p = model.predict_proba(new)
    assert_allclose(p, expected, rtol=0, atol=1e-12)
    assert model.point_calibrator_.weights_ == by_hand.weights_
    m = model.predict_multiprobability(new)
    plain = model.recalibrate("venn-abers", merge="log").predict_multiprobability(new)
    assert_allclose(m.lower, np.minimum(plain.lower, p), rtol=0, atol=1e-15)
    assert_allclose(m.upper, np.maximum(plain.upper, p), rtol=0, atol=1e-15)
    if k == 2:  # what can be exported alone, as the page on it says
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
    X, y, new = draw_rows(k)
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
    assert_allclose(p, np.mean(each, axis=0), rtol=0, atol=1e-12)
    m = model.predict_multiprobability(new)
    assert ((m.lower <= p) & (p <= m.upper)).all()


class FailingFarAway(GaussianNB):
    """Gives no finite number beyond 1e5, and 1.5 below -1e5."""

    def predict_proba(self, X):
        p = super().predict_proba(X)
        p[X[:, 0] > 1e5], p[X[:, 0] < -1e5] = np.nan, 1.5
        return p


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (FailingFarAway(), "what predict_proba returns must be finite, got NaN in row 2"),
        (BaggingClassifier(FailingFarAway(), 9), "scores must be finite, got NaN in row 2"),
    ],
)
def test_new_scores_that_are_no_probabilities_are_refused(estimator, message):
    X, y, new = draw_rows()
    model = CalibratedClassifier(estimator, random_state=0).fit(X, y)
    new[2, 0] = 1e6
    with pytest.raises(ValueError, match=message):
        model.predict_proba(new)
    new[2, 0] = -1e6
    with pytest.raises(ValueError, match=r"scores must lie in \[0, 1\], got 1\.5 in row 2"):
        model.predict_proba(new)


def test_log_probabilities_are_minus_infinity_where_a_probability_is_0():
    X, y = np.repeat(np.eye(3), 8, axis=0), np.repeat(["a", "b", "c"], 8)
    model = CalibratedClassifier(GaussianNB(), method="isotonic", cv=2).fit(X, y)
    p, log_p = model.predict_proba(X), model.predict_log_proba(X)
    assert (p == 0).any()
    assert_array_equal(log_p[p == 0], -np.inf)
    assert_allclose(np.exp(log_p), p, rtol=1e-14)
