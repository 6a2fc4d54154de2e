"""The verdict: the advice of the first rule that applies, in the order of ``docs/report.md``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from vennforest.report.findings import Findings
from vennforest.report.words import WEAK_RANKING, Words, key_figures, level_sentence, reasons

SMALL_GAIN = 0.01
"""Share of the baseline's loss below which a gain does not matter."""

Action = Literal["use", "recalibrate", "collect", "stop", "check"]
"""Use as is, recalibrate, collect more rows, do not use, or check a column or the rows first."""


class Rule(NamedTuple):
    """When a piece of advice applies, its action, and its sentence with names of `Words`."""

    applies: Callable[[Words], Any]
    action: Action
    sentence: str


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
    failures : dict of str to str
        What is wrong, by the names that ``--fail-on`` takes: "miscalibrated", "classes", "groups",
        "sites", "grades", "segments", "oe"; "" where nothing is.
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
    failures: dict[str, str]
    column: str = ""
    on_folds: bool = False

    def __str__(self) -> str:
        """Return the sentence and the reasons."""
        reasons = [f"{heading}: {text}" for heading, text in self.reasons.items()]
        return "\n".join([self.sentence, *reasons])


def suspect(words: Words, reason: str) -> str:
    """Return the first column that is suspected for a reason, "" if there is none."""
    suspects = words.origin.suspects.items()
    return next((column for column, why in suspects if why == reason), "")


def gain_is_small(words: Words) -> bool:
    """Return whether even the upper end of the gain over the base rate does not matter."""
    gain = words.f.gain
    return gain.mean + gain.margin < SMALL_GAIN * words.f.baseline.loss(gain.loss)


def _is_blind(w: Words) -> bool:
    """Return whether the ranking was measured and not shown to be better than chance."""
    return w.has_auc and not w.f.auc.low > 0.5


def _is_off(w: Words) -> bool:
    return w.judgement == "off"


def _is_given(w: Words) -> bool:
    return not w.origin.is_trained_here


def _pays(w: Words) -> bool:
    return w.f.costs is None or (w.f.costs.saved.clear and w.f.costs.saved.mean > 0)


COSTS = "Always “{w.constant}” costs {w.amounts[1]}, its decisions cost {w.amounts[0]}."
RULES = (
    Rule(
        lambda w: w.origin.trained_on_rows,
        "check",
        "Test the model on other rows first: it was trained on these.",
    ),
    Rule(
        lambda w: suspect(w, "leak"),
        "check",
        "Check the column “{leak}” first: alone it predicts “{w.target}” almost without error. If "
        "it was recorded after the outcome, leave it out.",
    ),
    Rule(
        lambda w: suspect(w, "id") and w.f.groups is None,
        "check",
        "Check the column “{id}” first: it looks like an ID that several rows share, and was left "
        "out. If rows of one value belong together, keep them together.",
    ),
    Rule(
        lambda w: w.f.auc.high < 0.5,
        "stop",
        "Do not use it before the labels are checked: it ranks worse than chance, as if labels or "
        "probabilities were swapped ({w.span}).",
    ),
    Rule(
        lambda w: _is_blind(w) and w.f.auc.high < 0.5 + WEAK_RANKING,
        "stop",
        "Do not use it: {w.no_method} better than chance ({w.span}).",
    ),
    Rule(
        _is_blind,
        "collect",
        "Collect {w.n_ranked} before you use it: {w.rows} do not show that it ranks better than "
        "chance ({w.span}).",
    ),
    Rule(
        lambda w: not w.has_auc and w.faults,
        "check",
        "Look at the level of the probabilities before use: {w.faults}. {w.counted}",
    ),
    Rule(
        lambda w: not w.has_auc,
        "collect",
        "Collect rows of another class before you rely on the probabilities. {w.counted}",
    ),
    Rule(
        lambda w: (
            _is_given(w) and (w.overall_faults or (w.parts and w.f.choice not in ("", "keep")))
        ),
        "recalibrate",
        "Recalibrate before use: {w.faults}.{w.remedy}",
    ),
    Rule(
        lambda w: _is_off(w) and w.origin.calibrate_on == "oob" and w.m.overconfidence < 0,
        "recalibrate",
        "Calibrate on folds, or train more trees: even {w.name}, the best method out of bag, is "
        "underconfident, {w.error}.",
    ),
    Rule(
        _is_off,
        "stop",
        "Do not rely on these probabilities: even with {w.name}, the best method, they are "
        "{w.error}.",
    ),
    Rule(
        lambda w: w.impossible,
        "stop",
        "Do not rely on probabilities of 0: even with {w.name}, the best method, {w.impossible}.",
    ),
    Rule(
        lambda w: w.f.costs and w.f.costs.saved.mean <= 0,
        "stop",
        f"Do not use it for these decisions. {COSTS}",
    ),
    Rule(
        lambda w: not _pays(w),
        "collect",
        f"Collect {{w.n_saved}} to know whether it pays: the difference is within chance. {COSTS}",
    ),
    Rule(
        lambda w: w.f.costs is None and w.has_auc and w.f.gain.mean <= 0,
        "stop",
        "Do not use these probabilities: they do not beat the base rate, {w.base_rate}.",
    ),
    Rule(
        lambda w: w.f.costs is None and w.has_auc and gain_is_small(w),
        "stop",
        "Do not use these probabilities: they do not beat the base rate by more than 1%, "
        "{w.base_rate}.",
    ),
    Rule(
        lambda w: w.f.costs is None and w.has_auc and not w.f.gain.clear,
        "collect",
        "Collect {w.n_gain} before you use it: on {w.rows} it does not beat the base rate by more "
        "than chance.",
    ),
    Rule(
        lambda w: w.parts,
        "check",
        "Look at these parts before use: {w.parts_off}. On all rows {w.name}: {w.error}.{w.remedy}",
    ),
    Rule(
        lambda w: w.judgement == "untested",
        "collect",
        "Collect rows of more groups before you rely on the probabilities: calibration cannot be "
        "tested, since fewer than {w.min_groups} groups have the event. Now they are {w.error}.",
    ),
    Rule(
        lambda w: w.judgement in ("unclear", "not seen"),
        "collect",
        "Collect {w.n_power} before you rely on the probabilities: {w.rows} are too few to check a "
        "tolerance of {w.tolerance} points ({w.error}).",
    ),
    Rule(
        lambda w: _is_given(w) and len(w.f.measures) > 1 and w.origin.kind == "given",
        "use",
        "Use the probabilities of {w.name} as they are: {w.error}.",
    ),
    Rule(_is_given, "use", "Use these probabilities as they are: {w.error}."),
    Rule(lambda w: not w.has_raw, "use", "Use {w.in_sentence} as it is: {w.error}."),
    Rule(
        lambda w: w.raw.m.exceeds(w.f.tolerance),
        "recalibrate",
        "Calibrate {w.raw.in_sentence} by {w.name}. Raw, it is {w.raw.error}; calibrated: "
        "{w.error}.",
    ),
    Rule(lambda w: True, "use", "Use the {w.noun} with {w.name}: {w.error}. {w.beside_raw}"),
)
"""The advice in order of harm: the first rule that applies decides."""


def judge(findings: Findings) -> Verdict:
    """Return the verdict on findings."""
    words = Words(findings)
    rule = next(rule for rule in RULES if rule.applies(words))
    columns = {reason: suspect(words, reason) for reason in ("leak", "id")}
    sentence = rule.sentence.format(w=words, **columns)
    column = next((c for key, c in columns.items() if f"{{{key}}}" in rule.sentence), "")
    if rule.action in ("use", "recalibrate"):
        sentence = " ".join(filter(None, [sentence, words.decision_sentence, words.blend]))
    is_off = findings.best.exceeds(findings.tolerance)
    return Verdict(
        rule.action,
        sentence,
        findings.method,
        reasons(words),
        key_figures(words),
        level_sentence(findings),
        failures_of(words),
        column,
        on_folds=bool(rule.action == "recalibrate" and findings.origin.is_trained_here and is_off),
    )


def failures_of(words: Words) -> dict[str, str]:
    """Return what is wrong, by the names of ``--fail-on``."""
    f = words.f
    row = f.methods.loc[f.method]
    low, high = (row.get(f"observed_expected_{end}", float("nan")) for end in ("low", "high"))
    of_parts = dict(zip(f.rejected, words.parts, strict=True))
    by = [text for name, text in of_parts.items() if name.startswith("by ")]
    return {
        "miscalibrated": words.overall_faults,
        "oe": "the interval of observed over expected excludes 1" if low > 1 or high < 1 else "",
        "groups": "; ".join(by),
        **{name: of_parts.get(name, "") for name in ("classes", "sites", "grades", "segments")},
    }
