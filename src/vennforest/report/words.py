"""Sentences and figures about a comparison: the reasons of a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri

from vennforest.metrics import IntervalEstimate
from vennforest.metrics.dependence import MIN_EVENT_GROUPS
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

MAX_SHOWN_METHODS = 4
"""Maximum number of methods in the picture of calibration."""

MAX_RATIO = 0.1
"""Distance of slope and observed over expected from 1 that does not matter."""


@dataclass(frozen=True)
class Origin:
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
    """Return an estimate with its interval as text."""
    value, low, high = (fixed(number, 2) for number in vars(estimate).values())
    return f"{value} (95% interval {low} to {high})"


def beside_raw(c: Comparison, origin: Origin) -> str:
    """Return a sentence that compares the raw model, if it is tolerable, with the recommended."""
    if RAW not in c.against:
        return ""
    raw, name = c.measures[RAW], f"The raw {origin.noun}"
    if raw.impossible:
        return f"{name} gave probability 0 to what happened in {rows(raw.impossible)}."
    gap = c.against[RAW]
    if not gap.clear:
        return f"{name} is no worse beyond chance."
    if gap.mean > 0:
        return f"{name} has a higher {gap.loss}."
    lack = "ranks worse" if c.estimates.bounds is None else "has no bounds"
    return f"{name} has a {percent(-gap.mean / raw.log_loss)} lower {gap.loss}, but {lack}."


def base_rate(c: Comparison) -> str:
    """Return the base rate in words."""
    share = c.predictions.share
    return f"always predicting {'the class frequencies' if share is None else percent(share)}"


def amounts_of_costs(c: Comparison) -> list[str]:
    """Return costs per row of the method and of the best constant decision, and their difference.

    The text of the difference includes its interval.
    """
    assert c.costs is not None
    saved = c.costs.saved
    ends = [saved.mean, saved.mean - saved.margin, saved.mean + saved.margin]
    return amounts([c.costs.mean[c.method], float(c.costs.of_constants.min()), *ends], saved.mean)


def reasons(c: Comparison, origin: Origin) -> dict[str, str]:
    """Return the reasons for the advice, by heading."""
    name = origin.names[c.method]
    texts = {
        f"How well it predicts “{origin.target}”": ranking(c),
        f"How accurate the probabilities of {name} are": calibration(c, c.method),
    }
    if RAW in c.measures and c.method != RAW:
        texts[f"How accurate those of {origin.in_sentence(RAW)} are"] = calibration(c, RAW)
    if c.costs is not None:
        texts["What its decisions cost"] = decisions(c, name)
    if c.against:
        texts[f"Why {name}"] = recommendation(c, origin)
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
    reference = baseline.loss(gain.loss)
    better = skill(m.loss(gain.loss), reference)
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
    """Return sentences on the miscalibration of a method and its tests."""
    m, n, tolerance = c.measures[method], rows(c.n), c.tolerance
    event = c.predictions.event(c.predictions.estimates[method])
    error = f"off by about {points(m.miscalibration)} percentage points beyond chance"
    limit = f"the tolerance of {points(tolerance)}"
    detectable = points(m.detectable)
    is_small = f"Their error beyond chance is within {limit} points."
    size = {
        "off": f"They are {error}, more than {limit}.",
        "unclear": f"They seem {error}, more than {limit}, but tests do not confirm it.",
        "not seen": f"On {n} an error below {detectable} percentage points would not be seen.",
        "by chance": f"They seem {error}, more than {limit}, but tests take it for chance.",
        "untested": is_small if m.miscalibration <= tolerance else f"They seem {error}.",
        "within": is_small,
    }[m.judgement(tolerance)]
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
    cost, of_constant, saved, low, high = amounts_of_costs(c)
    pairs = zip(c.costs.matrix.decisions, c.costs.n_decided.tolist(), strict=True)
    counts = ", ".join(f"“{decision}” for {rows(n)}" for decision, n in pairs if n)
    return (
        f"Deciding by {name} costs {cost} per row, always “{c.costs.best_constant}” costs "
        f"{of_constant} (difference {saved}, 95% interval {low} to {high}). It decides {counts}."
    )


def recommendation(c: Comparison, origin: Origin) -> str:
    """Return sentences on why the method is recommended, and which others differ from it."""
    name = origin.names[c.method]
    sentences = [f"It has {c.rule}."]
    if not c.auc.above_chance:
        sentences = [f"No method has been shown to beat the base rate; {name} comes closest."]
    for method in shown_methods(c, origin)[1:]:
        gap = c.against[method]
        sentences.append(
            f"Its {gap.loss} is {lower_or_higher(gap.mean)} than that of "
            f"{origin.in_sentence(method)} by {with_margin(gap.mean, gap.margin)} (95% interval)"
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
        cost, of_constant, *_ = amounts_of_costs(c)
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


def shown_methods(c: Comparison, origin: Origin) -> list[str]:
    """Return the methods of the first picture, the recommended one first."""
    methods = [c.method, *(c.measures if origin.kind == "given" else [RAW])]
    return [m for m in dict.fromkeys(methods) if m in c.measures][:MAX_SHOWN_METHODS]
