"""How a classifier's calibrators are chosen, and fitted again."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from support.cases import draw_rows
from vennforest import CalibratedClassifier, IsotonicCalibration, Venn, VennAbers
from vennforest.calibrators.pool import PooledCalibration


def forest():
    return RandomForestClassifier(15, random_state=1)


def naive_bayes(**settings):
    """Return a model of few folds and no pool."""
    return CalibratedClassifier(GaussianNB(), **{"merge": "log", "cv": 2, **settings})


def test_the_merge_of_an_instance_holds_unless_another_is_asked_for():
    X, y, _ = draw_rows()
    for method, merge, expected in (
        (VennAbers("log"), "auto", "log"),
        (VennAbers("log"), "brier", "brier"),
        ("venn", "auto", "midpoint"),
        (Venn(merge="brier"), "auto", "brier"),
    ):
        model = CalibratedClassifier(GaussianNB(), method=method, merge=merge, cv=2).fit(X, y)
        assert [one.merge for one in model.calibrators_] == [expected] * 2
        assert not hasattr(model, "point_calibrator_")
    for method in ("venn-abers", VennAbers(), VennAbers("pooled"), "venn", Venn()):
        merge = "pooled" if method == "venn" or isinstance(method, Venn) else "auto"
        model = CalibratedClassifier(GaussianNB(), method=method, merge=merge, cv=2).fit(X, y)
        assert type(model.point_calibrator_) is PooledCalibration
    model = CalibratedClassifier(GaussianNB(), method="platt", merge="log").fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_recalibrating_is_fitting_with_another_method():
    X, y, new = draw_rows()
    model = CalibratedClassifier(forest(), random_state=0).fit(X, y)
    for method in ("venn", "platt", IsotonicCalibration(), "none"):
        other = model.recalibrate(method)
        expected = CalibratedClassifier(forest(), method=method, random_state=0).fit(X, y)
        assert_array_equal(other.predict_proba(new), expected.predict_proba(new))
        assert other.estimator_ is model.estimator_
        assert other.calibrate_on_ == "oob"
        assert other.calibrate_on_reason_ == model.calibrate_on_reason_
        assert hasattr(other, "predict_multiprobability") == (method == "venn")
    with pytest.raises(NotFittedError):
        CalibratedClassifier().recalibrate("venn")
