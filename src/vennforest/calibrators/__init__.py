"""From scores and labels to probabilities: what turns the one into the other."""

from vennforest.calibrators.core.interface import (
    METHODS,
    BoundedCalibrator,
    Calibrator,
    Method,
    register_calibrator,
)
from vennforest.calibrators.maps.bostrom import BostromScaling
from vennforest.calibrators.maps.isotonic import IsotonicCalibration
from vennforest.calibrators.maps.log_odds import (
    BetaCalibration,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
)
from vennforest.calibrators.maps.softmax import MatrixScaling, TemperatureScaling
from vennforest.calibrators.maps.uncalibrated import Uncalibrated
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.calibrators.venn import Venn
from vennforest.calibrators.venn_abers import VennAbers

__all__ = [
    "METHODS",
    "BetaCalibration",
    "BostromScaling",
    "BoundedCalibrator",
    "Calibrator",
    "IsotonicCalibration",
    "MatrixScaling",
    "Method",
    "PlattScaling",
    "PooledCalibration",
    "QuadraticScaling",
    "SplineCalibration",
    "TemperatureScaling",
    "Uncalibrated",
    "Venn",
    "VennAbers",
    "register_calibrator",
]

register_calibrator("none", "Uncalibrated", Uncalibrated)
register_calibrator("platt", "Platt scaling", PlattScaling, on="auto")
register_calibrator("isotonic", "Isotonic", IsotonicCalibration)
register_calibrator("beta", "Beta", BetaCalibration)
register_calibrator("temperature", "Temperature", TemperatureScaling)
register_calibrator("bostrom", "Boström", BostromScaling)
register_calibrator("matrix", "Matrix scaling", MatrixScaling)
register_calibrator("quadratic", "Quadratic", QuadraticScaling)
register_calibrator("spline", "Spline", SplineCalibration)
register_calibrator("pooled", "Pooled", PooledCalibration)
register_calibrator("venn", "Venn", Venn)
register_calibrator("venn-abers", "Venn–Abers", VennAbers)
