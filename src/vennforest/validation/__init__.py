"""Validation of the probabilities of any model by grade, by segment, or at another site."""

from vennforest.validation.grades import Stability, grades, population_stability
from vennforest.validation.segments import segments
from vennforest.validation.update import Update, update

__all__ = ["Stability", "Update", "grades", "population_stability", "segments", "update"]
