"""The verdict: the advice of the first rule that applies, in the order of ``docs/report.md``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from vennforest.report.findings import WEAK_RANKING, Findings
from vennforest.report.measures import RAW
from vennforest.report.words import sentences_on

SMALL_GAIN = 0.01
"""Share of the baseline's loss below which a gain does not matter."""

Action = Literal["use", "recalibrate", "collect", "stop", "check"]
"""Use as is, recalibrate, collect more rows, do not use, or check a column or the rows first."""


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


class Rule(NamedTuple):
    """When a piece of advice applies, and its action.

    ``name`` is that of its sentence in ``templates/sentences.txt.j2``.
    """

    name: str
    action: Action
    applies: Callable[[Findings], Any]


def _is_blind(f: Findings) -> bool:
    """Return whether the ranking was measured and not shown to be better than chance."""
    return f.has_auc and not f.auc.low > 0.5


def _needs_update(f: Findings) -> bool:
    """Return whether probabilities that were not trained here are off, or an update is chosen."""
    is_update_chosen = bool(f.rejected) and f.choice not in ("", "keep")
    return not f.origin.is_trained_here and (f.is_off or is_update_chosen)


def _needs_folds(f: Findings) -> bool:
    """Return whether out-of-bag scores made the probabilities too moderate."""
    is_moderate = f.best.overconfidence < 0
    return f.judgement == "off" and f.origin.calibrate_on == "oob" and is_moderate


def _is_mended(f: Findings) -> bool:
    """Return whether the method mends a raw model that is off."""
    return f.origin.is_trained_here and f.has_raw and f.measures[RAW].exceeds(f.tolerance)


RULES = (
    Rule("trained", "check", lambda f: f.origin.trained_on_rows),
    Rule("leak", "check", lambda f: f.suspect("leak")),
    Rule("id", "check", lambda f: f.suspect("id") and f.groups is None),
    Rule("reversed", "stop", lambda f: f.auc.high < 0.5),
    Rule("blind", "stop", lambda f: _is_blind(f) and f.auc.high < 0.5 + WEAK_RANKING),
    Rule("ranking", "collect", _is_blind),
    Rule("level", "check", lambda f: not f.has_auc and (f.is_off or f.rejected)),
    Rule("one class", "collect", lambda f: not f.has_auc),
    Rule("recalibrate", "recalibrate", _needs_update),
    Rule("folds", "recalibrate", _needs_folds),
    Rule("off", "stop", lambda f: f.judgement == "off"),
    Rule("impossible", "stop", lambda f: f.best.impossible),
    Rule("costly", "stop", lambda f: f.costs and f.costs.saved.mean <= 0),
    Rule("saving", "collect", lambda f: f.costs and not f.costs.saved.clear),
    Rule("no gain", "stop", lambda f: not f.costs and f.gain.mean <= 0),
    Rule("small gain", "stop", lambda f: not f.costs and f.gain_ends[1] < SMALL_GAIN),
    Rule("gain", "collect", lambda f: not f.costs and not f.gain_ends[0] > 0),
    Rule("parts", "check", lambda f: f.rejected),
    Rule("untested", "collect", lambda f: f.judgement == "untested"),
    Rule("power", "collect", lambda f: f.judgement in ("unclear", "not seen")),
    Rule("calibrate", "recalibrate", _is_mended),
    Rule("use", "use", lambda f: True),
)
"""The advice in order of harm: the first rule that applies decides."""


def judge(f: Findings) -> Verdict:
    """Return the verdict on findings."""
    rule = next(rule for rule in RULES if rule.applies(f))
    sentences = sentences_on("advice", rule.name, f)
    if rule.action in ("use", "recalibrate"):
        sentences += [] if f.decision is None else sentences_on("flagged", f)
        sentences += sentences_on("blend", f)
    row = f.methods.loc[f.method]
    low, high = (row.get(f"observed_expected_{end}", float("nan")) for end in ("low", "high"))
    groups = [name for name in f.rejected if name.startswith("by ")]
    parts = {"groups": groups}
    parts |= {name: [name] for name in ("classes", "sites", "grades", "segments")}
    failures = {
        "miscalibrated": " ".join(sentences_on("overall_faults", f)),
        "oe": "the interval of observed over expected excludes 1" if low > 1 or high < 1 else "",
        **{name: " ".join(sentences_on("parts", f, names)) for name, names in parts.items()},
    }
    return Verdict(
        rule.action,
        " ".join(sentences),
        f.method,
        dict(_pairs(sentences_on("reasons", f))),
        _pairs(sentences_on("figures", f)),
        sentences_on("finding", f)[0],
        failures,
        f.suspect(rule.name) if rule.name in ("leak", "id") else "",
        on_folds=rule.name == "folds",
    )


def _pairs(texts: list[str]) -> list[tuple[str, str]]:
    """Return texts in pairs."""
    return list(zip(texts[::2], texts[1::2], strict=True))
