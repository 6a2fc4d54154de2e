"""What a reader asks first, and the answers; no sentence claims more than the numbers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vennforest.metrics._inputs import EventEstimates
from vennforest.metrics.corp import recalibrate
from vennforest.report.event import event_of, is_rare, level_of, ranking_of, share_of_positive
from vennforest.report.measures import LEVEL, Measures, settled_labels
from vennforest.report.numbers import (
    alike,
    area,
    number_of_points,
    p_value,
    percent,
    points,
    probability,
    rows,
    with_margin,
    within,
)
from vennforest.report.predictions import RAW

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation


LEAST = 0.0005
"""Of skill, below which there is none to speak of."""


def discrimination(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Say whether the recommended method separates the classes and beats the base rate."""
    auc, gain = evaluation.discrimination, evaluation.gain
    m, base = evaluation.measures[evaluation.verdict.method], evaluation.baseline
    span = (
        f"AUC {area(auc.auc)}, 95 % interval {area(auc.low)} to {area(auc.high)}, where random "
        "ranking has 0.5"
    )
    in_logs = evaluation.gain_in == "log loss"
    reference = base.log_loss if in_logs else base.brier
    gained = m.log_loss_skill if in_logs else m.brier_skill
    skill = f"that of {shares(evaluation)}"
    if abs(gained) >= LEAST:
        how = "lower" if gained > 0 else "higher"
        skill = f"{percent(min(1.0, abs(gained)))} {how} than {skill}"
        if gained < -1:
            skill = f"{1 - gained:.1f} times that of {shares(evaluation)}"
    better = gain.clear and gain.mean > 0
    if not auc.above_chance and not auc.below_chance:
        few = ""
        if min(_counts(evaluation)) < 30:
            few = " With so few rows in a class, only strong relations would show."
        lead = f"Not shown: its ranking is not better than chance ({span}).{few}"
    elif auc.below_chance:
        lead = f"No: it ranks worse than chance ({span}); labels or probabilities may be swapped."
    elif not better:
        lead = (
            f"A little: it ranks better than chance ({span}), but its probabilities have not been "
            "shown to beat the base rate."
        )
    else:
        sure = (gain.mean - gain.margin) / reference  # what the interval leaves at the least
        how = "weakly" if sure < 0.05 else "moderately"
        how = "well" if sure >= 0.25 else how
        how = "almost perfectly" if sure >= 0.9 else how
        lead = f"Yes, {how}: it separates the classes ({span})."
        if gained >= 0.9:
            lead += (
                " Such a good result is rare outside textbooks: check that no column reveals the "
                "outcome."
            )
    if evaluation.settings.get("seen"):
        lead = f"Unknown, because the model was trained on these rows. {lead}"
    size = _relative(gain.mean, gain.margin, reference)
    rest = [f"Its {evaluation.gain_in} is {skill} (95 % interval of the gain: {size})."]
    rest.append(_labels(evaluation, m, base))
    if not auc.above_chance and evaluation.origin in ("folds", "time", "test"):
        rest.append("Another kind of model may do better, see --estimator.")
    if evaluation.folds.groups is not None:
        n_groups = len(np.unique(evaluation.folds.groups))
        rest.append(f"The intervals treat the {n_groups:,} groups as independent, not the rows.")
    return lead, rest


def shares(evaluation: Evaluation) -> str:
    """Return the base rate in words."""
    share = share_of_positive(evaluation)
    if share is None:
        return "always predicting the class frequencies"
    return f"always predicting {percent(share)}"


def _counts(evaluation: Evaluation) -> list[int]:
    folds = evaluation.folds
    counts: list[int] = np.bincount(folds.codes, minlength=len(folds.classes)).tolist()
    return counts


def _relative(mean: float, margin: float, base: float) -> str:
    if not base or not np.isfinite(margin):
        return "unknown"
    low, high = (mean - margin) / base, (mean + margin) / base
    return f"{signed(low)} to {signed(high)}"


def signed(share: float) -> str:
    """Return a share in percent with its sign."""
    if abs(share) < LEAST:
        return "0 %"
    if share < -1:
        return f"−{100 * -share:.0f} %"
    return f"{'−' if share < 0 else ''}{percent(min(1.0, abs(share)))}"


def _labels(evaluation: Evaluation, m: Measures, base: Measures) -> str:
    """Compare the labels with always predicting the most frequent one."""
    folds = evaluation.folds
    most = str(folds.classes[int(np.argmax(_counts(evaluation)))])
    labels = folds.estimates[evaluation.verdict.method].p.argmax(axis=1)
    if len(np.unique(labels)) == 1:
        only = str(folds.classes[labels[0]])
        return (
            f"The most probable label of every row is “{only}”: use the probabilities, with a "
            "threshold below 50 %."
            if len(folds.classes) == 2
            else f"Every row's most probable label is “{only}”."
        )
    gap = m.accuracy - base.accuracy
    how = "more than" if gap > 0 else "no more than" if gap == 0 else "less than"
    return (
        f"{percent(m.accuracy)} of its labels are right, {how} the {percent(base.accuracy)} of "
        f"always predicting “{most}”."
    )


def reliability(evaluation: Evaluation, method: str) -> tuple[str, list[str]]:
    """Say whether a method's probabilities agree with the observed frequencies.

    They do not if the tests of calibration reject it and the miscalibration exceeds the tolerance:
    the size decides, and chance must not explain it. In simulations of calibrated probabilities
    the answer is No in at most 2 % of cases, of probabilities that are off by twice the tolerance
    (2 points) in about 90 % or more from 2,000 rows on (``docs/report.md``).
    """
    m, tolerance = evaluation.measures[method], evaluation.tolerance
    n = rows(len(evaluation.folds.codes))
    if m.chance_limit == m.calibration_error == 0:  # nothing is left to chance
        return f"Yes, as far as {n} can show.", ["All are 0 or 1, and agree with every outcome."]
    rejected = m.pvalue < LEVEL
    if m.impossible:
        lead = f"No: they gave probability 0 to what was observed in {rows(m.impossible)}."
    elif m.exceeds(tolerance):
        lead = (
            f"No: they are off by about {points(m.miscalibration)}; the tolerance is "
            f"{number_of_points(tolerance)}."
        )
    elif m.miscalibration > tolerance:
        lead = f"Unclear: they seem off by {points(m.miscalibration)}, which {n} cannot confirm."
    elif m.detectable > 2 * tolerance:
        lead = (
            f"Yes, as far as {n} can show: an error below {points(m.detectable)} would not be seen."
        )
    else:
        lead = f"Yes: their error is within the tolerance of {points(tolerance)}."
    sentences = [
        f"On average they differ from the observed frequencies by {points(m.calibration_error)}. "
        f"By chance alone, perfectly calibrated probabilities would differ by "
        f"{number_of_points(m.chance_error)}, and by more than "
        f"{number_of_points(m.chance_limit)} in 5 % of cases."
    ]
    cost = _cost_of_miscalibration(evaluation, method)
    if cost is not None:
        sentences.append(
            f"At your costs, perfect recalibration would save at most {percent(cost)} of what its "
            "decisions cost."
        )
    sentences.append(
        f"Tests of calibration {'reject' if rejected else 'do not reject'} it (p "
        f"{p_value(m.pvalue)})."
    )
    sentences.append(_on_average(evaluation, method, m))
    return lead, sentences


def _cost_of_miscalibration(evaluation: Evaluation, method: str) -> float | None:
    """Return the share of its costs that the best increasing map of a method's probability saves.

    The map is fitted to the rows on which it decides, so that no other saves more. None with more
    than two classes, or without costs.
    """
    costs = evaluation.costs
    if costs is None or evaluation.positive is None:
        return None
    estimates = evaluation.folds.estimates[method]
    p, outcome, *_ = event_of(evaluation, estimates)
    fit = recalibrate(EventEstimates(outcome, p, np.ones(len(p))))
    mapped = fit.fitted[np.searchsorted(fit.p, p)]
    pair = [1 - mapped, mapped] if evaluation.positive == 1 else [mapped, 1 - mapped]
    codes = evaluation.folds.codes
    best = float(costs.paid(costs.decide(np.column_stack(pair)), codes).mean())
    paid = evaluation.decisions[method].mean_cost
    return max(0.0, 1 - best / paid) if paid > 0 else None


def _on_average(evaluation: Evaluation, method: str, m: Measures) -> str:
    if is_rare(evaluation):
        p, outcome, *_ = event_of(evaluation, evaluation.folds.estimates[method])
        return (
            f"It predicts {_count(float(p.sum()))} rows of “{evaluation.label}”; "
            f"{int(outcome.sum()):,} were observed."
        )
    mean = m.accuracy + m.overconfidence
    p = evaluation.folds.estimates[method].p.max(axis=1)
    error = float(np.sqrt((p * (1 - p)).sum()) / len(p))
    small, chance = abs(m.overconfidence) < 0.005, abs(m.overconfidence) <= 1.96 * error
    if small and chance:
        return (
            f"Its mean confidence in its labels ({percent(mean)}) matches its accuracy "
            f"({percent(m.accuracy)})."
        )
    if chance:
        return (
            f"Its mean confidence is {percent(mean)}, its accuracy {percent(m.accuracy)}: no "
            "difference beyond chance."
        )
    how = "overconfident" if m.overconfidence > 0 else "underconfident"
    how = f"a little {how}" if small else how
    return (
        f"It is {how}: its mean confidence is {percent(mean)}, its accuracy {percent(m.accuracy)}."
    )


def _count(expected: float) -> str:
    return f"{expected:,.0f}" if expected >= 100 else f"{expected:.1f}"


def net_benefit(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Say whether deciding by the probabilities is cheaper than the best constant decision."""
    costs, gap = evaluation.costs, evaluation.saved
    assert costs is not None and gap is not None
    codes = evaluation.folds.codes
    always = costs.costs[codes].mean(axis=0)
    constant = costs.decisions[int(always.argmin())]
    made = evaluation.decisions[evaluation.verdict.method]
    name = evaluation.names[evaluation.verdict.method]
    amounts = [made.mean_cost, float(always.min())]
    amounts += [gap.mean, gap.mean - gap.margin, gap.mean + gap.margin]
    mine, theirs, saved, least, most = alike(amounts, gap.mean)
    compared = (
        f"deciding by {name} costs {mine} per row, always “{constant}” costs {theirs} (difference "
        f"{saved}, 95 % interval {least} to {most})"
    )
    decided = costs.decide(evaluation.folds.estimates[evaluation.verdict.method].p)
    if len(np.unique(decided)) == 1:
        only = costs.decisions[int(decided[0])]
        return (
            f"No: it decides “{only}” for every row, at {mine} per row, which needs no model.",
            [],
        )
    if not gap.clear:
        lead = f"Not shown: {compared}."
    elif gap.mean > 0:
        lead = f"Yes: {compared}."
    else:
        lead = f"No: {compared}."
    counts = np.bincount(decided, minlength=len(costs.decisions))
    shown = ", ".join(
        f"“{decision}” for {rows(int(count))}"
        for decision, count in zip(costs.decisions, counts, strict=True)
        if count
    )
    return lead, [f"It decides {shown}."]


def summary(evaluation: Evaluation) -> list[dict[str, str]]:
    """Return the questions a reader has, with the answer's first sentence and the rest of it."""
    method = evaluation.verdict.method
    name = evaluation.names[method]
    found = [
        (f"Can the model predict “{evaluation.target}”?", *discrimination(evaluation)),
        (f"Are the probabilities of {name} reliable?", *reliability(evaluation, method)),
    ]
    if RAW in evaluation.measures and method != RAW:
        raw = evaluation.names[RAW]
        plain = raw.lower() if raw.startswith("Raw") else raw
        found.append((f"And those of the {plain}?", *reliability(evaluation, RAW)))
    if evaluation.saved is not None:
        found.append(("Does using it pay at these costs?", *net_benefit(evaluation)))
    if len(evaluation.measures) > 1:
        found.append(("Which method should I use?", *recommendation(evaluation)))
    if evaluation.bounded is not None:
        found.append(
            ("What do the bounds mean for a decision?", *bounds_meaning(evaluation, method))
        )
    return [{"question": q, "lead": lead, "answer": " ".join(rest)} for q, lead, rest in found]


def key_figures(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the few numbers to see first, each with its meaning."""
    method = evaluation.verdict.method
    m = evaluation.measures[method]
    auc = evaluation.discrimination
    event = "" if evaluation.positive is None else f" of “{evaluation.label}”"
    shown = [
        (
            area(auc.auc),
            f"AUC, how well it ranks (95 % interval {area(auc.low)} to {area(auc.high)}; "
            "chance: 0.5)",
        ),
        (
            "0 %" if abs(m.brier_skill) < LEAST else signed(m.brier_skill),
            f"gain in Brier score on {shares(evaluation)}",
        ),
        (
            f"{number_of_points(m.calibration_error)} points",
            f"calibration error{event} (chance alone: {number_of_points(m.chance_error)})",
        ),
    ]
    if is_rare(evaluation):
        found = float(ranking_of(evaluation, method).found(0.01))
        shown.append((percent(found), f"of “{evaluation.label}” are in the top 1 % of rows"))
    else:
        shown.append(
            (
                percent(m.accuracy),
                f"of its labels are right (the most frequent one alone: "
                f"{percent(evaluation.baseline.accuracy)})",
            )
        )
    bounds = evaluation.folds.estimates[method].bounds
    if bounds is not None and m.size is not None:
        width = m.size if evaluation.positive is None else float(bounds.width[:, 1].mean())
        shown.append((f"{number_of_points(width)} points", "mean distance of its bounds"))
        if evaluation.saved is None and not is_rare(evaluation):
            open_ones = 1 - float(settled_labels(bounds).mean())
            shown.append((percent(open_ones), "of its labels differ between the two bounds"))
    if evaluation.saved is not None:
        (cost,) = alike([evaluation.decisions[method].mean_cost], evaluation.saved.mean)
        shown.append((cost, "mean cost of its decisions"))
    return shown


def recommendation(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Say which method to use."""
    verdict = evaluation.verdict
    lead = f"{evaluation.names[verdict.method]}: it has {verdict.rule}."
    if not evaluation.discrimination.above_chance:
        lead = (
            "No method has been shown to beat the base rate; "
            f"{evaluation.names[verdict.method]} comes closest: it has {verdict.rule}."
        )
    sentences = []
    if verdict.method != RAW and RAW in evaluation.measures:
        sentences.append(_against_raw(evaluation))
    better = {other: gap for other, gap in verdict.against.items() if gap.clear and gap.mean < 0}
    if better:
        gaps = ", ".join(
            f"{evaluation.names[other]} (by {with_margin(abs(gap.mean), gap.margin)[0]} in "
            f"{verdict.by[other]})"
            for other, gap in better.items()
        )
        bounded = evaluation.bounded is not None
        condition = ", if you do not need bounds" if bounded else ""
        sentences.append(f"Better by more than chance{condition}: {gaps}.")
    elif len(verdict.against) > 1:
        sentences.append("No other method is better by more than chance.")
    return lead, sentences


def _against_raw(evaluation: Evaluation) -> str:
    verdict = evaluation.verdict
    gap, loss = verdict.against[RAW], verdict.by[RAW]
    raw = evaluation.names[RAW].replace("Raw", "raw", 1)
    size = " ± ".join(with_margin(abs(gap.mean), gap.margin))
    why = "" if loss == "log loss" else ", compared since a log loss is infinite,"
    if not gap.clear:
        return (
            f"Its {loss}{why} does not differ from the {raw}'s beyond chance "
            f"({'+' if gap.mean >= 0 else '−'}{size} for the {raw})."
        )
    worse = "lower" if gap.mean > 0 else "higher"
    return f"Its {loss}{why} is {worse} than the {raw}'s by {size} (95 % interval)."


def bounds_meaning(evaluation: Evaluation, method: str) -> tuple[str, list[str]]:
    """Say what the bounds are, and what they are not."""
    estimates = evaluation.folds.estimates[method]
    assert estimates.bounds is not None
    p, _, low, high = event_of(evaluation, estimates)
    assert low is not None and high is not None
    width = high - low
    at = int(np.argsort(width, kind="stable")[len(width) // 2])
    near = level_of(evaluation, method, at)
    event = "its label" if evaluation.positive is None else f"“{evaluation.label}”"
    happened = "right" if evaluation.positive is None else f"“{evaluation.label}”"
    lead = (
        "The two bounds are the calibrated probabilities obtained by assuming that the case is, "
        "and is not, in the class; a decision is safe if it is the same at both."
    )
    sentences = [
        "They show how precisely the calibration is known, and are not a confidence interval. "
        "Wilson confidence intervals for the observed rate are in the table below; they are wider "
        "where there are fewer rows.",
        f"For a typical row the probability of {event} is "
        f"{within(float(p[at]), float(low[at]), float(high[at]))}. Among the {rows(near.n)} with a "
        f"probability from {near.begin:g} to {near.end:g} (mean {probability(near.p)}), "
        f"{percent(near.share)} were {happened} "
        f"(95 % confidence interval {percent(near.least)} to {percent(near.most)}).",
    ]
    return lead, [*sentences, *_settled(evaluation, method)]


def _settled(evaluation: Evaluation, method: str) -> list[str]:
    folds = evaluation.folds
    bounds = folds.estimates[method].bounds
    assert bounds is not None
    settled = settled_labels(bounds)
    label = folds.estimates[method].p.argmax(axis=1)
    if len(np.unique(label)) == 1 and settled.all():
        return []
    right = label == folds.codes
    if settled.all():
        return [f"The most probable class is the same at both bounds for all {rows(len(settled))}."]
    n = int((~settled).sum())
    good = f"{percent(float(right[~settled].mean()))} of their labels are right"
    if n == 1:
        good = f"its label is {'right' if right[~settled].all() else 'wrong'}"
    sentences = [
        f"For {rows(n)} of {len(settled):,} ({percent(n / len(settled))}) the most probable class "
        f"differs between the bounds: {good}."
    ]
    if settled.any():
        sentences.append(
            f"Of the other {int(settled.sum()):,}, {percent(float(right[settled].mean()))} are "
            "right."
        )
    return sentences
