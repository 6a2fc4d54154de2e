"""scikit-learn's own checks of estimators, for every calibrator.

Of an estimator whose input is one column of scores ``check_estimator`` runs only what needs no
input, and warns so. Therefore every calibrator also stands behind a nearest-centroid classifier,
which makes scores out of whatever table a check brings along; all checks apply to that.
"""

import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from vennforest._validation import check_weights
from vennforest.calibrators.beta import BetaCalibration
from vennforest.calibrators.bostrom import BostromScaling
from vennforest.calibrators.isotonic import IsotonicCalibration
from vennforest.calibrators.platt import PlattScaling
from vennforest.calibrators.temperature import TemperatureScaling

CALIBRATORS = [
    PlattScaling(),
    PlattScaling(targets="hard", on="logit"),
    IsotonicCalibration(),
    IsotonicCalibration(between="nearest"),
    IsotonicCalibration(between="linear"),
    BostromScaling(),
    BetaCalibration(),
    BetaCalibration(parameters="am"),
    BetaCalibration(parameters="ab"),
    TemperatureScaling(),
]


class CentroidClassifier(ClassifierMixin, BaseEstimator):
    """Softmax of minus half the squared distances to the classes' means, then a calibrator."""

    def __init__(self, calibrator=None):
        self.calibrator = calibrator

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        weight = check_weights(sample_weight, len(X))
        weight = np.ones(len(X)) if weight is None else weight
        # A class without any weight is no class, as if its examples were not there.
        self.classes_ = np.unique(y[weight > 0])
        if len(self.classes_) < 2:
            raise ValueError("y must hold at least two classes, got one class with weight")
        present = np.isin(y, self.classes_)
        X, y, weight = X[present], y[present], weight[present]
        self.centroids_ = np.array(
            [np.average(X[y == c], axis=0, weights=weight[y == c]) for c in self.classes_]
        )
        calibrator = PlattScaling() if self.calibrator is None else clone(self.calibrator)
        self.calibrator_ = calibrator.fit(self._scores(X), y, sample_weight=weight)
        return self

    def _scores(self, X):
        distance = ((X[:, None].astype(float) - self.centroids_) ** 2).mean(axis=2)
        p = softmax(-distance / 2, axis=1)
        return p[:, 1] if len(self.classes_) == 2 else p

    def predict_proba(self, X):
        check_is_fitted(self)
        return self.calibrator_.predict_proba(self._scores(validate_data(self, X, reset=False)))

    def predict(self, X):
        check_is_fitted(self)
        return self.calibrator_.predict(self._scores(validate_data(self, X, reset=False)))


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
def test_a_calibrator_passes_check_estimator(calibrator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        check_estimator(calibrator)


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
def test_a_calibrator_behind_a_classifier_passes_every_check(calibrator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # array API needs a variable set
        done = check_estimator(CentroidClassifier(calibrator))
    ran = [check for check in done if check["status"] == "passed"]
    assert len(ran) > 50
