"""Formulas of outputs, evaluated, beside what the library predicts."""

import numpy as np

from vennforest.calibrators.formula import FormulaFunction, Score
from vennforest.export.formulas import scaled_formula
from vennforest.multiprobability import scale_into_bounds


def test_scaling_into_bounds():
    """Drawn rows, some with zeros, and with bounds that leave one point: to 1e-12."""
    rng = np.random.default_rng(20261125)
    for _ in range(60):
        k = int(rng.integers(3, 8))
        at = rng.dirichlet(np.full(k, rng.choice([0.05, 1.0])))
        lower = at * rng.choice([0.0, 1.0, rng.random()], k)
        upper = at + (1 - at) * rng.choice([0.0, 1.0, rng.random()], k)
        p = rng.random(k) * rng.choice([0.0, 1.0, 1e-200, 1e-9], k)
        rows = [0.0 * Score() + row for row in (p, lower, upper)]
        scaled = FormulaFunction(scaled_formula(*rows, k))(np.ones((1, k)))
        expected = scale_into_bounds(p[None], lower[None], upper[None])
        np.testing.assert_allclose(scaled, expected, rtol=0, atol=1e-12)
