"""The verdict in words: pairs of a condition and a sentence, in the order of ``docs/report.md``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from vennforest.report.comparison import Comparison, Costs
from vennforest.report.event import cost_threshold, level_rows
from vennforest.report.measures import RAW, Measures
from vennforest.report.numbers import (
    alike,
    area,
    number_of_points,
    p_value,
    percent,
    points,
    rounded_up,
    rows,
    signed,
    with_margin,
)

POWER = (1.96 + 0.84) / 1.96
"""Half-widths of a 95% interval that an effect must be to be seen in four tables of five."""

WEAK_RANKING = 0.1
"""AUC above 0.5 that a table should be able to show."""

DOUBTFUL_LEVEL = 0.1
"""p-value of the tests of calibration from which an error is taken for chance."""

MIN_SKILL = 0.0005

Action = Literal["use", "recalibrate", "collect", "stop", "check"]
"""Use as is, recalibrate, collect more rows, do not use, or check a column or the rows first."""

Rule = tuple[Any, str]
"""A condition, and the sentence that is said where it holds."""


@dataclass(frozen=True)
class Source:
    """Where predictions came from, and what a reader calls things.

    Attributes
    ----------
    kind : {"folds", "time", "given", "model"}
        Cross-validation, folds in order of time, probabilities as given, or a fitted model.
    target, noun : str
        What is predicted, and what predicted it, such as "forest".
    names : mapping of str to str
        What each method is called.
    calibrate_on : str
        Where the calibration scores of trained models came from; "" if nothing was trained.
    suspects : mapping of str to str
        Columns to check first: ``"leak"`` (alone it predicts the label almost without error),
        ``"id"`` (it looks like an ID that several rows share) or ``"text"`` (its numbers are read
        as text).
    trained_on_rows : bool
        Whether the model seems to have been trained on these rows.
    """

    kind: Literal["folds", "time", "given", "model"]
    target: str
    noun: str
    names: Mapping[str, str]
    calibrate_on: str = ""
    suspects: Mapping[str, str] = field(default_factory=dict)
    trained_on_rows: bool = False

    @property
    def is_trained_here(self) -> bool:
        """Whether the models were trained for this evaluation."""
        return self.kind in ("folds", "time")

    @property
    def raw_name(self) -> str:
        """What the raw model is called within a sentence."""
        return self.names.get(RAW, "").replace("Raw", "raw", 1)

    def suspect(self, reason: str) -> str | None:
        """Return the first column that is suspected for a reason."""
        return next((column for column, why in self.suspects.items() if why == reason), None)


class Advice(NamedTuple):
    """What to do next, the sentence for it, the column to check, and whether to use folds."""

    action: Action
    sentence: str
    column: str = ""
    on_folds: bool = False


@dataclass(frozen=True)
class Verdict:
    """What the numbers say.

    Attributes
    ----------
    action : {"use", "recalibrate", "collect", "stop", "check"}
        What to do.
    sentence : str
        The same in one sentence.
    method : str
        The recommended method.
    rule : str
        How it was chosen.
    reasons : dict of str to str
        What the numbers say, by heading.
    figures : list of (str, str)
        The four numbers to see first, each with its meaning.
    finding : str
        What the picture of calibration shows.
    column : str
        The column to check first, or "".
    on_folds : bool
        Whether to calibrate on folds in place of out-of-bag scores.
    """

    action: Action
    sentence: str
    method: str
    rule: str
    reasons: dict[str, str]
    figures: list[tuple[str, str]]
    finding: str
    column: str = ""
    on_folds: bool = False

    def __str__(self) -> str:
        """Return the sentence and the reasons."""
        reasons = [f"{heading}: {text}" for heading, text in self.reasons.items()]
        return "\n".join([self.sentence, *reasons])


def verdict(comparison: Comparison, source: Source) -> Verdict:
    """Return what a comparison says."""
    advised = advice(comparison, source)
    return Verdict(
        advised.action,
        advised.sentence,
        comparison.method,
        comparison.choice.rule,
        reasons(comparison, source),
        key_figures(comparison),
        finding(comparison),
        advised.column,
        advised.on_folds,
    )


def _joined(*rules: Rule) -> str:
    """Return the sentences whose conditions hold."""
    return " ".join(sentence for condition, sentence in rules if condition)


def _first(*rules: Rule) -> str:
    """Return the first sentence whose condition holds, or ""."""
    return next((sentence for condition, sentence in rules if condition), "")


def rows_needed(n: int, margin: float, effect: float) -> str:
    """Return how many rows would show an effect whose 95% margin on n rows is known."""
    if not (np.isfinite(margin) and effect > 0):
        return "more rows"
    return f"about {rounded_up(n * max(1.0, (POWER * margin / effect) ** 2))} rows"


def size_of_error(m: Measures) -> str:
    """Return how far probabilities are off, and how far by chance."""
    return (
        f"on average {number_of_points(m.calibration_error)} points off "
        f"({number_of_points(m.chance_error)} by chance alone)"
    )


def advice(c: Comparison, source: Source) -> Advice:
    """Return what to do next: the first rule that applies."""
    m, name, tolerance, n = c.best, source.names[c.method], c.tolerance, rows(c.n)
    raw = c.measures.get(RAW, m)
    auc, gain, size = c.auc, c.gain, size_of_error(m)
    span = f"AUC {area(auc.auc)}, 95% interval {area(auc.low)} to {area(auc.high)}; chance: 0.5"
    no_ranking = "no method ranks" if len(c.measures) > 1 else "it does not rank"
    more_to_rank = rows_needed(c.n, (auc.high - auc.low) / 2, max(auc.auc - 0.5, WEAK_RANKING / 2))
    is_off = m.exceeds(tolerance) or m.impossible
    if m.impossible:
        size = f"probability 0 was given to what happened in {rows(m.impossible)}; {size}"
    is_underconfident = source.calibrate_on == "oob" and m.overconfidence < 0
    no_gain = not (gain.clear and gain.mean > 0)
    is_gain_small = gain.mean + gain.margin < 0.01 * _reference_loss(c) or gain.mean <= 0
    within = "" if gain.mean <= 0 else " by more than 1%"
    costs = "" if c.costs is None else _cost_sentence(c.costs, c.method)
    saved = None if c.costs is None else c.costs.saved
    decides_one = c.costs is not None and (c.costs.n_decided > 0).sum() == 1
    is_unclear = m.miscalibration > tolerance and m.pvalue < DOUBTFUL_LEVEL
    more_to_check = rounded_up(c.n * max(2.0, (m.detectable / tolerance) ** 2))
    off = number_of_points(raw.calibration_error)
    given = f"the probabilities of {name}" if len(c.measures) > 1 else "these probabilities"
    leak, shared_id = source.suspect("leak"), source.suspect("id")
    has_groups = c.predictions.groups is not None
    rules: list[tuple[Any, Action, str]] = [
        (
            source.trained_on_rows,
            "check",
            "Test the model on other rows first: it was trained on these.",
        ),
        (
            leak,
            "check",
            f"Check the column “{leak}” first: alone it predicts “{source.target}” almost without "
            "error. If it was recorded after the outcome, leave it out.",
        ),
        (
            shared_id and not has_groups,
            "check",
            f"Check the column “{shared_id}” first: it looks like an ID that several rows share, "
            "and was left out. If rows of one value belong together, keep them together.",
        ),
        (
            auc.below_chance,
            "stop",
            "Do not use it before the labels are checked: it ranks worse than chance, as if labels "
            f"or probabilities were swapped ({span}).",
        ),
        (
            not auc.above_chance and auc.high < 0.5 + WEAK_RANKING,
            "stop",
            f"Do not use it: {no_ranking} better than chance ({span}).",
        ),
        (
            not auc.above_chance,
            "collect",
            f"Collect {more_to_rank} before you use it: on {n}, {no_ranking} better than chance "
            f"({span}).",
        ),
        (is_off and not source.is_trained_here, "recalibrate", f"Recalibrate before use: {size}."),
        (
            is_off and is_underconfident,
            "recalibrate",
            f"Calibrate on folds, or train more trees: even {name}, the best method out of bag, is "
            f"underconfident, {size}.",
        ),
        (
            is_off,
            "stop",
            f"Do not rely on these probabilities: even with {name}, the best method, {size}.",
        ),
        (
            decides_one,
            "stop",
            f"Do not use it for these decisions: it decides the same for every row. {costs}",
        ),
        (
            saved and saved.mean <= 0,
            "stop",
            f"Do not use it for these decisions. {costs}",
        ),
        (
            saved and not saved.clear,
            "collect",
            f"Collect {'' if saved is None else rows_needed(c.n, saved.margin, saved.mean)} to "
            f"know whether it pays: the difference is within chance. {costs}",
        ),
        (
            saved is None and no_gain and is_gain_small,
            "stop",
            f"Do not use these probabilities: they do not beat the base rate{within}, "
            f"{base_rate(c)}.",
        ),
        (
            saved is None and no_gain,
            "collect",
            f"Collect {rows_needed(c.n, gain.margin, gain.mean)} before you use it: on {n} it does "
            "not beat the base rate by more than chance.",
        ),
        (
            is_unclear or m.detectable > 2 * tolerance,
            "collect",
            f"Collect about {more_to_check} rows before you rely on the probabilities: {n} are too "
            f"few to check a tolerance of {number_of_points(tolerance)} points. Now they are "
            f"{size}.",
        ),
        (not source.is_trained_here, "use", f"Use {given} as they are: {size}."),
        (c.method == RAW, "use", f"Use the {source.raw_name} as it is: {size}."),
        (
            raw.exceeds(tolerance) or raw.impossible,
            "recalibrate",
            f"Calibrate the {source.raw_name} by {name}. Raw, it is {off} points off on average; "
            f"calibrated, {size.removeprefix('on average ')}.",
        ),
        (True, "use", f"Use the {source.noun} with {name}: {size}."),
    ]
    action, sentence = next(
        (action, sentence) for condition, action, sentence in rules if condition
    )
    texts = [f"“{column}”" for column, why in source.suspects.items() if why == "text"]
    if texts and action in ("stop", "collect"):
        return Advice(
            "check",
            f"Check {', '.join(texts[:5])} first: numbers or dates there are read as text, and the "
            "notes say how to declare them. Without them: "
            f"{sentence[0].lower()}{sentence[1:]}",
        )
    column = (leak or shared_id or "") if action == "check" else ""
    return Advice(action, sentence, column, sentence.startswith("Calibrate on folds"))


def _reference_loss(c: Comparison) -> float:
    """Return the loss of the base rate that gains are compared with."""
    return c.baseline.log_loss if c.gain.loss == "log loss" else c.baseline.brier


def base_rate(c: Comparison) -> str:
    """Return the base rate in words."""
    if c.share is None:
        return "always predicting the class frequencies"
    return f"always predicting {percent(c.share)}"


def _cost_figures(costs: Costs, method: str) -> list[str]:
    """Return costs per row of the method and of the best constant decision, and their difference.

    The difference comes with the ends of its interval.
    """
    saved = costs.saved
    ends = [saved.mean, saved.mean - saved.margin, saved.mean + saved.margin]
    return alike([costs.mean[method], float(costs.of_constants.min()), *ends], saved.mean)


def _cost_sentence(costs: Costs, method: str) -> str:
    cost, of_constant, *_ = _cost_figures(costs, method)
    return f"Always “{costs.best_constant}” costs {of_constant} per row, its decisions cost {cost}."


def reasons(c: Comparison, source: Source) -> dict[str, str]:
    """Return what the advice rests on: headings, and what the numbers say."""
    name = source.names[c.method]
    texts = {
        f"How well it predicts “{source.target}”": ranking(c, source),
        f"How accurate the probabilities of {name} are": calibration(c, c.method),
    }
    if RAW in c.measures and c.method != RAW:
        texts[f"How accurate those of the {source.raw_name} are"] = calibration(c, RAW)
    if c.costs is not None:
        texts["What its decisions cost"] = decisions(c, name)
    if len(c.measures) > 1:
        texts[f"Why {name}"] = recommendation(c, source)
    if c.event().confidence is not None:
        texts["How precisely the probabilities are known"] = precision(c)
    return texts


def ranking(c: Comparison, source: Source) -> str:
    """Say how well the recommended method ranks, and what it gains on the base rate."""
    auc, gain, m = c.auc, c.gain, c.best
    counts = np.bincount(c.predictions.codes, minlength=len(c.predictions.classes))
    classes, predicted = c.predictions.classes, c.predictions.estimates[c.method].p.argmax(axis=1)
    skill = m.log_loss_skill if gain.loss == "log loss" else m.brier_skill
    lower = f"{percent(min(1.0, abs(skill)))} {'lower' if skill > 0 else 'higher'} than that of"
    compared = _first(
        (skill < -1, f"{1 - skill:.1f} times that of"), (abs(skill) >= MIN_SKILL, lower),
        (True, "that of"),
    )  # fmt: skip
    interval = ""
    if np.isfinite(gain.margin) and _reference_loss(c):
        low, high = ((gain.mean + sign * gain.margin) / _reference_loss(c) for sign in (-1, 1))
        interval = f" (95% interval of the gain: {signed(low)} to {signed(high)})"
    only = classes[predicted[0]] if len(np.unique(predicted)) == 1 else None
    n_groups = 0 if c.predictions.groups is None else len(np.unique(c.predictions.groups))
    return _joined(
        (
            True,
            f"AUC {area(auc.auc)} (95% interval {area(auc.low)} to {area(auc.high)}; random "
            "ranking: 0.5).",
        ),
        (
            not auc.above_chance and counts.min() < 30,
            "With so few rows in a class, only strong relations would show.",
        ),
        (True, f"Its {gain.loss} is {compared} {base_rate(c)}{interval}."),
        (
            skill >= 0.9,
            "So good a result is rare: check that no column reveals the outcome.",
        ),
        (
            only is not None,
            f"“{only}” is the most probable class of every row, right in {percent(m.accuracy)}.",
        ),
        (
            only is None,
            f"{percent(m.accuracy)} of its most probable classes are right; always "
            f"“{classes[counts.argmax()]}”: {percent(c.baseline.accuracy)}.",
        ),
        (
            not auc.above_chance and source.is_trained_here,
            "Another kind of model may do better: --estimator.",
        ),
        (n_groups, f"Intervals treat the {n_groups:,} groups as independent, not the rows."),
    )


def calibration(c: Comparison, method: str) -> str:
    """Say how far a method's probabilities are from the observed frequencies, and what tests say.

    The size decides, once tests reject that it is chance.
    """
    m, n, tolerance = c.measures[method], rows(c.n), c.tolerance
    if m.chance_limit == m.calibration_error == 0:
        return f"All are 0 or 1, and agree with every outcome of {n}."
    error = f"off by about {points(m.miscalibration)} beyond chance"
    limit = f"the tolerance of {number_of_points(tolerance)}"
    size = _first(
        (m.exceeds(tolerance), f"They are {error}, more than {limit}."),
        (
            m.miscalibration > tolerance,
            f"They seem {error}, more than {limit}, but tests do not confirm it.",
        ),
        (
            m.detectable > 2 * tolerance,
            f"On {n} an error below {points(m.detectable)} would not be seen.",
        ),
        (True, f"Their error beyond chance is within {limit} points."),
    )
    return _joined(
        (m.impossible, f"Probability 0 was given to what happened in {rows(m.impossible)}."),
        (True, size),
        (
            True,
            "On average they differ from the observed frequencies by "
            f"{points(m.calibration_error)}. Perfectly calibrated probabilities would differ by "
            f"{number_of_points(m.chance_error)} by chance, and by more than "
            f"{number_of_points(m.chance_limit)} in 5% of cases.",
        ),
        (
            True,
            f"Tests of calibration {'reject' if m.is_rejected else 'do not reject'} it "
            f"(p {p_value(m.pvalue)}).",
        ),
        (True, _on_average(c, method)),
    )


def _on_average(c: Comparison, method: str) -> str:
    """Compare mean confidence with accuracy, or of a rare class numbers of rows."""
    m, p = c.measures[method], c.predictions.estimates[method].p.max(axis=1)
    event = c.event(method)
    expected, observed = float(event.p.sum()), int(event.outcome.sum())
    error = float(np.sqrt((p * (1 - p)).sum()) / len(p))
    how = "overconfident" if m.overconfidence > 0 else "underconfident"
    little = "a little " if abs(m.overconfidence) < 0.005 else ""
    both = f"mean confidence {percent(m.accuracy + m.overconfidence)}, accuracy "
    both += percent(m.accuracy)
    return _first(
        (
            c.is_rare,
            f"They predict {expected:,.{0 if expected >= 100 else 1}f} rows of “{c.label}”; "
            f"{observed:,} were observed.",
        ),
        (
            abs(m.overconfidence) <= 1.96 * error,
            f"Confidence and accuracy agree within chance: {both}.",
        ),
        (True, f"Labels are {little}{how}: {both}."),
    )


def decisions(c: Comparison, name: str) -> str:
    """Say what deciding by the probabilities costs, and what the best constant decision does."""
    costs, event = c.costs, c.event()
    assert costs is not None
    cost, of_constant, saved, low, high = _cost_figures(costs, c.method)
    pairs = zip(costs.matrix.decisions, costs.n_decided.astype(int).tolist(), strict=True)
    counts = ", ".join(f"“{decision}” for {rows(n)}" for decision, n in pairs if n)
    tie = cost_threshold(costs.matrix, c.positive)
    n_open = 0
    if tie is not None and event.confidence is not None:
        n_open = int(((event.confidence[0] < tie) & (event.confidence[1] >= tie)).sum())
    return _joined(
        (
            (costs.n_decided > 0).sum() == 1,
            f"It decides {counts}, at {cost} per row, which needs no model.",
        ),
        (
            (costs.n_decided > 0).sum() > 1,
            f"Deciding by {name} costs {cost} per row, always “{costs.best_constant}” costs "
            f"{of_constant} (difference {saved}, 95% interval {low} to {high}). It decides "
            f"{counts}.",
        ),
        (
            n_open,
            f"For {rows(n_open)} ({percent(n_open / c.n)}) the threshold of these costs, "
            f"{percent(tie or 0.0)}, lies inside the 95% confidence interval: there the cheaper "
            "decision is not known.",
        ),
    )


def recommendation(c: Comparison, source: Source) -> str:
    """Say why this method, and what differs from it by more than chance."""
    name = source.names[c.method]
    against = c.choice.against
    sentences = [f"It has {c.choice.rule}."]
    if not c.auc.above_chance:
        sentences = [f"No method has been shown to beat the base rate; {name} comes closest."]
    for other in shown_methods(c, source)[1:]:
        gap = against[other]
        size = " ± ".join(with_margin(abs(gap.mean), gap.margin))
        other_name = f"the {source.raw_name}" if other == RAW else source.names[other]
        sentences.append(
            f"Its {gap.loss} is {'lower' if gap.mean > 0 else 'higher'} than that of {other_name} "
            f"by {size} (95% interval){'' if gap.clear else ', within chance'}."
        )
    better = ", ".join(
        f"{source.names[other]} (by {with_margin(abs(gap.mean), gap.margin)[0]} in {gap.loss})"
        for other, gap in against.items()
        if gap.clear and gap.mean < 0
    )
    last = _first(
        (better, f"Better by more than chance, but without bounds or off by more: {better}."),
        (len(against) > 1, "No other method is better by more than chance."),
    )
    return " ".join([*sentences, last]).rstrip()


def precision(c: Comparison) -> str:
    """Say how wide confidence intervals are, and whether they hold on these rows."""
    event = c.event()
    width = f"Half of the intervals are narrower than ±{number_of_points(margin(c))} points."
    inside, n_levels = levels_inside(c)
    return _first(
        (
            c.best.is_rejected,
            "Calibration is rejected on these rows, so confidence intervals do not hold here: the "
            f"observed frequency was inside the mean interval in {inside} of {n_levels} levels of "
            f"probability. {width}",
        ),
        (
            event.confidence,
            "The frequency among rows with such a score lies in the confidence interval in 95% of "
            f"cases. {width}",
        ),
    )


def margin(c: Comparison) -> float:
    """Return half the median width of the recommended method's confidence intervals, or NaN."""
    confidence = c.event().confidence
    return np.nan if confidence is None else float(np.median(confidence[1] - confidence[0])) / 2


def levels_inside(c: Comparison) -> tuple[int, int]:
    """Return in how many levels the observed frequency is in the mean interval, and of how many."""
    event = c.event()
    if event.confidence is None:
        return 0, 0
    low, high = event.confidence
    inside = [
        low[level].mean() <= event.outcome[level].mean() <= high[level].mean()
        for level in level_rows(event.p, c.is_rare)
    ]
    return sum(map(int, inside)), len(inside)


def key_figures(c: Comparison) -> list[tuple[str, str]]:
    """Return the four numbers to see first, each with its meaning."""
    m, auc = c.best, c.auc
    figures = [
        (
            f"{number_of_points(m.calibration_error)} points",
            f"off on average ({number_of_points(m.chance_error)} by chance alone)",
        ),
        (
            area(auc.auc),
            f"AUC: how well it ranks (95% interval {area(auc.low)} to {area(auc.high)})",
        ),
        (signed(m.brier_skill), f"lower Brier score than {base_rate(c)}"),
    ]
    half_width = margin(c)
    if c.costs is not None:
        cost, of_constant, *_ = _cost_figures(c.costs, c.method)
        meaning = f"per row for its decisions; always “{c.costs.best_constant}”: {of_constant}"
        return [*figures, (cost, meaning)]
    if np.isfinite(half_width) and not m.is_rejected:
        width = f"±{number_of_points(half_width)} points"
        return [*figures, (width, "typical 95% confidence interval")]
    usual = percent(c.baseline.accuracy)
    accuracy = (percent(m.accuracy), f"of labels are right; the most frequent one: {usual}")
    return [*figures, accuracy]


def finding(c: Comparison) -> str:
    """Return what was observed at the level that adds most to the calibration error."""
    frame = c.levels()
    gap = frame["n"] * (frame["expected"] - frame["observed"]).abs()
    level = frame.iloc[int(gap.to_numpy().argmax())]
    event = "right" if c.positive is None else f"“{c.label}”"
    with_p = "whose predicted class has" if c.positive is None else "with"
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
    """Return the methods of the first picture, up to four: the recommended one, then others."""
    others = list(c.measures) if source.kind == "given" else [RAW]
    return [m for m in dict.fromkeys([c.method, *others]) if m in c.measures][:4]
