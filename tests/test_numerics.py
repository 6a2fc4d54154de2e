"""Roots of increasing functions."""

import secrets

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from vennforest.calibrators.softmax import root_of_increasing


def test_roots_are_found_to_rounding_from_any_start():
    rng = np.random.default_rng(secrets.randbelow(2**32))
    for _ in range(200):
        root, steepness = rng.uniform(-12, 12), np.exp(rng.normal() * 2)
        noise = 1e-16 * rng.choice([-1, 1])
        n_calls = 0

        def function(x, root=root, steepness=steepness, noise=noise):
            nonlocal n_calls
            n_calls += 1
            y = np.tanh(steepness * (x - root))  # flat far away, where Newton's steps go astray
            return y + noise, steepness * (1 - y**2)

        start = rng.choice([rng.uniform(-15, 15), root, -10.0, 10.0])
        found = root_of_increasing(function, start, 10.0)
        expected = np.clip(root, -10, 10)
        if abs(root) < 10:
            expected = brentq(lambda x: function(x)[0], -10, 10, xtol=1e-15, rtol=1e-15)
        n_calls = 0
        assert root_of_increasing(function, start, 10.0) == found
        assert n_calls < 40
        assert_allclose(found, expected, rtol=0, atol=1e-12 + 1e-15 / steepness)
