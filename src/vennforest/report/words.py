"""What the page says in words; no sentence claims more than the numbers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binomtest

from vennforest._validation import is_frame
from vennforest.metrics import interval_table
from vennforest.report.evaluation import NAMES, versions
from vennforest.report.folds import RAW
from vennforest.report.measures import Measures
from vennforest.report.verdict import settled_labels

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

LEVEL = 0.05
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
    "levels",
    "percent",
    "points",
    "rows",
    "summary",
    "versions",
]


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage; one that is not quite 0 or 1 never reads as such."""
    text = f"{100 * share:.{digits}f}"
    least = 10.0**-digits
    if share > 0 and float(text) == 0:
        return f"under {least:.{digits}f} %"
    if share < 1 and float(text) == 100:
        return f"over {100 - least:.{digits}f} %"
    return f"{text} %"


def points(gap: float) -> str:
    """Return a distance of probabilities in percentage points."""
    return f"{100 * abs(gap):.1f} percentage points"


def rows(n: int) -> str:
    """Return a number of rows."""
    return f"{n:,} row{'' if n == 1 else 's'}"


def bounded_method(evaluation: Evaluation) -> str | None:
    """Return the recommended method where it has bounds."""
    method = evaluation.verdict.method
    return None if evaluation.folds.estimates[method].bounds is None else method


def summary(evaluation: Evaluation) -> list[dict[str, str]]:
    """Return the questions a reader has, with answers."""
    answers = [
        {"question": "Can I trust a plain random forest's probabilities here?", "answer": ""},
        {"question": "What should I use?", "answer": _use(evaluation)},
    ]
    answers[0]["answer"] = " ".join(_calibrated(evaluation, RAW))
    method = bounded_method(evaluation)
    if method is not None:
        answers.append(
            {
                "question": "What does the interval mean for a decision?",
                "answer": _meaning(evaluation, method),
            }
        )
    return answers


def _calibrated(evaluation: Evaluation, method: str) -> list[str]:
    m = evaluation.measures[method]
    n = len(evaluation.folds.codes)
    rejected, beyond = m.pvalue < LEVEL, m.calibration_error > m.chance_limit
    if rejected or m.impossible:
        sentences = ["No, not at face value."]
    elif beyond:
        sentences = ["Perhaps: the evidence is mixed."]
    else:
        sentences = [f"As far as {rows(n)} can tell, yes."]
        if n < FEW:
            sentences.append("With so few, only large errors would show.")
    sentences.append(
        f"On average its probabilities lie {points(m.calibration_error)} from what was observed, "
        f"where {_number(m.chance_error)} would be expected by chance even if they were perfectly "
        f"calibrated, and more than {_number(m.chance_limit)} one time in twenty."
    )
    tests = (
        f"tests of calibration {'reject' if rejected else 'do not reject'} it (p {_p(m.pvalue)})"
    )
    if rejected and not beyond:
        sentences.append(f"That alone could be chance, but more sensitive {tests}.")
    elif beyond and not rejected:
        sentences.append(f"That is more than chance explains, but {tests}.")
    else:
        sentences.append(tests.capitalize() + ".")
    sentences.append(_confidence(m))
    if m.impossible:
        sentences.append(
            f"For {rows(m.impossible)} it gave probability 0 to the class that was then observed."
        )
    return sentences


def key_figures(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the few numbers to see first, each with its meaning."""
    method = evaluation.verdict.method
    raw, m = evaluation.measures[RAW], evaluation.measures[method]
    shown = [
        (
            f"{_number(raw.calibration_error)} points",
            f"calibration error of the raw forest (chance alone: {_number(raw.chance_error)})",
        )
    ]
    if method != RAW:
        shown.append(
            (
                f"{_number(m.calibration_error)} points",
                f"calibration error of {NAMES[method]} (chance alone: {_number(m.chance_error)})",
            )
        )
    shown.append((percent(m.accuracy), f"of the labels predicted by {NAMES[method]} are right"))
    bounds = evaluation.folds.estimates[method].bounds
    if bounds is not None and m.size is not None:
        open_ones = 1 - float(settled_labels(bounds).mean())
        shown.append((f"{_number(m.size)} points", "mean width of its intervals"))
        shown.append(
            (
                percent(open_ones),
                "of its labels depend on where in the interval the probability lies",
            )
        )
    return shown


def _confidence(m: Measures) -> str:
    mean = m.accuracy + m.overconfidence
    if abs(m.overconfidence) < 0.005:
        return (
            f"Its mean confidence in its labels ({percent(mean)}) matches its accuracy "
            f"({percent(m.accuracy)})."
        )
    how = "overconfident" if m.overconfidence > 0 else "underconfident"
    return (
        f"It is {how}: its mean confidence is {percent(mean)}, its accuracy {percent(m.accuracy)}."
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"


def _number(gap: float) -> str:
    return f"{100 * gap:.1f}"


def _use(evaluation: Evaluation) -> str:
    verdict = evaluation.verdict
    m = evaluation.measures[verdict.method]
    name = NAMES[verdict.method]
    sentences = [f"{name}: it has {verdict.rule}."]
    if verdict.method != RAW:
        sentences.append(_against_raw(evaluation))
    state = "reject" if m.pvalue < LEVEL else "do not reject"
    sentences.append(
        f"Its probabilities lie {points(m.calibration_error)} from what was observed "
        f"(by chance alone: {_number(m.chance_error)}); the tests {state} its calibration "
        f"(p {_p(m.pvalue)})."
    )
    better = [other for other, gap in verdict.against.items() if gap.clear and gap.mean < 0]
    if better:
        gaps = ", ".join(
            f"{NAMES[other]} (by {-verdict.against[other].mean:.3f} in {verdict.by[other]})"
            for other in better
        )
        sentences.append(f"If you need no bounds, better by more than chance: {gaps}.")
    elif len(verdict.against) > 1:
        sentences.append("No other method is better by more than chance.")
    return " ".join(sentences)


def _against_raw(evaluation: Evaluation) -> str:
    verdict = evaluation.verdict
    gap, loss = verdict.against[RAW], verdict.by[RAW]
    size = f"{abs(gap.mean):.4f} ± {gap.margin:.4f}"
    why = "" if loss == "log loss" else ", compared since a log loss is infinite,"
    if not gap.clear:
        return (
            f"Its {loss}{why} does not differ from the raw forest's by more than the folds do by "
            f"chance ({gap.mean:+.4f} ± {gap.margin:.4f} for the raw forest)."
        )
    worse = "lower" if gap.mean > 0 else "higher"
    return (
        f"Its {loss}{why} is {worse} than the raw forest's by {size} "
        "(95 % interval over the folds)."
    )


def _meaning(evaluation: Evaluation, method: str) -> str:
    folds = evaluation.folds
    bounds = folds.estimates[method].bounds
    assert bounds is not None
    low, high = bounds.of_label()
    width = high - low
    settled = settled_labels(bounds)
    right = bounds.lower.argmax(axis=1) == folds.codes
    at = int(np.argsort(width, kind="stable")[len(width) // 2])
    sentences = [
        f"Every probability comes with a lower and an upper bound, on average "
        f"{points(float(width.mean()))} apart and for half of the rows less than "
        f"{_number(float(np.median(width)))}: "
        f"for the typical row, that of its label lies between {low[at]:.3f} and {high[at]:.3f}.",
        "A decision is safe where it is the same at both bounds.",
    ]
    if settled.all():
        sentences.append(
            f"The most probable class is the same at both for all {rows(len(settled))}; "
            f"{percent(float(right.mean()))} of these labels are right."
        )
    else:
        n = int((~settled).sum())
        sentences.append(
            f"For {rows(n)} of {len(settled):,} ({percent(n / len(settled))}) the most probable "
            f"class depends on where in the interval the probability lies: "
            f"{percent(float(right[~settled].mean()))} of their labels are right."
        )
        if settled.any():
            sentences.append(
                f"Of the other {int(settled.sum()):,}, {percent(float(right[settled].mean()))} "
                "are right."
            )
    return " ".join(sentences)


def guarantee(evaluation: Evaluation) -> str:
    """Return what theory guarantees about the bounds, and what it does not."""
    each = "" if len(evaluation.folds.classes) == 2 else " of each class against the rest"
    what = (
        f"The two bounds{each} are what the calibrated probability would be if the new row "
        "turned out to belong to the class, and if it did not: they say how well the number is "
        "calibrated, not how sure the forest is of its training. Where calibration rows and new "
        "ones are treated alike, one of the two is perfectly calibrated on average, whatever the "
        "distribution; which of the two is not known beforehand. "
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
    }[evaluation.settings["subforest"]]
    return (
        f"{what}{how} Bounds were moved apart where needed to hold the probability. None of this "
        "promises anything about a single row, or where the data have drifted."
    )


def against(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return how each method compares with the recommended one."""
    rows = []
    for method, gap in evaluation.verdict.against.items():
        if not gap.clear:
            verdict = "no difference beyond chance"
        else:
            verdict = "worse" if gap.mean > 0 else "better"
        rows.append(
            {
                "name": NAMES[method],
                "loss": evaluation.verdict.by[method],
                "mean": gap.mean,
                "margin": gap.margin,
                "verdict": verdict,
            }
        )
    return rows


def data(evaluation: Evaluation) -> dict[str, Any]:
    """Return a description of the data."""
    folds, X = evaluation.folds, evaluation.X
    kinds: dict[str, int] = {}
    for encoding in folds.encodings.values():
        if encoding != "empty":
            word = ENCODINGS[encoding]
            kinds[word] = kinds.get(word, 0) + 1
    return {
        "rows": len(folds.codes),
        "columns": int(X.shape[1]),
        "kinds": sorted(kinds.items(), key=lambda item: -item[1]),
        "empty": int(X.shape[1]) - sum(kinds.values()) if kinds else 0,
        "missing": folds.missing,
        "important": [(name, share) for name, share in list(folds.importances.items())[:8]]
        if is_frame(X)
        else [],
    }


def levels(evaluation: Evaluation, method: str) -> list[dict[str, Any]]:
    """Return mean intervals and observed accuracy by confidence."""
    folds = evaluation.folds
    bounds = folds.estimates[method].bounds
    assert bounds is not None
    table = interval_table(folds.classes[folds.codes], bounds)
    return [
        {
            "n": int(table.n[i]),
            "confidence": float(table.confidence[i]),
            "low": float(table.low[i]),
            "high": float(table.high[i]),
            "accuracy": float(table.accuracy[i]),
            "least": span.low,
            "most": span.high,
        }
        for i, span in enumerate(map(_wilson, table.n, table.accuracy))
    ]


def _wilson(n: float, share: float) -> Any:
    """Return the 95 % confidence interval of a share of n."""
    return binomtest(round(n * share), int(n)).proportion_ci(0.95, method="wilson")


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
        "always": (costs.decisions[int(always.argmin())], float(always.min())),
        "rows": [
            {
                "name": NAMES[method],
                "decided": made,
                "best": f"{made.mean_cost:.4g}" == f"{best:.4g}",
                "recommended": method == evaluation.verdict.method,
            }
            for method, made in evaluation.decisions.items()
        ],
    }
