"""Validation of probabilities that anybody's model made: by rating grade, and by segment."""

from vennforest.validation.grades import Stability, grades, population_stability
from vennforest.validation.segments import segments

__all__ = ["Stability", "grades", "population_stability", "segments"]
