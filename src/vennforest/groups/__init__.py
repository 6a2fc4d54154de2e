"""Calibration within groups of objects: who belongs to which, and what each is calibrated on."""

from vennforest.groups.labels import Grouping, Groups

__all__ = ["Grouping", "Groups"]
