"""Decisions by expected cost, and thresholds with guarantees."""

from vennforest.decisions.costs import CostMatrix
from vennforest.decisions.thresholds import Threshold, threshold_for

__all__ = ["CostMatrix", "Threshold", "threshold_for"]
