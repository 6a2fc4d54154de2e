"""Calibrated class probabilities with lower and upper bounds, from any scikit-learn classifier.

Names are imported at their first use, so that the command line starts fast.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from vennforest._program import __version__

if TYPE_CHECKING:
    from vennforest.auditing import Finding, audit
    from vennforest.calibrators import (
        BetaCalibration,
        BostromScaling,
        IsotonicCalibration,
        PlattScaling,
        PooledCalibration,
        SplineCalibration,
        TemperatureScaling,
        VectorScaling,
        Venn,
        VennAbers,
    )
    from vennforest.classifier import CalibratedClassifier
    from vennforest.counts import ScoreCounts
    from vennforest.explanation import explain
    from vennforest.forest import MixedForestClassifier
    from vennforest.monitoring import Monitor
    from vennforest.multiprobability import Multiprobability
    from vennforest.performance import estimate_performance
    from vennforest.persistence.model_file import load, save
    from vennforest.validation.update import Update, update

__all__ = [
    "BetaCalibration",
    "BostromScaling",
    "CalibratedClassifier",
    "Finding",
    "IsotonicCalibration",
    "MixedForestClassifier",
    "Monitor",
    "Multiprobability",
    "PlattScaling",
    "PooledCalibration",
    "ScoreCounts",
    "SplineCalibration",
    "TemperatureScaling",
    "Update",
    "VectorScaling",
    "Venn",
    "VennAbers",
    "__version__",
    "audit",
    "estimate_performance",
    "explain",
    "load",
    "save",
    "update",
]

_MODULES = {
    "CalibratedClassifier": "classifier",
    "Finding": "auditing",
    "MixedForestClassifier": "forest",
    "Monitor": "monitoring",
    "Multiprobability": "multiprobability",
    "ScoreCounts": "counts",
    "Update": "validation",
    "audit": "auditing",
    "estimate_performance": "performance",
    "explain": "explanation",
    "load": "persistence",
    "save": "persistence",
    "update": "validation",
}
"""The modules of the names that are not calibrators."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = import_module(f"vennforest.{_MODULES.get(name, 'calibrators')}")
        value = globals()[name] = getattr(module, name)
        return value
    module_name = f"vennforest.{name}"
    if not name.startswith("_") and find_spec(module_name):  # such as vennforest.metrics
        return import_module(module_name)
    raise AttributeError(f"module 'vennforest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
