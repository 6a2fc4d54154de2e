"""Spline calibration: a curve of the log-odds, against its formula, and its regression."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from oracles import maps
from vennforest.calibrators import SplineCalibration
from vennforest.calibrators.newton import fit_logistic, group_scores, least_squares, newton_step
from vennforest.calibrators.spline import (
    ROUGHNESS,
    SPLINE_RIDGE,
    integrals,
    left_out_loss,
    slope_penalty,
)
from vennforest.counts import ScoreCounts


def drawn(rng, n, shape):
    """Scores with ties, zeros and ones, labels that follow them in different ways, weights."""
    s = np.clip(np.round(rng.beta(0.7, 0.8, n), int(rng.integers(1, 9))), 0, 1)
    q = {"right": s, "wrong": 1 - s, "bent": s**3, "s": np.sin(s * np.pi / 2) ** 6}[shape]
    y = (rng.random(n) < 0.05 + 0.9 * q).astype(int)
    return s, y, rng.choice([0.5, 1.0, 3.0], n) if rng.random() < 0.5 else None


def test_the_curve_is_the_integral_of_its_slope():
    rng = np.random.default_rng(0)
    for _ in range(30):
        knots = np.sort(rng.normal(scale=5, size=int(rng.integers(1, 9))))
        slopes = rng.normal(size=len(knots))
        z = np.concatenate([rng.normal(scale=9, size=20), knots, [0.0]])
        expected = [maps.slope_value(v, knots, slopes, 0.0) for v in z]
        assert_allclose(integrals(z, knots, slopes[:, None])[:, 0], expected, atol=1e-11)
        assert_allclose(integrals(z, knots, np.eye(len(knots))) @ slopes, expected, atol=1e-11)


@pytest.mark.parametrize("shape", ["right", "wrong", "bent", "s"])
def test_no_step_within_the_bounds_improves_the_formula(shape):
    """The sum is convex: no small step along an axis, or to the prior, may decrease it."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(4):
        s, y, weight = drawn(rng, int(rng.integers(2, 60)), shape)
        if np.ptp(s) == 0:
            continue
        model = SplineCalibration().fit(s, y, sample_weight=weight, classes=[0, 1])
        w = [1.0] * len(s) if weight is None else weight.tolist()
        shares = maps.label_shares(y.tolist(), w, 2)
        rows = [maps.shrunken_logs([1 - v, v], 0.01, shares) for v in s.tolist()]
        z = [b - a for a, b in rows]
        (knots,), (slopes,) = model.knots_, model.slopes_
        best = np.append(slopes, model.intercept_)
        assert_allclose([knots[0], knots[-1]], [min(z), max(z)], rtol=1e-12)

        def loss(theta, z=z, y=y, w=w, knots=knots, roughness=model.roughness_[0]):
            coefficients = theta[:-1].tolist(), theta[-1]
            labels = y.tolist()
            return maps.slope_loss(
                z, labels, w, knots.tolist(), *coefficients, SPLINE_RIDGE, roughness
            )

        smallest = loss(best)
        for j in range(len(best)):
            for step in (1e-3, -1e-3):
                moved = best.copy()
                moved[j] += step
                if j < len(best) - 1 and moved[j] < 0:
                    held += 1
                    continue
                assert loss(moved) > smallest
        towards = np.append(np.ones(len(best) - 1), 0.0)
        assert loss(best + 1e-3 * (towards - best)) >= smallest
        assert (slopes >= 0).all()
        expected = expit([maps.slope_value(v, knots, slopes, best[-1]) for v in z])
        assert_allclose(model.predict_proba(s)[:, 1], expected, rtol=1e-9, atol=1e-14)
    if shape == "wrong":
        assert held


def test_bounds_meet_the_conditions_of_a_minimum():
    """The derivative is zero for what is free and not below zero for what is held at zero."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(60):
        d, m = int(rng.integers(1, 7)), int(rng.integers(1, 30))
        features = rng.normal(size=(d, m)) * 10.0 ** rng.integers(-2, 3, (d, 1))
        weights = rng.choice([0.0, 0.5, 3.0], (m, 2))
        bounded = rng.random(d) < 0.7
        mean = np.abs(rng.normal(size=d))
        root = rng.normal(size=(d, d))
        penalty = root @ root.T + 0.1 * np.eye(d)
        theta, _ = fit_logistic(features, weights, mean, bounded, mean=mean, penalty=penalty)
        p = expit(theta @ features)
        gradient = features @ (weights[:, 0] * p - weights[:, 1] * (1 - p))
        gradient += penalty @ (theta - mean)
        scale = np.abs(features) @ weights.sum(axis=1) + np.abs(penalty).sum()
        at_zero = bounded & (theta == 0)
        assert (theta[bounded] >= 0).all()
        assert (np.abs(gradient[~at_zero]) <= 1e-7 * scale[~at_zero]).all()
        assert (gradient[at_zero] >= -1e-7 * scale[at_zero]).all()
        held += at_zero.sum()
    assert held > 9


def test_a_step_that_holds_too_many_coefficients_descends_all_the_same():
    """Coefficients that a step takes below zero are held at once: not always the right set."""
    hessian = np.array([[0.43, 0.21, -0.58], [0.21, 0.57, -0.64], [-0.58, -0.64, 1.12]])
    rng, uphill = np.random.default_rng(0), 0
    for _ in range(600):
        theta, gradient = rng.exponential(0.1, 3), rng.normal(size=3)
        bounded = np.ones(3, np.bool_)
        step = newton_step(hessian, gradient, theta, bounded, least_squares)
        assert (theta + step >= -1e-12).all()
        assert gradient @ step <= 0
        uphill += np.allclose(step, np.maximum(-gradient / np.diag(hessian), -theta))
    assert uphill


def test_cells_of_scores_that_are_no_probabilities_have_equal_width():
    x = np.linspace(-3, 5, 1000)
    positive = (np.arange(1000) % 3 == 0).astype(float)
    counts = ScoreCounts(np.arange(2), x, np.column_stack([1 - positive, positive]))
    grouped = group_scores(counts, 10)
    assert_allclose(grouped.class_totals, counts.class_totals)
    assert len(grouped) == 11  # the last score has a cell of its own
    means = [x[i * 100 : (i + 1) * 100].mean() for i in range(10)]
    assert_allclose(grouped.scores[:10], means, atol=0.01)


def test_the_loss_of_leaving_one_out_is_that_of_a_newton_step_without_the_example():
    rng = np.random.default_rng(3)
    s = rng.beta(0.8, 0.8, 120)
    y = (rng.random(120) < s).astype(float)
    z = logit(np.clip(s, 0.01, 0.99))
    weights = np.column_stack([1 - y, y])
    knots = np.quantile(z, [0, 0.3, 0.7, 1])
    features = np.vstack([integrals(z, knots, np.eye(4)).T, np.ones(120)])
    for roughness in (0.1, 10.0):
        mean, bounded = np.array([1.0] * 4 + [0.0]), np.arange(5) < 4
        penalty = slope_penalty(knots, roughness)
        theta, hessian = fit_logistic(features, weights, mean, bounded, mean=mean, penalty=penalty)
        assert (theta[:4] > 0).all()  # nothing is held at a bound
        loss = left_out_loss(features, weights, theta, hessian, np.ones(5, bool))
        p = expit(theta @ features)
        hessian = (features * p * (1 - p)) @ features.T + penalty
        expected = 0.0
        for i, x in enumerate(features.T):
            without = hessian - p[i] * (1 - p[i]) * np.outer(x, x)
            away = theta + np.linalg.solve(without, (p[i] - y[i]) * x)
            expected += np.logaddexp(0, -(away @ x) if y[i] else away @ x)
        assert_allclose(loss, expected, rtol=1e-7)


def test_it_follows_a_curve_that_no_sigmoid_can(monkeypatch):
    """Level, steep, level again; the error is far below the sigmoid's, and no more with noise."""
    rng = np.random.default_rng(6)
    s = rng.random(20_000)
    truth = 0.2 + 0.6 * expit(25 * (s - 0.6))
    y = rng.random(20_000) < truth
    curve = SplineCalibration().fit(s, y)
    near = np.abs(curve.predict_proba(s)[:, 1] - truth).mean()
    assert near < 0.012
    assert curve.roughness_ == min(ROUGHNESS)
    calibrated = rng.random(20_000) < s
    assert_allclose(SplineCalibration().fit(s, calibrated).predict_proba(s)[:, 1], s, atol=0.03)
    monkeypatch.setattr("vennforest.calibrators.spline.ROUGHNESS", (1e12,))
    straight = SplineCalibration().fit(s, y)
    assert_allclose(straight.slopes_[0], straight.slopes_[0][0], rtol=1e-4)
    assert near < np.abs(straight.predict_proba(s)[:, 1] - truth).mean() / 4


def test_groups_of_many_scores_hardly_move_it(monkeypatch):
    rng = np.random.default_rng(8)
    s = rng.beta(0.4, 0.4, 12_000)
    y = rng.random(12_000) < 0.1 + 0.8 * s**2
    grouped = SplineCalibration().fit(s, y)
    monkeypatch.setattr(group_scores, "__defaults__", (50_000,))  # none is
    exact = SplineCalibration().fit(s, y)
    assert_allclose(grouped.predict_proba(s), exact.predict_proba(s), atol=2e-5)
