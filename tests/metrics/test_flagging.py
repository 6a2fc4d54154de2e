"""Thresholds, predictive values and net benefit, against their slow versions."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from oracles import bands as oracle
from oracles import ranking as slow
from support.cases import close
from vennforest import Multiprobability
from vennforest.metrics import (
    decision_curve,
    threshold_table,
)


def test_shares_at_thresholds_that_flag_all_or_no_weighted_rows_are_exact():
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, weight = rng.uniform(0.01, 0.99, 60), 10.0 ** rng.uniform(-3, 3, 60)
        table = threshold_table(rng.random(60) < p, p, [0.0, 1.0], sample_weight=weight)
        assert table.flagged.tolist() == [1, 0]
        assert table.sensitivity.tolist() == [1, 0] and table.specificity.tolist() == [0, 1]
        np.testing.assert_array_equal(np.isnan(table.negative_value), [True, False])
        np.testing.assert_array_equal(np.isnan(table.positive_value), [False, True])


def test_threshold_tables_and_decision_curves_count_row_by_row(problems):
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
    with pytest.raises(ValueError, match="bounds must be a Multiprobability of 3 rows"):
        m = Multiprobability(np.eye(2), np.eye(2), np.array([0, 1]))
        threshold_table([0, 1, 1], [0.1, 0.2, 0.3], 0.5, bounds=m)


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


def test_a_share_of_no_row_has_no_interval():
    table = threshold_table([0, 1, 1], [0.1, 0.2, 0.3], [0.9], level=0.95)
    assert np.isnan(table.intervals["positive_value"]).all() and table.flagged[0] == 0


def cases(n_cases, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n_cases):
        n = int(rng.integers(2, 30))
        y = rng.integers(0, 2, n)
        p, q = (rng.random(n).round(rng.integers(1, 3)) for _ in range(2))
        yield rng, n, y, p, q if rng.random() < 0.8 else p


def test_difference_of_net_benefit_is_that_of_the_rows():
    for rng, n, y, p, q in cases(100, 3):
        at = np.append(rng.choice([*p, *q], 2).clip(0.01, 0.99), rng.uniform(0.01, 0.99))
        groups = rng.integers(0, 5, n) if rng.random() < 0.5 else None
        if groups is not None and len(set(groups)) == 1:
            continue
        level = rng.choice([0.5, 0.95])
        options = {"versus": q, "groups": groups, "level": level, "classes": [0, 1]}
        curve = decision_curve(y, p, at, **options)
        for i, threshold in enumerate(at):
            rows = range(n) if groups is None else groups
            mean, margin = oracle.difference_of_net_benefit(y, p, q, threshold, rows, level)
            ends = curve.difference[i], curve.difference_low[i], curve.difference_high[i]
            largest = max(1, threshold / (1 - threshold))  # of any rows
            close(ends, (mean, max(mean - margin, -largest), min(mean + margin, largest)))
            close(curve.versus[i] + mean, curve.net_benefit[i])


def test_of_one_group_no_difference_is_known():
    curve = decision_curve([0, 1], [0.1, 0.2], [0.5], versus=[0.3, 0.6], groups=[1, 1])
    assert np.isnan([curve.difference_low, curve.difference_high]).all()


@pytest.mark.parametrize(("options", "message"), [
    ({"versus": [0.1]}, "versus must have the rows of p"),
    ({"versus": [0.1, 2]}, r"p must lie in \[0, 1\], got 2"),
    ({"groups": [1]}, r"groups must have shape \(2,\), got \(1,\)"),
    ({"versus": None, "groups": [1]}, "groups must have shape"),
    ({"level": 1}, "level must"),
])  # fmt: skip
def test_refused_options_of_decision_curves(options, message):
    options = {"thresholds": [0.5], "versus": [0.3, 0.4], **options}
    with pytest.raises(ValueError, match=message):
        decision_curve(**{"y": [0, 1], "p": [0.1, 0.2], **options})
