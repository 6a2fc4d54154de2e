"""The code that fits the recommended method, as the folds of the report did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vennforest._validation import is_frame
from vennforest.report.folds import RAW

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation


def recipe(evaluation: Evaluation) -> str:
    """Return Python code that fits the recommended method to X and y.

    Fitted to the rows that a fold trained on, it predicts that fold as the report did; fitted to
    all, it is the model that ``vennforest fit`` writes.
    """
    method, settings = evaluation.verdict.method, evaluation.settings
    seed = settings["random_state"]
    forest = f"RandomForestClassifier({settings['n_trees']}, random_state={seed})"
    lines = ["from sklearn.ensemble import RandomForestClassifier"]
    if method != RAW:
        lines.append("from vennforest import CalibratedClassifier")
    if is_frame(evaluation.X):
        lines.append("from vennforest.tables import table_pipeline")
        forest = f"table_pipeline({forest}, random_state={seed})"
    if method == RAW:
        return "\n".join([*lines, "", f"model = {forest}.fit(X, y)", "model.predict_proba(X_new)"])
    options = f'method="{method}", random_state={seed}'
    if settings["n_draws"] != 1:
        options = f"n_draws={settings['n_draws']}, {options}"
    if settings["subforest"] != "all":
        options = f'subforest="{settings["subforest"]}", {options}'
    lines += [
        "",
        f"forest = {forest}",
        f"model = CalibratedClassifier(forest, {options}).fit(X, y)",
        "model.predict_proba(X_new)  # a probability for each class",
    ]
    if evaluation.folds.estimates[method].bounds is not None:
        lines.append("model.predict_multiprobability(X_new)  # its lower and upper bounds")
    return "\n".join(lines)
