"""The weights of a blend."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from oracles import blends as oracle
from vennforest.calibrators.newton import fit_blend


def draw(seed, n=None, k=None, m=None):
    rng = np.random.default_rng(seed)
    n, k, m = n or rng.integers(1, 60), k or rng.integers(2, 5), m or rng.integers(2, 5)
    codes = rng.integers(k, size=n)
    z = rng.normal(size=(m, n, k)) * rng.uniform(0.1, 4)
    z += rng.uniform(0, 2) * np.eye(k)[codes]
    logs = z - np.log(np.exp(z).sum(axis=2, keepdims=True))
    weight = rng.integers(1, 4, size=n) * rng.choice([1.0, 0.5])
    return logs, codes, weight


def blended(logs, weights, intercept):
    return softmax(np.tensordot(weights, logs, 1) + intercept, axis=1)


@pytest.mark.parametrize("seed", range(25))
def test_weights_are_those_of_a_slow_search(seed):
    logs, codes, weight = draw(seed)
    w, b = fit_blend(logs, codes, weight)
    slow_w, slow_b = oracle.weights(logs, codes, weight)
    assert (w >= 0).all()
    assert_allclose(w, slow_w, atol=1e-4)
    assert_allclose(b, slow_b, atol=1e-4)
    at_fast = oracle.objective(np.append(w, b), logs, codes, weight)
    assert at_fast <= oracle.objective(np.append(slow_w, slow_b), logs, codes, weight) + 1e-7


def test_a_weight_of_two_is_the_row_twice():
    logs, codes, _ = draw(1, 40, 3, 2)
    twice = np.arange(40) % 3 == 0
    w, b = fit_blend(logs, codes, 1.0 + twice)
    index = np.append(np.arange(40), np.flatnonzero(twice))
    w_rows, b_rows = fit_blend(logs[:, index], codes[index])
    assert_allclose(np.append(w, b), np.append(w_rows, b_rows), atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_a_copy_shares_the_weight_and_changes_nothing(k):
    logs, codes, weight = draw(2, 50, k, 2)
    w, b = fit_blend(logs, codes, weight)
    copied = logs[[0, 1, 1]]
    w_copied, b_copied = fit_blend(copied, codes, weight)
    assert w_copied[1] == w_copied[2]
    assert_allclose(w_copied, [w[0], w[1] / 2, w[1] / 2], rtol=1e-12)
    assert_allclose(blended(copied, w_copied, b_copied), blended(logs, w, b), rtol=1e-12)


def test_a_model_of_noise_has_next_to_no_weight_with_many_rows():
    logs, codes, _ = draw(3, 4000, 2, 1)
    noise = np.random.default_rng(0).normal(size=(1, 4000, 2))
    noise -= np.log(np.exp(noise).sum(axis=2, keepdims=True))
    w, _ = fit_blend(np.concatenate([logs, noise]), codes)
    assert w[1] < 0.1 < w[0]


def test_logarithms_of_tiny_numbers_give_finite_weights():
    logs, codes, _ = draw(4, 30, 2, 2)
    logs[0, ::3, 0] = np.log(np.finfo(float).tiny)
    w, b = fit_blend(logs, codes)
    p = blended(logs, w, b)
    assert np.isfinite(w).all()
    assert np.isfinite(p).all()
    assert_allclose(p.sum(axis=1), 1)
