"""Decisions from bounds and scores: choices at known costs, prediction sets."""

from vennforest.decisions.choices import Choices, Rule, decide
from vennforest.decisions.conformal import PredictionSets, conformal_p_values, prediction_sets
from vennforest.decisions.costs import CostMatrix, Decisions

__all__ = [
    "Choices",
    "CostMatrix",
    "Decisions",
    "PredictionSets",
    "Rule",
    "conformal_p_values",
    "decide",
    "prediction_sets",
]
