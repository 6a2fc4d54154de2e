"""Many methods over many data sets: mean ranks, Friedman's test, and what differs from what."""

from vennforest_experiments.comparison.exhaustive import bergmann_hommel
from vennforest_experiments.comparison.ranks import Comparison, compare, compare_mean_ranks

__all__ = ["Comparison", "bergmann_hommel", "compare", "compare_mean_ranks"]
