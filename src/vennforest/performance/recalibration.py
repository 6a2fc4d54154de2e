"""How far calibrated probabilities may be off, by the examples they were calibrated on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import log_softmax

from vennforest._validation import FloatArray, IntArray

STEPS = 50
"""Newton's steps at most."""

LOOSE, TIGHT = 1.0, 10.0
"""Prior precision of an intercept and slopes, and of what bends the map, per unit of spread."""


@dataclass(frozen=True, eq=False)
class Features:
    """What a recalibration map sees of probabilities: their logarithms, bent, and a covariate."""

    least: float
    """What a probability counts as at least: half an example."""
    knots: FloatArray
    """Log-odds at which the map of two classes may bend."""
    middle: FloatArray
    spread: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, p: FloatArray, weight: FloatArray, extra: FloatArray | None) -> Self:
        """Return features that suit calibration examples with probabilities p (n, k)."""
        n = max(float(weight.sum()), 10.0)
        least = 0.5 / n
        knots = np.empty(0)
        if p.shape[1] == 2:
            z = _logs(p, least)[:, 1]
            levels = (0.05, 0.35, 0.65, 0.95) if n >= 100 else (0.1, 0.5, 0.9)
            knots = np.unique(np.quantile(z, levels))
        raw = cls(least, knots, np.zeros(1), np.ones(1), np.ones(1))
        f = raw(p, extra)[1]
        flat = f.reshape(-1, f.shape[-1])
        middle, spread = flat.mean(axis=0), flat.std(axis=0)
        middle[0], spread[0] = 0.0, 1.0
        spread[spread < 1e-9] = 1.0
        precision = np.full(len(middle), LOOSE)
        precision[2 : max(2, len(knots))] = TIGHT
        return cls(least, knots, middle, spread, precision)

    def __call__(self, p: FloatArray, extra: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return log-probabilities (n, k) up to a constant a row, and features (n, c, r).

        c is the number of classes whose log-probability is corrected: the second of two, else all.
        """
        logs = _logs(p, self.least)
        free = logs[:, 1:] if logs.shape[1] == 2 else logs
        columns = [np.ones_like(free), free]
        if len(self.knots) > 2:
            columns += [free * 0 + one[:, None] for one in _bends(free[:, 0], self.knots)]
        if extra is not None:
            columns += [np.broadcast_to(one[:, None], free.shape) for one in extra.T]
        return logs, (np.stack(columns, axis=2) - self.middle) / self.spread


def _bends(z: FloatArray, knots: FloatArray) -> list[FloatArray]:
    """Return natural cubic splines beyond the straight line (Hastie et al. 2009, eq. 5.4)."""
    last, before = knots[-1], knots[-2]

    def piece(knot: float) -> FloatArray:
        cubes = np.maximum(z - knot, 0) ** 3 - np.maximum(z - last, 0) ** 3
        divided: FloatArray = cubes / (last - knot)
        return divided

    return [piece(knot) - piece(before) for knot in knots[:-2]]


def _logs(p: FloatArray, least: float) -> FloatArray:
    """Return log-probabilities (n, k), of two classes log-odds beside a column of zeros."""
    logs = np.log(np.clip(p, least, 1 - least))
    if p.shape[1] == 2:
        return np.column_stack([np.zeros(len(p)), logs[:, 1] - logs[:, 0]])
    return logs


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A small map from calibrated probabilities to those that its examples show, with its error.

    ``log q_j = log p_j + f_j · theta_j + const``: a logistic regression with the probabilities'
    own log-odds as the offset, so 0 is no change. Theta is the penalised maximum of the
    likelihood, and normal around it with the covariance ``H⁻¹ (G + Λ) H⁻¹``: G the sum of squared
    scores (White 1982), over groups where examples depend on each other, and Λ the precision of
    the prior, whose pull towards 0 counts as an error of that size.
    """

    features: Features
    theta: FloatArray
    root: FloatArray
    """A square root of the covariance."""

    @classmethod
    def fit(
        cls,
        p: FloatArray,
        codes: IntArray,
        *,
        repeats: FloatArray | None = None,
        importance: FloatArray | None = None,
        groups: IntArray | None = None,
        extra: FloatArray | None = None,
    ) -> Self:
        """Return the map of calibration examples with probabilities (n, k) and class numbers (n,).

        Each is there ``repeats`` times, and counts by its ``importance``: how much more frequent
        its kind is where the map is used. Those in a group (numbered from 0) depend on each other,
        and labels may also depend on ``extra`` (n, e).
        """
        n, k = p.shape
        repeats = np.ones(n) if repeats is None else repeats
        importance = np.ones(n) if importance is None else importance
        features = Features.of(p, repeats, extra)
        logs, f = features(p, extra)
        _, c, r = f.shape
        weight = repeats * importance
        own = (codes[:, None] == (np.arange(k)[-1:] if k == 2 else np.arange(k))).astype(float)
        prior = np.tile(features.scale, c)

        def at(theta: FloatArray) -> tuple[float, FloatArray]:
            logq = _moved(logs, f, theta)
            value = weight @ logq[np.arange(n), codes] - 0.5 * prior @ theta**2
            return float(value), np.exp(logq)[:, -c:]

        theta = np.zeros(c * r)
        value, q = at(theta)
        for _ in range(STEPS):
            slope = ((weight[:, None] * (own - q))[:, :, None] * f).sum(axis=0).ravel()
            slope -= prior * theta
            hessian = _hessian(f, q, weight) + np.diag(prior)
            step = np.linalg.solve(hessian, slope)
            length = 1.0
            while length > 1e-6:
                there, q_there = at(theta + length * step)
                if there >= value:
                    break
                length /= 2
            gained = there - value
            if gained > 0:
                theta, value, q = theta + length * step, there, q_there
            if gained <= 1e-9 * max(1.0, abs(value)):
                break
        hessian = _hessian(f, q, weight) + np.diag(prior)
        scores = ((own - q)[:, :, None] * f).reshape(n, -1)
        if groups is None:
            scores = scores * (np.sqrt(repeats) * importance)[:, None]
        else:
            summed = np.zeros((int(groups.max()) + 1, scores.shape[1]))
            np.add.at(summed, groups, scores * weight[:, None])
            scores = summed
        half = np.linalg.solve(hessian, np.column_stack([scores.T, np.diag(np.sqrt(prior))]))
        values, vectors = np.linalg.eigh(half @ half.T)
        return cls(features, theta, vectors * np.sqrt(np.maximum(values, 0)))

    def draws(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Return coefficients (number, c · r) that the examples leave possible."""
        noise = rng.standard_normal((number, len(self.theta)))
        return np.asarray(self.theta + noise @ self.root.T)

    def at(
        self, p: FloatArray, extra: FloatArray | None = None
    ) -> Callable[[FloatArray], FloatArray]:
        """Return what coefficients (c · r,) make of new probabilities (m, k)."""
        logs, f = self.features(p, extra)
        return lambda theta: np.exp(_moved(logs, f, theta))


def _moved(logs: FloatArray, f: FloatArray, theta: FloatArray) -> FloatArray:
    c, r = f.shape[1:]
    moved = logs.copy()
    moved[:, -c:] += np.einsum("ijr,jr->ij", f, theta.reshape(c, r))
    found: FloatArray = log_softmax(moved, axis=1)
    return found


def _hessian(f: FloatArray, q: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the negative second derivatives of the log likelihood, (c · r, c · r)."""
    n, c, r = f.shape
    each = (q[:, :, None] * f).reshape(n, c * r)
    total: FloatArray = -(each * weight[:, None]).T @ each
    for j in range(c):
        some = slice(j * r, (j + 1) * r)
        total[some, some] += (f[:, j] * (weight * q[:, j])[:, None]).T @ f[:, j]
    return total
