"""Data whose probabilities are known: two normal distributions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from vennforest._validation import FloatArray, IntArray

PROBLEMS: Mapping[str, tuple[int, float]] = MappingProxyType(
    {f"normal-{d}D-{distance:g}": (d, distance) for d in (2, 5, 10, 20) for distance in (1.0, 2.5)}
)
"""For each problem the number of features, and the distance of the means in standard deviations."""


def draw(problem: str, n: int, seed: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Draw a problem's objects (n, d), their labels, and the probabilities of label 1.

    Both labels are equally likely. Features are independent; each label's have variances between 1
    and 2, drawn once for the problem, and means that lie ``distance`` apart over all features, as
    measured by the mean of both variances.
    """
    d, distance = PROBLEMS[problem]
    rng = np.random.default_rng(seed)
    variance = rng.uniform(1, 2, size=(2, d))
    apart = distance * np.sqrt(variance.mean(axis=0) / d)
    mean = np.array([np.zeros(d), apart])
    y = rng.integers(2, size=n)
    X = mean[y] + rng.normal(size=(n, d)) * np.sqrt(variance[y])
    off = (X[:, None, :] - mean) ** 2 / variance
    log_density = -0.5 * (off + np.log(variance)).sum(axis=2)
    return X, y, 1 / (1 + np.exp(log_density[:, 0] - log_density[:, 1]))
