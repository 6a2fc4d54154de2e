"""Validation of the probabilities of any model by grade, segment or site, and over time."""

from vennforest.validation.comparison import compare
from vennforest.validation.grades import Stability, grades, population_stability
from vennforest.validation.segments import segments
from vennforest.validation.sites import internal_external
from vennforest.validation.update import Update, update

__all__ = [
    "Stability",
    "Update",
    "compare",
    "grades",
    "internal_external",
    "population_stability",
    "segments",
    "update",
]
