"""Calibration errors, and tests of calibration."""

import math

import numpy as np
import pytest
from scipy import stats

from oracles import formulas as oracle
from support.cases import close, draw_estimates
from vennforest import metrics
from vennforest.metrics.calibration_tests import range_sf


def test_binned_errors_agree_with_the_slow_ones():
    rng = np.random.default_rng(1)
    for _ in range(60):
        y, p = draw_estimates(rng)
        bins, w = int(rng.integers(1, 20)), rng.integers(1, 4, len(y))
        options = {"bins": bins, "sample_weight": w, "classes": [0, 1]}
        codes = [oracle._bin_of(q, bins) for q in p.tolist()]
        if rng.random() < 0.4:
            options["strategy"] = "quantile"
            codes = oracle.quantile_bins(p.tolist(), bins, w.tolist())
        gaps = oracle.calibration_gaps(y.tolist(), p.tolist(), codes, w.tolist())
        for kind, expected in (
            ("expected", math.fsum(share * gap for share, gap in gaps)),
            ("maximum", max(gap for _, gap in gaps)),
            ("root-mean-square", math.sqrt(math.fsum(share * gap**2 for share, gap in gaps))),
        ):
            close(metrics.calibration_error(y, p, kind=kind, **options), expected)


def test_errors_of_many_classes_agree_with_the_slow_ones():
    rng = np.random.default_rng(2)
    for _ in range(60):
        k, n = int(rng.integers(2, 5)), int(rng.integers(1, 40))
        p = rng.dirichlet(np.ones(k), n)
        y = rng.integers(0, k, n)
        confidence, right = p.max(axis=1).tolist(), (p.argmax(axis=1) == y).astype(int).tolist()
        guo = oracle.expected_calibration_error(right, confidence)
        close(metrics.calibration_error(y, p, kind="confidence", classes=range(k)), guo)
        if k > 2:
            close(metrics.calibration_error(y, p, classes=range(k)), guo)
        each = [
            oracle.expected_calibration_error((y == j).astype(int).tolist(), p[:, j].tolist())
            for j in range(k)
        ]
        close(metrics.calibration_error(y, p, kind="classwise", classes=range(k)), np.mean(each))


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
