"""Differences of losses, the choice of a method, and costs of decisions."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtri

from report.reading import has_in_turn
from support.report_data import COSTS, calibrated
from vennforest import Multiprobability
from vennforest.metrics import (
    CalibrationLine,
    IntervalEstimate,
)
from vennforest.report import check, comparison
from vennforest.report.comparison import choose, compare_losses, difference_over_folds
from vennforest.report.measures import (
    Measures,
    MethodEstimates,
    Predictions,
    measure,
)


def test_difference_is_the_corrected_resampled_t_interval():
    fold = np.repeat([0, 1, 2], 4)
    predictions = Predictions(np.array([0, 1]), fold * 0, fold, fold, {})
    first = np.arange(12.0)
    gap = difference_over_folds(first, np.zeros(12), predictions)
    means = [first[fold == i].mean() for i in range(3)]
    assert gap.mean == first.mean()
    # Nadeau & Bengio: (1/K + n_test/n_train) times the variance, t with K − 1 = 2 degrees.
    assert gap.margin == pytest.approx(4.302653 * np.sqrt((1 / 3 + 1 / 2) * np.var(means, ddof=1)))
    assert not difference_over_folds(first, first, predictions).clear


def choice_of(p_by_method, bounded, codes, fold):
    estimates = {}
    for name, p in p_by_method.items():
        table = np.column_stack([1 - p, p])
        bounds = Multiprobability(table, table, np.array([0, 1])) if name in bounded else None
        estimates[name] = MethodEstimates(table, bounds)
    predictions = Predictions(np.array([0, 1]), codes, fold, fold, estimates, positive=1)
    measures = {m: measure(predictions, e) for m, e in estimates.items()}
    method, rule = choose(measures, predictions, 0.02)
    against = {m: compare_losses(m, method, predictions) for m in measures}
    return method, rule, against


def test_the_rule_of_the_recommendation():
    rng = np.random.default_rng(0)
    n = 3000
    p = rng.random(n)
    codes, fold = (rng.random(n) < p).astype(int), np.arange(n) % 10
    coarse = np.where(p > 0.5, 0.75, 0.25)
    methods = {
        "none": p**3, "platt": p.clip(0.001, 0.999), "venn": coarse, "venn-abers": p * 0.98 + 0.01,
    }  # fmt: skip
    method, rule, against = choice_of(methods, ("venn", "venn-abers"), codes, fold)
    assert method == "venn-abers" and "with bounds" in rule
    assert against["venn"].clear and against["venn"].mean > 0
    assert against["none"].clear and against["none"].mean > 0
    assert choice_of(methods, (), codes, fold)[0] in ("platt", "venn-abers")
    # Bounds do not make up for a log loss that is clearly worse.
    assert choice_of(methods, ("venn",), codes, fold)[0] in ("platt", "venn-abers")
    # Log losses within chance of each other: the better ranking decides, and the rule says so.
    few = slice(0, 60)
    level = {"none": p[few], "venn": coarse[few], "venn-abers": (p * 0.9 + 0.05)[few]}
    method, rule, _ = choice_of(level, ("venn", "venn-abers"), codes[few], fold[few])
    assert method == "venn-abers" and "ranking" in rule


def test_a_method_that_ruled_out_what_happened_is_not_level_with_others():
    """By the Brier score it is no worse, and it alone is within the tolerance."""
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    codes, fold = (rng.random(3000) < p).astype(int), np.arange(3000) % 10
    sure = p.copy()
    sure[np.flatnonzero(codes == 1)[0]] = 0.0
    methods = {"none": p**2, "venn-abers": 0.5 + 0.8 * (p - 0.5), "isotonic": sure}
    method, _, against = choice_of(methods, ("venn-abers",), codes, fold)
    assert method == "venn-abers" and against["isotonic"].loss == "Brier score"


BASE = Measures(
    log_loss=0.3, impossible=0, brier=0.1, auc=0.9, accuracy=0.9,
    calibration_error=0.02, chance_error=0.02, chance_limit=0.03, mean_error=0.0, detectable=0.03,
    pvalue=0.5, overconfidence=0.0, expected=0.4, observed=0.4,
    intervals={}, tests=None,
)  # fmt: skip


def test_costs_are_compared_with_the_best_constant_decision():
    y, p, rng = calibrated(4000, 3, strength=2.0)
    evaluation = check(y, p, costs=COSTS, positive="yes")
    decided = np.where(4 * p > 1, "treat", "wait")
    paid = np.mean([COSTS[a][b] for a, b in zip(y, decided, strict=True)])
    constant, name = min((np.mean([COSTS[a][b] for a in y]), b) for b in ("wait", "treat"))
    costs = evaluation.findings.costs
    assert costs.saved.mean == pytest.approx(constant - paid)
    assert evaluation.methods.loc["Predictions", "mean_cost"] == pytest.approx(paid)
    assert costs.best_constant == name
    amounts = [paid, constant, constant - paid]
    reason = evaluation.verdict.reasons["What its decisions cost"]
    assert has_in_turn(reason, amounts, 0.0006)
    assert evaluation.verdict.action == "use"
    assert check(rng.permutation(y), p, costs=COSTS, positive="yes").verdict.action != "use"
    # They treat where 1 < 4 p: 0.25 is among the thresholds.
    assert 0.25 in evaluation.thresholds.index


def test_the_reason_names_the_tolerance_where_it_left_out_a_better_ranking():
    y, p, rng = calibrated(4000, 2, share=0.3)
    given = {"off": p**1.15, "right": (p + rng.normal(0, 0.06, 4000)).clip(0.02, 0.98)}
    for tolerance, limit in ((0.02, True), (0.3, False)):
        evaluation = check(y, given, positive="yes", tolerance=tolerance)
        auc = evaluation.methods.loc[["off", "right"], "auc"]
        assert auc["off"] > auc["right"]
        assert evaluation.verdict.method == ("right" if limit else "off")
        assert ("within the tolerance" in evaluation.findings.rule) == limit


@pytest.mark.parametrize("measure", ["slope", "observed_expected"])
@pytest.mark.parametrize(("margin", "is_off"), [(0.17, False), (0.14, True)])
def test_slope_and_observed_over_expected_are_each_tested_at_half_the_level(
    measure, margin, is_off
):
    """Twice the tail of .5% is 1.31 half-widths of a 95% interval."""

    def estimates_at(level=0.95):
        half = margin * ndtri((1 + level) / 2) / ndtri(0.975)
        ends = {"slope": (1.2, 1.2 - half, 1.2 + half)}
        ends["observed_expected"] = np.exp([0.2, 0.2 - half, 0.2 + half])
        estimates = dict.fromkeys(["observed_expected", "intercept", "slope"], (1.0, 0.9, 1.1))
        estimates[measure] = ends[measure]
        return {name: IntervalEstimate(*of) for name, of in estimates.items()}

    judged = SimpleNamespace(line=lambda level: CalibrationLine(**estimates_at(level), certain=0))
    off = comparison.lines_off(judged, replace(BASE, intervals=estimates_at()))
    assert list(off) == [measure] * is_off
