"""Validation of probabilities that any model has made: by grade, by segment, at another site."""

from vennforest.validation.grades import Stability, grades, population_stability
from vennforest.validation.segments import segments
from vennforest.validation.update import Update, update

__all__ = ["Stability", "Update", "grades", "population_stability", "segments", "update"]
