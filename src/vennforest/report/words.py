"""What the page says in words; no sentence claims more than the numbers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest.report.answers import LEAST, believed, knows, shares, signed, worth
from vennforest.report.evaluation import NAMES, versions
from vennforest.report.levels import event_of, is_rare, level_of
from vennforest.report.measures import Difference
from vennforest.report.numbers import (
    alike,
    area,
    number_of_points,
    percent,
    points,
    probability,
    rows,
    with_margin,
    within,
)
from vennforest.report.predictions import RAW
from vennforest.report.rows import most_split_on
from vennforest.report.thresholds import ranking_of
from vennforest.report.verdict import settled_labels

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

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
    "believed",
    "bounded_method",
    "data",
    "decisions",
    "guarantee",
    "key_figures",
    "knows",
    "percent",
    "points",
    "rows",
    "summary",
    "versions",
    "worth",
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
        shown.append((f"{number_of_points(width)} points", "mean width of its intervals"))
        if evaluation.constant is None and not is_rare(evaluation):
            open_ones = 1 - float(settled_labels(bounds).mean())
            shown.append((percent(open_ones), "of its labels differ between the two bounds"))
    if evaluation.constant is not None:
        (cost,) = alike([evaluation.decisions[method].mean_cost], evaluation.constant.mean)
        shown.append((cost, "mean cost of its decisions"))
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
            f"{evaluation.names[other]} (by {_gap(verdict.against[other])[0]} in "
            f"{verdict.by[other]})"
            for other in better
        )
        bounded = bounded_method(evaluation) is not None
        begin = "If you need no bounds, better" if bounded else "Better"
        sentences.append(f"{begin} by more than chance: {gaps}.")
    elif len(verdict.against) > 1:
        sentences.append("No other method is better by more than chance.")
    return lead, sentences


def _gap(gap: Difference) -> tuple[str, str]:
    return with_margin(abs(gap.mean), gap.margin)


def _against_raw(evaluation: Evaluation) -> str:
    verdict = evaluation.verdict
    gap, loss = verdict.against[RAW], verdict.by[RAW]
    raw = evaluation.names[RAW].replace("Raw", "raw", 1)
    size = " ± ".join(_gap(gap))
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
        "They say how well the calibration is known, not how sure the model is otherwise, and "
        "they are not a confidence interval: that is Wilson's, of what was observed, which stands "
        "beside them below, the wider the fewer the rows.",
        f"For the typical row the probability of {event} is "
        f"{within(float(p[at]), float(low[at]), float(high[at]))}; of the {rows(near.n)} with one "
        f"from {near.begin:g} to {near.end:g}, on average {probability(near.p)}, "
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
        return [f"The most probable class is the same at both for all {rows(len(settled))}."]
    n = int((~settled).sum())
    good = f"{percent(float(right[~settled].mean()))} of their labels are right"
    if n == 1:
        good = f"its label is {'right' if right[~settled].all() else 'wrong'}"
    sentences = [
        f"For {rows(n)} of {len(settled):,} ({percent(n / len(settled))}) the most probable class "
        f"depends on where in the interval the probability lies: {good}."
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
            "it: nothing is drawn, and in simulations the bounds are too cautious by about .09 "
            "with 10 trees, .04 with 30, .02 with 100 and .01 with 300, or farther off where many "
            "rows repeat."
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
        shown, margin = _gap(gap)
        sign = "+" if gap.mean > 0 else "−" if gap.mean < 0 else ""
        found.append(
            {
                "name": evaluation.names[method],
                "loss": evaluation.verdict.by[method],
                "mean": gap.mean,
                "margin": gap.margin,
                "size": (sign + shown, margin),
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
        "important": most_split_on(evaluation)[:8],
    }


def decisions(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return what decisions cost by each method; None without costs."""
    costs = evaluation.costs
    if costs is None:
        return None
    folds = evaluation.folds
    always = costs.costs[folds.codes].mean(axis=0).tolist()
    made = evaluation.decisions
    amounts = [
        amount
        for d in made.values()
        for amount in (d.mean_cost, d.expected_cost, d.settled_cost, d.unsettled_cost)
    ]
    known = [amount for amount in [*amounts, *always] if amount is not None]
    shown = dict(zip(known, alike(known, 0.0), strict=True))
    best = shown[min(d.mean_cost for d in made.values())]
    return {
        "decisions": costs.decisions,
        "matrix": [
            (str(label), [f"{cost:,.10g}" for cost in row])
            for label, row in zip(folds.classes, costs.costs, strict=True)
        ],
        "always": list(zip(costs.decisions, always, strict=True)),
        "shown": {**shown, None: "–"},
        "rows": [
            {
                "name": evaluation.names[method],
                "decided": d,
                "best": shown[d.mean_cost] == best,
                "recommended": method == evaluation.verdict.method,
            }
            for method, d in made.items()
        ],
    }
