"""Parameters that only out-of-bag scores take: a warning where there are none, and no error."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from vennforest import CalibratedClassifier
from vennforest.sources import OutOfBag

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = (X[:, 0] + RNG.normal(size=80) > 0).astype(int)
FOREST = RandomForestClassifier(10, random_state=0)
FROZEN = FrozenEstimator(RandomForestClassifier(10, random_state=0).fit(X[::-1], Y[::-1]))


def warned(model, **fit_params):
    """Return the warnings of a fit about parameters without effect."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y, **fit_params)
    return [str(one.message) for one in caught if "no effect" in str(one.message)]


@pytest.mark.parametrize(
    ("estimator", "given", "message"),
    [
        (
            FOREST,
            {"calibrate_on": "cv", "subforest": "exchangeable", "votes": "hard"},
            r"^subforest='exchangeable' and votes='hard' have no effect with calibrate_on='cv'\. "
            "Leave them out$",
        ),
        (
            FOREST,
            {"calibrate_on": "holdout", "votes": "hard"},
            r"^votes='hard' has no effect with calibrate_on='holdout'\. Leave it out$",
        ),
        (FOREST, {"calibrate_on": "training", "votes": "hard"}, "votes='hard' has no effect"),
        (
            GaussianNB(),
            {"subforest": "exchangeable"},
            "calibrate_on='auto', which is 'cv' here: the estimator is not a bagged ensemble",
        ),
        (FROZEN, {"subforest": "exchangeable"}, "which is 'frozen' here: the model is frozen"),
        (
            FOREST,
            {"calibrate_on": OutOfBag("exchangeable"), "subforest": "exchangeable"},
            "subforest='exchangeable' has no effect with the source OutOfBag",
        ),
    ],
)
def test_a_parameter_without_effect_is_warned_of(estimator, given, message):
    said = warned(CalibratedClassifier(estimator, random_state=0, **given))
    assert len(said) == 1
    assert re.search(message, said[0]), said[0]


def test_groups_that_make_folds_of_bags_are_named():
    model = CalibratedClassifier(FOREST, subforest="exchangeable", random_state=0)
    (said,) = warned(model, groups=np.arange(80) // 2)
    assert "groups were given" in said
    assert not warned(model)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"calibrate_on": "cv"},
        {"subforest": "exchangeable"},
        {"calibrate_on": "oob", "votes": "hard"},
        {"calibrate_on": OutOfBag("exchangeable")},
    ],
)
def test_what_has_an_effect_or_is_the_default_is_not_warned_of(given):
    assert not warned(CalibratedClassifier(FOREST, random_state=0, **given))


def test_making_copying_and_searching_go_on():
    model = CalibratedClassifier(
        FOREST, calibrate_on="cv", subforest="exchangeable", random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clone(model).get_params()["subforest"] == "exchangeable"
        model.set_params(votes="hard")
    grid = {"calibrate_on": ["oob", "cv"], "subforest": ["all", "exchangeable"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss", error_score="raise")
        found = search.fit(X, Y).cv_results_
    score = dict(zip(map(str, found["params"]), found["mean_test_score"], strict=True))
    assert np.isfinite(list(score.values())).all()
    cv = [value for key, value in score.items() if "'cv'" in key]
    assert cv[0] == cv[1]
