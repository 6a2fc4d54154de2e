"""Forests of other packages, with the real packages: honest out of bag, or on folds."""

import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler

from support.cases import fit


@pytest.fixture(scope="module")
def data():
    return make_classification(250, 8, weights=[0.8], flip_y=0.05, random_state=0)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_balanced_forests_calibrate_on_folds(bootstrap, data):
    ensemble = pytest.importorskip("imblearn.ensemble")
    forest = ensemble.BalancedRandomForestClassifier(
        30, bootstrap=bootstrap, replacement=False, sampling_strategy="all"
    )
    assert fit(forest, *data, merge="log", cv=2).calibrate_on_ == "cv"
    if bootstrap:
        with pytest.raises(ValueError, match='use calibrate_on="cv"'):
            fit(forest, *data, calibrate_on="oob")


def test_bagging_and_pipelines_without_samplers_calibrate_out_of_bag(data):
    ensemble = pytest.importorskip("imblearn.ensemble")
    pipeline = pytest.importorskip("imblearn.pipeline")
    model = fit(ensemble.BalancedBaggingClassifier(n_estimators=30), *data, method="none")
    assert model.calibrate_on_ == "oob"
    right = (model.calibration_scores_ > 0.5) == (model.calibration_y_ == 1)
    assert right.mean() < 0.97  # labels are flipped: nobody who has not seen them knows
    plain = pipeline.make_pipeline(StandardScaler(), RandomForestClassifier(20))
    assert fit(plain, *data, method="none").calibrate_on_ == "oob"
