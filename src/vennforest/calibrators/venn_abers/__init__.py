"""Venn–Abers prediction: two isotonic fits, one for each label the new object might have."""

from vennforest.calibrators.venn_abers.calibrator import VennAbers

__all__ = ["VennAbers"]
