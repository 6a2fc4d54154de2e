"""A source of calibration scores joined with a calibrator, as a scikit-learn classifier."""

from vennforest.classifier.classifier import CalibratedClassifier
from vennforest.classifier.multilabel import LabelBounds

__all__ = ["CalibratedClassifier", "LabelBounds"]
