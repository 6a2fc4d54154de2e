"""What the page says in words; no sentence claims more than the numbers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._validation import is_frame
from vennforest.report.evaluation import NAMES, versions
from vennforest.report.levels import event_of, is_rare, level_of, share_of_positive
from vennforest.report.measures import Measures
from vennforest.report.numbers import (
    area,
    number_of_points,
    p_value,
    percent,
    points,
    rows,
    within,
)
from vennforest.report.predictions import RAW
from vennforest.report.thresholds import ranking_of
from vennforest.report.verdict import settled_labels

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

LEVEL = 0.05
LEAST = 0.0005
"""Of skill, below which there is none to speak of."""
FEW = 500
ENCODINGS: dict[str, str] = {
    "number": "numbers",
    "category": "categories",
    "text": "text of many values",
    "date": "dates",
}
"""What a reader calls the ways in which columns become numbers."""

__all__ = [
    "NAMES",
    "against",
    "bounded_method",
    "data",
    "decisions",
    "guarantee",
    "key_figures",
    "percent",
    "points",
    "rows",
    "summary",
    "versions",
]


def bounded_method(evaluation: Evaluation) -> str | None:
    """Return the recommended method where it has bounds."""
    method = evaluation.verdict.method
    return None if evaluation.folds.estimates[method].bounds is None else method


def summary(evaluation: Evaluation) -> list[dict[str, str]]:
    """Return the questions a reader has, with the answer's first sentence and the rest of it."""
    method = evaluation.verdict.method
    name = evaluation.names[method]
    found = [
        (f"Does it know anything about “{evaluation.target}”?", *knows(evaluation)),
        (f"Can the probabilities of {name} be believed?", *believed(evaluation, method)),
    ]
    if RAW in evaluation.measures and method != RAW:
        raw = evaluation.names[RAW]
        plain = raw.lower() if raw.startswith("Raw") else raw
        found.append((f"And those of the {plain}?", *believed(evaluation, RAW)))
    if evaluation.constant is not None:
        found.append(("Is it worth using at these costs?", *worth(evaluation)))
    if len(evaluation.measures) > 1:
        found.append(("Which method should I use?", *use(evaluation)))
    if bounded_method(evaluation) is not None:
        found.append(("What does an interval mean for a decision?", *meaning(evaluation, method)))
    return [{"question": q, "lead": lead, "answer": " ".join(rest)} for q, lead, rest in found]


def knows(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Tell whether the recommended method knows anything, beside saying the shares."""
    auc, gain = evaluation.knowledge, evaluation.gain
    m, base = evaluation.measures[evaluation.verdict.method], evaluation.baseline
    span = (
        f"AUC {area(auc.auc)}, 95 % interval {area(auc.low)} to {area(auc.high)}, where a blind "
        "guess has 0.5"
    )
    in_logs = evaluation.gain_in == "log loss"
    reference = base.log_loss if in_logs else base.brier
    gained = m.log_loss_skill if in_logs else m.brier_skill
    skill = f"that of {_shares(evaluation)}"
    if abs(gained) >= LEAST:
        how = "lower" if gained > 0 else "higher"
        skill = f"{percent(min(1.0, abs(gained)))} {how} than {skill}"
        if gained < -1:
            skill = f"{1 - gained:.1f} times that of {_shares(evaluation)}"
    better = gain.clear and gain.mean > 0
    if not auc.above_chance and not auc.below_chance:
        few = ""
        if min(_counts(evaluation)) < 30:
            few = " With so few rows of a class only strong relations would show."
        lead = f"No: nothing here shows that it does ({span}).{few}"
    elif auc.below_chance:
        lead = (
            f"No: it ranks worse than a blind guess ({span}); labels or probabilities may be "
            "turned round."
        )
    elif not better:
        lead = (
            f"A little: it ranks better than chance ({span}), but its probabilities have not been "
            "shown to be better than the same ones for everyone."
        )
    else:
        sure = (gain.mean - gain.margin) / reference  # what the interval leaves at the least
        how = "at least a little" if sure < 0.05 else "something"
        how = "a good deal" if sure >= 0.25 else how
        how = "nearly all there is to know" if sure >= 0.9 else how
        lead = f"Yes, {how}: it tells the classes apart ({span})."
        if gained >= 0.9:
            lead += (
                " So good a result is rare outside of textbooks: see that no column gives the "
                "outcome away."
            )
    if evaluation.settings.get("seen"):
        lead = f"That cannot be told from these rows, on which the model was trained. {lead}"
    size = _relative(gain.mean, gain.margin, reference)
    rest = [f"Its {evaluation.gain_in} is {skill} (95 % interval of the gain: {size})."]
    rest.append(_labels(evaluation, m, base))
    if not auc.above_chance and evaluation.origin in ("folds", "time", "test"):
        rest.append("Another kind of model may do better, see --estimator.")
    if evaluation.folds.groups is not None:
        n_groups = len(np.unique(evaluation.folds.groups))
        rest.append(f"The intervals take the {n_groups:,} groups as independent, not the rows.")
    return lead, rest


def _shares(evaluation: Evaluation) -> str:
    share = share_of_positive(evaluation)
    if share is None:
        return "saying the share of each class to everyone"
    return f"saying {percent(share)} to everyone"


def _counts(evaluation: Evaluation) -> list[int]:
    folds = evaluation.folds
    counts: list[int] = np.bincount(folds.codes, minlength=len(folds.classes)).tolist()
    return counts


def _relative(mean: float, margin: float, base: float) -> str:
    if not base or not np.isfinite(margin):
        return "unknown"
    low, high = (mean - margin) / base, (mean + margin) / base
    return f"{_signed(low)} to {_signed(high)}"


def _signed(share: float) -> str:
    if abs(share) < LEAST:
        return "0 %"
    if share < -1:
        return f"−{100 * -share:.0f} %"
    return f"{'−' if share < 0 else ''}{percent(min(1.0, abs(share)))}"


def _labels(evaluation: Evaluation, m: Measures, base: Measures) -> str:
    """Compare the labels with always saying the most frequent one."""
    folds = evaluation.folds
    most = str(folds.classes[int(np.argmax(_counts(evaluation)))])
    labels = folds.estimates[evaluation.verdict.method].p.argmax(axis=1)
    if len(np.unique(labels)) == 1:
        only = str(folds.classes[labels[0]])
        return (
            f"No row's most probable label is another than “{only}”, so that labels say nothing: "
            f"look at the probabilities, and at thresholds below 50 %."
            if len(folds.classes) == 2
            else f"Every row's most probable label is “{only}”."
        )
    gap = m.accuracy - base.accuracy
    how = "more than" if gap > 0 else "no more than" if gap == 0 else "less than"
    return (
        f"{percent(m.accuracy)} of its labels are right, {how} the {percent(base.accuracy)} of "
        f"always saying “{most}”."
    )


def believed(evaluation: Evaluation, method: str) -> tuple[str, list[str]]:
    """Tell whether a method's probabilities can be taken at face value."""
    m = evaluation.measures[method]
    n = len(evaluation.folds.codes)
    events = min(_counts(evaluation))
    rejected, beyond = m.pvalue < LEVEL, m.calibration_error > m.chance_limit
    if rejected or m.impossible:
        lead = "No, not at face value."
    elif beyond:
        lead = "Perhaps: the evidence is mixed."
    elif n < FEW or events < FEW / 10:
        short = "" if n < FEW else f", {events} of them of the rarest class,"
        lead = (
            f"As far as {rows(n)}{short} can tell, yes; with so few, only large errors would show."
        )
    else:
        lead = f"As far as {rows(n)} can tell, yes."
    sentences = [
        f"On average they lie {points(m.calibration_error)} from what was observed, where "
        f"{number_of_points(m.chance_error)} would be expected by chance even if they were "
        f"perfectly calibrated, and more than {number_of_points(m.chance_limit)} one time in "
        "twenty."
    ]
    tests = (
        f"tests of calibration {'reject' if rejected else 'do not reject'} it (p "
        f"{p_value(m.pvalue)})"
    )
    if rejected and not beyond:
        sentences.append(f"That alone could be chance, but more sensitive {tests}.")
    elif beyond and not rejected:
        sentences.append(f"That is more than chance explains, but {tests}.")
    else:
        sentences.append(tests.capitalize() + ".")
    sentences.append(_on_average(evaluation, method, m))
    if evaluation.folds.groups is not None:
        sentences.append(
            "These tests take rows as independent, which those of a group are not: they reject too "
            "readily."
        )
    if m.impossible:
        sentences.append(
            f"For {rows(m.impossible)} it gave probability 0 to the class that was then observed."
        )
    return lead, sentences


def _on_average(evaluation: Evaluation, method: str, m: Measures) -> str:
    if is_rare(evaluation):
        p, outcome, *_ = event_of(evaluation, evaluation.folds.estimates[method])
        return (
            f"It expects {_count(float(p.sum()))} rows of “{evaluation.label}” and there are "
            f"{int(outcome.sum()):,}."
        )
    mean = m.accuracy + m.overconfidence
    if abs(m.overconfidence) < 0.005:
        return (
            f"Its mean confidence in its labels ({percent(mean)}) matches its accuracy "
            f"({percent(m.accuracy)})."
        )
    p = evaluation.folds.estimates[method].p.max(axis=1)
    error = float(np.sqrt((p * (1 - p)).sum()) / len(p))
    if abs(m.overconfidence) < 1.96 * error:
        return (
            f"Its mean confidence is {percent(mean)}, its accuracy {percent(m.accuracy)}: no "
            "difference beyond chance."
        )
    how = "overconfident" if m.overconfidence > 0 else "underconfident"
    return (
        f"It is {how}: its mean confidence is {percent(mean)}, its accuracy {percent(m.accuracy)}."
    )


def _count(expected: float) -> str:
    return f"{expected:,.0f}" if expected >= 100 else f"{expected:.1f}"


def worth(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Tell whether deciding by the probabilities is cheaper than the best constant decision."""
    costs, gap = evaluation.costs, evaluation.constant
    assert costs is not None and gap is not None
    codes = evaluation.folds.codes
    always = costs.costs[codes].mean(axis=0)
    constant = costs.decisions[int(always.argmin())]
    made = evaluation.decisions[evaluation.verdict.method]
    name = evaluation.names[evaluation.verdict.method]
    compared = (
        f"deciding by {name} costs {made.mean_cost:.4g} a row, always “{constant}” costs "
        f"{always.min():.4g} (difference {_cost(gap.mean)}, 95 % interval "
        f"{_cost(gap.mean - gap.margin)} to {_cost(gap.mean + gap.margin)})"
    )
    decided = costs.decide(evaluation.folds.estimates[evaluation.verdict.method].p)
    if len(np.unique(decided)) == 1:
        only = costs.decisions[int(decided[0])]
        lead = (
            f"No: it decides “{only}” for every row, at {made.mean_cost:.4g} a row, which needs no "
            "model."
        )
        return lead, []
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


def _cost(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def key_figures(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the few numbers to see first, each with its meaning."""
    method = evaluation.verdict.method
    m = evaluation.measures[method]
    auc = evaluation.knowledge
    event = "" if evaluation.positive is None else f" of “{evaluation.label}”"
    shown = [
        (
            area(auc.auc),
            f"AUC, how well it ranks (95 % interval {area(auc.low)} to {area(auc.high)}; "
            "blind: 0.5)",
        ),
        (
            "0 %" if abs(m.brier_skill) < LEAST else _signed(m.brier_skill),
            f"gain in Brier score on {_shares(evaluation)}",
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
        shown.append((f"{number_of_points(width)} points", "mean width of its intervals"))
        if evaluation.constant is None and not is_rare(evaluation):
            open_ones = 1 - float(settled_labels(bounds).mean())
            shown.append((percent(open_ones), "of its labels differ between the two bounds"))
    if evaluation.constant is not None:
        made = evaluation.decisions[method]
        shown.append((f"{made.mean_cost:.4g}", "mean cost of its decisions"))
    return shown


def use(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Tell which method to use."""
    verdict = evaluation.verdict
    lead = f"{evaluation.names[verdict.method]}: it has {verdict.rule}."
    if not evaluation.knowledge.above_chance:
        lead = (
            "None of them has been shown to know anything; least wrong is "
            f"{evaluation.names[verdict.method]}, with {verdict.rule}."
        )
    sentences = []
    if verdict.method != RAW and RAW in evaluation.measures:
        sentences.append(_against_raw(evaluation))
    better = [other for other, gap in verdict.against.items() if gap.clear and gap.mean < 0]
    if better:
        gaps = ", ".join(
            f"{evaluation.names[other]} (by {_loss(-verdict.against[other].mean)} in "
            f"{verdict.by[other]})"
            for other in better
        )
        bounded = bounded_method(evaluation) is not None
        begin = "If you need no bounds, better" if bounded else "Better"
        sentences.append(f"{begin} by more than chance: {gaps}.")
    elif len(verdict.against) > 1:
        sentences.append("No other method is better by more than chance.")
    return lead, sentences


def _loss(value: float) -> str:
    return f"{value:.2g}"


def _against_raw(evaluation: Evaluation) -> str:
    verdict = evaluation.verdict
    gap, loss = verdict.against[RAW], verdict.by[RAW]
    raw = evaluation.names[RAW].replace("Raw", "raw", 1)
    size = f"{_loss(abs(gap.mean))} ± {_loss(gap.margin)}"
    why = "" if loss == "log loss" else ", compared since a log loss is infinite,"
    if not gap.clear:
        return (
            f"Its {loss}{why} does not differ from the {raw}'s beyond chance "
            f"({'+' if gap.mean >= 0 else '−'}{size} for the {raw})."
        )
    worse = "lower" if gap.mean > 0 else "higher"
    return f"Its {loss}{why} is {worse} than the {raw}'s by {size} (95 % interval)."


def meaning(evaluation: Evaluation, method: str) -> tuple[str, list[str]]:
    """Tell what the bounds are, and what they are not."""
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
        "Its two ends are the calibrated probability if the row turned out to belong to the class, "
        "and if not; a decision is safe where it is the same at both."
    )
    sentences = [
        "They say how settled the calibration is, not how sure the model is of its training, and "
        "they are no confidence interval: that is Wilson's, of what was observed, which stands "
        "beside them below, the wider the fewer the rows.",
        f"For the typical row the probability of {event} is "
        f"{within(float(p[at]), float(low[at]), float(high[at]))}; of the {near.n:,} rows with a "
        f"probability like it {percent(near.share)} were {happened} "
        f"(95 % confidence interval {percent(near.least)} to {percent(near.most)}).",
    ]
    return lead, [*sentences, *_settled(evaluation, method)]


def _settled(evaluation: Evaluation, method: str) -> list[str]:
    folds = evaluation.folds
    bounds = folds.estimates[method].bounds
    assert bounds is not None
    settled = settled_labels(bounds)
    best = bounds.lower.argmax(axis=1)
    if len(np.unique(best)) == 1 and settled.all():
        return []
    right = best == folds.codes
    if settled.all():
        return [f"The most probable class is the same at both for all {rows(len(settled))}."]
    n = int((~settled).sum())
    sentences = [
        f"For {rows(n)} of {len(settled):,} ({percent(n / len(settled))}) the most probable class "
        f"depends on where in the interval the probability lies: "
        f"{percent(float(right[~settled].mean()))} of their labels are right."
    ]
    if settled.any():
        sentences.append(
            f"Of the other {int(settled.sum()):,}, {percent(float(right[settled].mean()))} are "
            "right."
        )
    return sentences


def guarantee(evaluation: Evaluation) -> str:
    """Return what theory guarantees about the bounds, and what it does not."""
    each = "" if len(evaluation.folds.classes) == 2 else " of each class against the rest"
    what = (
        f"Where calibration rows and new ones are treated alike, one of the two bounds{each} is "
        "perfectly calibrated on average, whatever the distribution; which of the two is not known "
        "beforehand. "
    )
    how = {
        "exchangeable": (
            "Here both are scored by trees that did not see them, so that this holds nearly; the "
            "answer depends on a draw."
        ),
        "joined": (
            "Here the new row joins the bags of the trees as every other row did, so that this "
            "holds but for the shape of the trees."
        ),
        "all": (
            "Here a new row is scored by all trees and a calibration row by those that did not see "
            "it: nothing is drawn, and in simulations the bounds are too cautious by about .02 "
            "with 100 trees and .01 with 300, or farther off where many rows repeat."
        ),
        "random": "Here that is not so, and nothing is promised.",
        "cv": (
            "Here calibration rows are scored by models of the other folds and new ones by a model "
            "of all rows, so that this holds as far as these score alike."
        ),
        "kept": "Here the calibration rows were kept apart from the new ones, so that this holds.",
        "model": "How far that is so depends on how the model was calibrated.",
    }[evaluation.settings["guarantee"]]
    return (
        f"{what}{how} Bounds were moved apart where needed to hold the probability. None of this "
        "promises anything about a single row, or where the data have drifted."
    )


def against(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return how each method compares with the recommended one."""
    found = []
    for method, gap in evaluation.verdict.against.items():
        if not gap.clear:
            verdict = "no difference beyond chance"
        else:
            verdict = "worse" if gap.mean > 0 else "better"
        found.append(
            {
                "name": evaluation.names[method],
                "loss": evaluation.verdict.by[method],
                "mean": gap.mean,
                "margin": gap.margin,
                "verdict": verdict,
            }
        )
    return found


def data(evaluation: Evaluation) -> dict[str, Any]:
    """Return a description of the data."""
    folds, X = evaluation.folds, evaluation.X
    kinds: dict[str, list[str]] = {}
    for column, encoding in folds.encodings.items():
        if encoding != "empty":
            kinds.setdefault(ENCODINGS[encoding], []).append(column)
    n_columns = None if X is None else int(X.shape[1])
    named = sum(map(len, kinds.values()))
    return {
        "rows": len(folds.codes),
        "columns": n_columns,
        "kinds": sorted(kinds.items(), key=lambda item: -len(item[1])),
        "empty": (n_columns or 0) - named if kinds else 0,
        "missing": folds.missing,
        "important": [(name, share) for name, share in list(folds.importances.items())[:8]]
        if X is not None and is_frame(X)
        else [],
    }


def decisions(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return what decisions cost by each method; None without costs."""
    costs = evaluation.costs
    if costs is None:
        return None
    folds = evaluation.folds
    always = costs.costs[folds.codes].mean(axis=0)
    best = min(d.mean_cost for d in evaluation.decisions.values())
    return {
        "decisions": costs.decisions,
        "matrix": [
            (str(label), [f"{cost:g}" for cost in row])
            for label, row in zip(folds.classes, costs.costs, strict=True)
        ],
        "always": list(zip(costs.decisions, always.tolist(), strict=True)),
        "rows": [
            {
                "name": evaluation.names[method],
                "decided": made,
                "best": f"{made.mean_cost:.4g}" == f"{best:.4g}",
                "recommended": method == evaluation.verdict.method,
            }
            for method, made in evaluation.decisions.items()
        ],
    }
