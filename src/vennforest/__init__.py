"""Calibrated class probabilities with valid bounds, from any scikit-learn classifier."""

from typing import Any

from vennforest._version import __version__
from vennforest.calibrators import (
    BetaCalibration,
    BostromScaling,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PooledCalibration,
    QuadraticScaling,
    SplineCalibration,
    TemperatureScaling,
    Venn,
    VennAbers,
)
from vennforest.classifier import CalibratedClassifier
from vennforest.counts import ScoreCounts, ScoreGrid
from vennforest.cross_validation import cross_val_multiprobability
from vennforest.multiprobability import Multiprobability
from vennforest.persistence.model_file import load, save
from vennforest.transductive.classifier import TransductiveClassifier

__all__ = [
    "BetaCalibration",
    "BostromScaling",
    "CalibratedClassifier",
    "IsotonicCalibration",
    "MatrixScaling",
    "Multiprobability",
    "PlattScaling",
    "PooledCalibration",
    "QuadraticScaling",
    "ScoreCounts",
    "ScoreGrid",
    "SplineCalibration",
    "TemperatureScaling",
    "TransductiveClassifier",
    "Venn",
    "VennAbers",
    "__version__",
    "cross_val_multiprobability",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    """Import the report when it is asked for."""
    if name == "report":
        from importlib import import_module

        return import_module("vennforest.report")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
