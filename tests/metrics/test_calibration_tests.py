"""Tests of calibration: formulas, levels, groups, weights and few events."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest, chi2

from oracles import formulas as oracle
from support.cases import close, draw_estimates
from vennforest import metrics
from vennforest.metrics import calibration_tests, kuiper_test, spiegelhalter_test
from vennforest.metrics.calibration_tests import range_sf


def draw(rng, p, u=None):
    u = rng.random(len(p)) if u is None else u
    return (u[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


def test_class_means_agree_with_the_formula_and_classes_with_kuiper():
    rng = np.random.default_rng(np.random.SeedSequence().entropy)
    for _ in range(50):
        k, n = int(rng.integers(3, 6)), int(rng.integers(200, 400))
        p = rng.dirichlet(np.full(k, 2.0), n)
        y = draw(rng, p)
        tests = calibration_tests(y, p, classes=range(k))
        r = np.sum(np.eye(k)[y] - p, axis=0)
        variance = sum(np.diag(row) - np.outer(row, row) for row in p)
        expected = chi2.sf(r @ np.linalg.pinv(variance) @ r, k - 1)
        assert tests.pvalues["class means"] == pytest.approx(expected, rel=1e-6)
        each = [kuiper_test(y == j, p[:, j]).pvalue for j in range(k)]
        np.testing.assert_allclose(tests.class_pvalues, np.minimum(1, k * np.array(each)))
        both = [test(y, p, classes=range(k)).pvalue for test in (spiegelhalter_test, kuiper_test)]
        assert tests.pvalues["top label"] == pytest.approx(min(1, 2 * min(both)))
        assert tests.pvalue == pytest.approx(min(1, 3 * min(tests.pvalues.values())))
        np.testing.assert_allclose(tests.class_excess * n, r, atol=1e-9)


def test_an_exchange_of_two_classes_behind_the_predicted_one_is_seen():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([6, 2, 1, 1], 5000)
    moved = np.minimum(0.03, p[:, 3])
    q = p + np.outer(moved, [0, 0, 1, -1])
    tests = calibration_tests(draw(rng, q), p)
    assert tests.pvalues["top label"] > 0.02 > tests.pvalue
    assert np.flatnonzero(tests.class_pvalues < 0.02).tolist() == [2, 3]


@pytest.mark.parametrize("design", ["rows", "groups", "weights", "rare classes", "few events"])
def test_right_probabilities_are_rarely_rejected(design):
    rng, n_rejected = np.random.default_rng(7), 0
    for _ in range(150):
        n, k = 240, 2 if design == "few events" else 4
        p = rng.dirichlet(np.ones(k), n)
        if k == 2:
            p = np.column_stack([1 - 0.02 * p[:, 0], 0.02 * p[:, 0]])
        elif design == "rare classes":
            p = np.exp(np.log([1, 0.01, 0.003, 0.001]) + rng.normal(size=(n, 4)))
            p /= p.sum(axis=1, keepdims=True)
        groups = np.repeat(np.arange(n // 4), 4)
        u = np.where(rng.random(n) < 0.6, rng.random(n)[groups], rng.random(n))
        y = draw(rng, p, u if design == "groups" else None)
        options = {"groups": groups} if design == "groups" else {}
        if design == "weights":
            options = {"sample_weight": 100 * rng.gamma(1, 1, n)}
        n_rejected += calibration_tests(y, p, classes=range(k), **options).pvalue < 0.05
    assert n_rejected <= 14  # 0.995 quantile of a binomial variable


def test_few_expected_events_are_counted_exactly():
    p = np.full(1000, 0.002)
    for events in (0, 1, 7):
        y = np.arange(1000) < events
        exact = 2 * min(binomtest(events, 1000, 0.002, side).pvalue for side in ("less", "greater"))
        tests = calibration_tests(y, p, classes=[False, True])
        assert tests.pvalues == {"count": pytest.approx(min(1, exact))}


def test_no_p_value_with_few_groups_that_correlate():
    groups, rng = np.repeat(np.arange(6), 50), np.random.default_rng(0)
    y = np.repeat(rng.permutation([0, 0, 0, 1, 1, 1]), 50)
    assert np.isnan(calibration_tests(y, np.full(300, 0.5), groups=groups).pvalue)
    three = np.repeat(rng.permutation([0, 0, 1, 1, 2, 2]), 50)
    assert np.isnan(calibration_tests(three, np.full((300, 3), 1 / 3), groups=groups).pvalue)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_spiegelhalter_agrees_with_the_slow_one(k):
    rng = np.random.default_rng(7)
    for _ in range(60):
        n = int(rng.integers(1, 30))
        p = rng.dirichlet(np.ones(k), n)
        y = rng.integers(0, k, n)
        z, pvalue = metrics.spiegelhalter_test(y, p, classes=range(k))
        np.testing.assert_allclose(
            z, oracle.spiegelhalter_z(y.tolist(), p.tolist()), rtol=1e-9, atol=1e-9
        )
        close(pvalue, 2 * stats.norm.sf(abs(z)))


def test_cumulative_tests_agree_with_the_slow_ones():
    rng = np.random.default_rng(8)
    for _ in range(120):
        y, p = draw_estimates(rng)
        p = p.clip(0.001, 0.999)
        spread = oracle.cumulative_differences(y.tolist(), p.tolist())
        close(metrics.kuiper_test(y, p, classes=[0, 1]).statistic, spread, 1e-10)


def test_the_law_of_the_range_of_a_brownian_motion():
    x = np.linspace(0, 12, 24001)
    sf = np.array([range_sf(v) for v in x])
    assert sf[0] == 1
    assert (np.diff(sf) <= 1e-14).all()
    close((sf.sum() - (sf[0] + sf[-1]) / 2) * (x[1] - x[0]), math.sqrt(8 / math.pi), 1e-9)
    # Both series meet: no jump where one hands over to the other.
    assert np.abs(np.diff(sf, 2)).max() < 1e-5
    assert range_sf(0.05) == 1
    assert 0 < range_sf(12.0) < 1e-30
    assert range_sf(math.inf) == 0


@pytest.mark.parametrize("test", [metrics.spiegelhalter_test, metrics.kuiper_test])
@pytest.mark.parametrize("k", [2, 4])
def test_level_under_calibration_and_power_without(test, k):
    rng = np.random.default_rng(10)
    p = np.clip(rng.dirichlet(np.ones(k), (300, 1000)), 1e-12, 1)
    p /= p.sum(axis=2, keepdims=True)
    y = (rng.random((300, 1000, 1)) > np.cumsum(p, axis=2)).sum(axis=2).clip(max=k - 1)
    pvalues = np.array([test(a, b, classes=range(k)).pvalue for a, b in zip(y, p, strict=True)])
    for level in (0.05, 0.2, 0.5):
        rejected = np.mean(pvalues <= level)
        spread = 4 * math.sqrt(level * (1 - level) / 300)
        assert level - spread - 0.06 <= rejected <= level + spread
    sharp = p**2 / (p**2).sum(axis=2, keepdims=True)
    for a, b in zip(y[:20], sharp[:20], strict=True):
        assert test(a, b, classes=range(k)).pvalue < 1e-3


@pytest.mark.parametrize("test", [metrics.spiegelhalter_test, metrics.kuiper_test])
def test_estimates_without_variance(test):
    assert test([0, 1], [0.0, 1.0]) == (0.0, 1.0)
    assert test([0, 1], [1.0, 1.0]) == (math.inf, 0.0)
