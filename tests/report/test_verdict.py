"""What the numbers say in words."""

from collections import Counter
from dataclasses import replace
from itertools import cycle, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from support.report_data import COSTS, calibrated, with_bounds
from vennforest.metrics import CalibrationLine, IntervalEstimate
from vennforest.report import check
from vennforest.report.comparison import Difference
from vennforest.report.measures import Measures
from vennforest.report.section import Section
from vennforest.report.verdict import Case, advise, judge
from vennforest.report.words import (
    finding,
    line_findings,
    lower_or_higher,
    reasons,
    recommendation,
    shown_methods,
)

BASE = Measures(
    log_loss=0.3, impossible=0, brier=0.1, auc=0.9, accuracy=0.9,
    calibration_error=0.02, chance_error=0.02, chance_limit=0.03, mean_error=0.0, pvalue=0.5,
    overconfidence=0.0,
)  # fmt: skip
OFF = replace(BASE, pvalue=0.001, calibration_error=0.1)


@pytest.fixture
def advised(cancer):
    """Return the advice for other numbers of the recommended and of the raw method."""

    def result(best=BASE, raw=BASE, origin=None, **changes):
        measures = {**cancer.comparison.measures, "none": raw, cancer.verdict.method: best}
        comparison = replace(cancer.comparison, measures=measures, **changes)
        return judge(comparison, replace(cancer.origin, **(origin or {})), cancer.levels)

    return result


@pytest.mark.parametrize(("changes", "action"), [
    ({}, "use"),
    ({"pvalue": 0.001}, "use"),  # small, though more than chance
    ({"pvalue": 0.001, "calibration_error": 0.1}, "recalibrate"),
    ({"pvalue": 0.05, "calibration_error": 0.1}, "collect"),
    ({"impossible": 2, "log_loss": np.inf}, "recalibrate"),
    ({"chance_limit": 0.2}, "collect"),
    ({"pvalue": np.nan}, "collect"),  # not tested: too few groups with the event
])  # fmt: skip
@pytest.mark.parametrize("kind", ["given", "folds"])
def test_the_advice_follows_the_numbers(advised, changes, action, kind):
    expected = "stop" if (kind, action) == ("folds", "recalibrate") else action
    assert advised(replace(BASE, **changes), origin={"kind": kind}).action == expected


def test_the_tolerance_decides(advised):
    assert advised(OFF, tolerance=0.2).action == "use"


def test_an_underconfident_forest_is_to_be_calibrated_on_folds(advised):
    flat = advised(replace(OFF, overconfidence=-0.1), origin={"calibrate_on": "oob"})
    assert flat.action == "recalibrate" and flat.on_folds
    assert flat.sentence.startswith("Calibrate on folds, or train more trees")
    assert advised(replace(OFF, overconfidence=-0.1), origin={"calibrate_on": "cv"}).action == (
        "stop"
    )


def test_a_raw_forest_that_is_off_is_to_be_calibrated(advised):
    result = advised(raw=OFF)
    assert result.action == "recalibrate" and "Raw, it is 10.0 points off" in result.sentence


REJECTS = "Tests of calibration reject it"


def contradiction(sentence, reasons, name, noun="forest"):
    """Return what a reader of the reasons would object to in the headline, or None."""
    best = reasons[f"How accurate the probabilities of {name} are"]
    raw = reasons.get(f"How accurate those of the raw {noun} are", "")
    why = reasons.get(f"Why {name}", "")
    is_off, is_raw_off = ("They are off by" in text and REJECTS in text for text in (best, raw))
    has_zero = "Probability 0 was given" in best
    if sentence.startswith(("Recalibrate", "Do not rely", "Calibrate on folds")):
        return None if is_off or has_zero else "nothing is wrong with the probabilities"
    if sentence.startswith("Calibrate the raw"):
        return None if is_raw_off and not is_off else "the raw model is not off"
    if sentence.startswith("Collect about") and "too few to check" in sentence:
        is_unclear = "do not confirm" in best or "would not be seen" in best
        return None if is_unclear else "the rows tell"
    if sentence.startswith("Use"):
        objections = {
            "they are off": is_off,
            "they are 0 where it happened": has_zero,
            "tests reject": REJECTS in best and "tests reject calibration" not in sentence,
            "the tolerance": "more than the tol" in best and "take it for chance" not in sentence,
            "raw differs": "no worse beyond chance" in sentence and ", within chance" not in why,
            "raw is worse": "higher" in sentence and "lower than that of the raw" not in why,
            "raw is better": "lower" in sentence and "higher than that of the raw" not in why,
            "raw is 0": "The raw" in sentence and "gave" not in sentence and "Probability 0" in raw,
        }
        return next((text for text, is_so in objections.items() if is_so), None)
    return f"no rule for {sentence}"


def test_no_headline_contradicts_a_reason(cancer):
    """Of every combination of size, tests, power, probability 0 and difference from raw."""
    states = [
        replace(BASE, calibration_error=error, pvalue=pvalue, impossible=zeros,
                chance_limit=limit, log_loss=np.inf if zeros else 0.3)
        for error, pvalue, limit, zeros in product(
            (0.02, 0.05), (0.001, 0.05, 0.5), (0.03, 0.2), (0, 2))
    ]  # fmt: skip
    method, headlines = cancer.verdict.method, Counter()
    kinds = cycle([("folds", "cv"), ("folds", "oob"), ("given", "")])  # another for each pair
    for best, raw, gap in product(states, states, (-0.002, 0.0005, 0.002)):
        if best.impossible and not raw.impossible:
            continue  # such a method is not recommended
        loss = "Brier score" if raw.impossible or best.impossible else "log loss"
        against = {**cancer.comparison.against, "none": Difference(gap, 0.001, loss)}
        measures = {**cancer.comparison.measures, "none": raw, method: best}
        comparison = replace(
            cancer.comparison, measures=measures, against=against, costs=None,
            gain=Difference(0.3, 0.1),
        )  # fmt: skip
        kind, calibrate_on = next(kinds)
        origin = replace(cancer.origin, kind=kind, calibrate_on=calibrate_on)
        sentence, texts = advise(Case(comparison, origin)).sentence, reasons(comparison, origin)
        assert not contradiction(sentence, texts, origin.names[method]), (sentence, texts)
        headlines[sentence.split(":")[0].split(" ")[0]] += 1
    assert set(headlines) == {"Use", "Calibrate", "Collect", "Recalibrate", "Do"}


def test_one_probability_of_0_of_the_raw_forest_does_not_make_it_miscalibrated(advised):
    result = advised(raw=replace(BASE, impossible=1, log_loss=np.inf))
    assert result.action == "use" and result.sentence.endswith(
        "The raw forest gave probability 0 to what happened in 1 row."
    )


def test_columns_are_checked_first(advised, cancer):
    for why in ("leak", "id"):
        checked = advised(origin={"suspects": {"code": why}})
        assert (checked.action, checked.column) == ("check", "code")
    predictions = cancer.comparison.predictions
    grouped = replace(predictions, groups=predictions.codes)
    has_groups = advised(origin={"suspects": {"code": "id"}}, predictions=grouped)
    assert has_groups.action != "check"
    blind = replace(cancer.comparison.auc, auc=0.51, low=0.45, high=0.57)
    assert advised(auc=blind).action == "stop"


def test_how_many_rows_would_show_a_ranking(advised, cancer):
    """Four times the rows halve the interval.

    An effect of .1 at a half-width of .2 is seen in four studies of five at a half-width of .07,
    with eight times the rows.
    """
    few = advised(auc=replace(cancer.comparison.auc, auc=0.6, low=0.4, high=0.8))
    assert few.action == "collect" and "about 4,700 rows" in few.sentence


def test_a_model_that_cannot_rank_is_not_to_be_used():
    n_used = 0
    for seed in range(8):  # probabilities that have nothing to do with the labels
        y, p, rng = calibrated(150, seed)
        n_used += check(rng.permutation(y), p).verdict.action == "use"
    assert n_used <= 1
    y, p, _ = calibrated(4000, 1, strength=2.0)
    verdict = check(y, p).verdict
    assert verdict.action == "use" and "points off" in verdict.sentence
    swapped = check(y, 1 - p).verdict
    assert swapped.action == "stop" and "worse than chance" in swapped.sentence
    assert check(y, 0.02 + 0.05 * p).verdict.action == "recalibrate"  # ranks as well


def test_costs_are_compared_with_the_best_constant_decision():
    y, p, rng = calibrated(4000, 3, strength=2.0)
    evaluation = check(y, p, costs=COSTS, positive="yes")
    decided = np.where(4 * p > 1, "treat", "wait")
    paid = np.mean([COSTS[a][b] for a, b in zip(y, decided, strict=True)])
    constant, name = min((np.mean([COSTS[a][b] for a in y]), b) for b in ("wait", "treat"))
    costs = evaluation.comparison.costs
    assert costs.saved.mean == pytest.approx(constant - paid)
    assert evaluation.methods.loc["Predictions", "mean_cost"] == pytest.approx(paid)
    assert f"always “{name}”" in evaluation.verdict.reasons["What its decisions cost"]
    assert evaluation.verdict.action == "use"
    assert check(rng.permutation(y), p, costs=COSTS, positive="yes").verdict.action != "use"
    # They treat where 1 < 4 p: 0.25 is among the thresholds.
    assert 0.25 in evaluation.thresholds.index


def test_given_models_are_shown_together():
    y, p = with_bounds()[0], np.random.default_rng(5).random(400)
    evaluation = check(y, {"old": p, "new": p**2, "third": np.sqrt(p)})
    shown = shown_methods(evaluation.comparison, evaluation.origin)
    assert set(shown) == {"old", "new", "third"} and shown[0] == evaluation.verdict.method
    assert f"that of “{shown[1]}”" in recommendation(evaluation.comparison, evaluation.origin)


def test_the_reason_names_the_tolerance_where_it_left_out_a_better_ranking():
    y, p, rng = calibrated(4000, 2, share=0.3)
    given = {"off": p**1.15, "right": (p + rng.normal(0, 0.06, 4000)).clip(0.02, 0.98)}
    for tolerance, limit in ((0.02, True), (0.3, False)):
        evaluation = check(y, given, positive="yes", tolerance=tolerance)
        auc = evaluation.methods.loc[["off", "right"], "auc"]
        assert auc["off"] > auc["right"]
        assert evaluation.verdict.method == ("right" if limit else "off")
        assert ("within the tolerance" in evaluation.comparison.rule) == limit


def test_the_figures_are_the_measures(cancer):
    m = cancer.comparison.best
    texts = [number for number, _ in cancer.verdict.figures]
    error = float(texts[0].removesuffix(" points"))
    assert error == pytest.approx(100 * m.calibration_error, abs=0.05)
    assert texts[1] == f"{m.auc:.3f}"
    assert texts[2] == f"{100 * cancer.methods.loc[cancer.verdict.method, 'brier_skill']:.1f}%"
    assert (
        f"“operate”: {cancer.comparison.costs.of_constants[1]:.4f}" in cancer.verdict.figures[3][1]
    )


def check_slope(slope, shift=0.0, seed=6, **options):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=6000) * 1.2 - 2.5
    y = rng.random(6000) < 1 / (1 + np.exp(-(shift + slope * (z + 2.5) - 2.5)))
    return check(y, 1 / (1 + np.exp(-z)), **options)


def test_the_headline_takes_the_slope_and_observed_over_expected():
    right = check_slope(1.0).verdict
    assert right.action == "use" and "slope" not in right.sentence
    flat = check_slope(0.75)
    line = flat.comparison.line.slope
    assert flat.verdict.action == "recalibrate"
    assert f"the slope is {line.value:.2f} (95% interval {line.low:.2f}" in flat.verdict.sentence
    low = check_slope(1.0, 0.25).verdict
    assert low.action == "recalibrate" and "observed over expected is 1.1" in low.sentence
    assert "Tests choose: move the intercept." in low.sentence
    # A tolerance that the user gives decides alone.
    assert check_slope(1.0, 0.25, tolerance=0.2).verdict.action == "use"


def test_findings_of_sections_are_in_the_headline():
    evaluation = check_slope(1.0, updates=True)
    off = Section("Grades", "grades", [], finding="grades: too low in B")
    assert evaluation.with_sections([Section("Grades", "grades", [])]).verdict.action == "use"
    kept = evaluation.with_sections([off]).verdict
    assert kept.action == "check" and "grades: too low in B" in kept.sentence
    assert "Tests choose: keep the probabilities." in kept.sentence
    moved = check_slope(1.0, 0.25).with_sections([off]).verdict
    assert moved.action == "recalibrate" and "grades: too low in B" in moved.sentence


def test_a_frequency_that_falls_is_said_and_one_that_rises_is_not():
    rng = np.random.default_rng(6)
    p = rng.random(1500)
    heading = "Where the frequency falls as the score rises"
    for frequency, is_falling in ((p, False), (0.5 + 0.4 * np.sin(2 * np.pi * p), True)):
        y = np.where(rng.random(1500) < frequency, "yes", "no")
        texts = check(y, p).verdict.reasons
        assert (heading in texts) == is_falling
    assert texts[heading].startswith("The frequency of “yes” falls from ")


@pytest.mark.parametrize(("power", "verb"), [(1, "do not reject"), (2, "reject")])
def test_the_reason_says_what_the_tests_say(power, verb):
    y, p, _ = calibrated(400, 5)
    texts = check(y, p**power).verdict.reasons.values()
    assert any(f"Tests of calibration {verb} it (p" in text for text in texts)


@pytest.mark.parametrize("measure", ["slope", "observed_expected"])
@pytest.mark.parametrize(("margin", "is_off"), [(0.17, False), (0.14, True)])
def test_slope_and_observed_over_expected_are_each_tested_at_half_the_level(
    measure, margin, is_off
):
    """Twice the tail of .5% is 1.31 half-widths of a 95% interval."""
    ends = {"slope": (1.2, 1.2 - margin, 1.2 + margin)}
    ends["observed_expected"] = np.exp([0.2, 0.2 - margin, 0.2 + margin])
    estimates = dict.fromkeys(["observed_expected", "intercept", "slope"], (1.0, 0.9, 1.1))
    estimates[measure] = ends[measure]
    line = CalibrationLine(*(IntervalEstimate(*e) for e in estimates.values()), certain=0)
    assert bool(line_findings(SimpleNamespace(line=line))) == is_off


def test_the_finding_is_of_the_level_that_is_most_off():
    columns = ["n", "expected", "observed", "observed_low", "observed_high"]
    rows = [(10, 0.5, 0.9, 0.6, 1.0), (400, 0.2, 0.3, 0.25, 0.35), (900, 0.1, 0.1, 0.08, 0.12)]
    c = SimpleNamespace(predictions=SimpleNamespace(label="yes"))
    text = finding(c, pd.DataFrame(rows, columns=columns))
    assert text.startswith("Of 400 rows with a probability near 20%, 30% were “yes”")


def test_a_gain_lowers_a_loss():
    assert lower_or_higher(0.1) == "lower" and lower_or_higher(-0.1) == "higher"
