"""Lines in pieces of a rising curve, against a general minimiser."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logit

from vennforest.calibrators import interval_kernels as kernels


def test_pieces_are_the_penalised_logistic_regression_or_a_constant():
    """Against a general minimiser, on drawn groups of examples and after separation."""
    rng = np.random.default_rng(277)
    for case in range(40):
        m = int(rng.integers(1, 30))
        ranks = np.sort(rng.random(m))
        weight = rng.choice([1.0, 0.3, 5.0], m)
        rate = [0.0, 0.3, ranks, ranks > 0.5][case % 4]
        positive = weight * (rng.random(m) < rate)
        total = weight.sum()
        center = (weight * ranks).sum() / total
        spread = np.sqrt((weight * (ranks - center) ** 2).sum() / total)

        def loss(line, z, positive=positive, weight=weight):
            log_odds = line[0] + line[1] * z
            return (weight * np.logaddexp(0, log_odds) - positive * log_odds).sum()

        z = (ranks - center) / max(spread, 1e-12)
        mean = np.clip(positive.sum() / total, min(0.5, 0.5 / total), 1 - min(0.5, 0.5 / total))
        flat = -loss([logit(mean), 0], z)
        likelihood, intercept, slope, middle = kernels.fit_line(ranks, weight, positive, 0, m)
        assert middle == pytest.approx(center)
        if m < 3:
            expected = flat, logit(mean), 0.0
        else:
            best = minimize(
                lambda line, z=z, loss=loss: loss(line, z) + 0.005 * line[1] ** 2, [0, 0], tol=1e-10
            )
            price = 0.5 * np.log(max(total, 2.0))
            is_line = best.x[1] > 0 and -best.fun - flat > price
            line = -best.fun - price, best.x[0], best.x[1] / spread
            expected = line if is_line else (flat, logit(mean), 0.0)
        assert likelihood == pytest.approx(expected[0], abs=1e-3)
        assert_allclose([intercept, slope], expected[1:], rtol=0.05, atol=0.05)


def test_the_best_split_is_that_of_all_splits():
    rng = np.random.default_rng(278)
    ranks, weight = np.sort(rng.random(30)), np.ones(30)
    positive = (rng.random(30) < np.where(ranks > 0.6, 0.9, 0.1)).astype(float)
    parts = {
        split: sum(
            kernels.fit_line(ranks, weight, positive, *part)[0]
            for part in ((2, split), (split, 28))
        )
        for split in (5, 9, 15, 20)
    }
    candidates = np.array([1, *parts, 29])  # the first and the last lie outside the piece
    split = max(parts, key=parts.get)
    assert kernels.best_split(ranks, weight, positive, 2, 28, candidates) == (parts[split], split)
