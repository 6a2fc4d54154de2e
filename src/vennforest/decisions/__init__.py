"""Decisions from bounds and scores: choices at known costs, prediction sets, promises."""

from vennforest.decisions.choices import Choices, Rule, decide
from vennforest.decisions.conformal import PredictionSets, conformal_p_values, prediction_sets
from vennforest.decisions.costs import CostMatrix, Decisions
from vennforest.decisions.thresholds import Threshold, threshold_for

__all__ = [
    "Choices",
    "CostMatrix",
    "Decisions",
    "PredictionSets",
    "Rule",
    "Threshold",
    "conformal_p_values",
    "decide",
    "prediction_sets",
    "threshold_for",
]
