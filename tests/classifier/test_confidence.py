"""Confidence intervals of a classifier."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from support.cases import draw_rows, score
from vennforest import CalibratedClassifier
from vennforest.calibrators.intervals import interval_curves, read_intervals


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("method", "subforest"),
    [("exact", "all"), ("exact", "exchangeable"), ("likelihood-ratio", "all")],
)
def test_confidence_is_that_of_the_calibration_scores(method, subforest, k):
    """The likelihood ratio reads scores as all trees are expected to give them."""
    X, y, new = draw_rows(k)
    names = np.array(["a", "b", "c"])[y]
    forest = RandomForestClassifier(40, random_state=0)
    model = CalibratedClassifier(forest, subforest=subforest, random_state=0).fit(X, names)
    codes = np.searchsorted(model.classes_, model.calibration_y_)
    noise = None if method == "exact" else model._state.folds[0].noise
    curves = interval_curves(model.calibration_scores_, codes, k, 0.9, method, noise=noise)
    expected = read_intervals(curves, score(model.estimator_, new), model.classes_, 0.9)
    expected = expected.widen(model.predict_proba(new))
    intervals = model.predict_confidence(new, 0.9, method)
    assert_allclose(intervals.lower, expected.lower, rtol=0, atol=1e-12)
    assert_allclose(intervals.upper, expected.upper, rtol=0, atol=1e-12)
    assert_array_equal(intervals.widened, expected.widened)
    assert intervals.classes.tolist() == sorted(set(names))
    if method == "exact":
        assert intervals.width.mean() > model.predict_confidence(new, 0.9).width.mean()


def test_confidence_over_folds_is_the_mean_over_their_models():
    X, y, new = draw_rows()
    model = CalibratedClassifier(GaussianNB(), random_state=0).fit(X, y)
    curves = interval_curves(model.calibration_scores_, model.calibration_y_, 2)
    scores = [estimator.predict_proba(new)[:, 1] for estimator in model.estimators_]
    lower = [read_intervals(curves, s, model.classes_, 0.95).lower for s in scores]
    expected = np.minimum(np.mean(lower, axis=0), model.predict_proba(new))
    assert_array_equal(model.predict_confidence(new).lower, expected)


def test_exact_confidence_is_refused_where_it_is_not_proved():
    X, y, new = draw_rows()
    with pytest.raises(ValueError, match=r"ensemble must be False .* got 5 models"):
        CalibratedClassifier(GaussianNB()).fit(X, y).predict_confidence(new, method="exact")
    pooled = CalibratedClassifier(GaussianNB(), ensemble=False).fit(X, y)
    assert pooled.predict_confidence(new, method="exact").lower.shape == (40, 2)
    weight = np.arange(len(y)) % 3 + 1.0
    weighted = CalibratedClassifier(GaussianNB(), ensemble=False).fit(X, y, sample_weight=weight)
    for method in ("exact", "likelihood-ratio"):  # a weight is so many examples
        narrow, wide = (m.predict_confidence(new, method=method) for m in (weighted, pooled))
        assert narrow.width.mean() < wide.width.mean()
    weighted.fit(X, y, sample_weight=weight / 2)
    with pytest.raises(ValueError, match="sample_weight must be integers for exact"):
        weighted.predict_confidence(new, method="exact")
