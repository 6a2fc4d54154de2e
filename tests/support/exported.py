"""Fitted calibrators of two classes of every kind, with scores to ask them about."""

import numpy as np
from sklearn.base import clone

from support.cases import CALIBRATORS
from vennforest import PlattScaling, VennAbers
from vennforest.calibrators import METHODS, Uncalibrated


def draw(seed=71, n=300, levels=40):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels + 1, n) / levels
    return scores, (rng.random(n) < scores).astype(int)


def of_probabilities():
    """Yield calibrators fitted to probabilities."""
    scores, y = draw()
    others = [Uncalibrated(), PlattScaling("hard", on="probability"), VennAbers("brier")]
    for calibrator in (*CALIBRATORS, *others, VennAbers("midpoint")):
        yield clone(calibrator).fit(scores, y)
    yield VennAbers().fit(scores, y, sample_weight=scores + 0.3)
    yield VennAbers("log").fit([0.5], [1], classes=[0, 1])


def of_logits():
    """Yield calibrators fitted to decision values."""
    p, y = draw(72)
    scores = 3 * np.log((p + 0.01) / (1.01 - p))
    for name, method in METHODS.items():
        if name not in ("none", "beta", "bostrom"):
            calibrator = method().fit(scores, y)
            calibrator.score_range_ = None  # it is asked far outside
            yield calibrator
