"""Pictures of comparisons and of learning curves, in scikit-learn's Display conventions."""

from vennforest_experiments.plots.critical_difference import CriticalDifferenceDisplay
from vennforest_experiments.plots.learning import (
    LearningCurve,
    LearningCurveDisplay,
    learning_curve,
)

__all__ = ["CriticalDifferenceDisplay", "LearningCurve", "LearningCurveDisplay", "learning_curve"]
