"""What to do next, in one sentence, and the reasons for it."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from vennforest.metrics._inputs import EventEstimates
from vennforest.metrics.curves import recalibrate
from vennforest.report.event import (
    RARE,
    confidence_of,
    cost_threshold,
    event_of,
    is_rare,
    level_rows,
    levels,
    share_of_positive,
)
from vennforest.report.learners import FOREST
from vennforest.report.measures import LEVEL, RAW, Measures, settled_labels
from vennforest.report.numbers import (
    alike,
    area,
    number_of_points,
    p_value,
    percent,
    points,
    rounded,
    rows,
    with_margin,
)

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation


LEAST = 0.0005
"""Of skill, below which there is none to speak of."""

POWER = (1.96 + 0.84) / 1.96
"""Times the half-width of a 95 % interval that an effect is seen in four studies of five."""

WEAK = 0.1
"""Above 0.5, the area under the ROC curve of a weak ranking, which a table should be able to show.
"""

DOUBTFUL = 0.1
"""Of the tests of calibration: from here on an error above the tolerance is taken for chance."""

FEW_TREES = 200
"""Trees below which more of them lower the log loss more than folds do (``docs/report.md``)."""

Action = Literal["use", "recalibrate", "collect", "stop", "check"]
"""What to do: use as is, recalibrate, get more rows, do not use, check a column or the rows."""


@dataclass(frozen=True)
class Advice:
    """What to do next, the sentence for it, and what to type, or ""."""

    action: Action
    sentence: str
    command: str = ""


def advice(evaluation: Evaluation) -> Advice:
    """Say what to do next: the first that applies, in the order of ``docs/report.md``.

    Numbers that are read as text are checked before a model is given up.
    """
    found = (
        _to_check(evaluation)
        or _without_ranking(evaluation)
        or _miscalibrated(evaluation)
        or _without_gain(evaluation)
        or _unclear(evaluation)
        or _to_use(evaluation)
    )
    texts = [f"“{name}”" for name, why in evaluation.suspects.items() if why == "text"]
    if not texts or found.action not in ("stop", "collect"):
        return found
    what, it, look, are = (
        ("column", "it", "looks", "is") if len(texts) == 1 else ("columns", "them", "look", "are")
    )
    return Advice(
        "check",
        f"Check the {what} {', '.join(texts[:5])} first: what {look} like numbers or dates {are} "
        f"read as text. The notes say how to declare {it}. Without {it}: "
        f"{found.sentence[0].lower()}{found.sentence[1:]}",
    )


def _to_check(evaluation: Evaluation) -> Advice | None:
    files = evaluation.settings.get("files", {})
    if evaluation.settings.get("seen"):
        return Advice("check", "Test the model on other rows first: it was trained on these.")
    for column, why in evaluation.suspects.items():
        if why == "leak":
            return Advice(
                "check",
                f"Check the column “{column}” first: alone it predicts “{evaluation.target}” "
                "almost without error. If it was recorded after the outcome, leave it out.",
                _typed("report", files, "--drop", shlex.quote(column)),
            )
        if why == "id" and evaluation.folds.groups is None:
            return Advice(
                "check",
                f"Check the column “{column}” first: it looks like an ID that several rows share, "
                "and was left out. If rows of one value belong together, keep them together.",
                _typed("report", files, "--groups", shlex.quote(column)),
            )
    return None


def _typed(command: str, files: dict[str, str], *more: str) -> str:
    """Return a command on the same table, read in the same way; "" where it came from no file."""
    if "data" not in files:
        return ""
    table = [shlex.quote(files["data"]), "-t", shlex.quote(files["target"])]
    again = files.get("again", "") if command == "report" else ""
    read = files.get("read" if command in ("report", "fit") else "decimal", "")
    return " ".join(filter(None, ["vennforest", command, *table, *more, again, read]))


def _fit(evaluation: Evaluation, *more: str) -> str:
    """Return the command that fits the estimator of the report, with its groups."""
    files = evaluation.settings.get("files", {})
    estimator = _option("--estimator", evaluation.settings["estimator"], FOREST)
    groups = _option("--groups", shlex.quote(files.get("groups", "")), "''")
    return _typed("fit", files, *estimator, *more, *groups)


def _without_ranking(evaluation: Evaluation) -> Advice | None:
    auc = evaluation.discrimination
    if auc.above_chance:
        return None
    span = f"AUC {area(auc.auc)}, 95% interval {area(auc.low)} to {area(auc.high)}; chance: 0.5"
    what = "no method ranks" if len(evaluation.measures) > 1 else "it does not rank"
    if auc.below_chance:
        return Advice(
            "stop",
            "Do not use it before the labels are checked: it ranks worse than chance, as if labels "
            f"or probabilities were swapped ({span}).",
        )
    if not auc.high < 0.5 + WEAK:  # also where the interval is not known
        more = _needed(evaluation, (auc.high - auc.low) / 2, max(auc.auc - 0.5, WEAK / 2))
        return Advice(
            "collect",
            f"Collect {more} before you use it: on {_n(evaluation)}, {what} better than chance "
            f"({span}).",
        )
    return Advice("stop", f"Do not use it: {what} better than chance ({span}).")


def _n(evaluation: Evaluation) -> str:
    return rows(len(evaluation.folds.codes))


def _needed(evaluation: Evaluation, margin: float, effect: float) -> str:
    """Return about how many rows would show an effect, now known with a margin (95 %)."""
    if not (np.isfinite(margin) and effect > 0):
        return "more rows"
    times = max(1.0, (POWER * margin / effect) ** 2)
    return f"about {rounded(len(evaluation.folds.codes) * times)} rows"


def size_of_error(evaluation: Evaluation, method: str) -> str:
    """Return how far probabilities are off, what chance alone gives, and what that costs."""
    m, cost = evaluation.measures[method], _cost_of_miscalibration(evaluation, method)
    money = (
        "" if cost is None else f"; at your costs, this loses at most {percent(cost)} of the money"
    )
    return (
        f"on average {number_of_points(m.calibration_error)} points off "
        f"({number_of_points(m.chance_error)} by chance alone){money}"
    )


def _miscalibrated(evaluation: Evaluation) -> Advice | None:
    method, tolerance = evaluation.verdict.method, evaluation.tolerance
    m, name = evaluation.measures[method], evaluation.names[method]
    if not (m.exceeds(tolerance) or m.impossible):
        return None
    size = size_of_error(evaluation, method)
    if m.impossible:
        size = f"probability 0 was given to what happened in {rows(m.impossible)}; {size}"
    if evaluation.origin in ("given", "model"):
        return Advice("recalibrate", f"Recalibrate before use: {size}.", _recalibration(evaluation))
    settings = evaluation.settings
    if settings.get("calibrate_on") == "oob" and m.overconfidence < 0:
        # Scores by the trees that did not see a row are noisier than those by all, and maps fitted
        # to them are too flat: in proportion to 1 / trees, and not at all with folds.
        trees = settings["n_trees"]
        forests = f"with {trees} trees even {name}, the best method out of bag, is underconfident"
        if trees < FEW_TREES:
            enough = max(300, 100 * math.ceil(trees * m.miscalibration / tolerance / 100))
            command = _fit(evaluation, "--trees", str(enough))
            return Advice("stop", f"Train about {enough:,} trees: {forests}, {size}.", command)
        command = _fit(evaluation, "--calibrate-on", "cv", "--trees", str(trees))
        return Advice("recalibrate", f"Calibrate on folds: {forests}, {size}.", command)
    return Advice(
        "stop", f"Do not rely on these probabilities: even with {name}, the best method, {size}."
    )


def _recalibration(evaluation: Evaluation) -> str:
    """Return the commands, or the Python code, that calibrate what was given."""
    files = evaluation.settings.get("files", {})
    if evaluation.origin == "model":
        if "data" not in files:
            return "CalibratedClassifier(FrozenEstimator(model)).fit(X, y)"
        data, target, model = (shlex.quote(files[key]) for key in ("data", "target", "model"))
        labels = evaluation.folds.classes[0 if evaluation.positive is None else 1 :]
        wanted = " ".join(f"-s {shlex.quote(f'p({label})')}" for label in labels)
        return (
            f"vennforest predict {model} {data} --keep -o scored.csv\n"
            f"vennforest calibrate scored.csv {wanted} -t {target}"
        )
    options = _score_options(evaluation)
    if not options or "data" not in files:
        return "VennAbers().fit(p, y)"
    return _typed("calibrate", files, *options)


def _score_options(evaluation: Evaluation) -> list[str]:
    """Return the options that name the judged columns, [] where they are of no file."""
    known: dict[str, list[str]] = evaluation.settings.get("score_options", {})
    own = known.get(evaluation.verdict.method) or known.get("", [])
    return [shlex.quote(part) for part in own]


def _without_gain(evaluation: Evaluation) -> Advice | None:
    gain, saved = evaluation.gain, evaluation.saved
    reference = _reference(evaluation)
    if saved is not None:
        constant, always, mine, _ = _paid(evaluation)
        costs = f"always “{constant}” costs {always} per row, its decisions cost {mine}"
        if _decisions(evaluation)[0] == 1:
            return Advice(
                "stop",
                "Do not use it for these decisions: it decides the same for every row, at "
                f"{mine} per row.",
            )
        if saved.mean <= 0:
            return Advice("stop", f"Do not use it for these decisions: {costs}.")
        if not saved.clear:
            more = _needed(evaluation, saved.margin, saved.mean)
            return Advice(
                "collect", f"Collect {more} to know whether it pays: {costs}, within chance."
            )
        return None
    if gain.clear and gain.mean > 0:
        return None
    if gain.mean + gain.margin < 0.01 * reference or gain.mean <= 0:
        most = "" if gain.mean <= 0 else " by more than 1%"
        return Advice(
            "stop",
            f"Do not use these probabilities: they do not beat the base rate{most}, "
            f"{shares(evaluation)}.",
        )
    more = _needed(evaluation, gain.margin, gain.mean)
    return Advice(
        "collect",
        f"Collect {more} before you use it: on {_n(evaluation)} it does not beat the base rate by "
        "more than chance.",
    )


def _unclear(evaluation: Evaluation) -> Advice | None:
    m, tolerance = evaluation.measures[evaluation.verdict.method], evaluation.tolerance
    seems = m.miscalibration > tolerance and m.pvalue < DOUBTFUL
    if not seems and m.detectable <= 2 * tolerance:
        return None
    n = rounded(len(evaluation.folds.codes) * max(2.0, (m.detectable / tolerance) ** 2))
    return Advice(
        "collect",
        f"Collect about {n} rows before you rely on the probabilities: {_n(evaluation)} are too "
        f"few to check a tolerance of {number_of_points(tolerance)} points. Now they are "
        f"{size_of_error(evaluation, evaluation.verdict.method)}.",
    )


def _to_use(evaluation: Evaluation) -> Advice:
    method = evaluation.verdict.method
    name, size = evaluation.names[method], size_of_error(evaluation, method)
    if evaluation.origin in ("given", "model"):
        several = len(evaluation.measures) > 1
        whose = f"the probabilities of {name}" if several else "these probabilities"
        return Advice("use", f"Use {whose} as they are: {size}.")
    files, settings = evaluation.settings.get("files", {}), evaluation.settings
    if evaluation.origin == "scores":
        chosen = _option("--method", method, "venn-abers")
        command = _typed("calibrate", files, *_score_options(evaluation), *chosen)
        return Advice("use", f"Calibrate the scores by {name}: {size}.", command)
    if method == RAW:
        return Advice("use", f"Use the {raw_name(evaluation)} as it is: {size}.")
    trees = _option("--trees", str(settings["n_trees"]), "300")
    command = _fit(evaluation, *_option("--method", method, "venn-abers"), *trees)
    raw = evaluation.measures[RAW]
    if raw.exceeds(evaluation.tolerance) or raw.impossible:
        off = number_of_points(raw.calibration_error)
        return Advice(
            "recalibrate",
            f"Calibrate the {raw_name(evaluation)} by {name}. Raw, it is {off} points off on "
            f"average; calibrated, {size.removeprefix('on average ')}.",
            command,
        )
    return Advice("use", f"Use the {settings['noun']} with {name}: {size}.", command)


def _option(name: str, value: str, usual: str) -> list[str]:
    return [] if value == usual else [name, value]


def raw_name(evaluation: Evaluation) -> str:
    """Return what a reader calls the raw model within a sentence."""
    return evaluation.names[RAW].replace("Raw", "raw", 1)


def discrimination(evaluation: Evaluation) -> str:
    """Say how well the recommended method ranks, and what it gains on the base rate."""
    auc, gain = evaluation.discrimination, evaluation.gain
    m, reference = evaluation.measures[evaluation.verdict.method], _reference(evaluation)
    sentences = [
        f"AUC {area(auc.auc)} (95% interval {area(auc.low)} to {area(auc.high)}; random ranking: "
        "0.5)."
    ]
    if not auc.above_chance and min(_counts(evaluation)) < 30:
        sentences.append("With so few rows in a class, only strong relations would show.")
    gained = m.log_loss_skill if gain.loss == "log loss" else m.brier_skill
    skill = f"that of {shares(evaluation)}"
    if gained < -1:
        skill = f"{1 - gained:.1f} times {skill}"
    elif abs(gained) >= LEAST:
        how = "lower" if gained > 0 else "higher"
        skill = f"{percent(min(1.0, abs(gained)))} {how} than {skill}"
    if reference and np.isfinite(gain.margin):
        low, high = (gain.mean - gain.margin) / reference, (gain.mean + gain.margin) / reference
        skill += f" (95% interval of the gain: {signed(low)} to {signed(high)})"
    sentences.append(f"Its {gain.loss} is {skill}.")
    if gained >= 0.9:
        sentences.append("So good a result is rare: check that no column reveals the outcome.")
    labels = evaluation.best.p.argmax(axis=1)
    right = f"{percent(m.accuracy)} of its most probable classes are right"
    most = str(evaluation.folds.classes[int(np.argmax(_counts(evaluation)))])
    right += f"; always “{most}”: {percent(evaluation.baseline.accuracy)}"
    if len(np.unique(labels)) == 1:
        only = evaluation.folds.classes[labels[0]]
        right = f"“{only}” is the most probable class of every row, right in {percent(m.accuracy)}"
    sentences.append(f"{right}.")
    if not auc.above_chance and evaluation.origin in ("folds", "time", "test"):
        sentences.append("Another kind of model may do better: --estimator.")
    if evaluation.folds.groups is not None:
        n_groups = len(np.unique(evaluation.folds.groups))
        sentences.append(f"Intervals treat the {n_groups:,} groups as independent, not the rows.")
    return " ".join(sentences)


def _reference(evaluation: Evaluation) -> float:
    """Return the loss of the base rate that gains are compared with."""
    base = evaluation.baseline
    return base.log_loss if evaluation.gain.loss == "log loss" else base.brier


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


def signed(share: float) -> str:
    """Return a share in percent with its sign."""
    if abs(share) < LEAST:
        return "0%"
    text = f"{-100 * share:.0f}%" if share < -1 else percent(min(1.0, abs(share)))
    return f"−{text}" if share < 0 else text


def reliability(evaluation: Evaluation, method: str) -> str:
    """Say how far a method's probabilities are from the observed frequencies, and what tests say.

    The size decides, and chance must not explain it: how often that is right, ``docs/report.md``.
    """
    m, tolerance = evaluation.measures[method], evaluation.tolerance
    n = _n(evaluation)
    if m.chance_limit == m.calibration_error == 0:  # nothing is left to chance
        return f"All are 0 or 1, and agree with every outcome of {n}."
    error = f"off by about {points(m.miscalibration)} beyond chance"
    limit = f"the tolerance of {number_of_points(tolerance)}"
    sentences = []
    if m.impossible:
        sentences.append(f"Probability 0 was given to what happened in {rows(m.impossible)}.")
    if m.exceeds(tolerance):
        sentences.append(f"They are {error}, more than {limit}.")
    elif m.miscalibration > tolerance:
        sentences.append(f"They seem {error}, more than {limit}, but tests do not confirm it.")
    elif m.detectable > 2 * tolerance:
        sentences.append(f"On {n} an error below {points(m.detectable)} would not be seen.")
    else:
        sentences.append(f"Their error beyond chance is within {limit} points.")
    sentences.append(
        f"On average they differ from the observed frequencies by {points(m.calibration_error)}. "
        f"Perfectly calibrated probabilities would differ by {number_of_points(m.chance_error)} "
        f"by chance, and by more than {number_of_points(m.chance_limit)} in 5% of cases."
    )
    rejected = "reject" if m.pvalue < LEVEL else "do not reject"
    sentences.append(f"Tests of calibration {rejected} it (p {p_value(m.pvalue)}).")
    sentences.append(_on_average(evaluation, method, m))
    return " ".join(sentences)


def _cost_of_miscalibration(evaluation: Evaluation, method: str) -> float | None:
    """Return the share of its costs that the best increasing map of a probability would save.

    The map is fitted to these very rows, so no other saves more. None where that is no share.
    """
    costs = evaluation.costs
    if costs is None or evaluation.positive is None or costs.costs.min() < 0:
        return None
    estimates = evaluation.folds.estimates[method]
    p, outcome, *_ = event_of(evaluation, estimates)
    fit = recalibrate(EventEstimates(outcome, p, np.ones(len(p))))
    mapped = fit.fitted[np.searchsorted(fit.p, p)]
    pair = [1 - mapped, mapped] if evaluation.positive == 1 else [mapped, 1 - mapped]
    codes = evaluation.folds.codes
    best = float(costs.costs[codes, costs.decide(np.column_stack(pair))].mean())
    paid = evaluation.decisions[method].mean_cost
    return max(0.0, 1 - best / paid) if paid > 0 else None


def _on_average(evaluation: Evaluation, method: str, m: Measures) -> str:
    if is_rare(evaluation):
        p, outcome, *_ = event_of(evaluation, evaluation.folds.estimates[method])
        expected = float(p.sum())
        shown = f"{expected:,.0f}" if expected >= 100 else f"{expected:.1f}"
        return (
            f"They predict {shown} rows of “{evaluation.label}”; {int(outcome.sum()):,} were "
            "observed."
        )
    mean = m.accuracy + m.overconfidence
    p = evaluation.folds.estimates[method].p.max(axis=1)
    error = float(np.sqrt((p * (1 - p)).sum()) / len(p))
    both = f"mean confidence {percent(mean)}, accuracy {percent(m.accuracy)}"
    if abs(m.overconfidence) <= 1.96 * error:
        return f"Confidence and accuracy agree within chance: {both}."
    how = "overconfident" if m.overconfidence > 0 else "underconfident"
    if abs(m.overconfidence) < 0.005:
        how = f"a little {how}"
    return f"Labels are {how}: {both}."


def _decisions(evaluation: Evaluation) -> tuple[int, str]:
    """Return how many different decisions are made, and how often each."""
    costs = evaluation.costs
    assert costs is not None
    decided = costs.decide(evaluation.best.p)
    counts = np.bincount(decided, minlength=len(costs.decisions))
    shown = ", ".join(
        f"“{decision}” for {rows(int(count))}"
        for decision, count in zip(costs.decisions, counts, strict=True)
        if count
    )
    return int((counts > 0).sum()), shown


def _paid(evaluation: Evaluation) -> tuple[str, str, str, str]:
    """Return the best constant decision, its cost, the model's, and their difference in words."""
    costs, gap = evaluation.costs, evaluation.saved
    assert costs is not None and gap is not None
    always = costs.costs[evaluation.folds.codes].mean(axis=0)
    made = evaluation.decisions[evaluation.verdict.method]
    amounts = [made.mean_cost, float(always.min()), gap.mean]
    amounts += [gap.mean - gap.margin, gap.mean + gap.margin]
    mine, theirs, saved, least, most = alike(amounts, gap.mean)
    constant, theirs = costs.decisions[int(always.argmin())], theirs if always.min() else "0"
    return constant, theirs, mine, f"difference {saved}, 95% interval {least} to {most}"


def net_benefit(evaluation: Evaluation) -> str:
    """Say what deciding by the probabilities costs, and what the best constant decision does."""
    constant, theirs, mine, gap = _paid(evaluation)
    name = evaluation.names[evaluation.verdict.method]
    n, counts = _decisions(evaluation)
    if n == 1:
        return f"It decides {counts}, at {mine} per row, which needs no model."
    return (
        f"Deciding by {name} costs {mine} per row, always “{constant}” costs {theirs} ({gap}). "
        f"It decides {counts}.{_known_decisions(evaluation)}"
    )


def _known_decisions(evaluation: Evaluation) -> str:
    """Say for how many rows the threshold of the costs lies in the confidence interval."""
    tie = cost_threshold(evaluation.costs, evaluation.positive)
    known = confidence_of(evaluation, evaluation.best)
    if tie is None or known is None:
        return ""
    open_ones = int(((known[0] < tie) & (known[1] >= tie)).sum())
    return (
        f" For {rows(open_ones)} ({percent(open_ones / len(evaluation.folds.codes))}) the "
        f"threshold of these costs, {percent(tie)}, lies inside the 95% confidence interval: there "
        "the cheaper decision is not known."
    )


def reasons(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return what the advice rests on: headings, and what the numbers say."""
    method = evaluation.verdict.method
    name = evaluation.names[method]
    found = {
        f"How well it predicts “{evaluation.target}”": discrimination(evaluation),
        f"How accurate the probabilities of {name} are": reliability(evaluation, method),
    }
    if RAW in evaluation.measures and method != RAW:
        about = f"How accurate those of the {raw_name(evaluation)} are"
        found[about] = reliability(evaluation, RAW)
    if evaluation.saved is not None:
        found["What its decisions cost"] = net_benefit(evaluation)
    if len(evaluation.measures) > 1:
        found[f"Why {name}"] = recommendation(evaluation)
    found["How precisely the probabilities are known"] = precision(evaluation, method)
    return [(about, text) for about, text in found.items() if text]


def key_figures(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the four numbers to see first, each with its meaning."""
    method = evaluation.verdict.method
    m, auc = evaluation.measures[method], evaluation.discrimination
    shown = [
        (
            f"{number_of_points(m.calibration_error)} points",
            f"off on average ({number_of_points(m.chance_error)} by chance alone)",
        ),
        (
            area(auc.auc),
            f"AUC: how well it ranks (95% interval {area(auc.low)} to {area(auc.high)})",
        ),
        (
            signed(m.brier_skill),
            f"lower Brier score than {shares(evaluation)}",
        ),
    ]
    width = typical_margin(evaluation, method)
    if evaluation.saved is not None:
        constant, theirs, mine, _ = _paid(evaluation)
        last = mine, f"per row for its decisions; always “{constant}”: {theirs}"
    elif width is not None and m.pvalue >= LEVEL:  # else they do not hold
        last = f"±{number_of_points(width)} points", "typical 95% confidence interval"
    else:
        usual = percent(evaluation.baseline.accuracy)
        last = percent(m.accuracy), f"of labels are right; the most frequent one: {usual}"
    return [*shown, last]


def finding(evaluation: Evaluation) -> str:
    """Return what the first picture shows, by the level that adds most to the calibration error."""
    found = levels(evaluation)
    level = max(found, key=lambda one: one["n"] * abs(one["expected"] - one["observed"]))
    event = "right" if evaluation.positive is None else f"“{evaluation.label}”"
    with_p = "whose predicted class has" if evaluation.positive is None else "with"
    figures = (level[name] for name in ("expected", "observed", "least", "most"))
    p, share, least, most = (percent(value, int(value < RARE)) for value in figures)
    were = "was" if level["n"] == 1 else "were"
    return (
        f"Of {rows(level['n'])} {with_p} a probability near {p}, {share} {were} {event} "
        f"(95% interval {least} to {most})"
    )


def shown_first(evaluation: Evaluation) -> list[str]:
    """Return the methods of the first picture, up to four: the recommended one, then others."""
    others = evaluation.measures if evaluation.origin == "given" else [RAW]
    keys = dict.fromkeys([evaluation.verdict.method, *others])
    return [key for key in keys if key in evaluation.measures][:4]


def typical_margin(evaluation: Evaluation, method: str) -> float | None:
    """Return half the median width of the confidence intervals; None where they are not known."""
    known = confidence_of(evaluation, evaluation.folds.estimates[method])
    return None if known is None else float(np.median(known[1] - known[0])) / 2


def levels_inside(evaluation: Evaluation, method: str) -> tuple[int, int]:
    """Return in how many levels the observed frequency lies in the mean confidence interval.

    Returned besides is the number of levels.
    """
    estimates = evaluation.folds.estimates[method]
    ends = confidence_of(evaluation, estimates)
    assert ends is not None
    p, outcome, *_ = event_of(evaluation, estimates)
    rows_of_levels = level_rows(evaluation, p)
    inside = [
        ends[0][at].mean() <= outcome[at].mean() <= ends[1][at].mean() for at in rows_of_levels
    ]
    return sum(map(int, inside)), len(inside)


def recommendation(evaluation: Evaluation) -> str:
    """Say why this method, and what differs from it by more than chance."""
    verdict = evaluation.verdict
    sentences = [f"It has {verdict.rule}."]
    if not evaluation.discrimination.above_chance:
        name = evaluation.names[verdict.method]
        sentences = [f"No method has been shown to beat the base rate; {name} comes closest."]
    for other in shown_first(evaluation)[1:]:
        gap = verdict.against[other]
        size = " ± ".join(with_margin(abs(gap.mean), gap.margin))
        how = "lower" if gap.mean > 0 else "higher"
        whom = f"the {raw_name(evaluation)}" if other == RAW else evaluation.names[other]
        chance = "" if gap.clear else ", within chance"
        sentences.append(
            f"Its {gap.loss} is {how} than that of {whom} by {size} (95% interval){chance}."
        )
    better = {other: gap for other, gap in verdict.against.items() if gap.clear and gap.mean < 0}
    if better:
        gaps = ", ".join(
            f"{evaluation.names[other]} (by {with_margin(abs(gap.mean), gap.margin)[0]} in "
            f"{gap.loss})"
            for other, gap in better.items()
        )
        sentences.append(f"Better by more than chance, but passed over: {gaps}.")
    elif len(verdict.against) > 1:
        sentences.append("No other method is better by more than chance.")
    return " ".join(sentences)


def precision(evaluation: Evaluation, method: str) -> str:
    """Say how wide confidence intervals are, and what another forest would change."""
    width, forest = typical_margin(evaluation, method), evaluation.folds.forest
    text = "" if forest is None or method == RAW else forest.sentence()
    if width is None:
        return text
    if evaluation.measures[method].pvalue < LEVEL:
        inside, n = levels_inside(evaluation, method)
        return (
            "Calibration is rejected on these rows, so confidence intervals do not hold here: the "
            f"observed frequency was inside the mean interval in {inside} of {n} levels of "
            f"probability. Half of the intervals are narrower than ±{number_of_points(width)} "
            f"points. {text}"
        ).rstrip()
    return (
        "The frequency among rows with such a score lies in the confidence interval in 95% of "
        f"cases. Half of the intervals are narrower than ±{number_of_points(width)} points. {text}"
    ).rstrip()


def bounds_meaning(evaluation: Evaluation, method: str) -> str:
    """Say what the bounds are, and for how many rows they leave the class open."""
    folds, estimates = evaluation.folds, evaluation.folds.estimates[method]
    assert estimates.bounds is not None
    text = (
        "The two bounds are the calibrated probabilities obtained by assuming that the case is, "
        "and is not, in the class. A decision is safe if it is the same at both. They are not a "
        "confidence interval. The most probable class "
    )
    left = ~settled_labels(estimates.bounds)
    n, right = int(left.sum()), int((estimates.p.argmax(axis=1) == folds.codes)[left].sum())
    if not n:
        return f"{text}is the same at both bounds for all {rows(len(left))}."
    return (
        f"{text}differs between the bounds for {rows(n)} of {len(left):,} "
        f"({percent(n / len(left))}), of which {right:,} are right."
    )
