"""Intercept, slope, and observed over expected events: the likelihood and the jackknife."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest
from scipy.stats import t as student

from vennforest.metrics import (
    calibration_line,
)


def minus_likelihood(beta, odds, outcome):
    eta = beta[0] + beta[1] * odds
    return (np.logaddexp(0, eta) - outcome * eta).sum()


def test_intercept_and_slope_maximise_the_likelihood():
    rng = np.random.default_rng(4)
    for _ in range(25):
        n = int(rng.integers(40, 120))
        odds = rng.normal(size=n) * rng.choice([0.3, 1, 4]) + rng.normal()
        outcome = (rng.random(n) < expit(rng.normal() + odds * rng.uniform(0.2, 1.5))).astype(int)
        outcome[:2] = [0, 1]
        p = expit(odds)
        line = calibration_line(outcome, p)
        options = {"method": "BFGS", "options": {"gtol": 1e-8}}
        both = minimize(minus_likelihood, [0, 1], (odds, outcome), **options)
        alone = minimize(lambda a, o=odds, y=outcome: minus_likelihood([a[0], 1], o, y), [0],
                         **options)  # fmt: skip
        if np.isnan(line.slope.value):
            assert abs(both.x[1]) > 20 or both.fun < 1e-3
            continue
        assert line.slope.value == pytest.approx(both.x[1], abs=2e-4 * max(1, abs(both.x[1])))
        assert line.intercept.value == pytest.approx(alone.x[0], abs=2e-4)
        mean = expit(both.x[0] + both.x[1] * odds)
        design = np.column_stack([np.ones(n), odds])
        error = np.sqrt(np.linalg.inv((design * (mean * (1 - mean))[:, None]).T @ design)[1, 1])
        assert line.slope.high - line.slope.value == pytest.approx(1.95996 * error, rel=1e-2)
        ratio = outcome.sum() / p.sum()
        assert line.observed_expected.value == pytest.approx(ratio)
        n_events = min(outcome.sum(), n - outcome.sum())
        if n_events < 10:  # exact
            ends = binomtest(int(outcome.sum()), n).proportion_ci(0.95, "exact")
            assert line.observed_expected.high == pytest.approx(ends.high * n / p.sum())
            continue
        error = np.sqrt(((outcome - ratio * p) ** 2).sum() * n / (n - 1)) / outcome.sum()
        spread = np.exp(student.ppf(0.975, n_events - 1) * error)
        assert line.observed_expected.high == pytest.approx(ratio * spread)


def test_intervals_of_groups_are_those_of_leaving_one_out():
    rng = np.random.default_rng(9)
    for n_groups in (10, 20, 40):
        odds, groups = rng.normal(size=400), np.arange(400) % n_groups
        p, y = expit(odds), rng.random(400) < expit(0.3 + 0.8 * odds)
        line = calibration_line(y, p, groups=groups)
        fits = {"slope": [], "intercept": []}
        for g in range(n_groups):
            part = calibration_line(y[groups != g], p[groups != g])
            for name, values in fits.items():
                values.append(getattr(part, name).value)
        for name, values in fits.items():
            estimate = getattr(line, name)
            moves = np.array(values) - estimate.value
            error = np.sqrt((moves**2).sum() * (n_groups - 1) / n_groups)
            assert estimate.standard_error == pytest.approx(error, rel=0.04)
            counts = [np.bincount(groups, y == side) for side in (0, 1)]
            units = min(count.sum() ** 2 / (count @ count) for count in counts)
            half = student.ppf(0.975, units - 1) * estimate.standard_error
            assert estimate.high - estimate.value == pytest.approx(half)
        ratio = y.sum() / p.sum()
        sums = np.bincount(groups, y - ratio * p)
        error = np.sqrt((sums @ sums) * n_groups / (n_groups - 1)) / y.sum()
        assert line.observed_expected.standard_error == pytest.approx(error)


def test_no_event_has_an_exact_interval():
    p = np.full(400, 0.06)
    nobody = calibration_line(np.zeros(400, int), p, classes=[0, 1]).observed_expected
    assert (nobody.value, nobody.low) == (0, 0)
    assert nobody.high == pytest.approx((1 - 0.025 ** (1 / 400)) / 0.06)
    assert nobody.pvalue == pytest.approx(2 * 0.94**400)


def test_rows_of_probability_0_and_1_are_not_in_the_line():
    rng = np.random.default_rng(8)
    for _ in range(30):
        p = rng.random(60)
        y, groups = (rng.random(60) < p).astype(int), rng.integers(0, 20, 60)
        edge = rng.integers(0, 2, 5)
        more = {"y": [*y, *rng.integers(0, 2, 5)], "groups": np.array([*groups, 1, 2, 30, 31, 31])}
        line = calibration_line(p=[*p, *edge], **more)
        other = calibration_line(y, p, groups=groups)
        assert line.certain == 5 and (line.slope, line.intercept) == (other.slope, other.intercept)


def test_no_line_where_there_is_none():
    certain = calibration_line([0, 1] * 20, [1e-300, 1 - 1e-16] * 20)
    assert np.isnan(certain.slope.low) and np.isnan(certain.intercept.low)
    line = calibration_line([0, 1, 0, 1], [0.0, 0.4, 0.2, 1.0])
    assert line.certain == 2 and np.isnan(line.slope.value)  # 0.4 and 0.2 are separated
    for none_left in (calibration_line([0, 1], [0.0, 1.0]), calibration_line([1, 0], [0.0, 1.0])):
        assert none_left.certain == 2 and np.isnan(none_left.intercept.value)
    separated = calibration_line([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.8, 0.9])
    assert np.isnan(separated.slope.value) and np.isfinite(separated.intercept.value)
    constant = calibration_line([0, 1, 1], [0.5, 0.5, 0.5])
    assert np.isnan(constant.slope.value)
    assert constant.intercept.value == pytest.approx(np.log(2))
    nobody = calibration_line([0, 0, 0], [0.2, 0.1, 0.3], classes=[0, 1])
    assert nobody.observed_expected.value == 0 and np.isnan(nobody.intercept.value)
    tiny = calibration_line([0, 1, 0, 1], [1e-300, 0.4, 1 - 1e-16, 0.6])
    assert tiny.certain == 0 and np.isfinite(tiny.slope.value)
    y, p = np.array([0, 1, 0, 1, 1, 0, 1, 0]), np.array([0.1, 0.4, 0.5, 0.9, 0.7, 0.2, 0.3, 0.6])
    once = calibration_line(y, p, groups=range(8))
    twice = calibration_line(np.tile(y, 2), np.tile(p, 2), groups=np.tile(np.arange(8), 2))
    for name in ("slope", "intercept"):
        first, second = getattr(once, name), getattr(twice, name)
        assert (first.value, first.low) == pytest.approx((second.value, second.low), abs=1e-6)
