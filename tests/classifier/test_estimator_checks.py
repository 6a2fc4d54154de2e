"""scikit-learn's own checks of estimators, for every calibrator and for CalibratedClassifier.

Of an estimator whose input is one column of scores ``check_estimator`` runs only what needs no
input, and warns so. Therefore every calibrator also stands behind a nearest-centroid classifier,
which makes scores out of whatever table a check brings along; all checks apply to that.
"""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from support.cases import CALIBRATORS
from vennforest import CalibratedClassifier, PlattScaling
from vennforest._validation import check_weights

pytestmark = pytest.mark.filterwarnings("ignore")  # few examples; checks that are skipped

# Solved to the last digits, so that a weight of 2 and an example twice give the same.
LOGISTIC = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000)

EXACT = [
    CalibratedClassifier(LOGISTIC, cv=2),
    # Scores that are equal stay equal: the order of nearly equal ones is rounding's affair.
    CalibratedClassifier(DecisionTreeClassifier(max_depth=2), method="isotonic", ensemble=False),
    CalibratedClassifier(LOGISTIC, calibrate_on="training", method="platt"),
    CalibratedClassifier(make_pipeline(StandardScaler(), GaussianNB()), method="venn", cv=3),
]

RANDOM_SAMPLES = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "a weight of 2 does not draw the random samples that the example twice draws; "
        "scikit-learn's list says the same of RandomForestClassifier"
    )
    for kind in ("dense", "sparse")
}

RANDOM = [
    CalibratedClassifier(RandomForestClassifier(n_estimators=10), method="platt"),
    CalibratedClassifier(ExtraTreesClassifier(10, bootstrap=True), votes="hard", merge="log"),
    CalibratedClassifier(
        BaggingClassifier(GaussianNB(), n_estimators=10), subforest="exchangeable", merge="log"
    ),
    CalibratedClassifier(GaussianNB(), calibrate_on="holdout", method="venn"),
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
            raise ValueError("y must contain at least two classes, got one class with weight")
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


def failures(model):
    """Return {check: error} of the checks that did not pass, and see that most of them ran."""
    done = check_estimator(model, on_fail=None)
    assert sum(check["status"] == "passed" for check in done) > 50
    return {
        check["check_name"]: check["exception"] for check in done if check["status"] == "failed"
    }


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
def test_a_calibrator_passes_check_estimator(calibrator):
    check_estimator(calibrator)


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
def test_a_calibrator_behind_a_classifier_passes_every_check(calibrator):
    assert not failures(CentroidClassifier(calibrator))


@pytest.mark.parametrize("model", EXACT, ids=repr)
def test_a_calibrated_classifier_passes_every_check(model):
    assert not failures(model)


@pytest.mark.parametrize("model", RANDOM, ids=repr)
def test_over_random_samples_it_passes_every_check_but_one(model):
    failed = failures(model)
    assert set(failed) <= set(RANDOM_SAMPLES), failed


def test_tags_are_those_of_the_estimator():
    for estimator in (RandomForestClassifier(), LogisticRegression(), GaussianNB(), LinearSVC()):
        own = get_tags(CalibratedClassifier(estimator))
        its = get_tags(estimator)
        assert own.input_tags.sparse == its.input_tags.sparse
        assert own.input_tags.allow_nan == its.input_tags.allow_nan
        assert is_classifier(CalibratedClassifier(estimator))
