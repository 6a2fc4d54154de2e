"""Theorem 1, Corollary 1 and Proposition 2 of Vovk & Petej (2014) by simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.naive_bayes import GaussianNB

from vennforest import CalibratedClassifier
from vennforest._validation import FloatArray, IntArray
from vennforest_experiments.papers.protocol.reproduction import Conclusion
from vennforest_experiments.transductive import isotonic_value

LIMIT = 4.0
"""Number of standard errors beyond which a mean counts as different."""

Draw = Callable[[np.random.Generator, int], tuple[FloatArray, IntArray]]


class Memoriser(ClassifierMixin, BaseEstimator):
    """A scorer as in Proposition 2, which memorises training objects' labels.

    A training object's score is its label, any other object's score is 1.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Memorise objects, X of shape (n, 1), and their labels 0 and 1."""
        self.classes_ = np.arange(2)
        self.known_ = dict(zip(np.asarray(X)[:, 0].tolist(), np.asarray(y).tolist(), strict=True))
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the scores, shape (n, 2)."""
        p = np.array([self.known_.get(x, 1) for x in np.asarray(X)[:, 0].tolist()], np.float64)
        return np.column_stack([1 - p, p])


class Outcome(NamedTuple):
    """Labels, p0 and p1 of one new object per repetition, each of shape (r,)."""

    y: FloatArray
    p0: FloatArray
    p1: FloatArray


def draw_halves(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Draw n objects on the real line: label 1 has probability 2/3 above 0 and 1/3 below."""
    x = rng.normal(size=n)
    return x[:, None], (rng.random(n) < np.where(x > 0, 2 / 3, 1 / 3)).astype(np.intp)


def draw_bag(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Draw n objects in the plane, at least two of each label, so that any n - 1 have both."""
    while True:
        x = rng.normal(size=(n, 2))
        y = (x[:, 0] + 1.5 * rng.normal(size=n) > 0.4).astype(np.intp)
        if 2 <= y.sum() <= n - 2:
            return x, y


def transductive(scorer: Any, draw: Draw, n: int, repetitions: int, seed: int) -> Outcome:
    """Run Algorithm 1 repeatedly on n training objects and one new object.

    Unlike the bounds of ``TransductiveClassifier``, p0 and p1 are not sorted: each belongs to its
    tentative label.
    """
    rng, found = np.random.default_rng(seed), []
    for _ in range(repetitions):
        X, y = draw(rng, n + 1)
        p = []
        for v in (0, 1):
            labels = np.append(y[:-1], v)
            scores = clone(scorer).fit(X, labels).predict_proba(X)[:, 1]
            p.append(isotonic_value(scores, labels.astype(np.float64), np.ones(n + 1), n))
        found.append((y[-1], *p))
    return _outcome(found)


def simplified(scorer: Any, draw: Draw, n: int, repetitions: int, seed: int) -> Outcome:
    """Run Algorithm 2 repeatedly on n training objects and one new object."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(repetitions):
        X, y = draw(rng, n + 1)
        while len(np.unique(y[:-1])) < 2:
            X, y = draw(rng, n + 1)
        model = CalibratedClassifier(clone(scorer), calibrate_on="training", merge="log")
        model.fit(X[:-1], y[:-1])
        bounds = model.predict_multiprobability(X[-1:])
        found.append((y[-1], bounds.p0[0], bounds.p1[0]))
    return _outcome(found)


def _outcome(found: list[tuple[Any, ...]]) -> Outcome:
    y, p0, p1 = (np.array(column, np.float64) for column in zip(*found, strict=True))
    return Outcome(y, p0, p1)


def z_value(differences: FloatArray) -> float:
    """Return the mean of independent differences, shape (r,), in standard errors."""
    spread = float(differences.std(ddof=1))
    mean = float(differences.mean())
    if spread == 0:
        return 0.0 if mean == 0 else float(np.copysign(np.inf, mean))
    return float(mean / (spread / len(differences) ** 0.5))


def miscalibration(y: FloatArray, p: FloatArray) -> float:
    """Return the largest |z| of E[(Y - P) g(P)] over several functions g.

    All of these expectations are 0 if P is perfectly calibrated for Y (eq. 1).
    """
    functions = (
        np.ones_like(p),
        p,
        p**2,
        (p < 0.25).astype(np.float64),
        ((p >= 0.25) & (p < 0.5)).astype(np.float64),
        ((p >= 0.5) & (p < 0.75)).astype(np.float64),
        (p >= 0.75).astype(np.float64),
    )
    off = np.asarray(y - p, np.float64)
    return max(abs(z_value(off * g)) for g in functions)


def simulated(repetitions: int, seed: int) -> Iterable[Conclusion]:
    """Yield the theorems, and whether the simulations agree with them."""
    one = transductive(GaussianNB(), draw_bag, 14, repetitions, seed)
    chosen = np.where(one.y == 1, one.p1, one.p0)
    wrong = np.where(one.y == 1, one.p0, one.p1)
    right, false = miscalibration(one.y, chosen), miscalibration(one.y, wrong)
    yield Conclusion(
        "Theorem 1: of p0 and p1, the one for the true label is perfectly calibrated.",
        right < LIMIT,
        f"{repetitions} repetitions of VA over Gaussian naïve Bayes, 14 training objects each: the "
        f"largest deviation of E[(Y − P) g(P)] from 0 over seven functions g is {right:.1f} "
        f"standard errors; for the other of the two it is {false:.1f}.",
    )
    yield _corollary(
        "Corollary 1: on average the interval of VA contains the frequency of label 1.", one, True
    )
    yield _corollary(
        "Proposition 2: an SVA predictor can violate this. The scorer used here returns a training "
        "object's label, and 1 for any other object.",
        simplified(Memoriser(), draw_halves, 30, repetitions, seed + 1),
        False,
    )
    yield _corollary(
        "With the same scorer VA, trained with the new object, does not violate it.",
        transductive(Memoriser(), draw_halves, 30, repetitions, seed + 2),
        True,
    )


def _corollary(claim: str, outcome: Outcome, expected: bool) -> Conclusion:
    low = np.minimum(outcome.p0, outcome.p1)
    high = np.maximum(outcome.p0, outcome.p1)
    below, above = z_value(outcome.y - low), z_value(high - outcome.y)
    kept = below > -LIMIT and above > -LIMIT
    return Conclusion(
        claim,
        kept == expected,
        f"Over {len(outcome.y)} repetitions: mean lower bound {low.mean():.3f}, frequency of label "
        f"1 {outcome.y.mean():.3f}, mean upper bound {high.mean():.3f}.",
    )
