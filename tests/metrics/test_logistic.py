"""Logistic regression with offsets and a prior, against a general minimiser."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax

from vennforest.metrics.logistic import (
    fit_offset_regression,
    is_separated,
    shifted_log_probabilities,
)


def slow_logits(offset, features, theta):
    """Add the products of features and coefficients to the last columns, one at a time."""
    n, c, r = features.shape
    logits = offset.copy()
    for i in range(n):
        for j in range(c):
            logits[i, offset.shape[1] - c + j] += features[i, j] @ theta[j * r : (j + 1) * r]
    return logits


@pytest.mark.parametrize(("k", "c"), [(2, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("has_prior", [False, True])
def test_the_fit_is_that_of_a_general_minimiser(k, c, has_prior):
    rng = np.random.default_rng([k, c])
    n, r = 80, 2
    offset, features = rng.normal(size=(n, k)), rng.normal(size=(n, c, r))
    codes, weight = rng.integers(0, k, n), rng.uniform(0.5, 2, n)
    precision = rng.uniform(0.5, 3, c * r) if has_prior else np.zeros(c * r)

    def minus_likelihood(theta):
        log_q = log_softmax(slow_logits(offset, features, theta), axis=1)
        return precision @ theta**2 / 2 - weight @ log_q[np.arange(n), codes]

    fit = fit_offset_regression(offset, features, codes, weight, precision if has_prior else None)
    slow = minimize(minus_likelihood, np.zeros(c * r), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(fit.theta, slow.x, atol=1e-5)
    assert fit.converged and fit.log_likelihood == pytest.approx(-slow.fun, abs=1e-8)
    np.testing.assert_allclose(weight @ fit.scores, precision * fit.theta, atol=1e-5)
    log_q = shifted_log_probabilities(offset, features, fit.theta)
    expected = log_softmax(slow_logits(offset, features, fit.theta), axis=1)
    np.testing.assert_allclose(log_q, expected, atol=1e-12)

    def gradient(theta):
        return approx_fprime(theta, minus_likelihood, 1e-6)

    slow_hessian = approx_fprime(fit.theta, gradient, 1e-4)
    np.testing.assert_allclose(fit.hessian, slow_hessian, rtol=0.02, atol=2e-3)


def test_separated_outcomes_have_no_maximum():
    x, codes = np.arange(8.0) - 3.5, np.repeat([0, 1], 4)
    fit = fit_offset_regression(np.zeros((8, 2)), x[:, None, None], codes)
    assert fit.theta[0] > 20  # the likelihood rises without end


@pytest.mark.parametrize(
    ("x", "outcome", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], True),
        ([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0], True),
        ([0.1, 0.2, 0.2, 0.4], [0, 0, 1, 1], True),
        ([0.1, 0.3, 0.2, 0.4], [0, 0, 1, 1], False),
        ([0.1, 0.2, 0.3, 0.4], [1, 1, 1, 1], True),
        ([0.5, 0.5, 0.5, 0.5], [0, 1, 0, 1], True),
    ],
)
def test_a_threshold_separates(x, outcome, expected):
    assert is_separated(np.array(x), np.array(outcome)) == expected
