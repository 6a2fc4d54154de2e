"""What the monitoring study is beside, against the formulas."""

import numpy as np
from experiments.studies.jumpers import conformal_p_values, log_capital
from numpy.testing import assert_allclose, assert_array_equal

from oracles import monitoring as oracle


def draw_stream(rng, n):
    """Return scores with ties, constants, and sizes of all orders."""
    kind = rng.integers(4)
    if kind == 0:
        return np.full(n, rng.normal())
    if kind == 1:
        return rng.integers(0, 4, n).astype(float)
    if kind == 2:
        return rng.choice([-1e300, 1e-300, 0.0, -0.0, 1e300, 5e-324], n)
    return rng.normal(size=n)


def test_p_values_are_the_formulas():
    rng = np.random.default_rng(0)
    for seed in range(2000):
        reference = draw_stream(rng, rng.integers(0, 12))
        scores = draw_stream(rng, rng.integers(0, 12))
        found = conformal_p_values(scores, reference, seed)
        assert_array_equal(found, oracle.p_values(scores.tolist(), reference.tolist(), seed))


def test_p_values_are_uniform_and_independent():
    rng = np.random.default_rng(1)
    pairs = []
    for seed in range(1500):
        scores = rng.integers(0, 3, 6) + (rng.random() < 0.5)  # exchangeable, not independent
        pairs.append(conformal_p_values(scores[4:], scores[:4], seed))
    cells = np.histogram2d(*np.transpose(pairs), bins=4, range=[[0, 1], [0, 1]])[0]
    expected = 1500 / 16
    assert ((cells - expected) ** 2 / expected).sum() < 37.7  # 0.999 quantile, 15 degrees


def test_jumpers_are_the_formulas():
    rng = np.random.default_rng(3)
    for _ in range(300):
        jumps = rng.choice([0.0, 1e-4, 0.01, 0.3, 1.0], rng.integers(1, 4)).tolist()
        p = rng.random(rng.integers(1, 25)) ** rng.choice([0.3, 1, 3])
        found = log_capital(p, jumps)
        assert_allclose(np.exp(found), oracle.jumper(p.tolist(), jumps, "ville"), rtol=1e-10)
