"""A source of calibration scores joined with a calibrator, as a scikit-learn classifier."""

from vennforest.classifier.classifier import CalibratedClassifier

__all__ = ["CalibratedClassifier"]
