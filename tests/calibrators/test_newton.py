"""Logistic regression by Newton's method, with coefficients that are bounded, on grouped scores."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import expit

from vennforest.calibrators.newton import fit_logistic, group_scores, least_squares, newton_step
from vennforest.counts import ScoreCounts


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
