"""Calibrators: from scores and labels to probabilities of the classes."""

from sklearn.base import clone

from vennforest._validation import check_option
from vennforest.calibrators.base import Calibrator, Uncalibrated
from vennforest.calibrators.bostrom import BostromScaling
from vennforest.calibrators.bounded import BoundedCalibrator
from vennforest.calibrators.isotonic import IsotonicCalibration
from vennforest.calibrators.pool import PooledCalibration
from vennforest.calibrators.sigmoid import BetaCalibration, PlattScaling
from vennforest.calibrators.softmax import TemperatureScaling, VectorScaling
from vennforest.calibrators.spline import SplineCalibration
from vennforest.calibrators.venn import Venn
from vennforest.calibrators.venn_abers import VennAbers

__all__ = [
    "METHODS",
    "BetaCalibration",
    "BostromScaling",
    "BoundedCalibrator",
    "Calibrator",
    "IsotonicCalibration",
    "PlattScaling",
    "PooledCalibration",
    "SplineCalibration",
    "TemperatureScaling",
    "Uncalibrated",
    "VectorScaling",
    "Venn",
    "VennAbers",
    "make_calibrator",
]

METHODS: dict[str, type[Calibrator]] = {
    "none": Uncalibrated,
    "platt": PlattScaling,
    "isotonic": IsotonicCalibration,
    "beta": BetaCalibration,
    "temperature": TemperatureScaling,
    "bostrom": BostromScaling,
    "vector": VectorScaling,
    "spline": SplineCalibration,
    "venn": Venn,
    "venn-abers": VennAbers,
}
"""The calibrators by name, in the order in which reports list them."""


def make_calibrator(method: str | Calibrator) -> Calibrator:
    """Return an unfitted calibrator for a name, or a clone of an instance."""
    if isinstance(method, Calibrator):
        calibrator: Calibrator = clone(method)
        return calibrator
    check_option(method, METHODS, "method", " or a calibrator instance")
    return METHODS[method]()
