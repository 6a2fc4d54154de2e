"""Calibration errors, their intervals, and tests of calibration."""

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oracles import formulas as oracle
from support.cases import close, draw_estimates
from vennforest import metrics
from vennforest.metrics.calibration_error import Kind
from vennforest.metrics.calibration_line import range_sf

KINDS = get_args(Kind)


def test_binned_errors_agree_with_the_slow_ones():
    rng = np.random.default_rng(1)
    for _ in range(1000):
        y, p = draw_estimates(rng)
        bins = int(rng.integers(1, 20))
        codes = [oracle._bin_of(q, bins) for q in p.tolist()]
        gaps = oracle.calibration_gaps(y.tolist(), p.tolist(), codes)
        for kind, expected in (
            ("expected", math.fsum(share * gap for share, gap in gaps)),
            ("maximum", max(gap for _, gap in gaps)),
            ("root-mean-square", math.sqrt(math.fsum(share * gap**2 for share, gap in gaps))),
        ):
            close(metrics.calibration_error(y, p, kind=kind, bins=bins), expected)


def test_errors_of_many_classes_agree_with_the_slow_ones():
    rng = np.random.default_rng(2)
    for _ in range(200):
        k, n = int(rng.integers(2, 5)), int(rng.integers(1, 40))
        p = rng.dirichlet(np.ones(k), n)
        y = rng.integers(0, k, n)
        predicted = p.argmax(axis=1)
        confidence, right = p.max(axis=1).tolist(), (predicted == y).astype(int).tolist()
        guo = oracle.expected_calibration_error(right, confidence)
        close(metrics.calibration_error(y, p, kind="confidence", classes=range(k)), guo)
        if k > 2:
            close(metrics.calibration_error(y, p, classes=range(k)), guo)
        top = 0.0
        for label in range(k):
            rows = np.flatnonzero(predicted == label)
            if len(rows):
                part = oracle.expected_calibration_error(
                    [right[i] for i in rows], [confidence[i] for i in rows]
                )
                top += len(rows) / n * part
        close(metrics.calibration_error(y, p, kind="top-label", classes=range(k)), top)
        each = [
            oracle.expected_calibration_error((y == j).astype(int).tolist(), p[:, j].tolist())
            for j in range(k)
        ]
        close(metrics.calibration_error(y, p, kind="classwise", classes=range(k)), np.mean(each))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30),
    st.sampled_from(KINDS),
    st.randoms(use_true_random=False),
)
def test_errors_lie_in_the_unit_interval_and_ignore_order(rows, kind, random):
    error = metrics.calibration_error([r[0] for r in rows], [r[1] for r in rows], kind=kind)
    assert 0 <= error <= 1
    random.shuffle(rows)
    again = metrics.calibration_error([r[0] for r in rows], [r[1] for r in rows], kind=kind)
    close(again, error, 1e-9)


def test_smooth_error_agrees_with_the_slow_one():
    rng = np.random.default_rng(3)
    for case in range(8):
        n = int(rng.integers(1, 12))
        p = rng.random(n) if case % 2 else rng.choice([0, 0.01, 0.3, 0.99, 1.0], n)
        y = (rng.random(n) < 0.5).astype(int)
        w = rng.integers(1, 4, n)
        slow = oracle.smooth_calibration_error(y, p, w, points=6001)
        fast = metrics.calibration_error(y, p, kind="smooth", sample_weight=w)
        np.testing.assert_allclose(fast, slow, atol=3e-5)


def test_smooth_error_of_constant_estimates_is_the_gap_where_the_kernel_stays_inside():
    # All residuals at one place: smoothing keeps their sum, so the error is |mean y − p|.
    for p, share in ((0.5, 0.7), (0.2, 0.21), (0.0, 0.3), (1.0, 0.999)):
        y = np.arange(1000) < share * 1000
        close(metrics.calibration_error(y, np.full(1000, p), kind="smooth"), abs(share - p), 1e-9)


def test_smooth_error_of_very_small_gaps():
    n = 1_000_000
    y, p = np.zeros(n), np.zeros(n)
    assert metrics.calibration_error(y, p, kind="smooth") == 0
    y[0] = 1
    close(metrics.calibration_error(y, p, kind="smooth"), 1e-6, 1e-8)
    p[:] = 1e-5
    close(metrics.calibration_error(np.zeros(n), p, kind="smooth"), 1e-5, 1e-9)


def test_smooth_error_cancels_opposite_residuals_that_are_near():
    # One-ulp neighbours in place of ties: binned by distinct values they would give 0.5.
    y = np.array([0, 1] * 50)
    p = 0.5 + np.arange(100) * 1e-9
    assert metrics.calibration_error(y, p, kind="smooth") < 1e-3
    close(metrics.calibration_error(y, p, bins="distinct"), 0.5, 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2, 3])
def test_interval_holds_the_estimate_and_follows_the_seed(kind, k):
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(k), 150)
    y = np.array([rng.choice(k, p=row**2 / (row**2).sum()) for row in p])
    options = {"kind": kind, "classes": range(k), "n_resamples": 40}
    first = metrics.calibration_error_interval(y, p, random_state=5, **options)
    assert first == metrics.calibration_error_interval(y, p, random_state=5, **options)
    if first.low > 0:
        assert first != metrics.calibration_error_interval(y, p, random_state=6, **options)
    assert 0 <= first.low <= first.estimate <= first.high <= 1
    assert first.low < first.high
    assert first.estimate == metrics.calibration_error(y, p, kind=kind, classes=range(k))


def test_interval_takes_weights_as_repeated_observations():
    rng = np.random.default_rng(5)
    p, w = rng.random(60), rng.integers(0, 4, 60)
    y = rng.random(60) < p**3
    rows = np.repeat(np.arange(60), w)
    a = metrics.calibration_error_interval(y, p, sample_weight=w, random_state=0)
    b = metrics.calibration_error_interval(y[rows], p[rows], random_state=0)
    close(a, b)
    c = metrics.calibration_error_interval(y, p, sample_weight=w + 1e-7, random_state=0)
    np.testing.assert_allclose(c, b, atol=0.06)


def test_interval_covers_the_true_error():
    rng = np.random.default_rng(6)
    levels = np.linspace(0.05, 0.95, 10)  # one value a bin, so that the true error is known
    for power in (1.0, 1.3, 2.0):
        truth = np.mean(np.abs(levels - levels**power))
        hits = 0
        for _ in range(60):
            p = rng.choice(levels, 500)
            y = rng.random(500) < p**power
            e = metrics.calibration_error_interval(y, p, bins=10, n_resamples=100, random_state=rng)
            hits += e.low <= truth <= e.high
        assert hits >= 51, power


def test_interval_refuses_what_is_out_of_range():
    with pytest.raises(ValueError, match=r"confidence_level must lie in \(0, 1\), got 95"):
        metrics.calibration_error_interval([0, 1], [0.1, 0.2], confidence_level=95)
    with pytest.raises(ValueError, match="n_resamples must be at least 1, got 0"):
        metrics.calibration_error_interval([0, 1], [0.1, 0.2], n_resamples=0)
    with pytest.raises(ValueError, match=r"kind must be one of .*, got 'mean'"):
        metrics.calibration_error([0, 1], [0.1, 0.2], kind="mean")


@pytest.mark.parametrize("k", [2, 3, 5])
def test_spiegelhalter_agrees_with_the_slow_one(k):
    rng = np.random.default_rng(7)
    for _ in range(200):
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
    for _ in range(300):
        y, p = draw_estimates(rng)
        p = p.clip(0.001, 0.999)
        spread = oracle.cumulative_differences(y.tolist(), p.tolist())
        close(metrics.kuiper_test(y, p).statistic, spread, 1e-10)


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


def test_the_law_agrees_with_simulated_walks():
    rng = np.random.default_rng(9)
    walk = np.cumsum(rng.standard_normal((1000, 4000)), axis=1) / math.sqrt(4000)
    high, low = walk.max(axis=1).clip(0), walk.min(axis=1).clip(max=0)
    # A walk in steps stays a little inside the motion's range, by about 0.58/√4000 an end.
    p = np.array([range_sf(v) for v in high - low])
    assert stats.kstest(p, "uniform").statistic < 0.07


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
