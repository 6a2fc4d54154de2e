"""A given mean probability, and the score of a given probability."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier, IsotonicCalibration, PlattScaling, VennAbers
from vennforest.calibrators import METHODS
from vennforest.export import from_json, to_json


def draw(n, seed):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return scores, np.where(rng.random(n) < scores**2, "yes", "no")


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("target", [1e-4, 0.04, 0.7])
def test_the_mean_is_exactly_the_given_one(method, target):
    calibrator = METHODS[method]().fit(*draw(500, 1))
    if method == "isotonic":  # of probabilities 0 and 1, which no shift moves
        calibrator = METHODS[method]().fit(
            np.append(draw(500, 1)[0], [0, 0, 1, 1]), [*draw(500, 1)[1], "yes", "no", "yes", "no"]
        )
    portfolio = draw(300, 2)[0] ** 2 * 0.98 + 0.01
    shifted = calibrator.with_mean({"yes": target}, portfolio)
    p, q = calibrator.predict_proba(portfolio)[:, 1], shifted.predict_proba(portfolio)[:, 1]
    assert q.mean() == pytest.approx(target, rel=1e-9)
    inside = (p > 0) & (p < 1)
    gaps = np.log(q / (1 - q))[inside] - np.log(p / (1 - p))[inside]
    assert_allclose(gaps, gaps[0], atol=1e-6)  # one shift of the log-odds
    again = from_json(to_json(shifted)).predict_proba(portfolio)
    assert_allclose(again[:, 1], q, rtol=1e-9)
    moved = shifted.with_mean({"yes": 0.2}, portfolio)
    assert moved.predict_proba(portfolio)[:, 1].mean() == pytest.approx(0.2, rel=1e-9)


def test_a_model_of_three_classes_has_given_means():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = np.array(["a", "b", "c"])[(X + rng.gumbel(size=(300, 3))).argmax(axis=1)]
    model = CalibratedClassifier(RandomForestClassifier(30), random_state=0).fit(X[:200], y[:200])
    shifted = model.with_mean({"a": 0.5, "b": 0.1}, X[200:])
    assert_allclose(shifted.predict_proba(X[200:]).mean(axis=0), [0.5, 0.1, 0.4], rtol=1e-8)
    assert_allclose(shifted.prior_, [0.5, 0.1, 0.4])
    for means, message in (({"d": 0.1}, "got 'd'"), ({"a": 1.5}, "below 1")):
        with pytest.raises(ValueError, match=message):
            model.with_mean(means, X)


def test_a_mean_that_certain_rows_forbid_is_refused():
    fitted = IsotonicCalibration().fit([0.1, 0.2, 0.8, 0.9] * 5, [0, 0, 1, 1] * 5)
    with pytest.raises(ValueError, match="do not move"):
        fitted.with_mean({1: 0.9}, [0.1, 0.2, 0.8])


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("kind", [PlattScaling, IsotonicCalibration, VennAbers])
def test_the_score_of_a_probability_is_the_first_that_reaches_it(kind, increasing):
    scores, y = draw(400, 4)
    scores = 300 + 500 * (scores if increasing else 1 - scores)
    calibrator = kind().fit(scores, y, increasing=increasing)
    wanted = np.array([0.05, 0.2, 0.5])
    found = calibrator.score_for(wanted)
    step = np.inf if not increasing else -np.inf
    assert (calibrator.predict_proba(found)[:, 1] >= wanted).all()
    assert (calibrator.predict_proba(np.nextafter(found, step))[:, 1] < wanted).all()
    assert calibrator.score_for(0.2) == found[1]
    with pytest.raises(ValueError, match="probability must lie between"):
        calibrator.score_for(1.2)
