"""The section on another population: the gain of updating the probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._validation import FloatArray, InputError
from vennforest.report.measures import Predictions
from vennforest.report.section import Section
from vennforest.report.words import line_findings
from vennforest.validation.update import TITLES, UpdateRows, by_tests

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

MAX_UPDATED_CLASSES = 10
"""Maximum number of classes for which updates are compared, since maps of more are slow."""


def with_updates(evaluation: Evaluation, is_asked: bool = False) -> Evaluation:
    """Return an evaluation with the section on updates of its probabilities.

    It is added once, if it is asked for or calibration is rejected, of all rows or of a part.
    """
    comparison, settings = evaluation.comparison, evaluation.settings
    predictions, best = comparison.predictions, comparison.best
    is_off = best.is_rejected or best.impossible or line_findings(comparison)
    is_off = is_off or any(section.finding for section in evaluation.sections)
    is_there = any(section.anchor == "updates" for section in evaluation.sections)
    if is_there or not (is_asked or is_off) or len(predictions.classes) > MAX_UPDATED_CLASSES:
        return evaluation
    is_model = evaluation.source.kind == "model"
    method = [*predictions.estimates][-1] if is_model else comparison.method
    prior = settings.get("prior")
    shares = None if prior is None else np.array([*prior.values()])
    section = _updates(predictions, method, shares, settings["random_state"])
    return evaluation.with_sections([section])


def _updates(
    predictions: Predictions, method: str, prior: FloatArray | None, random_state: int
) -> Section:
    """Return the section on updates of a method's probabilities.

    ``prior`` (k,) are the class shares for which the probabilities are calibrated, if known.
    """
    p, groups = predictions.estimates[method].p, predictions.groups
    try:
        rows = UpdateRows(predictions.classes, p, predictions.codes, groups, prior)
    except InputError as error:
        sentence = f"No updates are compared: {error}."
        return Section("Another population", "updates", [sentence])
    frame: Any = rows.gains(random_state)
    frame.loc["keep", ["gain", "gain_low", "gain_high"]] = np.nan
    together = ", with groups kept together" if groups is not None else ""
    sentences = [
        "Are these rows of another place or time than those that the probabilities were made for? "
        "Then they may be kept, or updated with these rows. The table has the log loss of rows "
        f"that the update was not fitted to{together}."
    ]
    choice = ""
    if "auto" in frame.index:
        choice, reason = by_tests(rows.test())
        sentences.append(
            f"Tests choose: {TITLES[choice].lower()}. {reason} vennforest calibrate with --update "
            "auto writes the update."
        )
    columns = [
        ("log_loss", "Log loss", "number"),
        ("gain", "Gain over keeping, 95% interval", "number"),
    ]
    frame.index = [TITLES[name] for name in frame.index]
    frame = frame.rename_axis("Update")
    title = "Another population"
    return Section(title, "updates", sentences, frame, columns, choice=choice)
