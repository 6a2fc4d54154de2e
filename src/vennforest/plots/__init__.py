"""Displays of calibration, which follow scikit-learn's Display conventions."""

from vennforest.plots.intervals import IntervalDisplay
from vennforest.plots.reliability import ReliabilityDisplay

__all__ = ["IntervalDisplay", "ReliabilityDisplay"]
