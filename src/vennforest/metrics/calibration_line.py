"""Calibration in the large and its slope, and tests of calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfc, expit, ndtri

from vennforest._validation import FloatArray, check_inside
from vennforest.metrics._inputs import (
    EventEstimates,
    check_estimates,
    group_numbers,
    positive_problem,
)

STEPS = 60
CONVERGED = 1e-10


@dataclass(frozen=True)
class IntervalEstimate:
    """A value with the ends of its confidence interval; NaN where there is none."""

    value: float
    low: float
    high: float


NONE = IntervalEstimate(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class CalibrationLine:
    """How probabilities are off as a whole.

    Attributes
    ----------
    observed_expected : IntervalEstimate
        Number of positive rows over the sum of the probabilities; 1 if calibrated, above 1 where
        probabilities are too low.
    intercept : IntervalEstimate
        What has to be added to the log-odds so they are right on average (calibration in the
        large); 0 if calibrated, above 0 where probabilities are too low.
    slope : IntervalEstimate
        What the log-odds have to be multiplied by, in a logistic regression with an intercept of
        its own; 1 if calibrated, below 1 where probabilities are too extreme.
    certain : int
        Rows whose probability is exactly 0 or 1: their log-odds are infinite, and there is neither
        intercept nor slope.
    """

    observed_expected: IntervalEstimate
    intercept: IntervalEstimate
    slope: IntervalEstimate
    certain: int


def calibration_line(
    y: ArrayLike,
    p: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
) -> CalibrationLine:
    """Return calibration intercept and slope, and observed over expected.

    Parameters
    ----------
    y, p, classes, pos_label
        As in ``brier_decomposition``.
    groups : array-like of shape (n,), optional
        Rows of one group count as one observation, in the intervals.
    level : float
        Confidence of the intervals, in (0, 1).

    Notes
    -----
    Cox (1958): logit P(y = 1) = a + b logit p, fitted by maximum likelihood; the intercept is that
    of the same model with b = 1 (Van Calster et al. 2019). Their intervals are Wald's, with the
    sandwich variance where groups are given. Without a maximum (labels separated by p, or of one
    class) the value is NaN. The interval of O/E is symmetric in its logarithm, with the variance
    of the number observed, n q (1 - q) for its share q; of groups the variance between them.
    """
    check_inside(level, "level")
    outcome, estimate, _ = positive_problem(y, p, None, classes, pos_label)
    n = len(outcome)
    member = None if groups is None else group_numbers(groups, n)
    z = float(ndtri((1 + level) / 2))
    ratio = _observed_expected(outcome, estimate, member, z)
    certain = int(((estimate == 0) | (estimate == 1)).sum())
    if certain:
        return CalibrationLine(ratio, NONE, NONE, certain)
    odds = np.log(estimate) - np.log1p(-estimate)
    ones = np.ones((n, 1))
    intercept = _fit(ones, odds, outcome, member, z)
    slope = _fit(np.column_stack([np.ones(n), odds]), np.zeros(n), outcome, member, z)
    return CalibrationLine(ratio, intercept, slope, 0)


def _observed_expected(
    outcome: FloatArray, estimate: FloatArray, member: Any, z: float
) -> IntervalEstimate:
    observed, expected, n = outcome.sum(), estimate.sum(), len(outcome)
    if not observed or not expected:
        return NONE if not expected else IntervalEstimate(0.0, float("nan"), float("nan"))
    ratio = observed / expected
    variance = observed * (1 - observed / n)
    if member is not None:
        sums = np.bincount(member, weights=outcome - observed / n)
        variance = sums @ sums * len(sums) / max(1, len(sums) - 1)
    spread = float(np.exp(z * np.sqrt(variance) / observed))
    return IntervalEstimate(float(ratio), float(ratio / spread), float(ratio * spread))


def _fit(
    design: FloatArray, offset: FloatArray, outcome: FloatArray, member: Any, z: float
) -> IntervalEstimate:
    """Return the last coefficient of a logistic regression, by Newton's method."""
    k = design.shape[1]
    if outcome.all() or not outcome.any() or (k > 1 and np.ptp(design[:, -1]) == 0):
        return NONE
    scale = np.ones(k)
    if k > 1:  # columns of like size, so the system is well conditioned
        scale[-1] = np.abs(design[:, -1]).max() or 1.0
    scaled = design / scale
    beta = np.zeros(k)
    loss = _loss(scaled @ beta + offset, outcome)
    for _ in range(STEPS):
        mean = expit(scaled @ beta + offset)
        gradient = scaled.T @ (outcome - mean)
        hessian = (scaled * (mean * (1 - mean))[:, None]).T @ scaled
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            return NONE
        size = 1.0
        while (new := _loss(scaled @ (beta + size * step) + offset, outcome)) > loss + 1e-12:
            size /= 2
            if size < 1e-10:
                break
        beta, loss = beta + size * step, new
        if float(gradient @ step) < CONVERGED:
            break
    else:
        return NONE
    if loss < 1e-6 or not np.isfinite(beta).all():  # labels are separated: no maximum
        return NONE
    mean = expit(scaled @ beta + offset)
    inverse = np.linalg.inv((scaled * (mean * (1 - mean))[:, None]).T @ scaled)
    if member is not None:
        moves = scaled * (outcome - mean)[:, None]
        sums = np.column_stack([np.bincount(member, weights=moves[:, i]) for i in range(k)])
        m = len(sums)
        inverse = inverse @ (sums.T @ sums) @ inverse * (m / max(1, m - 1))
    value = float(beta[-1] / scale[-1])
    error = float(np.sqrt(inverse[-1, -1]) / scale[-1])
    return IntervalEstimate(value, value - z * error, value + z * error)


def _loss(odds: FloatArray, outcome: FloatArray) -> float:
    return float((np.logaddexp(0, odds) - outcome * odds).sum())


class CalibrationTest(NamedTuple):
    """The statistic of a test of calibration and its p-value in [0, 1]."""

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
    """Test calibration by the distance of the Brier score from what the estimates promise.

    Parameters
    ----------
    y, p, sample_weight, classes
        As in ``brier_decomposition``.
    pos_label : label, optional
        The positive class; by default the second of two. With more than two classes it is tested
        against the rest; without it all classes are tested at once.

    Returns
    -------
    CalibrationTest
        z, above 0 where the Brier score is worse than promised, and its two-sided p-value.

    Notes
    -----
    Spiegelhalter (1986): z = Σ (y − p)(1 − 2p) / √(Σ (1 − 2p)² p (1 − p)), standard normal in
    large samples of independent observations with P(y = 1) = p. For any number of classes the same
    argument gives z = Σ (‖p‖² − p_y) / √(Σ (Σ_j p_j³ − ‖p‖⁴)), p_y the probability of the observed
    label, which for two is the formula before. Where the estimates leave no variance (all 0, ½ or
    1) the statistic is 0 with p-value 1 if the labels agree, and infinite with p-value 0 if not.
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
    y, p, sample_weight, classes
        As in ``brier_decomposition``.
    pos_label : label, optional
        The positive class; by default the second of two. With more than two classes and no
        ``pos_label`` the confidence in the predicted label is tested.

    Returns
    -------
    CalibrationTest
        (max C_k − min C_k) / σ, C_0 = 0 among them, and its p-value.

    Notes
    -----
    C_k = Σ (y_i − p_i) over the k smallest estimates, σ² = Σ p_i (1 − p_i) (Arrieta-Ibarra et al.
    2022, arXiv:2205.09680; Tygert 2022, arXiv:2202.00100). In large samples of independent,
    calibrated observations C/σ is a Brownian motion on [0, 1], whose range has Feller's (1951)
    law. Sums are taken only where the estimate changes, so the order of equal estimates does
    not count; few distinct estimates, or few observations, make the p-value too large, never (in
    the limit) too small. No variance: as ``spiegelhalter_test``.
    """
    problem: EventEstimates = check_estimates(y, p, sample_weight, classes, pos_label).main()
    q, place = np.unique(problem.p, return_inverse=True)
    total = np.bincount(place, weights=problem.weight)
    happened = np.bincount(place, weights=problem.weight * problem.outcome)
    walk = np.concatenate([[0.0], np.cumsum(happened - total * q)])
    statistic = _standardised(float(np.ptp(walk)), float(total @ (q * (1 - q))))
    return CalibrationTest(statistic, range_sf(statistic))


def _standardised(excess: float, variance: float) -> float:
    if variance > 0:
        return excess / float(np.sqrt(variance))
    return float(np.copysign(np.inf, excess)) if excess else 0.0


def range_sf(x: float) -> float:
    """Return P(max W − min W > x), W a Brownian motion on [0, 1]; x not below 0.

    Feller (1951), doi:10.1214/aoms/1177729589: the tail series for large x, its theta-function
    transform for small.
    """
    if x == 0:
        return 1.0
    if x > 1.5:
        k = np.arange(1, 40)
        return float(4 * ((-1.0) ** (k - 1) * k * erfc(k * x / np.sqrt(2))).sum())
    half = np.arange(1, 40, 2) * np.pi / 2
    terms = (8 / x**2 + 2 / half**2) * np.exp(-2 * half**2 / x**2)
    return float(1 - terms.sum())
