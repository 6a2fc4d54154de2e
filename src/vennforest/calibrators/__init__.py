"""From scores and labels to probabilities: what turns the one into the other."""

from collections.abc import Callable
from typing import Literal

from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.beta import BetaCalibration
from vennforest.calibrators.bostrom import BostromScaling
from vennforest.calibrators.isotonic import IsotonicCalibration
from vennforest.calibrators.platt import PlattScaling
from vennforest.calibrators.temperature import TemperatureScaling
from vennforest.calibrators.uncalibrated import Uncalibrated
from vennforest.calibrators.venn.calibrator import Venn
from vennforest.calibrators.venn_abers.calibrator import VennAbers

Method = Literal[
    "venn-abers", "venn", "platt", "isotonic", "bostrom", "beta", "temperature", "none"
]
"""The calibrators by name."""

METHODS: dict[Method, Callable[[], Calibrator]] = {
    "venn-abers": VennAbers,
    "venn": Venn,
    "platt": PlattScaling,
    "isotonic": IsotonicCalibration,
    "bostrom": BostromScaling,
    "beta": BetaCalibration,
    "temperature": TemperatureScaling,
    "none": Uncalibrated,
}
"""What each name stands for."""

__all__ = [
    "METHODS",
    "BetaCalibration",
    "BostromScaling",
    "Calibrator",
    "IsotonicCalibration",
    "Method",
    "PlattScaling",
    "TemperatureScaling",
    "Uncalibrated",
    "Venn",
    "VennAbers",
]
