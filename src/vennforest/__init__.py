"""Calibrated class probabilities with valid bounds, from any scikit-learn classifier."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from vennforest._version import __version__

if TYPE_CHECKING:
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

_ELSEWHERE = {
    "CalibratedClassifier": "vennforest.classifier",
    "Multiprobability": "vennforest.multiprobability",
    "ScoreCounts": "vennforest.counts",
    "ScoreGrid": "vennforest.counts",
    "TransductiveClassifier": "vennforest.transductive.classifier",
    "cross_val_multiprobability": "vennforest.cross_validation",
    "load": "vennforest.persistence.model_file",
    "save": "vennforest.persistence.model_file",
}
"""Where what is no calibrator comes from."""


def __getattr__(name: str) -> object:
    """Import a name when it is first used.

    What takes a second to import is so imported under the eyes of whoever uses it: the command
    line says in a sentence that it was stopped, from the first moment on.
    """
    found: object
    if name in __all__:
        found = getattr(import_module(_ELSEWHERE.get(name, "vennforest.calibrators")), name)
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        found = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
