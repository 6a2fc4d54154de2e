"""Calibrated class probabilities with lower and upper bounds, from any scikit-learn classifier.

What stands here is imported when it is first asked for, so ``import vennforest`` takes no
time, nor does the help of the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vennforest._program import __version__

if TYPE_CHECKING:
    from vennforest.auditing import Finding, audit
    from vennforest.calibrators import (
        BetaCalibration,
        BostromScaling,
        IsotonicCalibration,
        MatrixScaling,
        PlattScaling,
        PooledCalibration,
        SplineCalibration,
        TemperatureScaling,
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

__all__ = [
    "BetaCalibration",
    "BostromScaling",
    "CalibratedClassifier",
    "Finding",
    "IsotonicCalibration",
    "MatrixScaling",
    "MixedForestClassifier",
    "Monitor",
    "Multiprobability",
    "PlattScaling",
    "PooledCalibration",
    "ScoreCounts",
    "SplineCalibration",
    "TemperatureScaling",
    "Venn",
    "VennAbers",
    "__version__",
    "audit",
    "estimate_performance",
    "explain",
    "load",
    "save",
]

_ELSEWHERE = {
    "CalibratedClassifier": "classifier",
    "Finding": "auditing",
    "MixedForestClassifier": "forest",
    "Monitor": "monitoring",
    "Multiprobability": "multiprobability",
    "ScoreCounts": "counts",
    "audit": "auditing",
    "estimate_performance": "performance",
    "explain": "explanation",
    "load": "persistence",
    "save": "persistence",
}
"""Where the names that are not calibrators come from."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = import_module(f"vennforest.{_ELSEWHERE.get(name, 'calibrators')}")
        value = globals()[name] = getattr(module, name)
        return value
    if not name.startswith("_"):  # a module, as vennforest.metrics
        whole = f"vennforest.{name}"
        try:
            return import_module(whole)
        except ModuleNotFoundError as missing:
            if missing.name != whole:
                raise
    raise AttributeError(f"module 'vennforest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
