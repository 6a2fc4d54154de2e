"""Where the simulated data comes from: processes whose true class probabilities are known."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Sample(NamedTuple):
    """Training data, and new objects with their true class probabilities.

    ``X`` (n, d), ``y`` (n,) integers, ``new`` (m, d), ``truth`` (m, k); ``groups`` (n,) where the
    rows have any.
    """

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    truth: np.ndarray
    groups: np.ndarray | None = None


class Process(NamedTuple):
    """A process: what it is in a few words, its number of classes, and its sampler.

    ``exchangeable`` is False where the rows given to ``fit`` and the new objects are not: no
    statement holds there, and the row shows what happens to those who do it.
    """

    says: str
    classes: int
    draw: Callable[[np.random.Generator, int, int], Sample]
    exchangeable: bool = True


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def label(rng, truth):
    """Draw a label a row from its class probabilities (n, k)."""
    return (rng.random(len(truth))[:, None] > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)


def independent(objects):
    """Return a sampler of independent examples; ``objects(rng, n)`` gives X and the truth."""

    def draw(rng, n, m):
        while True:  # no forest is grown on one class
            X, truth = objects(rng, n + m)
            truth = np.column_stack([1 - truth, truth]) if truth.ndim == 1 else truth
            y = label(rng, truth[:n])
            if len(np.unique(y)) == truth.shape[1]:
                return Sample(X[:n], y, X[n:], truth[n:])

    return draw


def normals(rng, n):
    X = rng.normal(size=(n, 5))
    return X, sigmoid(1.5 * X[:, 0] + X[:, 1])


def noise(rng, n):
    return rng.normal(size=(n, 5)), np.full(n, 0.5)


def flipped(rng, n):
    X = rng.normal(size=(n, 5))
    return X, np.where(X[:, 0] + X[:, 1] > 0, 0.8, 0.2)


def certain(rng, n):
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] + X[:, 1] > 0).astype(float)


def rare(rng, n):
    X = rng.normal(size=(n, 5))
    return X, sigmoid(1.5 * X[:, 0] + X[:, 1] - 5.2)  # 3 % positive


def levels_coin(rng, n):
    return rng.integers(60, size=(n, 1)).astype(float), np.full(n, 0.5)


def levels_signal(rng, n):
    x = rng.integers(60, size=(n, 1)).astype(float)
    return x, 0.5 + 0.4 * np.sin(x[:, 0] / 10)


def five_binary(rng, n):
    X = rng.integers(2, size=(n, 5)).astype(float)
    return X, sigmoid(2 * X[:, 0] + X[:, 1] - X[:, 2] - 1)


def constant(rng, n):
    return np.zeros((n, 1)), np.full(n, 0.5)


def three_classes(rng, n):
    X = rng.normal(size=(n, 5))
    weights = np.exp(np.column_stack([1.5 * X[:, 0], X[:, 1], -X[:, 0] - 0.5]))
    return X, weights / weights.sum(axis=1, keepdims=True)


def doubled(rng, n, m):
    """Every row is there twice, with its label."""
    half = independent(normals)(rng, n // 2, m)
    twice = rng.permutation(np.repeat(np.arange(n // 2), 2))
    return half._replace(X=half.X[twice], y=half.y[twice])


def unbalanced(rng, n):
    X = rng.normal(size=(n, 5))
    return X, sigmoid(1.5 * X[:, 0] + X[:, 1] - 3)  # 11 % positive


def oversampled(same_shares):
    """Return a sampler whose positive rows are repeated until the classes are equally many.

    ``same_shares``: new objects have the shares of the repeated data, so that only the repeats
    differ from independent examples; else those of the process itself.
    """

    def draw(rng, n, m):
        while True:
            X, truth = unbalanced(rng, 2 * n)
            y = (rng.random(2 * n) < truth).astype(int)
            rows = rng.permutation(2 * n)[: int(0.55 * n)]
            positive, negative = rows[y[rows] == 1], rows[y[rows] == 0]
            if len(positive) and len(negative):
                break
        extra = rng.choice(positive, max(0, len(negative) - len(positive)))
        kept = rng.permutation(np.concatenate([rows, extra]))
        new, eta = unbalanced(rng, m)
        if same_shares:
            share = UNBALANCED_SHARE
            # Objects as the repeated data has them, by rejection from more than needed.
            new, eta = unbalanced(rng, 40 * m)
            density = 0.5 * eta / share + 0.5 * (1 - eta) / (1 - share)
            taken = np.flatnonzero(rng.random(40 * m) < density / (0.5 / share + 0.5))[:m]
            new, eta = new[taken], eta[taken]
            odds = eta / (1 - eta) * (1 - share) / share
            eta = odds / (1 + odds)
        return Sample(X[kept], y[kept], new, np.column_stack([1 - eta, eta]))

    return draw


def near_copies(rng, n, m):
    """Groups of ten near-copies with one label, of noise; new objects are of new groups."""
    groups = n // 10
    while True:
        y = rng.integers(2, size=groups)
        if len(np.unique(y)) == 2:
            break
    centres = rng.normal(size=(groups, 5))
    X = np.repeat(centres, 10, axis=0) + 0.01 * rng.normal(size=(10 * groups, 5))
    new, truth = rng.normal(size=(m, 5)), np.full((m, 2), 0.5)
    return Sample(X, np.repeat(y, 10), new, truth, np.repeat(np.arange(groups), 10))


def _share_of_positives():
    """Return the share of positives of `unbalanced`, whose log-odds are normal."""
    z = np.linspace(-10, 10, 20_001)
    weight = np.exp(-(z**2) / 2)
    return float((weight * sigmoid(np.sqrt(1.5**2 + 1) * z - 3)).sum() / weight.sum())


UNBALANCED_SHARE = _share_of_positives()

PROCESSES = {
    "normals": Process("five normal features, signal", 2, independent(normals)),
    "noise": Process("five normal features, coin labels", 2, independent(noise)),
    "flipped": Process("five normal features, labels certain but 20 % flipped", 2,
                       independent(flipped)),
    "certain": Process("five normal features, labels certain", 2, independent(certain)),
    "rare": Process("five normal features, 3 % positive", 2, independent(rare)),
    "levels-coin": Process("one integer of 60 levels, coin labels", 2, independent(levels_coin)),
    "levels": Process("one integer of 60 levels, signal", 2, independent(levels_signal)),
    "binary": Process("five binary features, signal", 2, independent(five_binary)),
    "constant": Process("one constant feature, coin labels", 2, independent(constant)),
    "three": Process("five normal features, three classes", 3, independent(three_classes)),
    "doubled": Process("every row twice", 2, doubled, False),
    "oversampled": Process("positives repeated to one half, new objects alike", 2,
                           oversampled(True), False),
    "oversampled-shift": Process("positives repeated to one half, new objects as they come", 2,
                                 oversampled(False), False),
    "near-copies": Process("groups of ten near-copies, coin labels; new groups", 2, near_copies,
                           False),
}  # fmt: skip
