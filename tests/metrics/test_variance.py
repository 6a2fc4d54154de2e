"""Variances, effective rows and intervals of shares, by hand and against scipy."""

import warnings

import numpy as np
import pytest

from vennforest.metrics import (
    Estimates,
    auc_interval,
    calibration_tests,
    threshold_table,
)
from vennforest.metrics.variance import share_interval, share_pvalue


def test_a_weighted_interval_is_that_of_the_effective_rows():
    rng = np.random.default_rng(2)
    p, weight = rng.random(60), rng.random(60) * 300
    y = (rng.random(60) < p).astype(int)
    table = threshold_table(y, p, [0.5], sample_weight=weight, level=0.95)
    part = weight[y == 1]
    n, share = part.sum() ** 2 / (part @ part), table.sensitivity[0]
    middle, z2 = (share + 1.9207 / n) / (1 + 3.8415 / n), 1.959963984540054**2
    half = np.sqrt(z2) / (1 + z2 / n) * np.sqrt(share * (1 - share) / n + z2 / (4 * n**2))
    low, high = (ends[0] for ends in table.intervals["sensitivity"])
    assert (low, high) == pytest.approx((middle - half, middle + half), rel=1e-4)
    weighted = auc_interval(y, p, sample_weight=rng.integers(1, 4, 60) * 1.0)
    assert 0 < weighted.low < weighted.value < weighted.high < 1


def test_survey_weights_of_any_sum_are_no_counts_and_no_warning():
    rng = np.random.default_rng(21)
    p = rng.random(300)
    y, weight = rng.random(300) < p, rng.uniform(0.5, 2, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        intervals = [Estimates(y, p, sample_weight=weight * of).log_loss() for of in (1, 600)]
    assert intervals[0].low == pytest.approx(intervals[1].low)


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


@pytest.mark.parametrize("k", [2, 3])
def test_of_one_group_no_interval_is_known(k):
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.ones(k), 300)
    y = (rng.random(300)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    judged = Estimates(y, p, groups=np.zeros(300), classes=range(k))
    measured = [judged.auc(), judged.log_loss(), judged.brier(), judged.brier_skill()]
    measured += judged.calibration_and_ranking().values()
    assert all(np.isfinite(m.value) and np.isnan([m.low, m.high, m.pvalue]).all() for m in measured)
    curve = judged.reliability_curve()
    assert np.isnan([curve.bin_low, curve.bin_high]).all()
    table = Estimates(y == 0, p[:, 0], groups=np.zeros(300)).threshold_table([0.5], level=0.95)
    assert np.isnan([*table.intervals.values()]).all()
    tests = judged.tests()
    assert np.isnan([tests.pvalue, *tests.pvalues.values(), *tests.class_pvalues]).all()


@pytest.mark.parametrize("scale", [1e-12, 0.1, 1e6])
def test_the_scale_of_weights_and_the_order_of_rows_do_not_count(scale):
    rng = np.random.default_rng(8)
    for i in range(40):
        n, order = 60, rng.permutation(60)
        p, weight = rng.random(n), rng.lognormal(0, 1, n) if i % 2 else np.ones(n)
        y = rng.random(n) < p if i % 4 else np.ones(n, bool)
        groups = rng.integers(0, 15, n) if i % 3 else np.arange(n)
        first = Estimates(y, p, sample_weight=weight, groups=groups, classes=[False, True])
        options = {"sample_weight": scale * weight[order], "groups": groups[order]}
        second = Estimates(y[order], p[order], classes=[False, True], **options)
        values = []
        for judged in (first, second):
            line, table = judged.line(), judged.threshold_table([0.5], level=0.95)
            measures = (line.observed_expected, line.slope, judged.log_loss_skill())
            numbers = [end for m in measures for end in (m.value, m.low, m.high, m.pvalue)]
            numbers += [judged.distances().ici.value, judged.tests().pvalue]
            values.append(np.r_[numbers, np.ravel([*table.intervals.values()])])
        np.testing.assert_allclose(values[0], values[1], rtol=1e-6, atol=1e-9)


def test_rows_without_an_error_do_not_make_the_number_of_events_certain():
    y = np.array([0, 1] * 50)
    ratio = Estimates(y, y.astype(float)).observed_expected()
    assert (ratio.value, ratio.pvalue) == (1, 1)
    assert ratio.low < 0.85
    assert ratio.high > 1.15
    weight = np.random.default_rng(1).lognormal(0, 2, 100)
    weighted = Estimates(y, y.astype(float), sample_weight=weight).observed_expected()
    assert np.isnan([weighted.low, weighted.high]).all()
