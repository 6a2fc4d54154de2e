"""Fits that are cheap, for tests of what is done with them."""

from contextlib import contextmanager
from importlib import import_module

import pytest

FEWER = {
    "vennforest.calibrators.pool": {"N_POOL_FOLDS": 2, "SHRINKAGES": (0.003, 0.03)},
    "vennforest.calibrators.spline": {"ROUGHNESS": (30.0, 1.0)},
    "vennforest.classifier.prediction": {"N_PARTS": 2},
    "vennforest.validation.update": {"N_UPDATE_FOLDS": 3},
}


@contextmanager
def quick_fits():
    """Choose among fewer maps on fewer folds, and draw less: models are right, but coarse."""
    with pytest.MonkeyPatch.context() as patch:
        for module, values in FEWER.items():
            for name, value in values.items():
                patch.setattr(import_module(module), name, value)
        yield
