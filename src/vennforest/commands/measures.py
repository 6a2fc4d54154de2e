"""Measures of a fit in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def measures_sentence(measures: Mapping[str, Any]) -> str:
    """Return the measures of a fit as a sentence."""
    numbers = {name: value for name, value in measures.items() if type(value) in (int, float)}
    needed = ("accuracy", "baseline_accuracy", "brier_score", "baseline_brier_score")
    if not all(name in numbers for name in needed):
        return ""
    text = (
        "Out of sample: accuracy {accuracy:.1%} ({baseline_accuracy:.1%} by always predicting "
        "the largest class), Brier score {brier_score:.4f} ({baseline_brier_score:.4f} by always "
        "predicting the class frequencies)"
    )
    if "mean_width" in numbers:
        text += "; bounds are {mean_width:.4f} wide on average"
    return text.format(**numbers) + "."
