"""A small correction of calibrated probabilities, with its sampling error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics.logistic import fit_offset_regression, shifted_log_probabilities
from vennforest.metrics.smooth import spline_features
from vennforest.metrics.variance import sum_by_group

LINEAR_PRECISION, SPLINE_PRECISION = 1.0, 10.0
"""Prior precision of intercept and slopes, and of spline terms, per unit of spread."""


@dataclass(frozen=True, eq=False)
class Recalibration:
    """Logistic map that corrects calibrated probabilities by calibration examples.

    ``log q_j = log p_j + f_j · theta_j + const``: a logistic regression with the probabilities'
    own log-odds as the offset, so 0 is no change. ``theta`` maximises the penalised likelihood and
    is normal around its true value with the covariance ``H⁻¹ (G + Λ) H⁻¹``: G the sum of squared
    scores (White 1982), over groups of dependent examples, and Λ the ``precision`` of the prior.
    ``root`` is a square root of the covariance.

    The features are log-odds, of two classes also splines of them with ``knots``, and covariates,
    shifted by ``mean`` and divided by ``spread``. Probabilities are clipped at ``min_probability``.
    """

    min_probability: float
    knots: FloatArray
    mean: FloatArray
    spread: FloatArray
    precision: FloatArray
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

        ``repeats`` (n,) are numbers of examples per row, ``importance`` (n,) density ratios of new
        to old rows, ``groups`` (n,) are codes of groups of dependent examples, and
        ``covariates`` (n, e) are further features.
        """
        repeats = np.ones(len(p)) if repeats is None else repeats
        weight = repeats if importance is None else repeats * importance
        n = max(float(repeats.sum()), 10.0)
        min_probability, knots = 0.5 / n, np.empty(0)
        if p.shape[1] == 2:
            levels = (0.05, 0.35, 0.65, 0.95) if n >= 100 else (0.1, 0.5, 0.9)
            knots = np.unique(np.quantile(_logits(p, min_probability)[:, 1], levels))
        logits, features = _recalibration_features(p, covariates, min_probability, knots)
        columns = features.reshape(-1, features.shape[2])
        mean, spread = columns.mean(axis=0), columns.std(axis=0)
        mean[0], spread[0] = 0.0, 1.0
        spread[spread < 1e-9] = 1.0
        features = (features - mean) / spread
        precision = np.full(len(mean), LINEAR_PRECISION)
        precision[2 : max(2, len(knots))] = SPLINE_PRECISION
        precision = np.tile(precision, features.shape[1])
        fit = fit_offset_regression(logits, features, codes, weight, precision)
        if groups is None:  # the examples of a row are independent
            scores = fit.scores * (weight / np.sqrt(repeats))[:, None]
        else:
            scores = sum_by_group(fit.scores * weight[:, None], groups)
        half = np.linalg.solve(
            fit.hessian, np.column_stack([scores.T, np.diag(np.sqrt(precision))])
        )
        values, vectors = np.linalg.eigh(half @ half.T)
        root = vectors * np.sqrt(np.maximum(values, 0))
        return cls(min_probability, knots, mean, spread, precision, fit.theta, root)

    def draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw coefficients (n_draws, c * r) from their approximate distribution."""
        noise = rng.standard_normal((n_draws, len(self.theta)))
        return np.asarray(self.theta + noise @ self.root.T)

    def at(
        self, p: FloatArray, covariates: FloatArray | None = None
    ) -> Callable[[FloatArray], FloatArray]:
        """Return a function from coefficients to the corrected probabilities of rows p (m, k)."""
        logits, features = _recalibration_features(p, covariates, self.min_probability, self.knots)
        features = (features - self.mean) / self.spread
        return lambda theta: np.exp(shifted_log_probabilities(logits, features, theta))


def _recalibration_features(
    p: FloatArray, covariates: FloatArray | None, min_probability: float, knots: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log-probabilities (n, k) and features (n, c, r) before these are scaled."""
    logits = _logits(p, min_probability)
    corrected = logits[:, 1:] if logits.shape[1] == 2 else logits
    columns = [np.ones_like(corrected), corrected]
    if len(knots) > 2:
        columns = list(spline_features(corrected[:, 0], knots).T[:, :, None])
    if covariates is not None:
        columns += [np.broadcast_to(x[:, None], corrected.shape) for x in covariates.T]
    return logits, np.stack(columns, axis=2)


def _logits(p: FloatArray, min_probability: float) -> FloatArray:
    """Return log-probabilities (n, k), of two classes log-odds beside a column of zeros."""
    logs = np.log(np.clip(p, min_probability, 1 - min_probability))
    if p.shape[1] == 2:
        return np.column_stack([np.zeros(len(p)), logs[:, 1] - logs[:, 0]])
    return logs
