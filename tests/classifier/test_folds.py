"""Which source calibrates, and which parameters have no effect with it."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from vennforest import CalibratedClassifier

RNG = np.random.default_rng(0)
X_ALL = RNG.normal(size=(80, 3))
Y = (X_ALL[:, 0] + RNG.normal(size=80) > 0).astype(int)
FOREST = RandomForestClassifier(10, random_state=0)
FROZEN = FrozenEstimator(RandomForestClassifier(10, random_state=0).fit(X_ALL[::-1], Y[::-1]))
EFFECTS = [
    (
        FOREST,
        {"calibrate_on": "cv", "subforest": "exchangeable", "votes": "hard"},
        "subforest='exchangeable' and votes='hard' have no effect with calibrate_on='cv'",
    ),
    (FOREST, {"calibrate_on": "holdout", "votes": "hard"}, "votes='hard' has no effect with"),
    (FOREST, {"calibrate_on": "training", "votes": "hard"}, "votes='hard' has no effect"),
    (GaussianNB(), {"subforest": "exchangeable"}, "which is 'cv' here: the estimator is not a"),
    (FROZEN, {"subforest": "exchangeable"}, "which is 'frozen' here: the model is frozen"),
    (FOREST, {}, None),
    (FOREST, {"calibrate_on": "cv"}, None),
    (FOREST, {"subforest": "exchangeable"}, None),
    (FOREST, {"calibrate_on": "oob", "votes": "hard"}, None),
]


@pytest.mark.parametrize(("estimator", "settings", "message"), EFFECTS)
def test_a_parameter_without_effect_is_warned_of(estimator, settings, message):
    model = CalibratedClassifier(estimator, merge="log", random_state=0, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X_ALL, Y)
    messages = [str(one.message) for one in caught if "no effect" in str(one.message)]
    assert len(messages) == (message is not None)
    assert message is None or message in messages[0]


def data(k=2, n=90):
    X, y = make_classification(
        n + 40, 4, n_informative=3, n_redundant=0, n_classes=k, flip_y=0.2, random_state=0
    )
    X = X.astype(np.float32).astype(float)
    return X[:n], y[:n], X[n:]


@pytest.mark.parametrize(
    ("estimator", "oob"),
    [
        (None, True),
        (ExtraTreesClassifier(10), False),
        (ExtraTreesClassifier(10, bootstrap=True), True),
        (RandomForestClassifier(10, bootstrap=False), False),
        (BaggingClassifier(GaussianNB(), 10), True),
        (BaggingClassifier(GaussianNB(), 10, bootstrap=False), False),
        (BaggingClassifier(GaussianNB(), 10, bootstrap=False, max_samples=0.6), True),
        (LinearSVC(), False),
    ],
    ids=repr,
)
def test_auto_is_out_of_bag_for_bagged_ensembles_and_folds_for_others(estimator, oob):
    X, y, new = data()
    model = CalibratedClassifier(estimator, merge="log", random_state=0).fit(X, y)
    assert len(model.estimators_) == (1 if oob else 5)
    assert hasattr(model, "estimator_") == hasattr(model, "calibrator_") == oob
    assert_allclose(model.predict_proba(new).sum(axis=1), 1, atol=1e-12)
    if not oob:
        with pytest.raises(ValueError, match=r'estimator must leave.*got.*use calibrate_on="cv"'):
            CalibratedClassifier(estimator, calibrate_on="oob").fit(X, y)
