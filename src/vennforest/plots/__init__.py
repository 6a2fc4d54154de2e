"""Pictures of calibration, in scikit-learn's Display conventions; they compute nothing."""

from vennforest.plots.decisions import DecisionCurveDisplay, RankingDisplay
from vennforest.plots.evidence import EvidenceDisplay
from vennforest.plots.intervals import IntervalDisplay
from vennforest.plots.reliability import ClassReliabilityDisplay, ReliabilityDisplay

__all__ = [
    "ClassReliabilityDisplay",
    "DecisionCurveDisplay",
    "EvidenceDisplay",
    "IntervalDisplay",
    "RankingDisplay",
    "ReliabilityDisplay",
]
