"""Calibrated class probabilities with valid bounds, from any scikit-learn classifier."""

from vennforest._version import __version__
from vennforest.calibrators import (
    BetaCalibration,
    BostromScaling,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    Venn,
    VennAbers,
)
from vennforest.classifier import CalibratedClassifier
from vennforest.multiprobability import Multiprobability
from vennforest.persistence.model_file import load, save
from vennforest.transductive.classifier import TransductiveClassifier

__all__ = [
    "BetaCalibration",
    "BostromScaling",
    "CalibratedClassifier",
    "IsotonicCalibration",
    "Multiprobability",
    "PlattScaling",
    "TemperatureScaling",
    "TransductiveClassifier",
    "Venn",
    "VennAbers",
    "__version__",
    "load",
    "save",
]
