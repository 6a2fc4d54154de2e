"""Tests of the calibration of several classes, of groups, weights and few events."""

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

from vennforest.metrics import calibration_tests, kuiper_test, spiegelhalter_test
from vennforest.metrics.variance import share_interval, share_pvalue


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


def test_the_count_of_weighted_rows_has_one_exact_test():
    rng = np.random.default_rng(3)
    n = 40
    w = rng.gamma(2, 1, n)
    for events in (0, 3, 6):
        y, p = rng.permutation(np.arange(n) < events), np.full(n, 0.1)
        pvalue = share_pvalue(y.astype(float), w, 0.1)
        low, high = share_interval(y.astype(float), None, w, 1 - pvalue, exact=True)
        assert pvalue == 1 or min(abs(low - 0.1), abs(high - 0.1)) < 1e-9
        tests = calibration_tests(y, p, sample_weight=w, classes=[0, 1])
        assert tests.pvalues == {"count": pytest.approx(pvalue)}
