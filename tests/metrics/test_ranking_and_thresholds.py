"""Ranking, thresholds, decision curves and weak calibration against their slow versions."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest, norm
from scipy.stats import t as student

from oracles import ranking as slow
from vennforest import Multiprobability
from vennforest.metrics import (
    Estimates,
    auc_interval,
    calibration_line,
    decision_curve,
    threshold_table,
)


def problems(n_cases, seed, n=24):
    """Outcomes with both classes, estimates with ties, constants and neighbours one ulp apart."""
    rng = np.random.default_rng(seed)
    for i in range(n_cases):
        size = int(rng.integers(4, n))
        outcome = rng.integers(2, size=size)
        outcome[:2] = [0, 1]
        p = rng.random(size)
        if i % 4 == 1:
            p = np.round(p, 1)
        elif i % 4 == 2:
            p = np.nextafter(np.repeat(0.5, size), rng.choice([0.0, 0.5, 1.0], size))
        elif i % 7 == 3:
            p = np.full(size, 0.3)
        yield outcome, p, rng


def test_area_and_its_variance_are_delongs():
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


def test_shares_at_thresholds_that_flag_all_or_no_weighted_rows_are_exact():
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, weight = rng.uniform(0.01, 0.99, 60), 10.0 ** rng.uniform(-3, 3, 60)
        table = threshold_table(rng.random(60) < p, p, [0.0, 1.0], sample_weight=weight)
        assert table.flagged.tolist() == [1, 0]
        assert table.sensitivity.tolist() == [1, 0] and table.specificity.tolist() == [0, 1]
        np.testing.assert_array_equal(np.isnan(table.negative_value), [True, False])
        np.testing.assert_array_equal(np.isnan(table.positive_value), [False, True])


def test_threshold_tables_and_decision_curves_count_row_by_row():
    checked = 0
    for outcome, p, rng in problems(80, 3):
        low = np.clip(p - rng.random(len(p)) / 3, 0, 1)
        high = np.clip(p + rng.random(len(p)) / 3, 0, 1)
        weight = np.ones(len(p)) if rng.random() < 0.5 else rng.integers(0, 4, len(p)) * 1.0
        if not (weight * outcome).any() or not (weight * (1 - outcome)).any():
            continue
        at = np.concatenate([[0.5, 0.25], rng.choice(p, 2), rng.choice(low, 1)]).clip(1e-9, 0.999)
        bounds = Multiprobability(
            np.column_stack([1 - high, low]), np.column_stack([1 - low, high]), np.array([0, 1])
        )
        table = threshold_table(outcome, p, at, bounds=bounds, sample_weight=weight)
        curve = decision_curve(outcome, p, at, sample_weight=weight)
        for i, t in enumerate(at):
            wanted = slow.threshold_row(outcome, p, weight, t, low, high)
            for name in ("flagged", "sensitivity", "specificity", "positive_value",
                         "negative_value"):  # fmt: skip
                np.testing.assert_allclose(getattr(table, name)[i], wanted[name], atol=1e-12)
            shares = [wanted["three"][name][0] for name in ("yes", "no", "depends")]
            assert [table.sure_yes[i], table.sure_no[i], table.depends[i]] == pytest.approx(shares)
            assert curve.net_benefit[i] == pytest.approx(wanted["net_benefit"])
            everyone = slow.threshold_row(outcome, np.ones(len(p)), weight, t)["net_benefit"]
            assert curve.everyone[i] == pytest.approx(everyone)
            checked += 1
    assert checked > 200
    text = threshold_table(["a", "b", "b"], [0.1, 0.6, 0.4], 0.5, pos_label="a")
    assert text.sensitivity.tolist() == [0.0] and text.flagged.tolist() == [pytest.approx(1 / 3)]
    for measure, threshold in ((threshold_table, 1.5), (decision_curve, 0.0)):
        with pytest.raises(ValueError, match="thresholds must lie"):
            measure([0, 1], [0.1, 0.2], [threshold])
    with pytest.raises(ValueError, match="bounds must be of 3 rows"):
        m = Multiprobability(np.eye(2), np.eye(2), np.array([0, 1]))
        threshold_table([0, 1, 1], [0.1, 0.2, 0.3], 0.5, bounds=m)


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


@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_of_sensitivity_and_specificity_are_wilsons_of_the_effective_rows(grouped):
    confint = pytest.importorskip("statsmodels.stats.proportion").proportion_confint
    rng = np.random.default_rng(21)
    groups = rng.integers(0, 40, 200)
    p = np.clip(rng.random(40)[groups] + rng.normal(0, 0.1, 200), 0, 1)
    y = (rng.random(200) < p).astype(int)
    table = threshold_table(y, p, [0.3, 0.6], groups=groups if grouped else None, level=0.9)
    for i, at in enumerate((0.3, 0.6)):
        flagged = p >= at
        shares = {
            "sensitivity": (y == 1, flagged), "specificity": (y == 0, ~flagged),
            "positive_value": (flagged, y == 1), "negative_value": (~flagged, y == 0),
        }  # fmt: skip
        for name, (among, hit) in shares.items():
            n, share = among.sum(), hit[among].mean()
            if grouped:  # Korn & Graubard: n over the design effect, times (z / t)²
                sums = [
                    ((hit - share) * among)[groups == g].sum() for g in np.unique(groups[among])
                ]
                m = len(sums)
                effect = max(1, m / (m - 1) * np.square(sums).sum() / (n * share * (1 - share)))
                n = n / effect * (norm.ppf(0.95) / student.ppf(0.95, m - 1)) ** 2
            low, high = confint(share * n, n, 0.1, "wilson")
            ends = table.intervals[name]
            assert getattr(table, name)[i] == pytest.approx(share)
            assert (ends[0][i], ends[1][i]) == pytest.approx((low, high), rel=1e-6)


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


def test_gain_is_over_the_better_of_flagging_everybody_and_nobody():
    rng = np.random.default_rng(8)
    p = rng.random(300) * 0.6
    y = (rng.random(300) < p).astype(int)
    at = np.array([0.05, 0.2, 0.4, 0.55])
    curve = decision_curve(y, p, at)
    none, everyone = (decision_curve(y, p, at, versus=np.full(300, v)) for v in (0, 1))
    np.testing.assert_allclose(curve.net_benefit_low, none.difference_low)
    for end in ("", "_low", "_high"):
        pair = [vars(c)[f"difference{end}"] for c in (none, everyone)]
        np.testing.assert_allclose(vars(curve)[f"gain{end}"], np.minimum(*pair))


def test_rows_lost_before_the_horizon_weigh_in_those_who_were_followed():
    rng = np.random.default_rng(5)
    n, horizon = 6000, 2.0
    risk = rng.uniform(0.5, 2, n)
    time, lost = rng.exponential(1 / (0.15 * risk)), rng.uniform(0, 4, n)
    p, y = 1 - np.exp(-0.15 * risk * horizon), time <= lost
    seen = np.minimum(time, lost)
    matured = Estimates(y, p, follow_up=(seen, horizon)).observed_expected()
    assert matured.low < 1 < matured.high
    known = (y & (time <= horizon)) | (seen >= horizon)
    naive = calibration_line((y & (time <= horizon))[known], p[known]).observed_expected
    assert naive.low > 1
    everyone = Estimates(time <= horizon, p).observed_expected()
    assert matured.value == pytest.approx(everyone.value, abs=0.08)
    full = Estimates(y, p, follow_up=(np.full(n, 9.0), 9.0)).observed_expected()
    assert full.value == pytest.approx(y.sum() / p.sum())
    with pytest.raises(ValueError, match="follow_up must have a time"):
        Estimates(y, p, follow_up=(seen[1:], horizon))


@pytest.mark.parametrize(
    ("time", "horizon", "message"),
    [
        ([1.0, 2, 3, -4], 2.0, "times of 0 or more, got -4.0 in row 3"),
        ([1.0, np.nan, 3, 4], 2.0, "times of 0 or more, got nan in row 1"),
        ([1.0, 2, 3, 4], 0, "horizon must be a finite number above 0, got 0"),
        ([1.0, 2, 3, 4], np.inf, "horizon must be a finite number above 0"),
        ([1.0, 2, 3, 4], 5.0, "reach the horizon 5 in a row, got 4 at most"),
    ],
)
def test_times_and_horizons_that_tell_nothing_are_refused(time, horizon, message):
    with pytest.raises(ValueError, match=message):
        Estimates([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], follow_up=(time, horizon))


def test_a_horizon_that_no_row_reaches_is_right_if_all_have_the_event():
    estimates = Estimates([1, 1], [0.4, 0.6], classes=[0, 1], follow_up=([1.0, 2.0], 5.0))
    assert estimates.observed_expected().value == pytest.approx(2)


def test_a_share_of_no_row_has_no_interval():
    table = threshold_table([0, 1, 1], [0.1, 0.2, 0.3], [0.9], level=0.95)
    assert np.isnan(table.intervals["positive_value"]).all() and table.flagged[0] == 0


def test_survey_weights_of_any_sum_are_no_counts_and_no_warning():
    rng = np.random.default_rng(21)
    p = rng.random(300)
    y, weight = rng.random(300) < p, rng.uniform(0.5, 2, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        intervals = [Estimates(y, p, sample_weight=weight * of).log_loss() for of in (1, 600)]
    assert intervals[0].low == pytest.approx(intervals[1].low)
