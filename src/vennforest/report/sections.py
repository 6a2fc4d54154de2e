"""What the page says of the data, the methods and the decisions, below the answers."""

from __future__ import annotations

from pprint import pformat
from typing import TYPE_CHECKING, Any

from vennforest._validation import is_frame
from vennforest.report.event import is_rare
from vennforest.report.learners import LEARNERS, Learner
from vennforest.report.numbers import alike, number_of_points, with_margin
from vennforest.report.predictions import RAW
from vennforest.report.subsets import most_split_on

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation


def how(evaluation: Evaluation) -> str:
    """Return in a few words how rows were predicted."""
    settings = evaluation.settings
    k = evaluation.folds.n_folds
    learner = settings.get("learner", "")
    return {
        "folds": f"{k}-fold cross-validation, {learner}",
        "time": f"{k} folds in order of time, {learner}",
        "test": f"{learner}, tested on separate rows",
        "model": "predicted by a fitted model",
        "given": "probabilities as given, nothing was trained",
        "scores": f"scores as given, calibrated in {k}-fold cross-validation",
    }[evaluation.origin]


def methods(evaluation: Evaluation) -> str:
    """Return how the methods of the table came about."""
    settings = evaluation.settings
    noun = settings.get("noun", "model")
    first = {
        "folds": f"Every row was predicted by a {noun} that was not trained on it, and all "
        "measures are taken over these pooled predictions.",
        "time": f"Every row was predicted by a {noun} of earlier rows, and all measures are taken "
        "over these pooled predictions.",
        "test": f"One {noun}, trained on the other rows, predicted all of these.",
        "model": "The model was not trained here: make sure that it has not seen these rows.",
        "given": "Nothing was trained: the measures are of the probabilities as they were given.",
        "scores": "The scores are not probabilities: each calibrator was fitted to the scores of "
        "the other folds, and measured on the rows it had not seen.",
    }[evaluation.origin]
    sentences = [first]
    if evaluation.origin in ("folds", "time", "test"):
        each = "The" if evaluation.origin == "test" else "In each fold one"
        where = {
            "oob": f"{each} {noun} served every method, calibrated on its out-of-bag scores.",
            "cv": f"{each} {noun} served every method, calibrated on scores by inner folds.",
        }[settings.get("calibrate_on", "oob")]
        sentences.append(where)
        if settings.get("calibrate_on", "oob") == "oob":
            sentences.append(_trees(evaluation))
    sentences.append(
        "“Base rate” always predicts the class frequencies: a method that does not beat it is "
        "of no use."
    )
    if len(evaluation.measures) > 1:
        sentences.append(
            "✓ marks the best value of each measure; the recommended method is shaded."
        )
    return " ".join(sentences)


def _trees(evaluation: Evaluation) -> str:
    if evaluation.settings["subforest"] == "all":
        return "All methods score new rows with all trees."
    which = {
        "exchangeable": "use the trees that did not see one calibration row",
        "joined": "let the new row join the bags",
        "random": "use as many random trees as did not see one calibration row",
    }[evaluation.settings["subforest"]]
    return (
        f"The {evaluation.names[RAW].lower()} votes with all its trees; so does the probability of "
        f"Venn–Abers, while bounds and the other methods {which}."
    )


def recipe(evaluation: Evaluation) -> str | None:
    """Return Python code that fits the recommended method to X and y; None if nothing was trained.

    Fitted to the rows that a fold trained on, it predicts that fold as the report did; fitted to
    all, it is, of a forest, the model that ``vennforest fit`` writes.
    """
    if evaluation.origin not in ("folds", "time", "test"):
        return None
    method, settings = evaluation.verdict.method, evaluation.settings
    seed = settings["random_state"]
    learner = LEARNERS.get(settings["estimator"])
    model = settings["estimator"]
    lines: list[str] = []
    if learner is not None:
        model = learner.code.format(trees=settings["n_trees"], seed=seed)
        lines += learner.imports
    if method != RAW:
        lines.append("from vennforest import CalibratedClassifier")
    if is_frame(evaluation.X):
        lines.append("from vennforest.tables import table_pipeline")
        types = settings.get("types")
        if types:
            lines += ["", f"types = {pformat(types, sort_dicts=False)}"]
        more = ", types=types" if types else ""
        if settings.get("missing"):
            more += f", missing={settings['missing']}"
        model = f"table_pipeline({model}, random_state={seed}{more})"
    labels, groups = "y", ""
    if learner is not None and learner.numbered:
        lines += ["", "classes, codes = np.unique(y, return_inverse=True)"]
        labels = "codes"
    if evaluation.folds.groups is not None and method != RAW:
        groups = ", groups=groups"
    if method == RAW:
        fitted = f"model = {model}.fit(X, {labels})"
        return "\n".join([*lines, "", fitted, "model.predict_proba(X_new)"])
    lines += [
        "",
        f"{_noun(learner)} = {model}",
        f"model = CalibratedClassifier({_noun(learner)}, {_options(evaluation)})"
        f".fit(X, {labels}{groups})",
        "model.predict_proba(X_new)  # a probability for each class",
    ]
    if evaluation.folds.estimates[method].bounds is not None:
        lines.append("model.predict_multiprobability(X_new)  # its lower and upper bounds")
    return "\n".join(lines)


def _noun(learner: Learner | None) -> str:
    return "forest" if learner is not None and learner.title == "forest" else "classifier"


def _options(evaluation: Evaluation) -> str:
    """Return the arguments that are not the defaults."""
    settings = evaluation.settings
    options = [f'method="{evaluation.verdict.method}"', f"random_state={settings['random_state']}"]
    if settings["calibrate_on"] == "cv":
        options.insert(0, "ensemble=False")
    elif settings["subforest"] != "all":
        if settings["n_draws"] != 1:
            options.insert(0, f"n_draws={settings['n_draws']}")
        options.insert(0, f'subforest="{settings["subforest"]}"')
    return ", ".join(options)


def caption(evaluation: Evaluation) -> str:
    """Return what the first picture shows, and what follows from it."""
    method = evaluation.verdict.method
    name, m = evaluation.names[method], evaluation.measures[method]
    off = number_of_points(m.calibration_error)
    text = f"{name} (blue) is {off} points from the diagonal on average"
    if method != RAW and RAW in evaluation.measures:
        raw = number_of_points(evaluation.measures[RAW].calibration_error)
        text += f", the {evaluation.names[RAW].replace('Raw', 'raw', 1)} (orange) {raw}"
    below = (
        "" if is_rare(evaluation) else " Under the diagram: how many rows have such a probability."
    )
    return (
        f"{text}. On the diagonal, what is predicted happens as often. Grey: where the blue line "
        f"would lie in 90% of cases if its probabilities were right.{below}"
    )


HERE, PARTLY, YOURS = "on this page", "in part", "yours to write"


def checklist(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the items in their order: number, what is asked, where it stands, and a section.

    The items are those of Collins et al. (2024), BMJ 385: e078378, in our words.
    """
    two = evaluation.positive is not None
    bounded = evaluation.folds.estimates[evaluation.verdict.method].bounds is not None
    trained = evaluation.origin in ("folds", "time", "test")
    groups = bool(evaluation.by)
    fair = (PARTLY, "subgroups") if groups else (YOURS, None)
    items: list[tuple[str, str, str, str | None]] = [
        ("1", "Title: a prediction model, its target and population", PARTLY, None),
        ("2", "Abstract", YOURS, None),
        ("3", "Background: purpose, users, known inequalities", YOURS, None),
        ("4", "Objectives: development, evaluation or both", YOURS, None),
        ("5", "Sources of the data, and their dates", YOURS, None),
        ("6", "Participants: setting, eligibility, treatments", YOURS, None),
        ("7", "Preparation of the data", PARTLY, "data"),
        ("8", "Outcome: definition, time, who judged it", PARTLY, "data"),
        ("9", "Predictors: definition, how they were chosen", PARTLY, "data"),
        ("10", "Sample size, and why it is enough", PARTLY, "data"),
        ("11", "Missing data: how much, and how handled", HERE if trained else YOURS, "data"),
        ("12a", "How data were used: splits, folds", HERE, "run"),
        ("12b", "How predictors were handled", PARTLY if trained else YOURS, "data"),
        ("12c", "Type of model, its steps, internal validation", HERE if trained else PARTLY,
         "run"),
        ("12d", "Differences between clusters", *fair),
        ("12e", "Measures of performance", HERE, "methods"),
        ("12f", "Updating the model, such as recalibration", HERE, "methods"),
        ("12g", "How predictions are made for evaluation", HERE, "run"),
        ("13", "Class imbalance: whether and how it was handled", HERE, "classes"),
        ("14", "Fairness: what was done, and why", *fair),
        ("15", "Output of the model, and thresholds", HERE if two else PARTLY,
         "thresholds" if two else "classes"),
        ("16", "Differences between training and evaluation data", YOURS, None),
        ("17", "Ethics approval and consent", YOURS, None),
        ("18", "Funding, interests, protocol, registration, data, code", PARTLY, "run"),
        ("19", "Involvement of patients and the public", YOURS, None),
        ("20", "Flow and characteristics of participants", PARTLY, "data"),
        ("21", "Numbers of participants and events in each analysis", HERE, "classes"),
        ("22", "The model itself, so that others can use it", PARTLY if trained else YOURS, "run"),
        ("23a", "Performance with intervals: discrimination", HERE,
         "ranking" if two else "methods"),
        ("23a", "Performance: calibration", HERE, "reliability"),
        ("23a", "Performance: net benefit", HERE if two else YOURS,
         "thresholds" if two else None),
        ("23b", "Differences in performance between clusters", *fair),
        ("24", "Results of updating the model", HERE, "methods"),
        ("25", "Interpretation, fairness included", PARTLY, "summary"),
        ("26", "Limitations", PARTLY, "intervals" if bounded else "summary"),
        ("27", "Use: poor or missing input, who decides, next steps", YOURS, None),
    ]  # fmt: skip
    return [
        {"item": item, "asked": asked, "where": where, "section": section}
        for item, asked, where, section in items
    ]


ENCODINGS: dict[str, str] = {
    "number": "numbers",
    "category": "categories",
    "text": "text of many values",
    "date": "dates",
}
"""What a reader calls the ways in which columns become numbers."""


def guarantee(evaluation: Evaluation) -> str:
    """Return what theory guarantees about the bounds, and what it does not."""
    each = "" if len(evaluation.folds.classes) == 2 else " of each class against the rest"
    what = (
        f"If calibration rows and new rows are treated the same way, one of the two bounds{each} "
        "is perfectly calibrated on average, for any distribution; which of the two is not known "
        "beforehand. "
    )
    how = {
        "exchangeable": (
            "Here both are scored by trees that did not see them: this holds nearly, and the "
            "bounds depend on a random draw."
        ),
        "joined": (
            "Here the new row joins the bags of the trees in the same way as the other rows: this "
            "holds except for the shape of the trees."
        ),
        "all": (
            "Here a new row is scored by all trees and a calibration row by those that did not see "
            "it: nothing is random. In simulations the bounds are too cautious by about .09 with "
            "10 trees, .04 with 30, .02 with 100 and .01 with 300, and by more if many rows repeat."
        ),
        "random": "Here they are not, and nothing is guaranteed.",
        "cv": (
            "Here calibration rows are scored by models of the other folds and new rows by a model "
            "of all rows: this holds if these models give similar scores."
        ),
        "kept": "Here the calibration rows were kept apart from the new rows: this holds.",
        "model": "Whether they are depends on how the model was calibrated.",
    }[evaluation.settings["guarantee"]]
    return (
        f"{what}{how} Bounds were widened where needed to contain the probability. None of this is "
        "a guarantee for a single row, or after the data have drifted."
    )


def against(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return how each method compares with the recommended one."""
    found = []
    for method, gap in evaluation.verdict.against.items():
        if not gap.clear:
            verdict = "no difference beyond chance"
        else:
            verdict = "worse" if gap.mean > 0 else "better"
        shown, margin = with_margin(abs(gap.mean), gap.margin)
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
