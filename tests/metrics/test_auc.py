"""Areas under ROC curves, their intervals and differences, against their slow versions."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student

from oracles import ranking as slow
from vennforest.metrics import (
    auc_difference,
    auc_interval,
)


def test_area_and_its_variance_are_delongs(problems):
    for outcome, p, _ in problems(100, 1):
        found = auc_interval(outcome, p)
        assert found.value == pytest.approx(float(slow.auc(outcome, p)), abs=1e-12)
        assert 0 <= found.low <= found.value <= found.high <= 1
        if min(outcome.sum(), (1 - outcome).sum()) < 2 or not 0 < found.value < 1:
            continue
        variance = slow.delong_variance(outcome, p)
        if variance < 1e-15:
            continue
        error = np.sqrt(variance) / (found.value * (1 - found.value))
        assert found.standard_error == pytest.approx(error)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_interval_of_many_classes_is_that_of_the_infinitesimal_jackknife(grouped):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 5))
        codes = rng.permutation(np.arange(18) % k)
        p = rng.dirichlet(np.ones(k), 18).round(1 + seed % 2)
        p[:, 0] += 1 - p.sum(axis=1)
        p = np.clip(p, 0, 1)
        p /= p.sum(axis=1, keepdims=True)
        groups = rng.integers(6, size=18) if grouped else np.arange(18)
        if k == 2 and not grouped:
            continue  # DeLong's correction is another: above
        found = auc_interval(codes, p, groups=groups if grouped else None, classes=range(k))
        assert found.value == pytest.approx(slow.weighted_auc_of(codes, p, np.ones(18)), abs=1e-12)
        moves = slow.jackknife_moves(codes, p)
        sums = [moves[groups == g].sum() for g in np.unique(groups)]
        variance = np.square(sums).sum() / 18**2 * len(sums) / (len(sums) - 1)
        error = np.sqrt(variance) / (found.value * (1 - found.value))
        assert found.standard_error == pytest.approx(error, rel=1e-5)


def test_perfect_ranking_still_has_an_interval():
    for n in (4, 20, 200):
        outcome = np.arange(n) % 2
        found = auc_interval(outcome, outcome * 1.0)
        assert found.value == 1 and found.high == 1 and 0.2 < found.low < 1
        assert auc_interval(1 - outcome, outcome * 1.0).low == 0
    # Newcombe's score interval solves (θ − 1)² = z² V(θ).
    low, m = auc_interval([0, 1] * 10, [0.0, 1.0] * 10).low, 10
    v = low * (1 - low) * (1 + (m - 1) * ((1 - low) / (2 - low) + low / (1 + low))) / m**2
    assert (1 - low) ** 2 == pytest.approx(1.959963984540054**2 * v, rel=1e-6)
    # One class alone has no area; one row of a class has a wide interval.
    one = auc_interval([1, *[0] * 50], np.linspace(1, 0, 51))
    assert one.value == 1 and one.low < 0.6
    # Repeating every row tells nothing new, once it is said which rows belong together.
    y, p = np.array([0, 1, 0, 1, 1, 0, 0, 1]), np.array([0.1, 0.4, 0.5, 0.9, 0.7, 0.2, 0.6, 0.3])
    alone = auc_interval(y, p, groups=np.arange(8))
    thrice = auc_interval(np.tile(y, 3), np.tile(p, 3), groups=np.tile(np.arange(8), 3))
    assert (thrice.low, thrice.high) == pytest.approx((alone.low, alone.high))
    assert auc_interval(np.tile(y, 3), np.tile(p, 3)).low > alone.low
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(auc_interval([1, 1], [0.2, 0.3], classes=[0, 1]).value)
        assert np.isnan(auc_interval([1, 1], [[0.2, 0.8, 0]] * 2, classes=[0, 1, 2]).value)
    for bad in ({"level": 1.0}, {"groups": [1, 2]}):
        with pytest.raises(ValueError, match="must"):
            auc_interval(y, p, **bad)


def test_the_difference_of_areas_is_delongs():
    rng = np.random.default_rng(5)
    y = rng.random(120) < 0.4
    p, q = (np.round(1 / (1 + np.exp(-(2 * y + rng.normal(size=120)))), 2) for _ in range(2))

    def placements(s):
        kernel = (s[y][:, None] > s[~y]) + 0.5 * (s[y][:, None] == s[~y])
        return kernel.mean(1), kernel.mean(0)

    (a1, b1), (a2, b2) = placements(p), placements(q)
    variance = (a1 - a2).var(ddof=1) / y.sum() + (b1 - b2).var(ddof=1) / (~y).sum()
    found = auc_difference(y, p, q)
    assert_allclose(found.value, a1.mean() - a2.mean())
    quantile = student.ppf(0.975, min(y.sum(), (~y).sum()) - 1)
    assert_allclose(found.high - found.low, 2 * quantile * variance**0.5)
    assert_allclose(found.value, auc_interval(y, p).value - auc_interval(y, q).value)
    same = auc_difference(y, p, p)
    assert same.value == same.low == same.high == 0 and same.pvalue == 1
    twice = np.repeat(np.arange(120), 2)
    grouped = auc_difference(y[twice], p[twice], q[twice], groups=twice)
    assert grouped.high - grouped.low == pytest.approx(found.high - found.low, rel=0.02)


def test_an_area_of_no_right_pair_is_0_with_any_number_of_classes():
    p = np.where(np.eye(3), 0.0, 0.5)
    assert auc_interval([0, 1, 2], p).value == 0
    assert np.isnan(auc_interval([0, 0, 0], p, classes=range(3)).value)
