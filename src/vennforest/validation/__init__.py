"""Validation of the probabilities of any model by grade, by segment, or at other sites."""

from vennforest.validation.grades import Stability, grades, population_stability
from vennforest.validation.segments import segments
from vennforest.validation.sites import internal_external
from vennforest.validation.update import Update, update

__all__ = [
    "Stability",
    "Update",
    "grades",
    "internal_external",
    "population_stability",
    "segments",
    "update",
]
