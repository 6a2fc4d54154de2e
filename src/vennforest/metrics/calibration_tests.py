"""Tests of the hypothesis that probabilities are calibrated."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, erfc, logit

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics._inputs import check_estimates
from vennforest.metrics.dependence import variance_of_sums


class CalibrationTest(NamedTuple):
    """Statistic of a test of calibration, and its p-value in [0, 1]."""

    statistic: float
    pvalue: float


def spiegelhalter_test(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CalibrationTest:
    """Test calibration by the difference between the Brier score and its expected value.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``. With more than two classes and no ``pos_label``, all classes
        are tested at once.

    Returns
    -------
    CalibrationTest
        z, above 0 if the Brier score is worse than expected, and its two-sided p-value.

    Notes
    -----
    Spiegelhalter (1986): z = Σ (y − p)(1 − 2p) / √(Σ (1 − 2p)² p (1 − p)), standard normal in
    large samples of independent observations with P(y = 1) = p. For any number of classes the same
    argument gives z = Σ (‖p‖² − p_y) / √(Σ (Σ_j p_j³ − ‖p‖⁴)), p_y the probability of the observed
    label, which agrees with the formula above for two classes. If the variance is 0 (estimates of
    0, ½ or 1), z is 0 with p-value 1 if the numerator is 0, and infinite with p-value 0 if not.
    """
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    weight = estimates.weight
    if estimates.positive is not None:
        outcome, q, _ = estimates.of_column(estimates.positive)
        excess = (outcome - q) * (1 - 2 * q)
        variance = (1 - 2 * q) ** 2 * q * (1 - q)
    else:
        q = estimates.p
        square = np.einsum("ij,ij->i", q, q)
        excess = square - np.take_along_axis(q, estimates.codes[:, None], axis=1)[:, 0]
        # Σ p_j³ − ‖p‖⁴ written as a sum: the variance of p_Y, Y drawn from p.
        variance = np.einsum("ij,ij->i", q, (q - square[:, None]) ** 2)
    z = _standardised(float(weight @ excess), float(weight @ variance))
    return CalibrationTest(z, float(erfc(abs(z) / np.sqrt(2))))


def kuiper_test(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CalibrationTest:
    """Test calibration by the range of the cumulative differences between labels and estimates.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``. With more than two classes and no ``pos_label`` the
        confidence in the predicted label is tested.

    Returns
    -------
    CalibrationTest
        (max C_k − min C_k) / σ, C_0 = 0 among them, and its p-value.

    Notes
    -----
    C_k is Σ (y_i − p_i) over the k smallest estimates, σ² = Σ p_i (1 − p_i) (Arrieta-Ibarra et al.
    2022, arXiv:2205.09680; Tygert 2022, arXiv:2202.00100). In large samples of independent,
    calibrated observations C/σ is a Brownian motion on [0, 1], whose range has Feller's (1951)
    law. C_k is evaluated only where the estimate changes, so the order of equal estimates does not
    matter. With few distinct estimates or observations the p-value is too large, but never (in
    the limit) too small. A variance of 0 is treated as in ``spiegelhalter_test``.
    """
    problem = check_estimates(y, p, sample_weight, classes, pos_label).main()
    q, level = np.unique(problem.p, return_inverse=True)
    total = np.bincount(level, weights=problem.weight)
    happened = np.bincount(level, weights=problem.weight * problem.outcome)
    walk = np.concatenate([[0.0], np.cumsum(happened - total * q)])
    statistic = _standardised(float(np.ptp(walk)), float(total @ (q * (1 - q))))
    return CalibrationTest(statistic, range_sf(statistic))


def grouped_pvalues(
    outcome: FloatArray, p: FloatArray, groups: IntArray | None, correlation: float
) -> tuple[float, float, float]:
    """Return the p-values of three tests of calibration of rows (n,) that depend within groups.

    Spiegelhalter's and Kuiper's statistics with the variances of `variance_of_sums`, and the score
    test of intercept 0 and slope 1 of the log-odds, χ² with two degrees of freedom.
    """
    residual, features = outcome - p, np.ones((len(p), 3))
    features[:, 1] = 1 - 2 * p
    features[:, 2] = np.where((p > 0) & (p < 1), logit(np.clip(p, 1e-300, 1 - 1e-16)), 0)
    sums, covariance = residual @ features, variance_of_sums(features, p, groups, correlation)
    z = _standardised(float(sums[1]), float(covariance[1, 1]))
    line = np.ix_([0, 2], [0, 2])
    inverse = np.linalg.pinv(covariance[line], hermitian=True)
    of_line = chdtrc(np.linalg.matrix_rank(covariance[line]), sums[[0, 2]] @ inverse @ sums[[0, 2]])
    level = np.unique(p, return_inverse=True)[1]
    walk = np.append(0.0, np.cumsum(np.bincount(level, residual)))
    reach = _standardised(float(np.ptp(walk)), float(covariance[0, 0]))
    return float(erfc(abs(z) / np.sqrt(2))), range_sf(reach), float(of_line)


def _standardised(excess: float, variance: float) -> float:
    if variance > 0:
        return excess / float(np.sqrt(variance))
    return float(np.copysign(np.inf, excess)) if excess else 0.0


def range_sf(x: float) -> float:
    """Return P(max W − min W > x) for a Brownian motion W on [0, 1] and x >= 0.

    Feller (1951), doi:10.1214/aoms/1177729589: the tail series for large x, and its theta-function
    transform for small x.
    """
    if x == 0:
        return 1.0
    if x > 1.5:
        k = np.arange(1, 40)
        return float(4 * ((-1.0) ** (k - 1) * k * erfc(k * x / np.sqrt(2))).sum())
    half = np.arange(1, 40, 2) * np.pi / 2
    terms = (8 / x**2 + 2 / half**2) * np.exp(-2 * half**2 / x**2)
    return float(1 - terms.sum())
