"""From scores and labels to probabilities: what turns the one into the other."""

from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.beta import BetaCalibration
from vennforest.calibrators.bostrom import BostromScaling
from vennforest.calibrators.bounded import BoundedCalibrator
from vennforest.calibrators.isotonic import IsotonicCalibration
from vennforest.calibrators.matrix import MatrixScaling
from vennforest.calibrators.methods import METHODS, Method
from vennforest.calibrators.platt import PlattScaling
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.calibrators.quadratic import QuadraticScaling
from vennforest.calibrators.spline import SplineCalibration
from vennforest.calibrators.temperature import TemperatureScaling
from vennforest.calibrators.uncalibrated import Uncalibrated
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
]
