"""Fitted calibrators of two classes of every kind, with scores to ask them about."""

import numpy as np

from vennforest import VennAbers
from vennforest.calibrators import (
    METHODS,
    IsotonicCalibration,
    PlattScaling,
    PooledCalibration,
    Venn,
)


def draw(seed=71, n=300, levels=40):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels + 1, n) / levels
    return scores, (rng.random(n) < scores).astype(int)


def of_probabilities():
    """Yield calibrators fitted to probabilities, tables first."""
    scores, y = draw()
    yield from tables()
    for method in METHODS.values():
        yield method().fit(scores, y)
    yield VennAbers().fit(scores, y, sample_weight=scores + 0.3)
    yield IsotonicCalibration("linear").fit(scores, y)
    yield PlattScaling("hard", on="logit").fit(scores, y)
    yield PooledCalibration().fit(scores, y)
    yield Venn("bins").fit(scores, y)


def of_logits():
    """Yield calibrators fitted to decision values."""
    p, y = draw(72)
    scores = 3 * np.log((p + 0.01) / (1.01 - p))
    for name, method in METHODS.items():
        if name not in ("none", "beta", "bostrom"):
            calibrator = method().fit(scores, y)
            calibrator.score_range_ = None  # it is asked far outside
            yield calibrator


def tables():
    """Yield calibrators that are constant on intervals."""
    scores, y = draw()
    for merge in ("log", "brier", "midpoint"):
        yield VennAbers(merge).fit(scores, y, classes=[0, 1])
    yield VennAbers("log").fit(scores, y, sample_weight=scores + 0.3)
    yield VennAbers("log").fit([0.5], [1], classes=[0, 1])
    yield IsotonicCalibration().fit(scores, y)
    yield IsotonicCalibration("nearest").fit(scores, y)
    for taxonomy in ("label", "bins"):
        yield Venn(taxonomy).fit(scores, y)
