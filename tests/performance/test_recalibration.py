import numpy as np
import pytest
from scipy.optimize import minimize

from vennforest.performance.recalibration import Recalibration, _recalibration_features


def examples(seed, k=2, n=400):
    rng = np.random.default_rng([seed, k])
    p = rng.dirichlet(np.ones(k), n)
    codes = np.array([rng.choice(k, p=row) for row in p])
    return rng, p, codes


def penalised(theta, recalibration, p, codes, weight, extra):
    """Return the negative log likelihood of a map, row by row."""
    clip, knots = recalibration.min_probability, recalibration.knots
    logs, f = _recalibration_features(p, extra, clip, knots)
    f = (f - recalibration.mean) / recalibration.spread
    c, r = f.shape[1:]
    theta = theta.reshape(c, r)
    total = 0.5 * (recalibration.precision * theta.ravel() ** 2).sum()
    for i in range(len(p)):
        raw = logs[i].copy()
        for j in range(c):
            raw[j - c] += f[i, j] @ theta[j]
        total -= weight[i] * (raw[codes[i]] - np.log(np.exp(raw - raw.max()).sum()) - raw.max())
    return total


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_coefficients_maximise_the_penalised_likelihood(k, seed):
    rng, p, codes = examples(seed, k, 40)
    repeats, extra = rng.integers(1, 4, len(p)).astype(float), rng.normal(size=(len(p), 1))
    found = Recalibration.fit(p, codes, repeats=repeats, covariates=extra)
    best = minimize(
        penalised,
        np.zeros(len(found.theta)),
        (found, p, codes, repeats, extra),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    here = penalised(found.theta, found, p, codes, repeats, extra)
    assert here <= best.fun + 1e-6
    assert found.theta == pytest.approx(best.x, abs=2e-3)


def test_a_repeated_example_is_as_many_examples_and_a_group_of_copies_is_one():
    rng, p, codes = examples(0)
    often = rng.integers(1, 4, len(p))
    weighted = Recalibration.fit(p, codes, repeats=often.astype(float))
    copies = np.repeat(np.arange(len(p)), often)
    copied = Recalibration.fit(p[copies], codes[copies])
    # The knots and the spread of the features are those of the examples at hand, so compare maps.
    new = rng.dirichlet([1, 1], 50)
    assert weighted.at(new)(weighted.theta) == pytest.approx(copied.at(new)(copied.theta), abs=0.02)
    thrice = np.repeat(np.arange(len(p)), 3)
    alone = Recalibration.fit(p, codes)
    together = Recalibration.fit(p[thrice], codes[thrice], groups=thrice)
    apart = Recalibration.fit(p[thrice], codes[thrice])
    spread = [np.trace(one.root @ one.root.T) for one in (alone, together, apart)]
    assert spread[2] < 0.7 * spread[1]  # the prior is a part of both
    assert spread[1] == pytest.approx(spread[0], rel=0.5)


def test_probabilities_that_are_off_are_corrected():
    rng = np.random.default_rng(1)
    true = rng.random(4000)
    codes = (rng.random(4000) < true).astype(int)
    odds = (true / (1 - true)) ** 2  # far too sure
    p = odds / (1 + odds)
    found = Recalibration.fit(np.column_stack([1 - p, p]), codes)
    q = found.at(np.column_stack([1 - p, p]))(found.theta)[:, 1]
    assert np.abs(q - true).mean() < 0.02 < np.abs(p - true).mean()


@pytest.mark.parametrize(
    "p", [np.zeros(50), np.ones(50), np.full(50, 0.5), np.r_[0.0, np.ones(49)]]
)
def test_constants_and_certainty_give_finite_maps(p):
    codes = np.r_[np.zeros(25, int), np.ones(25, int)]
    found = Recalibration.fit(np.column_stack([1 - p, p]), codes)
    for theta in [found.theta, *found.draws(20, np.random.default_rng(0))]:
        q = found.at(np.column_stack([1 - p, p]))(theta)
        assert np.isfinite(q).all()
        assert q.sum(axis=1) == pytest.approx(1)
