"""What the numbers sentences_on in words."""

from collections import Counter
from dataclasses import replace
from itertools import cycle, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from support.report_data import COSTS, calibrated, with_bounds
from vennforest.metrics import CalibrationLine, IntervalEstimate
from vennforest.report import check, comparison
from vennforest.report.comparison import Difference
from vennforest.report.measures import Measures
from vennforest.report.sections import Section
from vennforest.report.verdict import judge
from vennforest.report.words import sentences_on

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
    assert result.action == "recalibrate" and "Raw, it is about 9.8 points off" in result.sentence


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
    assert few.action == "collect" and "about 4,700 rows" in few.sentence


def test_a_model_that_cannot_rank_is_not_to_be_used():
    n_used = 0
    for seed in range(8):  # probabilities that have nothing to do with the labels
        y, p, rng = calibrated(150, seed)
        n_used += check(rng.permutation(y), p).verdict.action == "use"
    assert n_used <= 1
    y, p, _ = calibrated(4000, 1, strength=2.0)
    verdict = check(y, p).verdict
    assert verdict.action == "use" and "no error was seen" in verdict.sentence
    swapped = check(y, 1 - p).verdict
    assert swapped.action == "stop" and "worse than chance" in swapped.sentence
    assert check(y, 0.02 + 0.05 * p).verdict.action == "recalibrate"  # ranks as well


def test_costs_are_compared_with_the_best_constant_decision():
    y, p, rng = calibrated(4000, 3, strength=2.0)
    evaluation = check(y, p, costs=COSTS, positive="yes")
    decided = np.where(4 * p > 1, "treat", "wait")
    paid = np.mean([COSTS[a][b] for a, b in zip(y, decided, strict=True)])
    constant, name = min((np.mean([COSTS[a][b] for a in y]), b) for b in ("wait", "treat"))
    costs = evaluation.findings.costs
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
    shown = evaluation.findings.shown_methods
    assert set(shown) == {"old", "new", "third"} and shown[0] == evaluation.verdict.method
    why = evaluation.verdict.reasons[f"Why “{shown[0]}”"]
    assert f"that of “{shown[1]}”" in why


def test_the_reason_names_the_tolerance_where_it_left_out_a_better_ranking():
    y, p, rng = calibrated(4000, 2, share=0.3)
    given = {"off": p**1.15, "right": (p + rng.normal(0, 0.06, 4000)).clip(0.02, 0.98)}
    for tolerance, limit in ((0.02, True), (0.3, False)):
        evaluation = check(y, given, positive="yes", tolerance=tolerance)
        auc = evaluation.methods.loc[["off", "right"], "auc"]
        assert auc["off"] > auc["right"]
        assert evaluation.verdict.method == ("right" if limit else "off")
        assert ("within the tolerance" in evaluation.findings.rule) == limit


def test_the_figures_are_the_measures(cancer):
    m = cancer.findings.best
    texts = [number for number, _ in cancer.verdict.figures]
    decision = cancer.findings.decision
    n_events = 100 * decision["sensitivity"] * m.observed
    assert texts[0] == f"{n_events:.0f} of {100 * m.observed:.0f}"
    assert f"if {100 * decision['flagged']:.0f} are flagged" in cancer.verdict.figures[0][1]
    assert texts[1] == f"{m.auc:.3f}"
    assert f"“operate”: {cancer.findings.costs.of_constants[1]:.4f}" in cancer.verdict.figures[3][1]


def check_slope(slope, shift=0.0, seed=6, **options):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=6000) * 1.2 - 2.5
    y = rng.random(6000) < 1 / (1 + np.exp(-(shift + slope * (z + 2.5) - 2.5)))
    return check(y, 1 / (1 + np.exp(-z)), **options)


def test_the_headline_takes_the_slope_and_observed_over_expected():
    right = check_slope(1.0).verdict
    assert right.action == "use" and "slope" not in right.sentence
    flat = check_slope(0.75)
    line = flat.findings.lines_off["slope"]
    assert flat.verdict.action == "recalibrate"
    assert f"the slope is {line.value:.2f} (95% interval {line.low:.2f}" in flat.verdict.sentence
    low = check_slope(1.0, 0.25).verdict
    assert low.action == "recalibrate" and "observed over expected is 1.1" in low.sentence
    assert "Tests choose: move the intercept." in low.sentence
    assert low.failures["miscalibrated"] and not right.failures["miscalibrated"]
    # A tolerance that the user gives decides alone.
    assert check_slope(1.0, 0.25, tolerance=0.2).verdict.action == "use"


def with_section(evaluation, name, section):
    findings = evaluation.findings
    return judge(replace(findings, sections={**findings.sections, name: section}))


def test_parts_that_are_off_are_in_the_headline_and_fail():
    evaluation = check_slope(1.0, updates=True)
    off = Section(None, rejected={"too low": ["B", "C"], "too high": []})
    kept = with_section(evaluation, "grades", off)
    assert kept.action == "check" and "grades: too low in B and C" in kept.sentence
    assert "Tests choose: keep the probabilities." in kept.sentence
    assert kept.failures["grades"] == "grades: too low in B and C" and not kept.failures["sites"]
    moved = with_section(check_slope(1.0, 0.25), "sites", off)
    assert moved.action == "recalibrate" and "sites: too low in B and C" in moved.sentence
    assert with_section(evaluation, "grades", Section(None)).action == "use"


def wards(shifts, n=9000, seed=2):
    rng = np.random.default_rng(seed)
    ward, z = rng.integers(0, len(shifts), n), rng.normal(-1.2, 1, n)
    y = rng.random(n) < 1 / (1 + np.exp(-z - np.array(shifts)[ward]))
    return y, 1 / (1 + np.exp(-z)), np.array([*"ABCDEF"])[ward]


def test_groups_and_sites_that_are_off_are_named_and_no_other():
    y, p, ward = wards((0.6, -0.7, 0, 0, 0, 0))
    for options, name in (({"by": {"ward": ward}}, "groups"), ({"site": ward}, "sites")):
        verdict = check(y, p, **options).verdict
        assert verdict.action in ("check", "recalibrate")
        clause = verdict.failures[name]
        assert "A" in clause.split() and "B" in clause.split() and clause in verdict.sentence
        assert not {"C", "D", "E", "F"} & set(clause.split())
    y, p, ward = wards((0, 0, 0, 0, 0, 0))
    evaluation = check(y, p, by={"ward": ward}, site=ward)
    assert not evaluation.findings.rejected and evaluation.verdict.action == "use"


def test_classes_that_are_taken_for_each_other_are_in_the_headline():
    """The confidence in the top label is right, and two minor classes are not."""
    rng = np.random.default_rng(11)
    top = np.where(rng.random(5000) < 0.5, 0.97, 0.42)
    p = np.column_stack([top, (1 - top) / 2, (1 - top) / 2])
    q = np.column_stack([top, 0.8 * (1 - top), 0.2 * (1 - top)])
    for truth, is_off in ((p, False), (q, True)):
        codes = (rng.random((5000, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        verdict = check(np.array([*"abc"])[codes], p).verdict
        assert (verdict.action == "recalibrate") == is_off
        assert ("classes: too low in b and too high in c" in verdict.sentence) == is_off
        assert bool(verdict.failures["classes"]) == is_off


def test_an_error_of_twice_the_tolerance_is_rarely_called_none():
    """In at most a quarter of tables, the power of tests being 80% where rows suffice."""
    n_used = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-rng.normal(-3, 1, 2500)))
        y = rng.random(2500) < p * (1 + 0.4 * 1)
        n_used += check(y, p, positive=True).verdict.action == "use"
    assert n_used <= 6


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


def test_the_finding_is_of_the_level_that_is_most_off(cancer):
    columns = ["n", "expected", "observed", "observed_low", "observed_high"]
    rows = [(10, 0.5, 0.9, 0.6, 1.0), (400, 0.2, 0.3, 0.25, 0.35), (900, 0.1, 0.1, 0.08, 0.12)]
    levels = pd.DataFrame(rows, columns=columns)
    (text,) = sentences_on("finding", replace(cancer.findings, levels=levels, positive="yes"))
    assert text.startswith("Of 400 rows with a probability near 20%, 30% were “yes”")


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
