"""Outcomes and estimates that several tests draw."""

import numpy as np
import pytest


def draw_problems(n_cases, seed, n=24):
    """Outcomes with both classes, estimates with ties, constants and neighbours one ulp apart."""
    rng = np.random.default_rng(seed)
    for i in range(n_cases):
        size = int(rng.integers(4, n))
        outcome = rng.integers(2, size=size)
        outcome[:2] = [0, 1]
        p = rng.random(size)
        if i % 4 == 1:
            p = np.round(p, 1)
        elif i % 4 == 2:
            p = np.nextafter(np.repeat(0.5, size), rng.choice([0.0, 0.5, 1.0], size))
        elif i % 7 == 3:
            p = np.full(size, 0.3)
        yield outcome, p, rng


@pytest.fixture
def problems():
    """Return a generator function of problems: (n_cases, seed, n)."""
    return draw_problems
