"""Confidence intervals of a classifier."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from support.cases import draw_rows
from vennforest import CalibratedClassifier
from vennforest.calibrators.intervals import interval_curves, mean_intervals, read_intervals


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
def test_confidence_is_that_of_the_calibration_scores(subforest, k):
    X, y, new = draw_rows(k)
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
    X, y, new = draw_rows(k)
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
    X, y, new = draw_rows()
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
