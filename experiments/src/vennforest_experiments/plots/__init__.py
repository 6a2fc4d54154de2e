"""Critical-difference diagrams, in scikit-learn's Display conventions."""

from vennforest_experiments.plots.critical_difference import CriticalDifferenceDisplay

__all__ = ["CriticalDifferenceDisplay"]
