"""Methods compared over data sets (mean ranks, tests of their differences) and over sizes."""

from vennforest_experiments.comparison.exhaustive import bergmann_hommel
from vennforest_experiments.comparison.learning import LearningCurve, learning_curve
from vennforest_experiments.comparison.ranks import Comparison, compare, compare_mean_ranks

__all__ = [
    "Comparison",
    "LearningCurve",
    "bergmann_hommel",
    "compare",
    "compare_mean_ranks",
    "learning_curve",
]
