"""The outputs of a calibrator as formulas of scores, from which every export is written."""

from __future__ import annotations

from collections.abc import Sequence

from vennforest._validation import InputError
from vennforest.calibrators import VennAbers
from vennforest.calibrators.base import SUM_TOLERANCE, Calibrator
from vennforest.calibrators.formula import (
    LOWEST,
    Code,
    Language,
    Score,
    Term,
    Terms,
    write_terms,
)
from vennforest.calibrators.intervals import IntervalCurve

LEVEL = 0.95
"""Of the confidence intervals that are exported."""


def accepted_scores(calibrator: Calibrator) -> tuple[float, float, float | None]:
    """Return the ends of the scores that a calibrator accepts, and how far from 1 a row may sum."""
    if not calibrator._takes_probabilities:
        return LOWEST, -LOWEST, None
    has_sum = len(calibrator.classes_) > 2 and calibrator._rows_sum_to_one
    return 0.0, 1.0, SUM_TOLERANCE if has_sum else None


def write_outputs(formulas: dict[str, Terms], language: Language[Code]) -> dict[str, list[Code]]:
    """Return every output as text of a language: one per class, or that of the second of two."""
    codes = iter(write_terms([term for terms in formulas.values() for term in terms], language))
    return {name: [next(codes) for _ in terms] for name, terms in formulas.items()}


def output_formulas(calibrator: Calibrator, confidence: bool = False) -> dict[str, Terms]:
    """Return ``p``, with bounds ``p0`` and ``p1``, and the ends ``low95`` and ``high95``."""
    k = len(calibrator.classes_)
    scores: Terms = tuple(Score(j) for j in range(1 if k == 2 else k))
    if (center := calibrator.reversed_at_) is not None:
        scores = (center - scores[0],)
    formulas = calibrator._formulas(scores)
    if confidence:
        if not isinstance(calibrator, VennAbers):
            name = type(calibrator).__name__
            raise InputError(f"confidence must be False: a {name} gives no confidence intervals")
        formulas |= interval_formulas(calibrator._interval_curves(LEVEL), scores)
    if calibrator.shift_ is not None:
        if k > 2:
            raise ValueError(
                "calibrators of more than two classes must be exported before with_prior"
            )
        f0, f1 = calibrator.shift_.factors.tolist()
        for name, (p,) in formulas.items():  # the odds of all of them are multiplied by f1 / f0
            formulas[name] = ((p * f1) / (p * f1 + (1.0 - p) * f0),)
    return widened(formulas)


def interval_formulas(curves: Sequence[IntervalCurve], scores: Terms) -> dict[str, Terms]:
    """Return the ends of confidence intervals, one curve for each column of scores."""
    ends = []
    for curve, score in zip(curves, scores, strict=True):
        edges, lower, upper = curve.steps()
        ends.append(score.look_up(edges, {"low95": lower, "high95": upper}))
    return {name: tuple(columns[name] for columns in ends) for name in ("low95", "high95")}


def widened(formulas: dict[str, Terms]) -> dict[str, Terms]:
    """Return the formulas with intervals, if there are any, that contain the probabilities."""
    if "low95" not in formulas:
        return formulas
    p = formulas["p"]
    return formulas | {
        "low95": tuple(map(Term.min, formulas["low95"], p)),
        "high95": tuple(map(Term.max, formulas["high95"], p)),
    }
