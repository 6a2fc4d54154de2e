"""docs/coming-from.md: what it says gives the same numbers does."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from vennforest import (
    BetaCalibration,
    CalibratedClassifier,
    IsotonicCalibration,
    PlattScaling,
    VennAbers,
)

X, Y = make_classification(900, 8, n_informative=4, flip_y=0.2, random_state=3)
X, X_CAL, X_NEW = X[:300], X[300:600], X[600:]
Y, Y_CAL = Y[:300], Y[300:600]
FOLDS = StratifiedKFold(5)

SAME = [
    (GaussianNB(), "sigmoid", PlattScaling(on="score"), True),
    (GaussianNB(), "sigmoid", PlattScaling(on="score"), False),
    (LogisticRegression(), "sigmoid", "platt", True),
    (LogisticRegression(), "sigmoid", "platt", False),
    (GaussianNB(), "isotonic", IsotonicCalibration(between="linear"), True),
    (GaussianNB(), "isotonic", IsotonicCalibration(between="linear"), False),
    (GaussianNB(), "temperature", "temperature", False),
    (LogisticRegression(), "temperature", "temperature", False),
]


@pytest.mark.parametrize(("model", "theirs", "ours", "ensemble"), SAME)
def test_scikit_learn_folds(model, theirs, ours, ensemble):
    there = CalibratedClassifierCV(model, method=theirs, cv=FOLDS, ensemble=ensemble)
    here = CalibratedClassifier(model, method=ours, calibrate_on="cv", cv=FOLDS, ensemble=ensemble)
    p, q = (m.fit(X, Y).predict_proba(X_NEW) for m in (there, here))
    np.testing.assert_allclose(p, q, atol=1e-4)


@pytest.mark.parametrize(("model", "theirs", "ours"), [case[:3] for case in SAME[::2]])
def test_scikit_learn_frozen(model, theirs, ours):
    frozen = FrozenEstimator(model.fit(X, Y))
    there = CalibratedClassifierCV(frozen, method=theirs).fit(X_CAL, Y_CAL)
    here = CalibratedClassifier(frozen, method=ours).fit(X_CAL, Y_CAL)
    np.testing.assert_allclose(there.predict_proba(X_NEW), here.predict_proba(X_NEW), atol=1e-4)


def test_venn_abers_scores():
    peer = pytest.importorskip("venn_abers")
    model = GaussianNB().fit(X, Y)
    p_cal, p_new = model.predict_proba(X_CAL), model.predict_proba(X_NEW)
    there = peer.VennAbers()
    there.fit(p_cal, Y_CAL)
    p, bounds = there.predict_proba(p_new)
    here = VennAbers(merge="log").fit(p_cal[:, 1], Y_CAL)
    m = here.predict_multiprobability(p_new[:, 1])
    np.testing.assert_allclose(here.predict_proba(p_new[:, 1]), p, atol=1e-12)
    np.testing.assert_allclose(np.column_stack([m.p0, m.p1]), bounds, atol=1e-12)


def test_venn_abers_folds():
    peer = pytest.importorskip("venn_abers")
    there = peer.VennAbersCalibrator(
        estimator=GaussianNB(), inductive=False, n_splits=5, random_state=0
    )
    there.fit(X, Y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    here = CalibratedClassifier(GaussianNB(), calibrate_on="cv", cv=folds, merge="log")
    p = here.fit(X, Y).predict_proba(X_NEW)
    np.testing.assert_allclose(there.predict_proba(X_NEW), p, atol=1e-12)


def test_mapie():
    peer = pytest.importorskip("mapie.calibration")
    model = GaussianNB().fit(X, Y)
    there = peer.VennAbersCalibrator(model, cv="prefit").fit(X_CAL, Y_CAL)
    here = CalibratedClassifier(FrozenEstimator(model), merge="log").fit(X_CAL, Y_CAL)
    np.testing.assert_allclose(there.predict_proba(X_NEW), here.predict_proba(X_NEW), atol=1e-12)


def test_betacal():
    peer = pytest.importorskip("betacal")
    model = GaussianNB().fit(X, Y)
    p_cal, p_new = model.predict_proba(X_CAL)[:, 1], model.predict_proba(X_NEW)[:, 1]
    there = peer.BetaCalibration(parameters="abm").fit(p_cal.reshape(-1, 1), Y_CAL)
    here = BetaCalibration(targets="hard").fit(p_cal, Y_CAL)
    np.testing.assert_allclose(there.predict(p_new), here.predict_proba(p_new)[:, 1], atol=1e-3)
