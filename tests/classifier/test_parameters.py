"""Values that parameters cannot have are refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC

import vennforest
from support.cases import draw_rows
from vennforest import CalibratedClassifier, VennAbers
from vennforest.tables import table_pipeline

RNG = np.random.default_rng(0)
X_ALL = RNG.normal(size=(80, 3))
Y = (X_ALL[:, 0] + RNG.normal(size=80) > 0).astype(int)
FOREST = RandomForestClassifier(10, random_state=0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"calibrate_on": Pipeline}, r"calibrate_on must be one of .* or an object with a method"),
        ({"method": "sigmoid"}, 'method must be "platt" for a sigmoid'),
        ({"cv": "prefit"}, r'got "prefit": use CalibratedClassifier\(FrozenEstimator\(model\)\)'),
        ({"method": VennAbers}, "method must be one of .*, got <class"),
        ({"calibrate_on": "prefit"}, r"calibrate_on must be one of \['auto', .*got 'prefit'"),
        ({"votes": "veto"}, "votes must be one of .*, got 'veto'"),
        ({"merge": "mean"}, "merge must be one of .*, got 'mean'"),
        (
            {"calibrate_on": "holdout", "holdout_size": 80},
            "holdout_size must leave examples on both sides of 80, got 80",
        ),
    ],
    ids=str,
)
def test_parameters_that_are_none_are_refused(parameters, message):
    X, y = X_ALL, Y
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize("method", ["bostrom", "beta", "none"])
def test_decision_values_are_refused_by_who_needs_probabilities_with_the_way_out(method):
    X, y = X_ALL, Y
    with pytest.raises(ValueError, match=r"scores must lie in \[0, 1\].*take any scores"):
        CalibratedClassifier(LinearSVC(), method=method).fit(X, y)


def test_what_is_no_classifier_is_refused():
    X, y = X_ALL, np.arange(80) % 3
    with pytest.raises(TypeError, match="estimator must have predict_proba or decision_function"):
        CalibratedClassifier(Ridge()).fit(X, y)
    for wrong in ("forest", GaussianNB, 3):
        with pytest.raises(TypeError, match="estimator must be a classifier"):
            CalibratedClassifier(wrong).fit(X, y)
    with pytest.raises(ValueError, match=r"VennAbers\(\), which reads scores: give it as method="):
        CalibratedClassifier(VennAbers()).fit(X, y)
    with pytest.raises(ValueError, match="estimator must have one decision value per class"):
        CalibratedClassifier(SVC(decision_function_shape="ovo")).fit(X, y)
    assert CalibratedClassifier(SVC(decision_function_shape="ovo")).fit(X, y > 0).predict(X).any()


def test_a_table_with_text_is_answered_with_the_recipe():
    X, y = X_ALL[:60], Y[:60]
    table = pd.DataFrame(X, columns=list("vwx")).assign(
        town=["Ulm", "Bern"] * 30, day=pd.date_range("2020-01-01", periods=60)
    )
    with pytest.raises(vennforest._validation.InputError) as caught:
        CalibratedClassifier(random_state=0).fit(table, y)
    assert "MixedForestClassifier, got other cells in 'town', 'day': use" in str(caught.value)
    assert "CalibratedClassifier(table_pipeline(MixedForestClassifier(" in str(caught.value)
    assert "from vennforest.tables import table_pipeline" in str(caught.value)
    with pytest.raises(ValueError, match="must contain numbers for LogisticRegression"):
        CalibratedClassifier(LogisticRegression(), cv=2).fit(table, y)
    for cells in (table.v + 1j, [[1, 2]] * 60):
        with pytest.raises(ValueError, match="got other cells in 'w': use"):
            CalibratedClassifier().fit(table[["v"]].assign(w=cells), y)
    model = CalibratedClassifier(table_pipeline(FOREST), random_state=0).fit(table, y)
    assert model.predict(table).shape == (60,)
    numbers = table[list("vwx")].astype(str).astype(object)  # scikit-learn takes these
    CalibratedClassifier(FOREST, random_state=0).fit(numbers, y)
    with pytest.raises(ValueError, match="holdout_size"):  # another error stays what it is
        CalibratedClassifier(table_pipeline(FOREST), calibrate_on="holdout", holdout_size=60).fit(
            table, y
        )


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("ensemble", "false", "must be True or False"),
        ("n_jobs", 0, "must be None or an integer other than 0"),
        ("n_jobs", 1.5, "must be None or an integer other than 0"),
        ("holdout_size", 2.5, "must be a share in .* or a number of examples"),
        ("holdout_size", 0, "must be a share in .* or a number of examples"),
        ("holdout_size", True, "must be a share in .* or a number of examples"),
        ("cv", 1, "must be an integer >= 2"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(name, value, rule):
    X, y, _ = draw_rows(n=30)
    with pytest.raises(ValueError, match=f"{name} {rule}, got {value!r}"):
        CalibratedClassifier(GaussianNB(), **{name: value}).fit(X, y)
