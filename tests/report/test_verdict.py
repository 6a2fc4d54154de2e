"""Advice that follows the numbers, and headlines that agree with the reasons."""

from collections import Counter
from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pytest

from report.reading import has_in_turn, numbers_in
from support.report_data import calibrated
from vennforest.report import check
from vennforest.report.comparison import Difference
from vennforest.report.measures import Measures
from vennforest.report.sections import Section
from vennforest.report.verdict import judge

BASE = Measures(
    log_loss=0.3, impossible=0, brier=0.1, auc=0.9, accuracy=0.9,
    calibration_error=0.02, chance_error=0.02, chance_limit=0.03, mean_error=0.0, detectable=0.03,
    pvalue=0.5, overconfidence=0.0, expected=0.4, observed=0.4,
    intervals={}, tests=None,
)  # fmt: skip
OFF = replace(BASE, pvalue=0.001, calibration_error=0.1)


@pytest.fixture
def advised(cancer):
    """Return the advice for other numbers of the recommended and of the raw method."""

    def result(best=BASE, raw=BASE, origin=None, **changes):
        f = cancer.findings
        measures = {**f.measures, "none": raw, cancer.verdict.method: best}
        changes["origin"] = replace(f.origin, **(origin or {}))
        return judge(replace(f, measures=measures, **changes))

    return result


@pytest.mark.parametrize(("changes", "action"), [
    ({}, "use"),
    ({"pvalue": 0.001}, "use"),  # small, though more than chance
    ({"pvalue": 0.001, "calibration_error": 0.1}, "recalibrate"),
    ({"pvalue": 0.05, "calibration_error": 0.1}, "collect"),
    ({"impossible": 2, "log_loss": np.inf}, "recalibrate"),
    ({"detectable": 0.2}, "collect"),
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
    assert result.action == "recalibrate"
    assert numbers_in(result.sentence)[:2] == [9.8, 3.0]  # √(.1² − .02²), and what would be seen


CLAIMS = {
    "off": "They are off by",
    "rejected": "Tests of calibration reject it",
    "zero": "Probability 0 was given",
    "doubtful": "do not confirm",
    "unseen": "would not be seen",
    "within chance": ", within chance",
    "lower": "lower than that of the raw",
    "higher": "higher than that of the raw",
}
"""What a reason claims of a method, or of its loss beside that of the raw one."""

HEADLINES = {
    "few rows": "too few to check",
    "rejected": "tests reject calibration",
    "raw": "The raw",
    "raw is zero": "gave probability 0",
    "raw within chance": "no worse beyond chance",
    "raw higher": "higher",
    "raw lower": "lower",
}
"""What a headline claims."""


def claims_of(text, phrases):
    return {claim for claim, phrase in phrases.items() if phrase in text}


def contradiction(sentence, reasons, name, noun="forest"):
    """Return what a reader of the reasons would object to in the headline, or None."""
    best = claims_of(reasons[f"How accurate the probabilities of {name} are"], CLAIMS)
    raw = claims_of(reasons.get(f"How accurate those of the raw {noun} are", ""), CLAIMS)
    why = claims_of(reasons.get(f"Why {name}", ""), CLAIMS)
    head = claims_of(sentence, HEADLINES)
    is_off, is_raw_off = ({"off", "rejected"} <= of for of in (best, raw))
    has_zero = {"zero"} <= best
    if sentence.startswith(("Recalibrate", "Do not rely", "Calibrate on folds")):
        return None if is_off or has_zero else "nothing is wrong with the probabilities"
    if sentence.startswith("Calibrate the raw"):
        return None if is_raw_off and not is_off else "the raw model is not off"
    if sentence.startswith("Collect about") and {"few rows"} <= head:
        return None if {"doubtful", "unseen"} & best else "the rows tell"
    if sentence.startswith("Use"):
        objections = {
            "they are off": is_off,
            "they are 0 where it happened": has_zero,
            "tests reject": {"rejected"} <= best - head,
            "raw differs": {"raw within chance"} <= head and not {"within chance"} <= why,
            "raw is worse": {"raw higher"} <= head and not {"lower"} <= why,
            "raw is better": {"raw lower"} <= head and not {"higher"} <= why,
            "raw is 0": {"raw"} <= head and not {"raw is zero"} <= head and {"zero"} <= raw,
        }
        return next((text for text, is_so in objections.items() if is_so), None)
    return f"no rule for {sentence}"


def test_no_headline_contradicts_a_reason(cancer):
    """Of every combination of size, tests, power, probability 0 and difference from raw."""
    states = [
        replace(BASE, calibration_error=error, pvalue=pvalue, impossible=zeros,
                detectable=limit, log_loss=np.inf if zeros else 0.3)
        for error, pvalue, limit, zeros in product(
            (0.02, 0.05), (0.001, 0.05, 0.5), (0.03, 0.2), (0, 2))
    ]  # fmt: skip
    method, headlines = cancer.verdict.method, Counter()
    kinds = cycle([("folds", "cv"), ("folds", "oob"), ("given", "")])  # another for each pair
    for best, raw, gap in product(states, states, (-0.002, 0.0005, 0.002)):
        if best.impossible and not raw.impossible:
            continue  # such a method is not recommended
        loss = "Brier score" if raw.impossible or best.impossible else "log loss"
        kind, calibrate_on = next(kinds)
        origin = replace(cancer.findings.origin, kind=kind, calibrate_on=calibrate_on)
        findings = replace(
            cancer.findings, measures={**cancer.findings.measures, "none": raw, method: best},
            differences={**cancer.findings.differences, "none": Difference(gap, 0.001, loss)},
            costs=None, gain=Difference(0.3, 0.1), origin=origin,
        )  # fmt: skip
        verdict = judge(findings)
        sentence, texts = verdict.sentence, verdict.reasons
        assert not contradiction(sentence, texts, origin.names[method]), (sentence, texts)
        headlines[sentence.split(":")[0].split(" ")[0]] += 1
    assert set(headlines) == {"Use", "Calibrate", "Collect", "Recalibrate", "Do"}


def test_one_probability_of_0_of_the_raw_forest_does_not_make_it_miscalibrated(advised):
    result = advised(raw=replace(BASE, impossible=1, log_loss=np.inf))
    said = "The raw forest gave probability 0 to what happened in 1 row."
    assert result.action == "use" and said in result.sentence


def test_columns_are_checked_first(advised, cancer):
    for why in ("leak", "id"):
        checked = advised(origin={"suspects": {"code": why}})
        assert (checked.action, checked.column) == ("check", "code")
    has_groups = advised(origin={"suspects": {"code": "id"}}, groups=12)
    assert has_groups.action != "check"
    blind = replace(cancer.findings.auc, value=0.51, low=0.45, high=0.57)
    assert advised(auc=blind).action == "stop"


def test_the_gain_over_the_base_rate_is_judged_by_the_interval_that_is_shown():
    y, p, _ = calibrated(4000, 1, strength=2.0)
    findings, no_gain = check(y, p).findings, "does not beat the base rate"
    within_chance = Difference(findings.gain.mean, 2 * findings.gain.mean)
    doubtful = replace(findings.skill, low=-0.01)
    assert no_gain not in judge(replace(findings, gain=within_chance)).sentence
    assert no_gain in judge(replace(findings, skill=doubtful)).sentence
    none = replace(doubtful, low=np.nan, high=np.nan)
    assert no_gain in judge(replace(findings, gain=within_chance, skill=none)).sentence
    assert no_gain not in judge(replace(findings, skill=none)).sentence


def test_how_many_rows_would_show_a_ranking(advised, cancer):
    """Four times the rows halve the interval.

    An effect of .1 at a half-width of .2 is seen in four studies of five at a half-width of .07,
    with eight times the rows.
    """
    few = advised(auc=replace(cancer.findings.auc, value=0.6, low=0.4, high=0.8))
    assert few.action == "collect" and numbers_in(few.sentence)[0] == 4700


def test_a_model_that_cannot_rank_is_not_to_be_used():
    n_used = 0
    for seed in range(8):  # probabilities that have nothing to do with the labels
        y, p, rng = calibrated(150, seed)
        n_used += check(rng.permutation(y), p).verdict.action == "use"
    assert n_used <= 1
    y, p, _ = calibrated(4000, 1, strength=2.0)
    right, swapped = check(y, p), check(y, 1 - p)
    assert right.verdict.action == "use" and right.findings.judgement == "by chance"
    assert swapped.verdict.action == "stop" and swapped.findings.auc.high < 0.5
    # It is not merely of no use: labels or probabilities are the wrong way round.
    assert swapped.verdict.sentence.startswith("Do not use it before the labels are checked")
    assert check(y, 0.02 + 0.05 * p).verdict.action == "recalibrate"  # ranks as well


def test_the_figures_are_the_measures(cancer):
    m = cancer.findings.best
    texts = [number for number, _ in cancer.verdict.figures]
    decision = cancer.findings.decision
    n_events = 100 * decision["sensitivity"] * m.observed
    assert texts[0] == f"{n_events:.0f} of {100 * m.observed:.0f}"
    meanings = [numbers_in(meaning) for _, meaning in cancer.verdict.figures]
    assert meanings[0][:2] == [100, round(100 * decision["flagged"])]
    assert texts[1] == f"{m.auc:.3f}"
    costs = cancer.findings.costs
    assert costs.best_constant == "operate"
    assert meanings[3] == [pytest.approx(costs.of_constants[1], abs=0.00005)]


def check_slope(slope, shift=0.0, seed=6, **options):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=6000) * 1.2 - 2.5
    y = rng.random(6000) < 1 / (1 + np.exp(-(shift + slope * (z + 2.5) - 2.5)))
    return check(y, 1 / (1 + np.exp(-z)), **options)


def test_the_headline_takes_the_slope_and_observed_over_expected():
    right = check_slope(1.0)
    assert right.verdict.action == "use" and not right.findings.lines_off
    flat = check_slope(0.75)
    line = flat.findings.lines_off["slope"]
    assert flat.verdict.action == "recalibrate"
    assert has_in_turn(flat.verdict.sentence, [line.value, 95, line.low, line.high], 0.005)
    low = check_slope(1.0, 0.25)
    assert low.verdict.action == "recalibrate"
    line = low.findings.lines_off["observed_expected"]
    assert has_in_turn(low.verdict.sentence, [line.value, 95, line.low, line.high], 0.005)
    assert low.findings.choice == "intercept"
    assert "Tests choose: move the intercept." in low.verdict.sentence
    assert low.verdict.failures["miscalibrated"] and not right.verdict.failures["miscalibrated"]
    # A tolerance that the user gives decides alone.
    assert check_slope(1.0, 0.25, tolerance=0.2).verdict.action == "use"


def with_section(evaluation, name, section):
    findings = evaluation.findings
    return judge(replace(findings, sections={**findings.sections, name: section}))


def test_parts_that_are_off_are_in_the_headline_and_fail():
    evaluation = check_slope(1.0, updates=True)
    off = Section(None, rejected={"too low": ["B", "C"], "too high": []})
    kept = with_section(evaluation, "grades", off)
    assert kept.action == "check" and evaluation.findings.choice == "keep"
    assert kept.failures["grades"] == "grades: too low in B and C" and not kept.failures["sites"]
    assert kept.failures["grades"] in kept.sentence
    moved = with_section(check_slope(1.0, 0.25), "sites", off)
    assert moved.action == "recalibrate" and moved.failures["sites"] in moved.sentence
    assert moved.failures["sites"] == "sites: too low in B and C"
    assert with_section(evaluation, "grades", Section(None)).action == "use"


def test_an_error_of_twice_the_tolerance_is_rarely_called_none():
    """In at most a quarter of tables, the power of tests being 80% where rows suffice."""
    n_used = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-rng.normal(-3, 1, 2500)))
        y = rng.random(2500) < p * (1 + 0.4 * 1)
        n_used += check(y, p, positive=True).verdict.action == "use"
    assert n_used <= 6


@pytest.mark.parametrize(("power", "verb"), [(1, "do not reject"), (2, "reject")])
def test_the_reason_says_what_the_tests_say(power, verb):
    y, p, _ = calibrated(400, 5)
    texts = check(y, p**power).verdict.reasons.values()
    assert any(f"Tests of calibration {verb} it (p" in text for text in texts)


@pytest.mark.parametrize(("is_weighted", "has_groups"), product([False, True], repeat=2))
def test_no_event_where_many_are_expected_is_a_fault_of_the_level(is_weighted, has_groups):
    rng = np.random.default_rng(0)
    p, weight = rng.uniform(0.3, 0.9, 300), rng.uniform(0.5, 2, 300)
    options = {"sample_weight": weight} if is_weighted else {}
    options |= {"groups": np.arange(300) // 5} if has_groups else {}
    verdict = check(np.zeros(300, int), p, classes=[0, 1], positive=1, **options).verdict
    assert (
        verdict.action == "check" and verdict.failures["oe"] and verdict.failures["miscalibrated"]
    )
    assert verdict.sentence.startswith("Look at the level")
