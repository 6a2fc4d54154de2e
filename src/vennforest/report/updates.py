"""The section on another population: the gain of updating the probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from vennforest._validation import FloatArray, InputError
from vennforest.report.measures import Predictions
from vennforest.report.section import Section
from vennforest.validation.update import TITLES, UpdateRows, by_tests

MAX_UPDATED_CLASSES = 10
"""Maximum number of classes for which updates are compared, since maps of more are slow."""


def updates(
    predictions: Predictions, method: str, prior: FloatArray | None, random_state: int
) -> list[Section]:
    """Return the section on updates of a method's probabilities.

    ``prior`` (k,) are the class shares for which the probabilities are calibrated, if known.
    """
    if len(predictions.classes) > MAX_UPDATED_CLASSES:
        return []
    p, groups = predictions.estimates[method].p, predictions.groups
    try:
        rows = UpdateRows(predictions.classes, p, predictions.codes, groups, prior)
    except InputError as error:
        sentence = f"No updates are compared: {error}."
        return [Section("Another population", "updates", [sentence])]
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
    return [Section(title, "updates", sentences, frame, columns, choice=choice)]
