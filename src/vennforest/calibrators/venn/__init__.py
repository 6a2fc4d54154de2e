"""Venn prediction: the label counts of the category that a new object falls in."""

from vennforest.calibrators.venn.calibrator import Venn

__all__ = ["Venn"]
