"""Calibrated class probabilities with valid bounds, from any scikit-learn classifier."""

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
from vennforest.persistence import load, save
from vennforest.transductive import TransductiveClassifier

__version__ = "0.1.0"

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
    "load",
    "save",
]
