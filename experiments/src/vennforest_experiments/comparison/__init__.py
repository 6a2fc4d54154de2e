"""Methods compared over data sets: mean ranks, and tests of their differences."""

from vennforest_experiments.comparison.exhaustive import bergmann_hommel
from vennforest_experiments.comparison.ranks import Comparison, compare

__all__ = ["Comparison", "bergmann_hommel", "compare"]
