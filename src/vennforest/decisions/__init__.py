"""Decisions: costs, and thresholds that keep a promise."""

from vennforest.decisions.costs import CostMatrix, Decisions
from vennforest.decisions.thresholds import Threshold, threshold_for

__all__ = [
    "CostMatrix",
    "Decisions",
    "Threshold",
    "threshold_for",
]
