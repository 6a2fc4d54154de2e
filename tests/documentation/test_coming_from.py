"""docs/coming-from.md: what it says gives the same numbers does."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from vennforest import CalibratedClassifier, PlattScaling

DATA = {
    k: make_classification(900, 8, n_informative=4, n_classes=k, flip_y=0.2, random_state=3)
    for k in (2, 3)
}
FOLDS = StratifiedKFold(5)

SAME = [
    (GaussianNB(), "sigmoid", PlattScaling(on="score"), True),
    (GaussianNB(), "sigmoid", PlattScaling(on="score"), False),
    (LogisticRegression(), "sigmoid", "platt", True),
    (LogisticRegression(), "sigmoid", "platt", False),
    (GaussianNB(), "temperature", "temperature", False),
    (LogisticRegression(), "temperature", "temperature", False),
]


CASES = [
    *((2, *case) for case in SAME),
    *((3, *case) for case in SAME if isinstance(case[0], GaussianNB)),
]


@pytest.mark.parametrize(("k", "model", "theirs", "ours", "ensemble"), CASES)
def test_scikit_learn_folds(k, model, theirs, ours, ensemble):
    X, y = DATA[k]
    there = CalibratedClassifierCV(model, method=theirs, cv=FOLDS, ensemble=ensemble)
    here = CalibratedClassifier(model, method=ours, calibrate_on="cv", cv=FOLDS, ensemble=ensemble)
    p, q = (m.fit(X[:300], y[:300]).predict_proba(X[600:]) for m in (there, here))
    np.testing.assert_allclose(p, q, atol=1e-4)


def test_probabilities_beyond_the_calibration_scores_are_clipped():
    X, y = make_classification(500, 6, flip_y=0.1, random_state=2)
    frozen = FrozenEstimator(LogisticRegression().fit(X[:240], y[:240]))
    there = CalibratedClassifierCV(frozen).fit(X[240:300], y[240:300])
    here = CalibratedClassifier(frozen, method="platt").fit(X[240:300], y[240:300])
    low, high = here.calibrator_.clip_[0]
    raw, p, q = (m.predict_proba(X[300:])[:, 1] for m in (frozen, there, here))
    is_inside = (raw >= low) & (raw <= high)
    np.testing.assert_allclose(p[is_inside], q[is_inside], atol=1e-6)
    assert abs(p - q)[~is_inside].max() > 0.01


@pytest.mark.parametrize(("model", "theirs", "ours"), [case[:3] for case in SAME[::2]])
def test_scikit_learn_frozen(model, theirs, ours):
    X, y = DATA[2]
    frozen = FrozenEstimator(model.fit(X[:300], y[:300]))
    there = CalibratedClassifierCV(frozen, method=theirs).fit(X[300:600], y[300:600])
    here = CalibratedClassifier(frozen, method=ours).fit(X[300:600], y[300:600])
    p, q = (m.predict_proba(X[600:]) for m in (there, here))
    np.testing.assert_allclose(p, q, atol=1e-4)
