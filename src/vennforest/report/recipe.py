"""The code that fits the recommended method, as the folds of the report did."""

from __future__ import annotations

from pprint import pformat
from typing import TYPE_CHECKING

from vennforest._validation import is_frame
from vennforest.report.learners import LEARNERS, Learner
from vennforest.report.predictions import RAW

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation


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
        model = f"table_pipeline({model}, random_state={seed}{', types=types' if types else ''})"
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
