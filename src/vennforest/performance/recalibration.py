"""A small correction of calibrated probabilities, with its sampling error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics.logistic import fit_logistic, shifted_log_probabilities, sum_by_group

LINEAR_PRECISION, SPLINE_PRECISION = 1.0, 10.0
"""Prior precision of intercept and slopes, and of spline terms, per unit of spread."""


@dataclass(frozen=True, eq=False)
class Features:
    """Features of a recalibration map: log-probabilities, splines of them, and covariates.

    Probabilities are clipped at ``min_probability``, half an example. The map of two classes may
    bend at ``knots``, log-odds. Features are shifted by ``mean`` and divided by ``spread``;
    ``precision`` is that of the prior of their coefficients.
    """

    min_probability: float
    knots: FloatArray
    mean: FloatArray
    spread: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, p: FloatArray, weight: FloatArray, covariates: FloatArray | None) -> Self:
        """Return features that suit calibration examples with probabilities p (n, k)."""
        n = max(float(weight.sum()), 10.0)
        min_probability = 0.5 / n
        knots = np.empty(0)
        if p.shape[1] == 2:
            levels = (0.05, 0.35, 0.65, 0.95) if n >= 100 else (0.1, 0.5, 0.9)
            knots = np.unique(np.quantile(_logits(p, min_probability)[:, 1], levels))
        raw = cls(min_probability, knots, np.zeros(1), np.ones(1), np.ones(1))
        features = raw(p, covariates)[1]
        columns = features.reshape(-1, features.shape[-1])
        mean, spread = columns.mean(axis=0), columns.std(axis=0)
        mean[0], spread[0] = 0.0, 1.0
        spread[spread < 1e-9] = 1.0
        precision = np.full(len(mean), LINEAR_PRECISION)
        precision[2 : max(2, len(knots))] = SPLINE_PRECISION
        return cls(min_probability, knots, mean, spread, precision)

    def __call__(
        self, p: FloatArray, covariates: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return log-probabilities (n, k) up to a constant a row, and features (n, c, r).

        c is the number of classes whose log-probability is corrected: the second of two, else all.
        """
        logits = _logits(p, self.min_probability)
        corrected = logits[:, 1:] if logits.shape[1] == 2 else logits
        columns = [np.ones_like(corrected), corrected]
        if len(self.knots) > 2:
            columns += [term[:, None] for term in _spline_terms(corrected[:, 0], self.knots)]
        if covariates is not None:
            columns += [np.broadcast_to(x[:, None], corrected.shape) for x in covariates.T]
        return logits, (np.stack(columns, axis=2) - self.mean) / self.spread


def _spline_terms(z: FloatArray, knots: FloatArray) -> list[FloatArray]:
    """Return natural cubic splines beyond the straight line (Hastie et al. 2009, eq. 5.4)."""

    def divided_cubes(knot: float) -> FloatArray:
        cubes = np.maximum(z - knot, 0) ** 3 - np.maximum(z - knots[-1], 0) ** 3
        return np.asarray(cubes / (knots[-1] - knot))

    return [divided_cubes(knot) - divided_cubes(knots[-2]) for knot in knots[:-2]]


def _logits(p: FloatArray, min_probability: float) -> FloatArray:
    """Return log-probabilities (n, k), of two classes log-odds beside a column of zeros."""
    logs = np.log(np.clip(p, min_probability, 1 - min_probability))
    if p.shape[1] == 2:
        return np.column_stack([np.zeros(len(p)), logs[:, 1] - logs[:, 0]])
    return logs


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A small map from calibrated probabilities to those that the examples support.

    ``log q_j = log p_j + f_j · theta_j + const``: a logistic regression with the probabilities'
    own log-odds as the offset, so 0 is no change. ``theta`` maximises the penalised likelihood and
    is normal around its true value with the covariance ``H⁻¹ (G + Λ) H⁻¹``: G the sum of squared
    scores (White 1982), over groups where examples depend on each other, and Λ the precision of
    the prior, whose pull towards 0 counts as an error of that size. ``root`` is a square root of
    the covariance.
    """

    features: Features
    theta: FloatArray
    root: FloatArray

    @classmethod
    def fit(
        cls,
        p: FloatArray,
        codes: IntArray,
        *,
        repeats: FloatArray | None = None,
        importance: FloatArray | None = None,
        groups: IntArray | None = None,
        covariates: FloatArray | None = None,
    ) -> Self:
        """Fit the map to n calibration examples with probabilities p (n, k) and class indices.

        ``repeats`` (n,) is the number of examples that each row stands for, ``importance`` (n,) the
        density ratio of the rows that the map is for, over the examples, ``groups`` (n,) numbers
        dependent examples, and on ``covariates`` (n, e) labels may depend beside p.
        """
        repeats = np.ones(len(p)) if repeats is None else repeats
        weight = repeats if importance is None else repeats * importance
        features = Features.of(p, repeats, covariates)
        logits, columns = features(p, covariates)
        precision = np.tile(features.precision, columns.shape[1])
        fit = fit_logistic(logits, columns, codes, weight, precision)
        if groups is None:  # the examples of a row are independent
            scores = fit.scores * (weight / np.sqrt(repeats))[:, None]
        else:
            scores = sum_by_group(fit.scores * weight[:, None], groups)
        half = np.linalg.solve(
            fit.hessian, np.column_stack([scores.T, np.diag(np.sqrt(precision))])
        )
        values, vectors = np.linalg.eigh(half @ half.T)
        return cls(features, fit.theta, vectors * np.sqrt(np.maximum(values, 0)))

    def draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw coefficients (n_draws, c * r) from their approximate distribution."""
        noise = rng.standard_normal((n_draws, len(self.theta)))
        return np.asarray(self.theta + noise @ self.root.T)

    def at(
        self, p: FloatArray, covariates: FloatArray | None = None
    ) -> Callable[[FloatArray], FloatArray]:
        """Return a function from coefficients to the corrected probabilities of rows p (m, k)."""
        logits, columns = self.features(p, covariates)
        return lambda theta: np.exp(shifted_log_probabilities(logits, columns, theta))
