"""Temperature scaling against bounded minimisation, for two classes and many."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit, softmax

from oracles import formulas as oracle
from vennforest import VennAbers
from vennforest._messages import CalibrationWarning
from vennforest.calibrators import PooledCalibration, TemperatureScaling, VectorScaling
from vennforest.calibrators.softmax import fit_temperature


def of_logits():
    return TemperatureScaling(on="logit")


def drawn(rng, n, k):
    logits = rng.normal(scale=rng.choice([0.3, 1, 5]), size=(n, k))
    T = np.exp(rng.normal())
    codes = np.array([rng.choice(k, p=softmax(row / T)) for row in logits])
    return logits, codes, rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_temperature_minimises_the_log_loss(k):
    rng = np.random.default_rng(k)
    compared = 0
    while compared < 5:
        logits, codes, weight = drawn(rng, 40, k)
        beta = oracle.temperature_fit(logits.tolist(), codes, weight)
        if not 0.05 < beta < 20:
            continue  # the minimum is at infinity or at zero
        model = of_logits()
        model.fit(logits, codes, sample_weight=weight, classes=range(k))
        assert_allclose(1 / model.temperature_, beta, rtol=1e-5)
        assert_allclose(model.predict_proba(logits), softmax(beta * logits, axis=1), atol=1e-5)
        # The condition for a minimum: the derivative by 1 / T is zero.
        p = model.predict_proba(logits)
        w = np.ones(40) if weight is None else weight
        slope = (w * ((p * logits).sum(axis=1) - logits[np.arange(40), codes])).sum()
        assert abs(slope) < 1e-10 * np.abs(logits).sum()
        compared += 1


def test_probabilities_are_the_softmax_of_their_logarithms():
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        logits, codes, weight = drawn(rng, 60, k)
        p = softmax(logits, axis=1)
        expected = of_logits().fit(logits, codes, sample_weight=weight)
        model = TemperatureScaling().fit(p, codes, sample_weight=weight)
        assert model.on_ == "probability"
        assert_allclose(model.temperature_, expected.temperature_, rtol=1e-9)
        assert_allclose(model.predict_proba(p), expected.predict_proba(logits), rtol=1e-7)


def test_scores_are_taken_for_what_the_calibration_scores_were():
    p = np.array([0.1, 0.4, 0.6, 0.9, 0.3])
    y = [0, 1, 0, 1, 0]
    on_probabilities = TemperatureScaling().fit(p, y)
    with pytest.raises(ValueError, match=r"scores must lie in \[0, 1\], got 2 in row 0"):
        on_probabilities.predict_proba([2.0])
    three = TemperatureScaling().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="rows that sum to 1"):
        three.predict_proba(np.eye(3) / 2)
    on_logits = TemperatureScaling().fit(logit(p), y)
    assert on_logits.on_ == "score"
    # A logit that could be a probability is a logit still, whatever the other rows.
    columns = TemperatureScaling().fit(np.column_stack([-logit(p), logit(p)]), y)
    together = columns.predict_proba([[0.3, 0.7], [0.9, 0.1], [-2.0, 1.0]])
    assert_allclose(columns.predict_proba([[0.3, 0.7], [0.9, 0.1]]), together[:2])
    assert_allclose(
        on_logits.predict_proba([0.75])[:, 1], expit(0.75 / on_logits.temperature_), rtol=1e-12
    )
    forced = of_logits().fit(p, y)
    assert_allclose(forced.predict_proba(p)[:, 1], expit(p / forced.temperature_), rtol=1e-12)


@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([-1.0, -2.0, 1.0, 3.0], [0, 0, 1, 1]),  # separable: the best T is 0
        ([-1.0, -2.0, 1.0, 3.0], [1, 1, 0, 0]),  # worse than nothing: the best T is infinite
        ([0.0, 0.0, 0.0], [0, 1, 1]),
        ([0.0, 1.0, 1.0, 0.0], [0, 1, 0, 1]),
        ([-1.7e308, 1.7e308, 1e-308], [0, 1, 0]),
        ([1e-320, -1e-320, 0.0], [0, 1, 0]),
        ([[1e308, -1e308, 0], [0, 0, 1e308], [0, 1, 0]], [0, 2, 0]),
    ],
    ids=str,
)
def test_it_stops_at_values_that_work_without_warnings(scores, y):
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        k = 2 if np.ndim(scores) == 1 else 3
        model = of_logits().fit(scores, y, classes=range(k))
        p = model.predict_proba(np.concatenate([scores, scores]))
    assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert ((p >= 0) & (p <= 1)).all()
    assert model.temperature_ > 0


def test_a_logit_of_minus_infinity_is_a_probability_of_zero():
    rng = np.random.default_rng(4)
    logits, codes, _ = drawn(rng, 80, 5)
    is_masked = rng.random(logits.shape) < 0.3
    is_masked[np.arange(80), codes] = False
    masked = np.where(is_masked, -np.inf, logits)
    T = fit_temperature(masked, np.eye(5)[codes])
    assert_allclose(T, fit_temperature(np.where(is_masked, -1e3, logits), np.eye(5)[codes]), 1e-6)
    # An example that cannot have its label says nothing of T.
    more = np.vstack([masked, [-np.inf, 0, 0, 0, 1]])
    assert_allclose(T, fit_temperature(more, np.eye(5)[[*codes, 0]]), rtol=1e-9)


def test_the_temperature_of_many_rows_does_not_depend_on_how_they_are_cut(monkeypatch):
    rng = np.random.default_rng(5)
    logits, codes, _ = drawn(rng, 3_000, 7)
    expected = fit_temperature(logits, np.eye(7)[codes])
    monkeypatch.setattr("vennforest._numerics.NUMBERS_IN_BLOCK", 50)
    assert_allclose(fit_temperature(logits, np.eye(7)[codes]), expected, rtol=1e-12)
    single = fit_temperature(logits.astype(np.float32), np.eye(7)[codes])
    assert_allclose(single, expected, rtol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_masked_logits_are_probabilities_of_zero_at_every_temperature(scale):
    rng = np.random.default_rng(6)
    logits, codes, _ = drawn(rng, 90, 4)
    logits[1::3, 2] = -np.inf
    codes[codes == 2] = 0
    logits, codes = scale * np.vstack([logits, [0, 1, 2, 3]]), [*codes, 2]
    for calibrator in (TemperatureScaling(), VectorScaling(), PooledCalibration(), VennAbers()):
        model = calibrator.fit(logits, codes)
        assert model.on_ == "logit"
        p = model.predict_proba(logits)
        assert np.isfinite(p).all() and (p[1:-1:3, 2] < 1e-2).all(), calibrator
    assert (TemperatureScaling().fit(logits, codes).predict_proba(logits)[1:-1:3, 2] == 0).all()
    with pytest.warns(CalibrationWarning, match="2 calibration examples have a label whose logit"):
        TemperatureScaling().fit(logits, [*codes[:1], 2, 1, 1, 2, *codes[5:]])
