"""Findings in words: phrases, and tables of (condition, template) that make the sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from vennforest.metrics import IntervalEstimate
from vennforest.metrics.dependence import MIN_EVENT_GROUPS
from vennforest.metrics.losses import Difference
from vennforest.report import numbers
from vennforest.report.comparison import skill
from vennforest.report.findings import Findings
from vennforest.report.measures import RAW, Measures
from vennforest.report.numbers import area, fixed, percent, points, rounded_up, rows, signed
from vennforest.validation.update import TITLES

MAX_SHOWN_METHODS = 4
"""Maximum number of methods in the picture of calibration."""

POWER = (1.96 + 0.84) / 1.96
"""Size of an effect that is detected with power 80%, in half-widths of a 95% interval."""

MIN_COLLECTED = 50
"""Fewest rows that are advised: intervals of fewer are too rough to say how many it takes."""

WEAK_RANKING = 0.1
"""Smallest excess of the AUC over 0.5 that a table should be able to detect."""

Sentence = tuple[Callable[[Any], Any], str]
"""When a sentence is true, and its template, whose names are those of `Words`."""


def say(words: Words, sentences: Iterable[Sentence]) -> str:
    """Return the sentences that are true."""
    return " ".join(text.format(w=words) for is_true, text in sentences if is_true(words))


def always(words: Words) -> bool:
    """Return that a sentence is always true."""
    return True


def joined(names: Iterable[object], n: int | None = None) -> str:
    """Return names as text such as "a, b and c"; of more than n the first, and how many more."""
    texts = [str(name) for name in names]
    if n is not None and len(texts) > n:
        texts = [*texts[:n], f"{len(texts) - n} more"]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]])) if texts else "none"


class Words:
    """Phrases about findings, and about one ``method`` of them, by default the recommended one."""

    def __init__(self, findings: Findings, method: str | None = None) -> None:
        self.f, self.origin = findings, findings.origin
        self.key = findings.method if method is None else method
        self.name = self.origin.names[self.key]
        self.in_sentence = self.origin.in_sentence(self.key)
        self.m: Measures = findings.measures[self.key]
        self.target, self.noun = findings.target, self.origin.noun
        self.tolerance = points(findings.tolerance)
        self.n, self.rows = f"{findings.rows:,}", rows(findings.rows)
        self.expected, self.observed = percent(self.m.expected), percent(self.m.observed)
        self.beyond_chance, self.detectable = (
            points(self.m.miscalibration),
            points(self.m.detectable),
        )
        self.off, self.chance = points(self.m.calibration_error), points(self.m.chance_error)
        self.p = "< 0.001" if self.m.pvalue < 0.001 else f"= {self.m.pvalue:.2g}"
        self.min_groups, self.loss = MIN_EVENT_GROUPS, findings.gain.loss
        self.event = "right labels" if self.f.positive is None else f"“{self.f.positive}”"
        self.has_raw = RAW in self.f.measures and self.key != RAW
        self.has_auc = math.isfinite(self.f.auc.value)
        self.no_method = (
            "no method ranks" if self.f.rule and len(self.f.measures) > 1 else "it does not rank"
        )
        self.n_impossible = rows(self.m.impossible)
        self.accuracy = percent(self.m.accuracy)
        self.base_accuracy = percent(self.f.baseline.accuracy)
        self.half_width = points(self.f.half_width)
        self.most_frequent = str(self.f.classes["n"].idxmax())
        expected = numbers.fixed(self.m.expected * self.f.rows, 1)
        n_events = round(self.m.observed * self.f.rows)
        self.counted = f"{self.event} in {n_events:,} of {self.rows}, {expected} expected."

    def __getitem__(self, method: str) -> Words:
        """Return the words about another method."""
        return Words(self.f, method)

    @cached_property
    def judgement(self) -> str:
        """How the method's error compares with the tolerance and chance."""
        return self.m.judgement(self.f.tolerance)

    @cached_property
    def raw(self) -> Words:
        """The words about the raw model."""
        return self[RAW]

    @property
    def span(self) -> str:
        """The AUC with its interval."""
        auc = self.f.auc
        return (
            f"AUC {area(auc.value)}, 95% interval {area(auc.low)} to {area(auc.high)}; chance: 0.5"
        )

    @property
    def base_rate(self) -> str:
        """The base rate in words."""
        share = self.f.share
        return f"always predicting {'the class frequencies' if share is None else percent(share)}"

    @property
    def impossible(self) -> str:
        """A clause on rows whose observed class had probability 0, or ""."""
        n = self.m.impossible
        return f"probability 0 was given to what happened in {rows(n)}" if n else ""

    @property
    def lines(self) -> list[str]:
        """Clauses on slope and observed over expected that are off."""
        titles = {"slope": "the slope", "observed_expected": "observed over expected"}
        return [f"{titles[name]} is {interval(e)}" for name, e in self.f.lines_off.items()]

    @property
    def parts(self) -> list[str]:
        """Clauses on classes and parts of the rows where calibration is rejected."""
        return [f"{name}: {clause_of(ways, 5)}" for name, ways in self.f.rejected.items()]

    @property
    def parts_off(self) -> str:
        """The clauses on parts in one."""
        return "; ".join(self.parts)

    @property
    def error(self) -> str:
        """A clause on the error of the probabilities, with what the tests say."""
        return say(self, ERROR)

    @property
    def remedy(self) -> str:
        """A sentence on the update that tests choose, or ""."""
        choice = self.f.choice
        return f" Tests choose: {TITLES[choice].lower()}." if choice else ""

    @property
    def overall_faults(self) -> str:
        """What is wrong over all rows, or ""."""
        classes = [part for part in self.parts if part.startswith("classes: ")]
        is_off = self.judgement == "off"
        clauses = [self.impossible, self.error if is_off else "", *self.lines, *classes]
        return "; ".join(filter(None, clauses))

    @property
    def faults(self) -> str:
        """What is wrong over all rows and in parts."""
        parts = [part for part in self.parts if not part.startswith("classes: ")]
        return "; ".join(filter(None, [self.overall_faults, *parts]))

    @property
    def decision_sentence(self) -> str:
        """What flagging rows does, as a sentence, with two classes."""
        return "" if self.f.decision is None else f"{self.decision}."

    @property
    def blend(self) -> str:
        """A sentence on a blend that gains more than chance, with its price, or ""."""
        models = self.f.sections.get("models")
        if models is None or "blend_gain" not in models.numbers:
            return ""
        loss, gain = models.numbers["loss"], percent(models.numbers["blend_gain"])
        times = [models.numbers[f"blend_times_{key}"] for key in ("seconds", "predict_seconds")]
        return (
            f"A blend with other models has a {gain} lower {loss} than the {self.noun}, beyond "
            f"chance. It takes {times[0]:.1f} times as long to train and {times[1]:.1f} times as "
            "long to predict."
        )

    @property
    def beside_raw(self) -> str:
        """A sentence that compares the raw model, if it is tolerable, with the recommended."""
        return say(self, BESIDE_RAW)

    @property
    def n_ranked(self) -> str:
        """The number of rows that would show how it ranks."""
        auc = self.f.auc
        effect = Difference(max(auc.value - 0.5, WEAK_RANKING / 2), (auc.high - auc.low) / 2)
        return rows_needed(self.f.rows, effect)

    @property
    def n_gain(self) -> str:
        """The number of rows that would show the gain over the base rate."""
        return rows_needed(self.f.rows, self.f.gain)

    @property
    def n_saved(self) -> str:
        """The number of rows that would show what decisions save."""
        return rows_needed(self.f.rows, self.f.costs.saved)  # type: ignore[union-attr]

    @property
    def n_power(self) -> str:
        """The number of rows on which an error of twice the tolerance would be seen."""
        ratio = (self.m.detectable / (2 * self.f.tolerance)) ** 2
        factor = max(2.0 if self.judgement == "unclear" else 1.2, ratio)
        return f"about {rounded_up(self.f.rows * factor)} rows"

    @cached_property
    def amounts(self) -> list[str]:
        """Costs per row of the method and of the best constant decision, and their difference.

        The text of the difference includes its interval.
        """
        costs = self.f.costs
        assert costs is not None
        saved = costs.saved
        ends = [saved.mean, saved.mean - saved.margin, saved.mean + saved.margin]
        values = [costs.mean[self.f.method], float(costs.of_constants.min()), *ends]
        return numbers.amounts(values, saved.mean)

    @property
    def constant(self) -> str:
        """The decision that costs least for every row."""
        return self.f.costs.best_constant  # type: ignore[union-attr]

    @property
    def decided(self) -> str:
        """How often each decision is made."""
        costs = self.f.costs
        assert costs is not None
        pairs = zip(costs.matrix.decisions, costs.n_decided.tolist(), strict=True)
        return ", ".join(f"“{decision}” for {rows(n)}" for decision, n in pairs if n)

    @property
    def difference_from_raw(self) -> Difference:
        """The raw model's loss minus that of the method."""
        return self.f.differences[RAW]

    @property
    def raw_loss(self) -> str:
        """The loss by which the raw model is compared."""
        return self.difference_from_raw.loss

    @property
    def raw_is_worse(self) -> bool:
        """Whether the raw model's loss is higher beyond chance."""
        return self.difference_from_raw.clear and self.difference_from_raw.mean > 0

    @property
    def raw_is_better(self) -> bool:
        """Whether the raw model's loss is lower beyond chance."""
        return self.difference_from_raw.clear and self.difference_from_raw.mean <= 0

    @property
    def raw_gain(self) -> str:
        """How much lower the raw model's loss is."""
        gap = self.f.differences[RAW]
        return percent(-gap.mean / self.f.measures[RAW].log_loss)

    @property
    def gain_text(self) -> str:
        """How much lower the loss is than that of the base rate, with its interval."""
        better, sign = self.f.skill.value, -1 if self.f.skill.value < 0 else 1
        low, high = sorted(sign * end for end in (self.f.skill.low, self.f.skill.high))
        interval = "no interval: too few rows or groups of the rarer outcome"
        if math.isfinite(low):
            interval = f"95% interval {signed(low)} to {signed(high)}"
        return (
            f"{signed(abs(better))} {lower_or_higher(better)} than that of {self.base_rate} "
            f"({interval})"
        )

    @property
    def precision(self) -> str:
        """Numbers of rows that narrow intervals require."""
        needed = self.f.rows_needed.items()
        return ", ".join(f"{rounded_up(n)} for the {name}" for name, n in needed if 0 < n < 1e9)

    @property
    def others(self) -> str:
        """How the losses of other shown methods differ."""
        sentences = []
        for method in shown_methods(self.f)[1:]:
            gap = self.f.differences[method]
            sentences.append(
                f"Its {gap.loss} is {lower_or_higher(gap.mean)} than that of "
                f"{self.origin.in_sentence(method)} by {numbers.with_margin(gap.mean, gap.margin)} "
                f"(95% interval){'' if gap.clear else ', within chance'}."
            )
        return " ".join(sentences)

    @property
    def decision(self) -> str:
        """What flagging rows at a sensible threshold does, of 100 rows."""
        d = self.f.decision
        assert d is not None
        n_flagged, n_events = 100 * d["flagged"], 100 * self.m.observed
        n_found = n_events * d["sensitivity"]
        flagged, found, events = (count(value) for value in (n_flagged, n_found, n_events))
        why = "your costs" if d["by"] == "costs" else f"the share of {self.event}"
        return (
            f"At a threshold of {numbers.probability(d['threshold'])} ({why}), of 100 rows "
            f"{flagged} are flagged, and {found} of {events} events found"
        )

    @property
    def useful_from(self) -> str:
        """The thresholds at which flagging by the probabilities gains beyond chance."""
        frame = self.f.thresholds
        assert frame is not None
        useful = frame.index[frame["gain_low"] > 0]
        return "none" if useful.empty else joined([numbers.probability(t) for t in useful])

    @property
    def falls(self) -> str:
        """Where the frequency of which class falls as the score rises."""
        fall = self.f.falls
        return "" if fall is None else f"“{self.f.classes.index[fall.column]}” {fall}"


def interval(estimate: IntervalEstimate) -> str:
    """Return an estimate with its interval as text."""
    value, low, high = (fixed(number, 2) for number in [*vars(estimate).values()][:3])
    return f"{value} (95% interval {low} to {high})"


def clause_of(ways: Mapping[str, Sequence[str]], n: int | None = None) -> str:
    """Return where calibration is rejected, such as "too low in A and too high in B and C"."""
    return " and ".join(f"{way} in {joined(names, n)}" for way, names in ways.items())


def count(value: float) -> str:
    """Return an expected number of 100 rows as text."""
    return (
        f"{value:.0f}"
        if value >= 9.5 or value == 0
        else numbers.fixed(value, 1 if value >= 0.95 else 2)
    )


def lower_or_higher(gain: float) -> str:
    """Return in which direction a loss differs, of which ``gain`` is the share that is saved."""
    return "higher" if gain < 0 else "lower"


def rows_needed(n: int, effect: Difference) -> str:
    """Return the number of rows that would detect an effect, from its interval for n rows."""
    if not (np.isfinite(effect.margin) and effect.mean > 0):
        return "more rows"
    factor = max(2.0, (POWER * effect.margin / effect.mean) ** 2)
    return f"about {rounded_up(max(MIN_COLLECTED, n * factor))} rows"


ERROR: list[Sentence] = [
    (lambda w: w.judgement == "off", "about {w.beyond_chance} points off beyond chance"),
    (
        lambda w: w.judgement == "unclear",
        "perhaps {w.beyond_chance} points off, which tests doubt (p {w.p})",
    ),
    (
        lambda w: w.judgement == "untested",
        "on average {w.off} points off ({w.chance} by chance alone), which is not tested",
    ),
    (
        lambda w: w.judgement in ("within", "by chance", "not seen") and w.m.is_rejected,
        "tests reject calibration, but the error beyond chance, {w.beyond_chance} points, is "
        "within the tolerance of {w.tolerance}",
    ),
    (
        lambda w: w.judgement in ("within", "by chance") and not w.m.is_rejected,
        "no error was seen; a mean error above {w.detectable} points would have been",
    ),
    (
        lambda w: w.judgement == "not seen" and not w.m.is_rejected,
        "no error was seen, but one below {w.detectable} points would not have been",
    ),
]
"""A clause on the error of probabilities; one of these is true."""

BESIDE_RAW: list[Sentence] = [
    (
        lambda w: w.raw.m.impossible,
        "The raw {w.noun} gave probability 0 to what happened in {w.raw.n_impossible}.",
    ),
    (
        lambda w: not w.raw.m.impossible and not w.difference_from_raw.clear,
        "The raw {w.noun} is no worse beyond chance.",
    ),
    (
        lambda w: not w.raw.m.impossible and w.raw_is_worse,
        "The raw {w.noun} has a higher {w.raw_loss}.",
    ),
    (
        lambda w: not w.raw.m.impossible and w.raw_is_better and w.m.width is not None,
        "The raw {w.noun} has a {w.raw_gain} lower {w.raw_loss}, but no bounds.",
    ),
    (
        lambda w: not w.raw.m.impossible and w.raw_is_better and w.m.width is None,
        "The raw {w.noun} has a {w.raw_gain} lower {w.raw_loss}, but ranks worse.",
    ),
]
SIZE: list[Sentence] = [
    (lambda w: w.m.impossible, "Probability 0 was given to what happened in {w.n_impossible}."),
    (
        lambda w: w.judgement == "off",
        "They are off by about {w.beyond_chance} percentage points beyond chance, more than the "
        "tolerance of {w.tolerance}.",
    ),
    (
        lambda w: w.judgement == "unclear",
        "They seem off by about {w.beyond_chance} percentage points beyond chance, more than the "
        "tolerance of {w.tolerance}, but tests do not confirm it.",
    ),
    (
        lambda w: w.judgement == "not seen",
        "On {w.rows} a mean error below {w.detectable} percentage points would not be seen.",
    ),
    (
        lambda w: w.judgement == "by chance",
        "No error was seen: tests take for chance what looks like {w.beyond_chance} percentage "
        "points, more than the tolerance of {w.tolerance}.",
    ),
    (
        lambda w: w.judgement in ("untested", "within") and w.m.miscalibration <= w.f.tolerance,
        "Their error beyond chance is within the tolerance of {w.tolerance} points.",
    ),
    (
        lambda w: w.judgement == "untested" and w.m.miscalibration > w.f.tolerance,
        "They seem off by about {w.beyond_chance} percentage points beyond chance.",
    ),
]
CALIBRATION: list[Sentence] = [
    *SIZE,
    (
        always,
        "Over 15 bins they are {w.off} points from the observed frequencies on average; right ones "
        "would be {w.chance} by chance.",
    ),
    (
        lambda w: w.judgement == "untested",
        "Calibration is not tested: fewer than {w.min_groups} groups have the event, too few to "
        "say how far the rows of a group depend on each other.",
    ),
    (lambda w: w.m.is_rejected, "Tests of calibration reject it (p {w.p})."),
    (
        lambda w: not w.m.is_rejected and not math.isnan(w.m.pvalue),
        "Tests of calibration do not reject it (p {w.p}).",
    ),
    (always, "Their mean is {w.expected}, the observed frequency {w.observed}."),
]
RANKING: list[Sentence] = [
    (
        lambda w: math.isfinite(w.f.auc.value),
        "{w.span}. Its {w.loss} is {w.gain_text}. {w.accuracy} of its most probable classes are "
        "right; always “{w.most_frequent}”: {w.base_accuracy}.",
    ),
    (
        lambda w: not math.isfinite(w.f.auc.value),
        "All rows are “{w.most_frequent}”, so ranking cannot be measured.",
    ),
    (
        lambda w: w.f.groups is not None,
        "Intervals treat the {w.f.groups:,} groups as independent, not the rows.",
    ),
]
DECISION: list[Sentence] = [
    (always, "Flagging by it gains beyond chance over flagging all rows or none at the "
     "thresholds: {w.useful_from}."),
]  # fmt: skip
COSTS: list[Sentence] = [
    (
        always,
        "Deciding by {w.name} costs {w.amounts[0]} per row, always “{w.constant}” costs "
        "{w.amounts[1]} (difference {w.amounts[2]}, 95% interval {w.amounts[3]} to "
        "{w.amounts[4]}). It decides {w.decided}.",
    )
]
RECOMMENDATION: list[Sentence] = [
    (lambda w: w.f.auc.low > 0.5, "It has {w.f.rule}."),
    (
        lambda w: not w.f.auc.low > 0.5,
        "No method has been shown to beat the base rate; {w.name} comes closest.",
    ),
    (lambda w: w.others, "{w.others}"),
    (
        lambda w: not any(gap.clear and gap.mean < 0 for gap in w.f.differences.values()),
        "No other method is better by more than chance.",
    ),
]
SAMPLE_SIZE: list[Sentence] = [
    (
        lambda w: w.precision,
        "Narrow 95% intervals need this many independent rows: {w.precision} (Riley et al. 2021); "
        "here are {w.n}.",
    )
]
PRECISION: list[Sentence] = [
    (
        lambda w: not w.m.is_rejected,
        "The frequency among rows with such a score lies in the confidence interval in 95% of "
        "cases.",
    ),
    (
        lambda w: w.m.is_rejected,
        "Calibration is rejected on these rows, so confidence intervals do not hold here.",
    ),
    (always, "Half of them are narrower than ±{w.half_width} points."),
]
FALLS: list[Sentence] = [
    (
        always,
        "The frequency of {w.falls}. Confidence intervals and maps that never fall assume that it "
        "rises with the score: there they do not hold.",
    )
]
REASONS: list[tuple[Callable[[Words], Any], str, list[Sentence]]] = [
    (lambda w: w.f.decision, "What decisions it supports", DECISION),
    (always, "How well it predicts “{w.target}”", RANKING),
    (always, "How accurate the probabilities of {w.name} are", CALIBRATION),
    (lambda w: w.f.costs, "What its decisions cost", COSTS),
    (lambda w: w.f.rule and w.f.differences, "Why {w.name}", RECOMMENDATION),
    (lambda w: w.precision, "How many rows narrow intervals take", SAMPLE_SIZE),
    (
        lambda w: math.isfinite(w.f.half_width),
        "How precisely the probabilities are known",
        PRECISION,
    ),
    (lambda w: w.f.falls, "Where the frequency falls as the score rises", FALLS),
]


def reasons(words: Words) -> dict[str, str]:
    """Return the reasons for the advice, by heading."""
    texts = {}
    for is_asked, heading, sentences in REASONS:
        if is_asked(words):
            texts[heading.format(w=words)] = say(words, sentences)
        if sentences is CALIBRATION and words.has_raw:
            raw = words.raw
            texts[f"How accurate those of {raw.in_sentence} are"] = say(raw, CALIBRATION)
    return texts


def key_figures(words: Words) -> list[tuple[str, str]]:
    """Return the four main numbers, each with its meaning: decisions, ranking, calibration."""
    f, m, auc = words.f, words.m, words.f.auc
    figures = []
    if f.decision is not None:
        n_flagged, n_events = 100 * f.decision["flagged"], 100 * m.observed
        found = count(n_events * f.decision["sensitivity"])
        figures.append((
            f"{found} of {count(n_events)}",
            f"{words.event} found among 100 rows if {count(n_flagged)} are flagged, at a threshold "
            f"of {numbers.probability(f.decision['threshold'])}",
        ))  # fmt: skip
    else:
        figures.append(
            (words.accuracy, f"of labels are right; the most frequent: {words.base_accuracy}")
        )
    n_observed = f"{m.observed * f.rows:.0f}"
    figures.append((
        area(auc.value) if words.has_auc else n_observed,
        f"AUC: how well it ranks (95% interval {area(auc.low)} to {area(auc.high)})"
        if words.has_auc
        else words.counted,
    ))  # fmt: skip
    if words.judgement in ("off", "unclear") or m.is_rejected:
        figures.append((f"{words.beyond_chance} points", "off on average beyond chance"))
    elif words.judgement == "untested":
        figures.append((f"{words.off} points", f"off ({words.chance} by chance alone), not tested"))
    else:
        figures.append((
            "no error",
            f"seen; a mean error above {words.detectable} points would have been",
        ))  # fmt: skip
    if f.costs is not None:
        meaning = f"per row for its decisions; always “{words.constant}”: {words.amounts[1]}"
        return [*figures, (words.amounts[0], meaning)]
    if math.isfinite(f.half_width) and not m.is_rejected:
        return [*figures, (f"±{words.half_width} points", "typical 95% confidence interval")]
    better = skill(m.brier, f.baseline.brier)
    text = f"{lower_or_higher(better)} Brier score than {words.base_rate}"
    return [*figures, (signed(abs(better)), text)]


def level_sentence(findings: Findings) -> str:
    """Return a sentence on the level that contributes most to the calibration error."""
    levels, label = findings.levels, findings.positive
    gap = levels["n"] * (levels["expected"] - levels["observed"]).abs()
    level = levels.iloc[int(gap.to_numpy().argmax())]
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


def shown_methods(findings: Findings) -> list[str]:
    """Return the methods of the first picture, the recommended one first."""
    others = findings.measures if findings.origin.kind == "given" else [RAW]
    methods = dict.fromkeys([findings.method, *others])
    return [m for m in methods if m in findings.measures][:MAX_SHOWN_METHODS]
