"""scikit-learn's own checks of estimators, for every calibrator and for CalibratedClassifier."""

import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from support.cases import CALIBRATORS
from vennforest import CalibratedClassifier

pytestmark = pytest.mark.filterwarnings("ignore")  # few examples; checks that are skipped

# Solved to the last digits, so that a weight of 2 and an example twice give the same.
LOGISTIC = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000)

EXACT = [
    CalibratedClassifier(LOGISTIC, cv=2, method="platt"),
    # Scores that are equal stay equal: the order of nearly equal ones is rounding's affair.
    CalibratedClassifier(DecisionTreeClassifier(max_depth=2), method="isotonic", ensemble=False),
    CalibratedClassifier(
        make_pipeline(StandardScaler(), GaussianNB()), calibrate_on="training", method="venn"
    ),
    # Parts of the rows are by their hashes, so that a row twice is in one part.
    CalibratedClassifier([("tree", DecisionTreeClassifier(max_depth=2)), ("bayes", GaussianNB())]),
]

RANDOM = [
    CalibratedClassifier(ExtraTreesClassifier(8, bootstrap=True), subforest="exchangeable"),
    CalibratedClassifier(GaussianNB(), calibrate_on="holdout", method="venn"),
]
"""A weight of 2 does not draw the random samples that the example twice draws; scikit-learn's list
says the same of RandomForestClassifier."""


def failures(model):
    """Return the names of the checks that failed, and see that most of them ran."""
    checks = check_estimator(model, on_fail=None)
    assert sum(check["status"] == "passed" for check in checks) > 50
    return {check["check_name"] for check in checks if check["status"] == "failed"}


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
def test_a_calibrator_passes_check_estimator(calibrator):
    """Of an estimator of one column of scores, scikit-learn checks only what needs no input."""
    check_estimator(calibrator)


@pytest.mark.parametrize("model", EXACT, ids=repr)
def test_a_calibrated_classifier_passes_every_check(model):
    assert not failures(model)


@pytest.mark.parametrize("model", RANDOM, ids=repr)
def test_over_random_samples_it_passes_every_check_but_one(model):
    kinds = ("dense", "sparse")
    assert failures(model) <= {f"check_sample_weight_equivalence_on_{k}_data" for k in kinds}


def test_tags_are_those_of_the_estimator():
    for estimator in (RandomForestClassifier(), LogisticRegression(), GaussianNB(), LinearSVC()):
        tags, expected = get_tags(CalibratedClassifier(estimator)), get_tags(estimator)
        assert tags.input_tags.sparse == expected.input_tags.sparse
        assert tags.input_tags.allow_nan == expected.input_tags.allow_nan
        assert is_classifier(CalibratedClassifier(estimator))
