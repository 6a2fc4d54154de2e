"""Calibration within groups of objects: who belongs to which, and what each is calibrated on."""

from vennforest.groups.cells import (
    Cell,
    GroupedPart,
    SubModel,
    cells_part,
    grouped_part,
    sub_models,
)
from vennforest.groups.labels import Grouping, Groups

__all__ = [
    "Cell",
    "GroupedPart",
    "Grouping",
    "Groups",
    "SubModel",
    "cells_part",
    "grouped_part",
    "sub_models",
]
