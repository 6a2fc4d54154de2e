"""Streams that change at a known time, for two models trained before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

RATE = 0.10
D = 5


@dataclass(frozen=True)
class Process:
    """Normal features, labels by their log-odds, and a model fitted to 3,000 of them."""

    name: str
    forest: bool

    def odds(self, X: NDArray[Any], angle: float = 0.0) -> NDArray[Any]:
        """Log-odds without the intercept; the boundary turned by an angle."""
        w = np.array([-0.4, -0.67, -0.13, 0.21, 0.57])
        w /= np.linalg.norm(w)
        other = np.eye(D)[0] - w[0] * w
        other /= np.linalg.norm(other)
        line = X @ (np.cos(angle) * w + np.sin(angle) * other)
        if not self.forest:
            return 2.0 * line
        return 2.0 * line + 1.5 * X[:, 2] * X[:, 3] + np.sin(3 * X[:, 4])

    @cache  # noqa: B019
    def intercept(self, rate: float = RATE) -> float:
        z = self.odds(np.random.default_rng(0).normal(size=(100_000, D)))
        return float(brentq(lambda b: expit(b + z).mean() - rate, -15, 15))

    @cache  # noqa: B019
    def model(self) -> Any:
        rng = np.random.default_rng(1)
        X, y = self.draw(rng, 3000)
        if self.forest:
            return RandomForestClassifier(100, min_samples_leaf=5, random_state=0).fit(X, y)
        return LogisticRegression().fit(X, y)

    def scores(self, X: NDArray[Any]) -> NDArray[Any]:
        p: NDArray[Any] = self.model().predict_proba(X)[:, 1]
        return p

    def draw(
        self, rng: np.random.Generator, n: int, *, angle: float = 0.0, intercept: float = 0.0
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        X = rng.normal(size=(n, D))
        chance = expit(self.intercept() + intercept + self.odds(X, angle))
        return X, rng.random(n) < chance


PROCESSES = {"linear": Process("linear", False), "forest": Process("forest", True)}


def drawn(
    process: Process, drift: str, rng: np.random.Generator, n: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """n rows as the model sees them after a change, and their labels."""
    if drift == "none":
        return process.draw(rng, n)
    if drift == "base rate":  # .10 -> .15, objects of each class as before
        X, y = process.draw(rng, 3 * n + 1000)
        kept = y | (rng.random(len(y)) < (0.10 / 0.90) * (0.85 / 0.15))
        return X[kept][:n], y[kept][:n]
    if drift == "more frequent":  # each object's log-odds are higher by 1
        return process.draw(rng, n, intercept=1.0)
    if drift == "rotated":
        return process.draw(rng, n, angle=np.pi / 4)
    if drift == "lost column":
        X, y = process.draw(rng, n)
        X[:, 1] = 0.0
        return X, y
    if drift == "noise":  # a fifth of the labels is drawn anew
        X, y = process.draw(rng, n)
        anew = rng.random(n) < 0.2
        return X, np.where(anew, rng.random(n) < RATE, y)
    raise ValueError(drift)


def stream(
    process: Process, drift: str, seed: int, n_before: int, n_after: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows and labels: n_before as in training, then n_after after the change."""
    rng = np.random.default_rng(seed)
    X, y = process.draw(rng, n_before)
    Z, z = drawn(process, drift, rng, n_after)
    return np.concatenate([X, Z]), np.concatenate([y, z])
