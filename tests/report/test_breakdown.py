"""Levels of probability and subgroups, and the intervals of what was observed in them."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest, t

from support.report_data import calibrated
from vennforest.metrics import calibration_line, decision_curve, threshold_table
from vennforest.report import check
from vennforest.report.breakdown import (
    LEVEL_EDGES,
    RARE_LEVEL_EDGES,
    parts_by_value,
    periods,
    rejected_parts,
    share_interval,
)

Z = 1.959963984540054


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_levels_hold_what_was_observed(share):
    y, p, _ = calibrated(3000, 16, share=share)
    p = p.round(3)  # some are edges of levels
    evaluation = check(y, p, positive="yes")
    tolerance, levels = evaluation.findings.tolerance, evaluation.levels
    assert tolerance == pytest.approx(min(0.02, (y == "yes").mean() / 5))
    assert levels["n"].sum() == 3000
    slow = []
    for low, high in itertools.pairwise(RARE_LEVEL_EDGES if share < 0.1 else LEVEL_EDGES):
        rows = (p >= low) & (p < high) if high < 1 else p >= low
        if rows.any():
            slow.append((rows.sum(), p[rows].mean(), (y[rows] == "yes").mean()))
    np.testing.assert_allclose(levels[["n", "expected", "observed"]].to_numpy(), slow)
    wilson = binomtest(round(slow[0][0] * slow[0][2]), slow[0][0]).proportion_ci(method="wilson")
    ends = levels.loc[0, ["observed_low", "observed_high"]].tolist()
    assert ends == pytest.approx([wilson.low, wilson.high])


def test_a_part_is_tested_as_the_whole_table_is():
    y, p, _ = calibrated(300, 5, share=0.3)
    groups = np.repeat(np.arange(300), 4)
    y, p, pvalues = np.repeat(y, 4), np.repeat(p**1.1, 4), []
    for options in ({}, {"groups": groups}):
        evaluation = check(y, p, positive="yes", by={"site": ["a"] * 1200}, **options)
        pvalues += evaluation.subgroups["pvalue"].tolist()
        assert pvalues[-1] == pytest.approx(evaluation.methods["pvalue"].iloc[0])
    assert pvalues[0] < 0.05 < pvalues[1]


def slow_interval(outcome, groups):
    """The formulas, group by group and row by row."""
    n, share = len(outcome), sum(outcome) / len(outcome)
    parts = {}
    for y, g in zip(outcome, groups, strict=True):
        parts.setdefault(g, []).append(y)
    k = len(parts)
    if k == 1:
        return math.nan, math.nan
    if share in (0, 1):
        effect = sum(len(part) ** 2 for part in parts.values()) / n
    else:
        squares = sum((sum(part) - len(part) * share) ** 2 for part in parts.values())
        effect = max(1, k / (k - 1) * squares / n**2 / (share * (1 - share) / n))
    size = n / effect * (Z / t.ppf(0.975, k - 1)) ** 2
    # The roots of (share - q)^2 = z^2 q (1 - q) / size.
    a, b, c = 1 + Z**2 / size, -(2 * share + Z**2 / size), share**2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_independent_rows_have_wilsons_interval():
    for n in (1, 2, 7, 200):
        for events in {0, 1, n // 3, n}:
            wilson = binomtest(events, n).proportion_ci(0.95, method="wilson")
            outcome = np.repeat([1.0, 0.0], [events, n - events])
            assert share_interval(outcome) == pytest.approx((wilson.low, wilson.high), abs=1e-12)


def test_the_interval_with_groups_is_that_of_the_formulas():
    rng = np.random.default_rng(0)
    for _ in range(500):
        n = int(rng.integers(1, 40))
        outcome = (rng.random(n) < rng.choice([0.0, 0.05, 0.5, 1.0])).astype(float)
        groups = rng.integers(0, int(rng.integers(1, 15)), n) * 7
        ends = share_interval(outcome, groups)
        assert ends == pytest.approx(
            slow_interval(outcome.tolist(), groups.tolist()), abs=1e-9, nan_ok=True
        )
        assert len({*groups}) == 1 or 0 <= ends[0] <= outcome.mean() <= ends[1] <= 1


def test_subgroups_contain_what_was_observed():
    y, p, rng = calibrated(1200, 15)
    site = rng.choice(["north", "south", "tiny"], 1200, p=[0.5, 0.49, 0.01]).astype(object)
    y = np.where((site == "south") & (rng.random(1200) < 0.4), "yes", y)
    by = {"site": site, "age": rng.normal(50, 9, 1200)}
    frame = check(y, p, by=by, positive="yes").subgroups
    assert rejected_parts(frame.xs("site")["off"]) == {"too low": ["south"]}
    ratio = calibration_line((y == "yes")[site == "south"], p[site == "south"]).observed_expected
    assert frame.loc[("site", "south"), "observed_expected_high"] == pytest.approx(ratio.high)
    assert frame.loc["age", "n"].tolist() == [300] * 4
    south = frame.loc[("site", "south")]
    assert south["observed"] == pytest.approx((y[site == "south"] == "yes").mean())
    assert south["expected"] == pytest.approx(p[site == "south"].mean())
    with pytest.raises(ValueError, match=r"by of .* must have shape"):
        check(y, p, by={"site": site[1:]})


def test_values_of_a_column_are_parts():
    values = np.array([*[f"v{i}" for i in range(40)], *["v1"] * 9, None, " "], object)
    parts = parts_by_value(values)
    assert [name for name, _ in parts][-2:] == ["29 other values", "missing"] and len(parts) == 13
    assert dict(parts)["missing"].tolist() == [49, 50] and len(dict(parts)["v1"]) == 10
    assert sorted(np.concatenate([rows for _, rows in parts])) == list(range(51))
    parts = parts_by_value(np.array(["missing", "a", None, "a"], object))
    assert [(name, rows.tolist()) for name, rows in parts] == [("a", [1, 3]), ("missing", [0, 2])]
    numbers = parts_by_value(np.array([10.0, 9.0, 10.0], object))
    assert [name for name, _ in numbers] == ["9", "10"]


@pytest.mark.parametrize("start", [0, 1e9, 1e15])
def test_large_numbers_are_parts_with_names_of_their_own(start):
    parts = parts_by_value(start + np.arange(100.0))
    assert [len(rows) for _, rows in parts] == [25] * 4
    assert len({name for name, _ in parts}) == 4


def test_dates_are_cut_into_the_shortest_periods_with_enough_rows():
    days = np.datetime64("2023-01-01T00", "us") + np.arange(2000) * np.timedelta64(6, "h")
    kind, parts = periods(days)
    assert kind == "month" or kind == "week"
    assert sum(len(rows) for _, rows in parts) == 2000
    for name, rows in parts:
        assert kind != "month" or (days[rows].astype("datetime64[M]").astype(str) == name).all()


def test_net_benefit_is_that_of_the_decision_curve():
    y, p, _ = calibrated(500, 5)
    frame = check(y, p, positive="yes").thresholds
    curve = decision_curve(y, p, frame.index, pos_label="yes")
    np.testing.assert_allclose(frame["net_benefit"], curve.net_benefit, atol=1e-12)
    better = np.maximum(curve.everyone, 0)
    np.testing.assert_allclose(frame["gain"], curve.net_benefit - better, atol=1e-12)
    none = decision_curve(y, p, frame.index, versus=np.zeros(500), pos_label="yes")
    np.testing.assert_allclose(frame["net_benefit_high"], none.difference_high, atol=1e-12)
    assert (frame["gain_low"] < frame["gain"]).all() and round(
        (y == "yes").mean(), 2
    ) in frame.index
    own = check(y, p, positive="yes", thresholds=[0.2, 0.07])
    assert own.thresholds.index.tolist() == [0.07, 0.2]
    interval = threshold_table(y, p, [0.07, 0.2], level=0.95).intervals["sensitivity"]
    np.testing.assert_allclose(own.thresholds[["sensitivity_low", "sensitivity_high"]].T, interval)
    with pytest.raises(ValueError, match=r"thresholds must be a list of numbers in \(0, 1\)"):
        check(y, p, thresholds=[0.2, 1.5])
