"""Pictures of comparisons and of learning curves, in scikit-learn's Display conventions."""

from vennforest_experiments.plots.critical_difference import CriticalDifferenceDisplay
from vennforest_experiments.plots.learning import LearningCurveDisplay

__all__ = ["CriticalDifferenceDisplay", "LearningCurveDisplay"]
