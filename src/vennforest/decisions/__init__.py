"""Decisions from bounds and scores: choices at known costs, prediction sets, net benefit."""

from vennforest.decisions.choices import Choices, Rule, decide
from vennforest.decisions.conformal import PredictionSets, conformal_p_values, prediction_sets
from vennforest.decisions.costs import CostMatrix, Decisions
from vennforest.decisions.net_benefit import NetBenefit, net_benefit

__all__ = [
    "Choices",
    "CostMatrix",
    "Decisions",
    "NetBenefit",
    "PredictionSets",
    "Rule",
    "conformal_p_values",
    "decide",
    "net_benefit",
    "prediction_sets",
]
