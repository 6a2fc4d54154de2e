"""Quadratic scaling and spline calibration: curves of the log-odds, against their formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit

from oracles import maps
from vennforest.calibrators.core.scores import Counts, Prior, fit_penalised, logistic
from vennforest.calibrators.maps.log_odds import (
    ROUGHNESS,
    QuadraticScaling,
    SplineCalibration,
    basis,
    integrals,
    slope_prior,
)


def drawn(rng, n, shape):
    """Scores with ties, zeros and ones, labels that follow them in different ways, weights."""
    s = np.clip(np.round(rng.beta(0.7, 0.8, n), int(rng.integers(1, 9))), 0, 1)
    q = {"right": s, "wrong": 1 - s, "bent": s**3, "s": np.sin(s * np.pi / 2) ** 6}[shape]
    y = (rng.random(n) < 0.05 + 0.9 * q).astype(int)
    return s, y, rng.choice([0.5, 1.0, 3.0], n) if rng.random() < 0.5 else None


def log_odds_of(model, s, y, weight):
    w = [1.0] * len(s) if weight is None else weight.tolist()
    shares = maps.label_shares(y.tolist(), w, 2)
    rows = [maps.shrunken_logs([1 - v, v], model.shrinkage, shares) for v in s.tolist()]
    return [b - a for a, b in rows], w


def test_the_curve_is_the_integral_of_its_slope():
    rng = np.random.default_rng(0)
    for _ in range(200):
        knots = np.sort(rng.normal(scale=5, size=int(rng.integers(1, 9))))
        slopes = rng.normal(size=len(knots))
        z = np.concatenate([rng.normal(scale=9, size=20), knots, [0.0]])
        expected = [maps.slope_value(v, knots, slopes, 0.0) for v in z]
        assert_allclose(integrals(z, knots, slopes), expected, atol=1e-12)
        assert_allclose(np.append(slopes, 0.0) @ basis(z, knots), expected, atol=1e-12)


@pytest.mark.parametrize("shape", ["right", "wrong", "bent", "s"])
@pytest.mark.parametrize("kind", ["quadratic", "spline"])
def test_no_step_within_the_bounds_improves_the_formula(kind, shape):
    """The sum is convex: no small step along an axis, or to the prior, may decrease it."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(5):
        s, y, weight = drawn(rng, int(rng.integers(2, 60)), shape)
        if np.ptp(s) == 0:
            continue
        ridge = float(rng.choice([0.01, 0.3, 5.0]))
        roughness = 0.0
        if kind == "spline":
            roughness = float(rng.choice([0.1, 3.0]))
            model = SplineCalibration(5, roughness, ridge)
        else:
            model = QuadraticScaling(ridge)
        model.fit(s, y, sample_weight=weight, classes=[0, 1])
        z, w = log_odds_of(model, s, y, weight)
        (one,) = model.maps_
        best = np.append(one.slopes, one.intercept)
        assert_allclose([one.knots[0], one.knots[-1]], [min(z), max(z)], rtol=1e-12)

        def loss(theta, z=z, y=y, w=w, one=one, ridge=ridge, roughness=roughness):
            knots = one.knots.tolist()
            return maps.slope_loss(
                z, y.tolist(), w, knots, theta[:-1].tolist(), theta[-1], ridge, roughness
            )

        least = loss(best)
        for j in range(len(best)):
            for step in (1e-4, -1e-4):
                moved = best.copy()
                moved[j] += step
                if j < len(best) - 1 and moved[j] < 0:
                    held += 1
                    continue
                assert loss(moved) > least
        towards = np.append(np.ones(len(best) - 1), 0.0)
        assert loss(best + 1e-3 * (towards - best)) >= least
        assert (one.slopes >= 0).all()
        expected = expit([maps.slope_value(v, one.knots, one.slopes, one.intercept) for v in z])
        assert_allclose(model.predict_proba(s)[:, 1], expected, rtol=1e-9, atol=1e-14)
    if shape == "wrong":
        assert held


def test_bounds_meet_the_conditions_of_a_minimum():
    """The derivative is zero for what is free and not below zero for what is held at zero."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(300):
        d, m = int(rng.integers(1, 7)), int(rng.integers(1, 30))
        features = rng.normal(size=(d, m)) * 10.0 ** rng.integers(-2, 3, (d, 1))
        counts = Counts(np.zeros(m), *rng.choice([0.0, 0.5, 3.0], (2, m)))
        bounded = rng.random(d) < 0.7
        mean = np.abs(rng.normal(size=d))
        root = rng.normal(size=(d, d))
        penalty = root @ root.T + 0.1 * np.eye(d)
        theta = fit_penalised(features, counts, Prior(mean, penalty, bounded)).theta
        f = theta @ features
        p, q, _ = logistic(f)
        gradient = features @ (counts.negative * p - counts.positive * q)
        gradient += penalty @ (theta - mean)
        scale = np.abs(features) @ (counts.negative + counts.positive) + np.abs(penalty).sum()
        at_zero = bounded & (theta == 0)
        assert (theta[bounded] >= 0).all()
        assert (np.abs(gradient[~at_zero]) <= 1e-7 * scale[~at_zero]).all()
        assert (gradient[at_zero] >= -1e-7 * scale[at_zero]).all()
        held += at_zero.sum()
    assert held > 50


def test_leaving_one_out_is_close_to_fitting_again():
    rng = np.random.default_rng(3)
    s = rng.beta(0.8, 0.8, 120)
    y = (rng.random(120) < s).astype(float)
    z = logit(np.clip(s, 0.01, 0.99))
    knots, counts = np.quantile(z, [0, 0.3, 0.7, 1]), Counts(z, 1 - y, y)
    features = basis(z, knots)
    for roughness in (0.1, 10.0):
        prior = slope_prior(knots, 0.3, roughness)
        fit = fit_penalised(features, counts, prior)
        again = 0.0
        for i in range(120):
            kept = np.arange(120) != i
            rest = Counts(z[kept], 1 - y[kept], y[kept])
            theta = fit_penalised(features[:, kept], rest, prior).theta
            f = float(theta @ features[:, i])
            again += np.logaddexp(0, -f if y[i] else f)
        f = fit.theta @ features
        own = np.logaddexp(0, np.where(y == 1, -f, f)).sum()
        approximate = fit.left_out_loss(features, counts)
        assert again > own
        assert abs(approximate - again) < 0.15 * (again - own)
        # It is what one Newton step without the example gives, written out.
        p = expit(f)
        hessian = (features * p * (1 - p)) @ features.T + prior.penalty
        stepped = 0.0
        for i, x in enumerate(features.T):
            without = hessian - p[i] * (1 - p[i]) * np.outer(x, x)
            away = fit.theta + np.linalg.solve(without, (p[i] - y[i]) * x)
            stepped += np.logaddexp(0, -(away @ x) if y[i] else away @ x)
        assert (fit.theta > 0).sum() >= 4  # nothing is held at a bound
        assert_allclose(approximate, stepped, rtol=1e-7)


def test_a_parabola_that_turns_is_level():
    rng = np.random.default_rng(5)
    z = rng.normal(scale=2, size=4000)
    y = rng.random(4000) < expit(1 - 0.5 * z**2)
    new = expit(np.linspace(-6, 6, 200))
    rising = QuadraticScaling(shrinkage=0).fit(expit(z), y).predict_proba(new)[:, 1]
    assert (np.diff(rising) >= 0).all()


def test_a_spline_follows_a_curve_that_no_sigmoid_can():
    """Level, steep, level again; the error is far below the sigmoid's, and no more with noise."""
    rng = np.random.default_rng(6)
    s = rng.random(20_000)
    truth = 0.2 + 0.6 * expit(25 * (s - 0.6))
    y = rng.random(20_000) < truth
    spline = SplineCalibration().fit(s, y)
    straight = SplineCalibration(roughness=1e9).fit(s, y)
    near = np.abs(spline.predict_proba(s)[:, 1] - truth).mean()
    assert near < 0.012
    assert near < np.abs(straight.predict_proba(s)[:, 1] - truth).mean() / 4
    assert spline.maps_[0].roughness == min(ROUGHNESS)
    calibrated = rng.random(20_000) < s
    assert_allclose(SplineCalibration().fit(s, calibrated).predict_proba(s)[:, 1], s, atol=0.03)


def test_much_roughness_is_one_slope():
    rng = np.random.default_rng(7)
    s, y, _ = drawn(rng, 200, "bent")
    (one,) = SplineCalibration(roughness=1e12).fit(s, y).maps_
    assert_allclose(one.slopes, one.slopes[0], rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.floats(0, 1), st.booleans(), st.integers(1, 3)), min_size=1, max_size=30
    )
)
@pytest.mark.parametrize("shrinkage", [0.0, 0.01])
@pytest.mark.parametrize("make", [QuadraticScaling, SplineCalibration])
def test_they_never_decrease_and_stay_finite(make, shrinkage, pairs):
    s, y, weight = map(np.array, zip(*pairs, strict=True))
    with np.errstate(all="raise"):
        model = make(shrinkage=shrinkage)
        model.fit(s, y, sample_weight=weight, classes=[False, True])
        p = model.predict_proba(np.sort(np.append(np.linspace(0, 1, 101), s)))[:, 1]
    assert np.isfinite(p).all()
    assert (np.diff(p) >= -1e-15).all()


@pytest.mark.parametrize("make", [QuadraticScaling, SplineCalibration])
def test_groups_of_many_scores_hardly_move_them(make, monkeypatch):
    rng = np.random.default_rng(8)
    s = rng.beta(0.4, 0.4, 40_000)
    y = rng.random(40_000) < 0.1 + 0.8 * s**2
    grouped = make().fit(s, y)
    monkeypatch.setattr("vennforest.calibrators.core.scores.FINEST", 50_000)  # none is
    assert_allclose(grouped.predict_proba(s), make().fit(s, y).predict_proba(s), atol=2e-5)


@pytest.mark.parametrize("make", [QuadraticScaling, SplineCalibration])
def test_decision_values_are_made_probabilities_first(make):
    rng = np.random.default_rng(9)
    z = rng.normal(size=300)
    y = rng.random(300) < expit(3 * z)
    expected = make().fit(z, y)
    assert expected.on_ == "logits"
    for scale in (1e-200, 1e200):
        p = make().fit(scale * z, y).predict_proba(scale * z)
        assert_allclose(p, expected.predict_proba(z), rtol=1e-6)
    assert np.abs(expected.predict_proba(z)[:, 1] - expit(3 * z)).mean() < 0.06


def test_what_parameters_refuse():
    s, y = [0.2, 0.6, 0.7], [0, 1, 0]
    for wrong in (0, -2, np.inf):
        with pytest.raises(ValueError, match="roughness must be finite and above 0"):
            SplineCalibration(roughness=wrong).fit(s, y)
    with pytest.raises(ValueError, match="roughness must be a number or \"auto\", got 'much'"):
        SplineCalibration(roughness="much").fit(s, y)
    for wrong in (1, 2.0, None):
        with pytest.raises(ValueError, match="n_knots must be an integer >= 2"):
            SplineCalibration(wrong).fit(s, y)
    for make in (QuadraticScaling, SplineCalibration):
        with pytest.raises(ValueError, match="ridge must be finite and above 0, got 0"):
            make(ridge=0).fit(s, y)
        with pytest.raises(ValueError, match=r"scores must be in \[0, 1\].*got 1.5"):
            make().fit(s, y).predict_proba([1.5])


def test_one_score_and_one_class():
    for make in (QuadraticScaling, SplineCalibration):
        model = make().fit([0.3] * 5, [1] * 5, classes=[0, 1])
        p = model.predict_proba([0.0, 0.3, 1.0])[:, 1]
        assert (p > 0.5).sum() >= 2
        assert_array_equal(model.classes_, [0, 1])
