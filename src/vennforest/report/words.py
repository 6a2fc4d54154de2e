"""The verdict in words: pairs of a condition and a sentence, in the order of ``docs/report.md``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri

from vennforest.metrics import IntervalEstimate
from vennforest.metrics.dependence import MIN_EVENT_GROUPS
from vennforest.metrics.losses import Difference
from vennforest.metrics.monotonicity import falling_frequency
from vennforest.report.comparison import Comparison, skill
from vennforest.report.measures import CALIBRATION_TEST_LEVEL, RAW, rows_for_precision
from vennforest.report.numbers import (
    amounts,
    area,
    fixed,
    percent,
    points,
    rounded_up,
    rows,
    signed,
    with_margin,
)
from vennforest.report.section import Section
from vennforest.validation.update import TITLES

POWER = (1.96 + 0.84) / 1.96
"""Size of an effect that is detected with power 80%, in half-widths of a 95% interval."""

MIN_COLLECTED = 50
"""Fewest rows that are advised: intervals of fewer are too rough to say how many it takes."""

WEAK_RANKING = 0.1
"""Smallest excess of the AUC over 0.5 that a table should be able to detect."""

DOUBTFUL_LEVEL = 0.1
"""p-value of the tests of calibration above which an error is attributed to chance."""

MAX_SHOWN_METHODS = 4
"""Maximum number of methods in the picture of calibration."""

MAX_RATIO = 0.1
"""Distance of slope and observed over expected from 1 that does not matter."""

Action = Literal["use", "recalibrate", "collect", "stop", "check"]
"""Use as is, recalibrate, collect more rows, do not use, or check a column or the rows first."""


@dataclass(frozen=True)
class Source:
    """Origin of the predictions, and the terms that the page uses.

    ``kind`` is cross-validation, folds in order of time, a model of the other sites for each site,
    probabilities as given, or a fitted model.
    ``target`` is the label, ``noun`` a word for the models, such as "forest", and ``names`` are the
    titles of methods. ``calibrate_on`` is that of models trained here. ``suspects`` are columns to
    check first: ``"leak"`` (alone it predicts the label almost without error) or ``"id"`` (it looks
    like an ID that several rows share). ``trained_on_rows``: the model seems to know these rows.
    """

    kind: Literal["folds", "time", "sites", "given", "model"]
    target: str
    noun: str
    names: Mapping[str, str]
    calibrate_on: str = ""
    suspects: Mapping[str, str] = field(default_factory=dict)
    trained_on_rows: bool = False

    @property
    def is_trained_here(self) -> bool:
        """Whether the models were trained for this evaluation."""
        return self.kind in ("folds", "time", "sites")

    def in_sentence(self, method: str) -> str:
        """Return the name of a method within a sentence."""
        return f"the raw {self.noun}" if method == RAW else self.names[method]


@dataclass(frozen=True)
class Verdict:
    """The interpretation of the numbers.

    Attributes
    ----------
    action : {"use", "recalibrate", "collect", "stop", "check"}
        What to do; ``sentence`` says it.
    method : str
        The recommended method.
    reasons : dict of str to str
        The reasons, by heading.
    figures : list of (str, str)
        The four main numbers, each with its meaning.
    finding : str
        The main observation in the picture of calibration.
    column : str
        The column to check first, or "".
    on_folds : bool
        Whether to calibrate on folds in place of out-of-bag scores.
    """

    action: Action
    sentence: str
    method: str
    reasons: dict[str, str]
    figures: list[tuple[str, str]]
    finding: str
    column: str = ""
    on_folds: bool = False

    def __str__(self) -> str:
        """Return the sentence and the reasons."""
        reasons = [f"{heading}: {text}" for heading, text in self.reasons.items()]
        return "\n".join([self.sentence, *reasons])


def judge(
    comparison: Comparison, source: Source, levels: pd.DataFrame, sections: Iterable[Section] = ()
) -> Verdict:
    """Return the verdict on a comparison and on the findings of sections.

    ``levels`` is the table by level of probability.
    """
    findings = [section.finding for section in sections if section.finding]
    choice = next((section.choice for section in sections if section.choice), "")
    action, sentence, column = advice(comparison, source, findings, choice)
    if action in ("use", "recalibrate"):
        sentence = " ".join([sentence, *(s.advice for s in sections if s.advice)])
    is_off = comparison.best.exceeds(comparison.tolerance)
    return Verdict(
        action,
        sentence,
        comparison.method,
        reasons(comparison, source),
        key_figures(comparison),
        finding(comparison, levels),
        column,
        on_folds=bool(action == "recalibrate" and source.is_trained_here and is_off),
    )


def rows_needed(n: int, effect: Difference) -> str:
    """Return the number of rows that would detect an effect, from its interval for n rows."""
    if not (np.isfinite(effect.margin) and effect.mean > 0):
        return "more rows"
    factor = max(2.0, (POWER * effect.margin / effect.mean) ** 2)
    return f"about {rounded_up(max(MIN_COLLECTED, n * factor))} rows"


def line_findings(c: Comparison) -> list[str]:
    """Return clauses on slope and observed over expected that are off by more than a tenth.

    Each is tested at half the level of the tests of calibration.
    """
    if c.line is None:
        return []
    z, clauses = float(ndtri(1 - CALIBRATION_TEST_LEVEL / 4)) / float(ndtri(0.975)), []
    slope, ratio = c.line.slope, c.line.observed_expected
    if max(MAX_RATIO, z * (slope.high - slope.value)) < abs(slope.value - 1):
        clauses.append(f"the slope is {_estimate(slope)}")
    if ratio.value > 0 and abs(ratio.value - 1) > MAX_RATIO:
        spread = np.log(ratio.high) - np.log(ratio.value)
        if abs(np.log(ratio.value)) > z * spread:
            clauses.append(f"observed over expected is {_estimate(ratio)}")
    return clauses


def _estimate(estimate: IntervalEstimate) -> str:
    value, low, high = (fixed(number, 2) for number in vars(estimate).values())
    return f"{value} (95% interval {low} to {high})"


def advice(
    c: Comparison, source: Source, findings: Sequence[str] = (), choice: str = ""
) -> tuple[Action, str, str]:
    """Return the action, its sentence and the column to check: the first rule that applies.

    ``findings`` are clauses on parts where calibration is rejected, and ``choice`` is the update
    of the probabilities that tests choose, "" if there was no test.
    """
    m, name, tolerance, n = c.best, source.names[c.method], c.tolerance, rows(c.n)
    raw, raw_name, auc, gain = c.measures.get(RAW, m), source.in_sentence(RAW), c.auc, c.gain
    off, chance = points(m.calibration_error), points(m.chance_error)
    size = f"on average {off} points off ({chance} by chance alone)"
    span = f"AUC {area(auc.auc)}, 95% interval {area(auc.low)} to {area(auc.high)}; chance: 0.5"
    no_ranking = "no method ranks" if len(c.measures) > 1 else "it does not rank"
    effect = Difference(max(auc.auc - 0.5, WEAK_RANKING / 2), (auc.high - auc.low) / 2)
    more_to_rank = rows_needed(c.n, effect)
    is_off, limit = m.exceeds(tolerance), f"the tolerance of {points(tolerance)}"
    is_blind = m.detectable > 2 * tolerance
    if m.is_rejected and not is_off:
        size += f"; tests reject calibration, but the error beyond chance is within {limit}"
    elif m.miscalibration > tolerance and m.pvalue >= DOUBTFUL_LEVEL and not is_blind:
        size += f", more than {limit}, but tests take it for chance"
    zero = f"probability 0 was given to what happened in {rows(m.impossible)}"
    if m.impossible:
        size = f"{zero}; {size}"
    is_underconfident = source.calibrate_on == "oob" and m.overconfidence < 0
    no_gain = not (gain.clear and gain.mean > 0)
    reference = c.baseline.log_loss if gain.loss == "log loss" else c.baseline.brier
    is_gain_small = gain.mean + gain.margin < 0.01 * reference or gain.mean <= 0
    margin = "" if gain.mean <= 0 else " by more than 1%"
    saved, costs, more_to_save = None, "", ""
    if c.costs is not None:
        saved, (cost, of_constant, *_) = c.costs.saved, _amounts_of_costs(c)
        costs = f"Always “{c.costs.best_constant}” costs {of_constant}, its decisions cost {cost}."
        more_to_save = rows_needed(c.n, saved)
    is_unclear = m.miscalibration > tolerance and m.pvalue < DOUBTFUL_LEVEL
    more_to_check = rounded_up(c.n * max(2.0, (m.detectable / tolerance) ** 2))
    subject = f"the probabilities of {name}" if len(c.measures) > 1 else "these probabilities"
    suspects = {reason: column for column, reason in reversed(list(source.suspects.items()))}
    leak, shared_id = suspects.get("leak"), suspects.get("id")
    clauses = [*line_findings(c), *findings]
    remedy = f" Tests choose: {TITLES[choice].lower()}." if choice else ""
    all_clauses = "; ".join(clauses)
    if clauses and source.is_trained_here:
        size += "".join(f"; {clause}" for clause in line_findings(c))
    # fmt: off
    rules: list[tuple[Any, Action, str]] = [
        (source.trained_on_rows, "check",
         "Test the model on other rows first: it was trained on these."),
        (leak, "check",
         f"Check the column “{leak}” first: alone it predicts “{source.target}” almost without "
         "error. If it was recorded after the outcome, leave it out."),
        (shared_id and c.predictions.groups is None, "check",
         f"Check the column “{shared_id}” first: it looks like an ID that several rows share, and "
         "was left out. If rows of one value belong together, keep them together."),
        (auc.below_chance, "stop",
         "Do not use it before the labels are checked: it ranks worse than chance, as if labels or "
         f"probabilities were swapped ({span})."),
        (not auc.above_chance and auc.high < 0.5 + WEAK_RANKING, "stop",
         f"Do not use it: {no_ranking} better than chance ({span})."),
        (not auc.above_chance, "collect",
         f"Collect {more_to_rank} before you use it: {n} do not show that it ranks better than "
         f"chance ({span})."),
        ((is_off or m.impossible) and not source.is_trained_here, "recalibrate",
         f"Recalibrate before use: {'; '.join([size, *clauses])}.{remedy}"),
        (clauses and not source.is_trained_here and choice == "keep", "check",
         f"Look at these parts before use: {all_clauses}. {remedy.strip()}"),
        (clauses and not source.is_trained_here, "recalibrate",
         f"Recalibrate before use: {all_clauses}.{remedy}"),
        (is_off and is_underconfident, "recalibrate",
         f"Calibrate on folds, or train more trees: even {name}, the best method out of bag, is "
         f"underconfident, {size}."),
        (is_off, "stop",
         f"Do not rely on these probabilities: even with {name}, the best method, {size}."),
        (m.impossible, "stop",
         f"Do not rely on probabilities of 0: even with {name}, the best method, {zero}."),
        (saved and saved.mean <= 0, "stop", f"Do not use it for these decisions. {costs}"),
        (saved and not saved.clear, "collect",
         f"Collect {more_to_save} to know whether it pays: the difference is within chance. "
         f"{costs}"),
        (saved is None and no_gain and is_gain_small, "stop",
         f"Do not use these probabilities: they do not beat the base rate{margin}, "
         f"{base_rate(c)}."),
        (saved is None and no_gain, "collect",
         f"Collect {rows_needed(c.n, gain)} before you use it: on {n} it does not beat the base "
         "rate by more than chance."),
        (findings, "check",
         f"Look at these parts before use: {'; '.join(findings)}. On all rows {name} is {size}."),
        (is_unclear or is_blind, "collect",
         f"Collect about {more_to_check} rows before you rely on the probabilities: {n} are too "
         f"few to check a tolerance of {points(tolerance)} points. Now they are {size}."),
        (not source.is_trained_here, "use", f"Use {subject} as they are: {size}."),
        (c.method == RAW, "use", f"Use {raw_name} as it is: {size}."),
        (raw.exceeds(tolerance), "recalibrate",
         f"Calibrate {raw_name} by {name}. Raw, it is {points(raw.calibration_error)} points off "
         f"on average; calibrated, {size.removeprefix('on average ')}."),
        (True, "use", f"Use the {source.noun} with {name}: {size}. {beside_raw(c, source)}"),
    ]
    # fmt: on
    action, sentence = next((action, text) for condition, action, text in rules if condition)
    return action, sentence, (leak or shared_id or "") if action == "check" else ""


def beside_raw(c: Comparison, source: Source) -> str:
    """Return a sentence that compares the raw model, if it is tolerable, with the recommended."""
    if RAW not in c.against:
        return ""
    raw, name = c.measures[RAW], f"The raw {source.noun}"
    if raw.impossible:
        return f"{name} gave probability 0 to what happened in {rows(raw.impossible)}."
    gap = c.against[RAW]
    if not gap.clear:
        return f"{name} is no worse beyond chance."
    if gap.mean > 0:
        return f"{name} has a higher {gap.loss}."
    lack = "ranks worse" if c.predictions.estimates[c.method].bounds is None else "has no bounds"
    return f"{name} has a {percent(-gap.mean / raw.log_loss)} lower {gap.loss}, but {lack}."


def base_rate(c: Comparison) -> str:
    """Return the base rate in words."""
    share = c.predictions.share
    return f"always predicting {'the class frequencies' if share is None else percent(share)}"


def _amounts_of_costs(c: Comparison) -> list[str]:
    """Return costs per row of the method and of the best constant decision, and their difference.

    The text of the difference includes its interval.
    """
    assert c.costs is not None
    saved = c.costs.saved
    ends = [saved.mean, saved.mean - saved.margin, saved.mean + saved.margin]
    return amounts([c.costs.mean[c.method], float(c.costs.of_constants.min()), *ends], saved.mean)


def reasons(c: Comparison, source: Source) -> dict[str, str]:
    """Return the reasons for the advice, by heading."""
    name = source.names[c.method]
    texts = {
        f"How well it predicts “{source.target}”": ranking(c),
        f"How accurate the probabilities of {name} are": calibration(c, c.method),
    }
    if RAW in c.measures and c.method != RAW:
        texts[f"How accurate those of {source.in_sentence(RAW)} are"] = calibration(c, RAW)
    if c.costs is not None:
        texts["What its decisions cost"] = decisions(c, name)
    if c.against:
        texts[f"Why {name}"] = recommendation(c, source)
    if c.predictions.positive is not None:
        texts["How many rows narrow intervals take"] = sample_size(c)
    if c.event().confidence is not None:
        texts["How precisely the probabilities are known"] = precision(c)
    if fall := falling(c):
        texts["Where the frequency falls as the score rises"] = fall
    return texts


def ranking(c: Comparison) -> str:
    """Return sentences on the ranking of the method and its gain over the base rate."""
    auc, gain, m, baseline = c.auc, c.gain, c.best, c.baseline
    most_frequent = c.predictions.classes[np.bincount(c.predictions.codes).argmax()]
    loss, reference = m.brier, baseline.brier
    if gain.loss == "log loss":
        loss, reference = m.log_loss, baseline.log_loss
    better = skill(loss, reference)
    sign = -1 if better < 0 else 1
    ends = sorted(sign * (gain.mean + side * gain.margin) / reference for side in (-1, 1))
    low, high = map(signed, ends)
    text = (
        f"AUC {area(auc.auc)} (95% interval {area(auc.low)} to {area(auc.high)}; random ranking: "
        f"0.5). Its {gain.loss} is {signed(abs(better))} {lower_or_higher(better)} than that of "
        f"{base_rate(c)} (95% interval {low} to {high}). {percent(m.accuracy)} of its most "
        f"probable classes are right; always “{most_frequent}”: {percent(baseline.accuracy)}."
    )
    if c.predictions.groups is not None:
        n_groups = len(np.unique(c.predictions.groups))
        text += f" Intervals treat the {n_groups:,} groups as independent, not the rows."
    return text


def lower_or_higher(gain: float) -> str:
    """Return in which direction a loss differs, of which ``gain`` is the share that is saved."""
    return "higher" if gain < 0 else "lower"


def calibration(c: Comparison, method: str) -> str:
    """Return sentences on the miscalibration of a method and its tests.

    If the tests reject calibration, the size of the miscalibration decides.
    """
    m, n, tolerance = c.measures[method], rows(c.n), c.tolerance
    event = c.predictions.event(c.predictions.estimates[method])
    error = f"off by about {points(m.miscalibration)} percentage points beyond chance"
    limit = f"the tolerance of {points(tolerance)}"
    size = f"Their error beyond chance is within {limit} points."
    if m.exceeds(tolerance):
        size = f"They are {error}, more than {limit}."
    elif m.miscalibration > tolerance and m.pvalue < DOUBTFUL_LEVEL:
        size = f"They seem {error}, more than {limit}, but tests do not confirm it."
    elif m.detectable > 2 * tolerance:
        size = f"On {n} an error below {points(m.detectable)} percentage points would not be seen."
    elif m.miscalibration > tolerance:
        size = f"They seem {error}, more than {limit}, but tests take it for chance."
    if m.impossible:
        size = f"Probability 0 was given to what happened in {rows(m.impossible)}. {size}"
    p = "< 0.001" if m.pvalue < 0.001 else f"= {m.pvalue:.2g}"
    tests = f"Tests of calibration {'reject' if m.is_rejected else 'do not reject'} it (p {p})."
    if math.isnan(m.pvalue):
        tests = (
            f"Calibration is not tested: fewer than {MIN_EVENT_GROUPS} groups have the event, too "
            "few to say how far the rows of a group depend on each other."
        )
    return (
        f"{size} They are {points(m.calibration_error)} percentage points from the observed "
        f"frequencies on average; perfectly calibrated ones would be {points(m.chance_error)} by "
        f"chance, and more than {points(m.chance_limit)} in 5% of cases. "
        f"{tests} "
        f"Their mean is {percent(event.p.mean())}, the observed frequency "
        f"{percent(event.outcome.mean())}."
    )


def decisions(c: Comparison, name: str) -> str:
    """Return a sentence on the costs of decisions by the method and of the best constant one."""
    assert c.costs is not None
    cost, of_constant, saved, low, high = _amounts_of_costs(c)
    pairs = zip(c.costs.matrix.decisions, c.costs.n_decided.tolist(), strict=True)
    counts = ", ".join(f"“{decision}” for {rows(n)}" for decision, n in pairs if n)
    return (
        f"Deciding by {name} costs {cost} per row, always “{c.costs.best_constant}” costs "
        f"{of_constant} (difference {saved}, 95% interval {low} to {high}). It decides {counts}."
    )


def recommendation(c: Comparison, source: Source) -> str:
    """Return sentences on why the method is recommended, and which others differ from it."""
    name = source.names[c.method]
    sentences = [f"It has {c.rule}."]
    if not c.auc.above_chance:
        sentences = [f"No method has been shown to beat the base rate; {name} comes closest."]
    for method in shown_methods(c, source)[1:]:
        gap = c.against[method]
        sentences.append(
            f"Its {gap.loss} is {lower_or_higher(gap.mean)} than that of "
            f"{source.in_sentence(method)} by {with_margin(gap.mean, gap.margin)} (95% interval)"
            f"{'' if gap.clear else ', within chance'}."
        )
    if not any(gap.clear and gap.mean < 0 for gap in c.against.values()):
        sentences.append("No other method is better by more than chance.")
    return " ".join(sentences)


def precision(c: Comparison) -> str:
    """Return sentences on the width and the coverage of the confidence intervals."""
    claim = (
        "The frequency among rows with such a score lies in the confidence interval in 95% of "
        "cases."
    )
    if c.best.is_rejected:
        claim = "Calibration is rejected on these rows, so confidence intervals do not hold here."
    return f"{claim} Half of them are narrower than ±{points(half_width(c))} points."


def falling(c: Comparison) -> str:
    """Return sentences where a frequency falls as the score rises, "" if no test rejects it.

    The scores are those of the raw model, or else the probabilities of the method.
    """
    predictions, names = c.predictions, [RAW, c.method]
    p = next(predictions.estimates[name].p for name in names if name in predictions.estimates)
    labels, codes = list(predictions.classes), predictions.codes
    if predictions.positive is not None:
        p, labels = p[:, predictions.positive], [predictions.label]
        codes = (codes == predictions.positive).astype(np.intp)
    fall = falling_frequency(p, codes, predictions.groups)
    if fall is None:
        return ""
    return (
        f"The frequency of “{labels[fall.column]}” {fall}. Confidence intervals and maps that "
        "never fall assume that it rises with the score: there they do not hold."
    )


def sample_size(c: Comparison) -> str:
    """Return a sentence on the number of rows that narrow intervals require."""
    needed = rows_for_precision(c.event().p, c.auc.auc)
    parts = [f"{rounded_up(n)} for the {name}" for name, n in needed.items() if 0 < n < 1e9]
    return (
        f"Narrow 95% intervals need this many independent rows: {', '.join(parts)} (Riley et al. "
        f"2021); here are {c.n:,}."
    )


def half_width(c: Comparison) -> float:
    """Return half the median width of the recommended method's confidence intervals, or NaN."""
    confidence = c.event().confidence
    return np.nan if confidence is None else float(np.median(confidence[1] - confidence[0])) / 2


def key_figures(c: Comparison) -> list[tuple[str, str]]:
    """Return the four main numbers, each with its meaning."""
    m, auc = c.best, c.auc
    better = skill(m.brier, c.baseline.brier)
    figures = [
        (
            f"{points(m.calibration_error)} points",
            f"off on average ({points(m.chance_error)} by chance alone)",
        ),
        (
            area(auc.auc),
            f"AUC: how well it ranks (95% interval {area(auc.low)} to {area(auc.high)})",
        ),
        (signed(abs(better)), f"{lower_or_higher(better)} Brier score than {base_rate(c)}"),
    ]
    if c.costs is not None:
        cost, of_constant, *_ = _amounts_of_costs(c)
        meaning = f"per row for its decisions; always “{c.costs.best_constant}”: {of_constant}"
        return [*figures, (cost, meaning)]
    if np.isfinite(half_width(c)) and not m.is_rejected:
        return [*figures, (f"±{points(half_width(c))} points", "typical 95% confidence interval")]
    usual = percent(c.baseline.accuracy)
    accuracy = (percent(m.accuracy), f"of labels are right; the most frequent one: {usual}")
    return [*figures, accuracy]


def finding(c: Comparison, levels: pd.DataFrame) -> str:
    """Return a sentence on the level that contributes most to the calibration error."""
    gap = levels["n"] * (levels["expected"] - levels["observed"]).abs()
    level = levels.iloc[int(gap.to_numpy().argmax())]
    label = c.predictions.label
    event = "right" if label is None else f"“{label}”"
    with_p = "whose predicted class has" if label is None else "with"
    p, share, low, high = (
        percent(level[name], int(level[name] < 0.1))
        for name in ("expected", "observed", "observed_low", "observed_high")
    )
    n = int(level["n"])
    return (
        f"Of {rows(n)} {with_p} a probability near {p}, {share} {'was' if n == 1 else 'were'} "
        f"{event} (95% interval {low} to {high})"
    )


def shown_methods(c: Comparison, source: Source) -> list[str]:
    """Return the methods of the first picture, the recommended one first."""
    methods = [c.method, *(c.measures if source.kind == "given" else [RAW])]
    return [m for m in dict.fromkeys(methods) if m in c.measures][:MAX_SHOWN_METHODS]
