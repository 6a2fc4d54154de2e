"""A model predicts the same, bit for bit, after it was saved and loaded."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import vennforest
from vennforest import CalibratedClassifier, MixedForestClassifier, PlattScaling, VennAbers
from vennforest._messages import InputError
from vennforest.calibrators import METHODS
from vennforest.persistence import read_header

pytestmark = pytest.mark.filterwarnings("ignore:.*out of bag.*:UserWarning", "ignore:.*converge")

CANCER = load_breast_cancer(return_X_y=True)
CANCER = CANCER[0][::4], CANCER[1][::4]
IRIS = load_iris(return_X_y=True)


def same_after_loading(model, X, tmp_path, **options):
    path = tmp_path / "model.skops"
    before = model.predict_proba(X)
    vennforest.save(model, path)
    loaded = vennforest.load(path, **options)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict_proba(X), before, strict=True)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X), strict=True)
    if hasattr(model, "predict_multiprobability"):
        bounds, again = model.predict_multiprobability(X), loaded.predict_multiprobability(X)
        np.testing.assert_array_equal(again.lower, bounds.lower, strict=True)
        np.testing.assert_array_equal(again.upper, bounds.upper, strict=True)
    return loaded


def forest(n=12):
    return RandomForestClassifier(n, random_state=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"estimator": MixedForestClassifier(10, min_samples_leaf=5)},
        {"subforest": "all", "votes": "hard"},
        {"subforest": "exchangeable", "merge": "log"},
        {"estimator": ExtraTreesClassifier(10, bootstrap=True)},
        {"estimator": BaggingClassifier(GaussianNB(), 6, max_features=0.5)},
        {"estimator": make_pipeline(StandardScaler(), forest())},
        {"calibrate_on": "holdout", "method": "isotonic"},
        {"calibrate_on": "training", "method": "beta"},
        {"calibrate_on": "cv", "method": "temperature", "cv": StratifiedKFold(3)},
        {"calibrate_on": "cv", "cv": 3, "ensemble": False, "method": "none"},
        {"estimator": HistGradientBoostingClassifier(max_iter=4), "cv": 3},
        {"estimator": GradientBoostingClassifier(n_estimators=3), "cv": 2},
        {"estimator": SVC(), "cv": 2, "method": PlattScaling(on="score")},
        {"estimator": MLPClassifier((4,), max_iter=20), "cv": 2, "method": "platt"},
        {"estimator": KNeighborsClassifier(algorithm="brute"), "cv": 2, "method": "platt"},
        {"estimator": StackingClassifier([("f", forest(5))], cv=2), "cv": 2},
        {"estimator": GridSearchCV(forest(5), {"max_depth": [2]}, cv=2), "cv": 2},
        {"by": 1},
        {"votes": "hard"},
        {"method": "isotonic", "estimator": FrozenEstimator(forest().fit(*IRIS))},
    ],
    ids=str,
)
def test_every_source_and_estimator(options, tmp_path):
    # Data of two classes and of three by turns.
    X, y = CANCER if len(str(options)) % 2 else IRIS
    X = np.column_stack([X[:, 0], np.arange(len(X)) % 2, X[:, 2:]])
    options = {"estimator": forest(), "random_state": 3, **options}
    model = CalibratedClassifier(**options).fit(X, y)
    loaded = same_after_loading(model, X[::5], tmp_path)
    np.testing.assert_array_equal(loaded.calibration_scores_, model.calibration_scores_)
    np.testing.assert_array_equal(loaded.calibration_y_, model.calibration_y_)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_every_calibrator(method, classes, tmp_path):
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 30, (150, classes)) + 0.5  # with ties
    scores /= scores.sum(axis=1, keepdims=True)
    y = (scores.cumsum(axis=1) < rng.random((150, 1))).sum(axis=1).clip(max=classes - 1)
    for weight in (None, rng.random(150)):
        model = METHODS[method]().fit(scores, y, sample_weight=weight)
        loaded = same_after_loading(model, scores, tmp_path)
        if hasattr(model, "predict_multiprobability"):
            left_out = np.arange(150)
            bounds = model.predict_multiprobability(scores, left_out)
            again = loaded.predict_multiprobability(scores, left_out)
            np.testing.assert_array_equal(again.lower, bounds.lower)
            same_after_loading(model, scores, tmp_path)


def test_frozen_models_text_labels_weights_and_priors(tmp_path):
    X, y = CANCER
    labels = np.array(["no", "yes "])[y]
    fitted = LogisticRegression(max_iter=5000).fit(X[:70], labels[:70])
    weight = np.linspace(0, 2, len(X) - 70)
    model = CalibratedClassifier(FrozenEstimator(fitted))
    model.fit(X[70:], labels[70:], sample_weight=weight)
    same_after_loading(model, X, tmp_path)
    same_after_loading(model.with_prior({"no": 0.9, "yes ": 0.1}), X, tmp_path)
    assert read_header(tmp_path / "model.skops")["description"]["prior"]["no"] == 0.9


def test_data_frames_with_text_and_dates(tmp_path):
    from skrub import StringEncoder, TableVectorizer

    rng = np.random.default_rng(0)
    n = 120
    X = pd.DataFrame({
        "size": rng.normal(size=n),
        "town": rng.choice(["Ulm", "東京", "a b"], n),
        "name": [f"firm {i % 97} of {i}" for i in range(n)],
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
    })  # fmt: skip
    X.loc[::7, ["size", "town", "name", "day"]] = None
    y = np.where(rng.normal(size=n) + (X["town"] == "Ulm") > 0.3, "yes", "no")
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="drop"
    )
    same_after_loading(CalibratedClassifier(make_pipeline(encode, forest())).fit(X, y), X, tmp_path)
    vectorize = TableVectorizer(high_cardinality=StringEncoder(random_state=0))
    model = CalibratedClassifier(make_pipeline(vectorize, forest()), random_state=0).fit(X, y)
    loaded = same_after_loading(model, X, tmp_path)
    assert list(loaded.feature_names_in_) == list(X.columns)
    header = read_header(tmp_path / "model.skops")
    assert header["features"] == list(X.columns) and header["classes"] == ["no", "yes"]
    assert {"skrub", "scikit-learn", "numpy", "scipy", "skops"} <= set(header["libraries"])


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.skops"
    path.write_text("old")
    grouped = CalibratedClassifier(forest(), by=lambda X: X[:, 0] > 14, calibrate_on="holdout")
    for model, error, message in [
        (VennAbers(), NotFittedError, "not fitted"),
        (LogisticRegression(), TypeError, "got LogisticRegression"),
        (grouped.fit(*CANCER), (TypeError, InputError), "importable by name|can contain"),
    ]:
        with pytest.raises(error, match=message):
            vennforest.save(model, path)
        assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_fresh_process_reads_what_this_one_saved(tmp_path):
    model = CalibratedClassifier(MixedForestClassifier(5), by=0, random_state=0)
    X, y = np.column_stack([np.arange(150) % 2, IRIS[0]]), IRIS[1]
    vennforest.save(model.fit(X, y), tmp_path / "m.skops")
    code = f"""import sys, vennforest
assert not {{'skops', 'skrub', 'typer'}} & set(sys.modules)
model = vennforest.load({str(tmp_path / "m.skops")!r})
print(model.predict_proba([[0, 5, 3, 4, 1]])[0].tolist())"""
    # numpy warns at import of processor features that are switched off and that there are none of.
    quiet = ["-W", "ignore::DeprecationWarning", "-W", "ignore::ImportWarning"]
    command = [sys.executable, "-W", "error", *quiet, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(model.predict_proba([[0, 5, 3, 4, 1]])[0].tolist())
