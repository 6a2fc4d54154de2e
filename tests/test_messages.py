"""Warnings name the line of the user that they are about."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.neighbors import KNeighborsClassifier

from vennforest import CalibratedClassifier
from vennforest._messages import nearest, not_one_of

rng = np.random.default_rng(20)
X = rng.normal(size=(60, 2))
y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
RARE = np.arange(60) < 4


def fit(estimator, y=y, rows=X, sample_weight=None, **settings):
    model = CalibratedClassifier(estimator, **settings)
    return model.fit(rows, y, sample_weight=sample_weight)


LOGISTIC, FOREST = LogisticRegression(), RandomForestClassifier(30, random_state=0)
WEIGHTS = 1.0 + np.arange(60)
CASES = {
    "folds of few rows": lambda: fit(LOGISTIC, calibrate_on="cv", cv=TimeSeriesSplit(5)),
    "settings without effect": lambda: fit(LOGISTIC, calibrate_on="cv", votes="hard"),
    "few of a class, folds": lambda: fit(LOGISTIC, RARE, calibrate_on="cv"),
    "few of a class, held out": lambda: fit(LOGISTIC, RARE, calibrate_on="holdout"),
    "weights that are not taken": lambda: fit(
        KNeighborsClassifier(), sample_weight=WEIGHTS, calibrate_on="cv"
    ),
    "rows of no tree out of bag": lambda: fit(RandomForestClassifier(3, random_state=0)),
    "repeats": lambda: fit(FOREST, np.repeat(y, 2), np.repeat(X, 2, axis=0)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_warning_points_at_the_line_that_called(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[name]()
    ours = [each for each in caught if "sklearn" not in each.filename]
    assert ours
    assert {each.filename for each in ours} == {__file__}


@pytest.mark.parametrize(("given", "found"), [
    ("plat", ": did you mean 'platt'?"),
    (" Venn-Abbers", ": did you mean 'venn-abers'?"),
    ("nothing like it", ""),
    (None, ""),
])  # fmt: skip
def test_the_nearest_name_is_suggested(given, found):
    names = ["platt", "venn-abers", "isotonic"]
    assert nearest(given, names) == found
    error = not_one_of("method", iter(names), given)
    assert str(error) == f"method must be one of {names}, got {given!r}{found}"
