"""Where each item that TRIPOD+AI asks of a prediction model's report stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

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
