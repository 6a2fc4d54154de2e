"""Run our calibrators in CalArena, the benchmark of calibration maps by Berta et al. (2026).

In a copy of that benchmark, with this repository on ``PYTHONPATH``, replace
``custom_calibrators.py`` by the line

    from experiments.studies.calarena import CUSTOM_CALIBRATORS

and run, for each name below, ``python run_benchmark.py --benchmark tabrepo-binary --calibrator
vennforest``. The benchmark asks for ``fit(p, y)`` and ``predict_proba(p)``, where ``p`` holds the
probabilities of the second class, (n,) or (n, 1), or of every class, (n, k), in single or double
precision, and ``y`` numbers the classes from 0; the answer is (n, k).
"""

from __future__ import annotations

import numpy as np

from vennforest import VennAbers
from vennforest.calibrators import METHODS, PooledCalibration
from vennforest.calibrators.core.interface import make_calibrator


class ForCalArena:
    """A calibrator in that benchmark's form."""

    def __init__(self, calibrator):
        self.calibrator = calibrator

    def fit(self, p, y):
        """Calibrate; a class of which there is no example keeps its column."""
        p = columns(p)
        self.k_ = p.shape[1]
        scores = p[:, 1] if self.k_ == 2 else p
        self.calibrator.fit(scores, np.asarray(y).ravel(), classes=np.arange(self.k_))
        return self

    def predict_proba(self, p):
        """Return probabilities of every class."""
        p = columns(p)
        return self.calibrator.predict_proba(p[:, 1] if self.k_ == 2 else p)


def columns(p):
    """Return probabilities with a column per class, in double precision."""
    p = np.asarray(p, dtype=np.float64)
    if p.ndim == 1:
        p = p[:, None]
    return np.hstack([1 - p, p]) if p.shape[1] == 1 else p


def factories():
    """Return ``{name: function that makes a calibrator}``: the default first, then each method."""
    made = {
        "vennforest": lambda: ForCalArena(PooledCalibration(on="probabilities")),
        "vennforest-venn-abers-midpoint": lambda: ForCalArena(VennAbers(merge="midpoint")),
    }
    for method in METHODS:
        if method not in ("none", "pooled"):
            made[f"vennforest-{method}"] = lambda method=method: ForCalArena(
                make_calibrator(method)
            )
    return made


CUSTOM_CALIBRATORS = factories()
