"""From scores and labels to probabilities: what turns the one into the other."""

from vennforest.calibrators.core.bounded import BoundedCalibrator
from vennforest.calibrators.core.interface import Calibrator
from vennforest.calibrators.maps.beta import BetaCalibration
from vennforest.calibrators.maps.bostrom import BostromScaling
from vennforest.calibrators.maps.isotonic import IsotonicCalibration
from vennforest.calibrators.maps.matrix import MatrixScaling
from vennforest.calibrators.maps.platt import PlattScaling
from vennforest.calibrators.maps.spline import QuadraticScaling, SplineCalibration
from vennforest.calibrators.maps.temperature import TemperatureScaling
from vennforest.calibrators.maps.uncalibrated import Uncalibrated
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.calibrators.registry import METHODS, Method, register_calibrator
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
