"""How the predictions came about, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vennforest.report.predictions import RAW

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
        "test": f"One {noun} of the other rows predicted all of these.",
        "model": "The model was not trained here; whether it has seen these rows is for you to "
        "know.",
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
        "“Shares alone” gives every row the shares of the classes: a method that does not beat it "
        "has learnt nothing useful."
    )
    if len(evaluation.measures) > 1:
        sentences.append(
            "✓ marks the best value of each measure, unless most share it; the "
            "recommended one is shaded."
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
