"""Pictures of calibration, in scikit-learn's Display conventions; they compute nothing."""

from vennforest.plots.intervals import IntervalDisplay
from vennforest.plots.reliability import ReliabilityDisplay

__all__ = [
    "IntervalDisplay",
    "ReliabilityDisplay",
]
