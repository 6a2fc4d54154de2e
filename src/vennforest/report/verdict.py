"""The verdict: the advice of the first rule that applies, in the order of ``docs/report.md``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from vennforest.metrics.dependence import MIN_EVENT_GROUPS
from vennforest.metrics.losses import Difference
from vennforest.report.comparison import Comparison
from vennforest.report.measures import RAW
from vennforest.report.numbers import area, points, rounded_up, rows
from vennforest.report.section import Section
from vennforest.report.words import (
    Origin,
    amounts_of_costs,
    base_rate,
    beside_raw,
    finding,
    key_figures,
    line_findings,
    reasons,
)
from vennforest.validation.update import TITLES

POWER = (1.96 + 0.84) / 1.96
"""Size of an effect that is detected with power 80%, in half-widths of a 95% interval."""

MIN_COLLECTED = 50
"""Fewest rows that are advised: intervals of fewer are too rough to say how many it takes."""

WEAK_RANKING = 0.1
"""Smallest excess of the AUC over 0.5 that a table should be able to detect."""

SMALL_GAIN = 0.01
"""Share of the baseline's loss below which a gain does not matter."""

Action = Literal["use", "recalibrate", "collect", "stop", "check"]
"""Use as is, recalibrate, collect more rows, do not use, or check a column or the rows first."""


@dataclass(frozen=True)
class Advice:
    """What to do, a sentence that says it, and the column to check first, or ""."""

    action: Action
    sentence: str
    column: str = ""


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
    comparison: Comparison, origin: Origin, levels: pd.DataFrame, sections: Iterable[Section] = ()
) -> Verdict:
    """Return the verdict on a comparison and on the findings of sections.

    ``levels`` is the table by level of probability.
    """
    findings = [section.finding for section in sections if section.finding]
    choice = next((section.choice for section in sections if section.choice), "")
    advice = advise(Case(comparison, origin, findings, choice))
    sentence = advice.sentence
    if advice.action in ("use", "recalibrate"):
        sentence = " ".join([sentence, *(s.advice for s in sections if s.advice)])
    is_off = comparison.best.exceeds(comparison.tolerance)
    return Verdict(
        advice.action,
        sentence,
        comparison.method,
        reasons(comparison, origin),
        key_figures(comparison),
        finding(comparison, levels),
        advice.column,
        on_folds=bool(advice.action == "recalibrate" and origin.is_trained_here and is_off),
    )


@dataclass(frozen=True)
class Case:
    """A comparison, and what else the rules look at.

    ``findings`` are clauses on parts where calibration is rejected, and ``choice`` is the update
    of the probabilities that tests choose, "" if there was no test.
    """

    comparison: Comparison
    origin: Origin
    findings: Sequence[str] = ()
    choice: str = ""

    @property
    def name(self) -> str:
        """Title of the recommended method."""
        return self.origin.names[self.comparison.method]

    @cached_property
    def judgement(self) -> str:
        """How the recommended method's error compares with the tolerance and chance."""
        return self.comparison.best.judgement(self.comparison.tolerance)

    @property
    def impossible(self) -> str:
        """Clause on rows whose observed class had probability 0, or ""."""
        n = self.comparison.best.impossible
        return f"probability 0 was given to what happened in {rows(n)}" if n else ""

    @property
    def error(self) -> str:
        """Clause on the calibration error, with what the tests say where they differ from it."""
        m, limit = self.comparison.best, f"the tolerance of {points(self.comparison.tolerance)}"
        off, chance = points(m.calibration_error), points(m.chance_error)
        clause = f"on average {off} points off ({chance} by chance alone)"
        if m.is_rejected and self.judgement != "off":
            clause += f"; tests reject calibration, but the error beyond chance is within {limit}"
        elif self.judgement == "by chance":
            clause += f", more than {limit}, but tests take it for chance"
        clauses = [self.impossible, clause]
        if self.origin.is_trained_here:
            clauses += line_findings(self.comparison)
        return "; ".join(filter(None, clauses))

    @property
    def clauses(self) -> list[str]:
        """Clauses on slope, observed over expected, and parts that are off."""
        return [*line_findings(self.comparison), *self.findings]


def advise(case: Case) -> Advice:
    """Return the advice of the first rule that applies."""
    rules = _look_first, _ranking, _miscalibration, _benefit, _parts, _power
    return next(filter(None, (rule(case) for rule in rules)), None) or _use(case)


def rows_needed(n: int, effect: Difference) -> str:
    """Return the number of rows that would detect an effect, from its interval for n rows."""
    if not (np.isfinite(effect.margin) and effect.mean > 0):
        return "more rows"
    factor = max(2.0, (POWER * effect.margin / effect.mean) ** 2)
    return f"about {rounded_up(max(MIN_COLLECTED, n * factor))} rows"


def _look_first(case: Case) -> Advice | None:
    """Return the advice to check first what makes every number wrong: the rows, or a column."""
    origin = case.origin
    if origin.trained_on_rows:
        return Advice("check", "Test the model on other rows first: it was trained on these.")
    column_of = {reason: column for column, reason in reversed(list(origin.suspects.items()))}
    if leak := column_of.get("leak"):
        sentence = (
            f"Check the column “{leak}” first: alone it predicts “{origin.target}” almost without "
            "error. If it was recorded after the outcome, leave it out."
        )
        return Advice("check", sentence, leak)
    if (shared_id := column_of.get("id")) and case.comparison.predictions.groups is None:
        sentence = (
            f"Check the column “{shared_id}” first: it looks like an ID that several rows share, "
            "and was left out. If rows of one value belong together, keep them together."
        )
        return Advice("check", sentence, shared_id)
    return None


def _ranking(case: Case) -> Advice | None:
    """Return the advice on probabilities that do not rank better than chance; None if they do."""
    c = case.comparison
    auc = c.auc
    span = f"AUC {area(auc.auc)}, 95% interval {area(auc.low)} to {area(auc.high)}; chance: 0.5"
    if auc.above_chance:
        return None
    if auc.below_chance:
        return Advice(
            "stop",
            "Do not use it before the labels are checked: it ranks worse than chance, as if labels "
            f"or probabilities were swapped ({span}).",
        )
    if auc.high < 0.5 + WEAK_RANKING:
        subject = "no method ranks" if len(c.measures) > 1 else "it does not rank"
        return Advice("stop", f"Do not use it: {subject} better than chance ({span}).")
    effect = Difference(max(auc.auc - 0.5, WEAK_RANKING / 2), (auc.high - auc.low) / 2)
    return Advice(
        "collect",
        f"Collect {rows_needed(c.n, effect)} before you use it: {rows(c.n)} do not show that it "
        f"ranks better than chance ({span}).",
    )


def _miscalibration(case: Case) -> Advice | None:
    """Return the advice on miscalibrated probabilities: recalibrate, stop, or None if they fit.

    Models that were trained here are already calibrated by the best method.
    """
    is_off, best = case.judgement == "off", f"even with {case.name}, the best method"
    if not case.origin.is_trained_here:
        clauses = [case.error] * bool(is_off or case.impossible) + case.clauses
        remedy = f" Tests choose: {TITLES[case.choice].lower()}." if case.choice else ""
        if not clauses:
            return None
        if case.choice == "keep" and clauses == case.clauses:
            return Advice("check", f"Look at these parts before use: {'; '.join(clauses)}.{remedy}")
        return Advice("recalibrate", f"Recalibrate before use: {'; '.join(clauses)}.{remedy}")
    if is_off and case.origin.calibrate_on == "oob" and case.comparison.best.overconfidence < 0:
        return Advice(
            "recalibrate",
            f"Calibrate on folds, or train more trees: even {case.name}, the best method out of "
            f"bag, is underconfident, {case.error}.",
        )
    if is_off:
        return Advice("stop", f"Do not rely on these probabilities: {best}, {case.error}.")
    if case.impossible:
        return Advice("stop", f"Do not rely on probabilities of 0: {best}, {case.impossible}.")
    return None


def _benefit(case: Case) -> Advice | None:
    """Return the advice if decisions do not pay, or without costs if the base rate is as good."""
    c, gain = case.comparison, case.comparison.gain
    if c.costs is not None:
        saved, (cost, of_constant, *_) = c.costs.saved, amounts_of_costs(c)
        costs = f"Always “{c.costs.best_constant}” costs {of_constant}, its decisions cost {cost}."
        if saved.mean <= 0:
            return Advice("stop", f"Do not use it for these decisions. {costs}")
        if saved.clear:
            return None
        return Advice(
            "collect",
            f"Collect {rows_needed(c.n, saved)} to know whether it pays: the difference is within "
            f"chance. {costs}",
        )
    if gain.clear and gain.mean > 0:
        return None
    reference = c.baseline.loss(gain.loss)
    if gain.mean <= 0 or gain.mean + gain.margin < SMALL_GAIN * reference:
        margin = "" if gain.mean <= 0 else f" by more than {SMALL_GAIN:.0%}"
        return Advice(
            "stop",
            f"Do not use these probabilities: they do not beat the base rate{margin}, "
            f"{base_rate(c)}.",
        )
    return Advice(
        "collect",
        f"Collect {rows_needed(c.n, gain)} before you use it: on {rows(c.n)} it does not beat the "
        "base rate by more than chance.",
    )


def _parts(case: Case) -> Advice | None:
    """Return the advice to look at parts where calibration is rejected, though not overall."""
    if not case.findings:
        return None
    return Advice(
        "check",
        f"Look at these parts before use: {'; '.join(case.findings)}. On all rows {case.name} is "
        f"{case.error}.",
    )


def _power(case: Case) -> Advice | None:
    """Return the advice to collect rows, or groups, if calibration cannot be judged, else None."""
    c, n = case.comparison, rows(case.comparison.n)
    if case.judgement == "untested":
        return Advice(
            "collect",
            "Collect rows of more groups before you rely on the probabilities: calibration cannot "
            f"be tested, since fewer than {MIN_EVENT_GROUPS} groups have the event. Now they are "
            f"{case.error}.",
        )
    if case.judgement not in ("unclear", "not seen"):
        return None
    needed = rounded_up(c.n * max(2.0, (c.best.detectable / c.tolerance) ** 2))
    return Advice(
        "collect",
        f"Collect about {needed} rows before you rely on the probabilities: {n} are too few to "
        f"check a tolerance of {points(c.tolerance)} points. Now they are {case.error}.",
    )


def _use(case: Case) -> Advice:
    """Return the advice to use the probabilities, for which no other rule applies."""
    c, origin, name = case.comparison, case.origin, case.name
    if not origin.is_trained_here:
        subject = f"the probabilities of {name}" if len(c.measures) > 1 else "these probabilities"
        return Advice("use", f"Use {subject} as they are: {case.error}.")
    raw, raw_name = c.measures.get(RAW, c.best), origin.in_sentence(RAW)
    if c.method == RAW:
        return Advice("use", f"Use {raw_name} as it is: {case.error}.")
    if raw.exceeds(c.tolerance):
        return Advice(
            "recalibrate",
            f"Calibrate {raw_name} by {name}. Raw, it is {points(raw.calibration_error)} points "
            f"off on average; calibrated, {case.error.removeprefix('on average ')}.",
        )
    return Advice(
        "use", f"Use the {origin.noun} with {name}: {case.error}. {beside_raw(c, origin)}"
    )
