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
    CalibratedClassifier,
    IsotonicCalibration,
    PlattScaling,
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


def test_mapie():
    peer = pytest.importorskip("mapie.calibration")
    model = GaussianNB().fit(X, Y)
    there = peer.VennAbersCalibrator(model, cv="prefit").fit(X_CAL, Y_CAL)
    here = CalibratedClassifier(FrozenEstimator(model), merge="log").fit(X_CAL, Y_CAL)
    np.testing.assert_allclose(there.predict_proba(X_NEW), here.predict_proba(X_NEW), atol=1e-12)
